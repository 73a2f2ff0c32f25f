//! Which of the two is meant, a run here or a hub. What only looks takes a run that is here, unless a hub is named; what
//! changes something takes no guess.

use super::access;
use crate::args::hub::WhereArgs;
use crate::exit::usage;
use crate::output::say;
use crate::run::{RunDir, sockets};
use anyhow::anyhow;
use laboro_api::client::{Client, Target};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often a process that is ending is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(super) enum HubOrRun {
    Hub(Box<Target>, String),
    Run(RunPlace),
}

/// The directory of a run, and the socket of the process that runs it, if it lives.
#[derive(Debug, Clone)]
pub(crate) struct RunPlace {
    pub(crate) dir: PathBuf,
    pub(crate) socket: Option<PathBuf>,
}

impl RunPlace {
    fn find(args: &WhereArgs) -> anyhow::Result<RunPlace> {
        let dir = RunDir::find(&root(args), args.run.as_ref().and_then(Option::as_deref))?;
        let socket = sockets(&dir).into_iter().find(|path| UnixStream::connect(path).is_ok());
        Ok(RunPlace { dir, socket })
    }

    /// Whether the process that wrote its number beside the journal is there. Trying its lock would be surer, and would
    /// get in the way of a run that starts at that moment.
    pub(crate) fn is_alive(&self) -> bool {
        let lock = std::fs::read_to_string(self.dir.join("journal/lock")).unwrap_or_default();
        let Ok(process) = lock.trim().parse::<u32>() else { return false };
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        // After the name, which may hold anything. One that has ended stays until its parent has asked how.
        let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
        state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
    }

    /// The socket of a run that is just ending takes connections and answers nothing.
    pub(super) async fn answers(&self) -> bool {
        let Some(socket) = &self.socket else { return true };
        let client = Client::new(self.target(socket));
        let answer = client.get::<laboro_api::Version>("version").await;
        !answer.is_err_and(|error| error.is_away())
    }

    pub(super) async fn after_its_end(self) -> RunPlace {
        while self.is_alive() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        RunPlace { socket: None, ..self }
    }

    /// What it is called in messages.
    pub(crate) fn name(&self) -> String {
        format!("run {}", self.dir.file_name().unwrap_or_default().to_string_lossy())
    }

    pub(super) fn target(&self, socket: &Path) -> Target {
        let token = Some("run".to_owned());
        Target { local: Some(socket.to_owned()), token, ..Target::new(self.name(), 0) }
    }
}

fn root(args: &WhereArgs) -> PathBuf {
    args.state.clone().unwrap_or_else(|| PathBuf::from(".laboro"))
}

/// Other things may be in the directory.
fn has_runs(args: &WhereArgs) -> bool {
    RunDir::is_in(&root(args))
}

/// Said by an option, else by the environment, else because there is no run here.
fn is_hub_meant(args: &WhereArgs) -> anyhow::Result<bool> {
    let is_said = args.says_hub()?;
    Ok(is_said.unwrap_or_else(|| access::is_in_environment() || !has_runs(args)))
}

/// For what only looks.
pub(super) fn to_look(args: &WhereArgs) -> anyhow::Result<HubOrRun> {
    let is_chosen = args.says_hub()?.is_none();
    let could_be_both = || is_chosen && has_runs(args) && access::is_known(&args.hub);
    if !is_hub_meant(args)? {
        let run = RunPlace::find(args)?;
        if could_be_both() {
            say(format_args!("laboro: this is {} in .laboro; --hub asks the hub", run.name()));
        }
        return Ok(HubOrRun::Run(run));
    }
    let is_guess = is_chosen && !access::is_in_environment();
    match hub(args) {
        Err(error) if is_guess && !access::is_known(&args.hub) => {
            Err(anyhow!("no run was made here, and {error}"))
        }
        found => {
            if could_be_both() {
                say(
                    "laboro: this is the hub that the environment names; --run asks the run in .laboro",
                );
            }
            found
        }
    }
}

/// For what changes something.
pub(super) fn to_change(args: &WhereArgs) -> anyhow::Result<HubOrRun> {
    let is_here = has_runs(args);
    let is_run = match args.says_hub()? {
        Some(says_hub) => !says_hub,
        None if is_here && access::is_known(&args.hub) => {
            return Err(usage(
                "there is a run here (.laboro) and a hub is known: say --run or --hub",
            ));
        }
        None => is_here,
    };
    match is_run {
        true => RunPlace::find(args).map(HubOrRun::Run),
        false => hub(args),
    }
}

fn hub(args: &WhereArgs) -> anyhow::Result<HubOrRun> {
    let (target, group) = access::target(&args.hub)?;
    Ok(HubOrRun::Hub(Box::new(target), group))
}
