//! Slurm's commands, for programs and people that know them: `sbatch squeue sacct scancel srun scontrol sinfo` speak to
//! a hub. Which one is meant is told by the name that the program was called by; `laboro slurm install` makes the links.
//! A job is a job, an array an array, a partition a group; see docs/slurm.md for what is not the same.

pub(crate) mod args;

mod columns;
mod depend;
mod jobs;
pub(crate) mod options;
mod pattern;
mod sacct;
pub(crate) mod sbatch;
mod scancel;
mod scontrol;
mod sinfo;
mod slip;
mod squeue;
mod srun;
mod state;
mod step;
mod table;
mod units;

use crate::args::hub::HubArgs;
use crate::exit::Exit;
use crate::hub_client::{Hub, talk};
use crate::output::{data, say};
use jobs::KnownJob;
use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// The version whose words are spoken.
const VERSION: &str = "22.05.8";

/// By the name that they are called by.
const COMMANDS: [&str; 7] = ["sbatch", "squeue", "sacct", "scancel", "srun", "scontrol", "sinfo"];

/// Why a command does not do what was asked. Said as Slurm says it.
#[derive(Debug)]
pub(crate) enum Fault {
    Words(String),
    Error(anyhow::Error),
}

impl From<String> for Fault {
    fn from(words: String) -> Fault {
        Fault::Words(words)
    }
}

impl From<&str> for Fault {
    fn from(words: &str) -> Fault {
        Fault::Words(words.to_owned())
    }
}

impl From<anyhow::Error> for Fault {
    fn from(error: anyhow::Error) -> Fault {
        Fault::Error(error)
    }
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Fault {
        Fault::Error(error.into())
    }
}

/// Called by one of Slurm's names: does what that command does.
pub(crate) fn main_if_called() -> Option<ExitCode> {
    let (command, args) = arguments(&COMMANDS)?;
    Some(ExitCode::from(match args {
        Ok(args) => call(command, args),
        Err(fault) => tell(command, fault),
    }))
}

/// The name that this program was called by, if it is one of these, and what was typed behind it.
pub(crate) fn arguments(
    names: &[&'static str],
) -> Option<(&'static str, Result<Vec<String>, Fault>)> {
    let mut args = std::env::args_os();
    let called = args.next()?;
    let name = Path::new(&called).file_name().and_then(OsStr::to_str)?;
    let name = names.iter().find(|known| **known == name)?;
    let args: Result<Vec<String>, _> = args.map(std::ffi::OsString::into_string).collect();
    let wrong = |word: std::ffi::OsString| format!("`{}` is not text", word.to_string_lossy());
    Some((name, args.map_err(|word| Fault::Words(wrong(word)))))
}

/// Says what went wrong, and gives the exit status for it.
pub(crate) fn tell(command: &str, fault: Fault) -> u8 {
    match fault {
        Fault::Words(words) => say(format_args!("{command}: error: {words}")),
        Fault::Error(error) => {
            let io = error.downcast_ref::<std::io::Error>();
            if io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe) {
                return 0;
            }
            say(format_args!("{command}: error: {error:#}"));
        }
    }
    1
}

fn call(command: &str, args: Vec<String>) -> u8 {
    if let [only] = &args[..]
        && (only == "--version" || (only == "-V" && command != "srun"))
    {
        return u8::from(put(&format!("slurm {VERSION}\n")).is_err());
    }
    if let [only] = &args[..]
        && (only == "--help" || only == "--usage")
    {
        let words = format!(
            "{command} of laboro {}: speaks to a hub as Slurm's {command} speaks to its controller.\n\
             See `man laboro-slurm`, or docs/slurm.md for the options.\n",
            env!("CARGO_PKG_VERSION")
        );
        return u8::from(put(&words).is_err());
    }
    let hub = HubArgs::default();
    let done = match command {
        "sbatch" => sbatch::run(&hub, args),
        "squeue" => squeue::run(&hub, args),
        "sacct" => sacct::run(&hub, args),
        "scancel" => scancel::run(&hub, args),
        "srun" => srun::run(&hub, args),
        "scontrol" => scontrol::run(&hub, args),
        _ => sinfo::run(&hub, args),
    };
    done.unwrap_or_else(|fault| tell(command, fault))
}

/// `laboro slurm ...`
pub(crate) fn run(args: &args::Slurm) -> anyhow::Result<Exit> {
    match &args.what {
        args::SlurmCommand::Install(install) => install_links(&install.dir, &COMMANDS),
        args::SlurmCommand::Step(task) => step::run(&task.script, task.value.as_deref()),
    }
}

/// Links by these names to this program.
pub(crate) fn install_links(dir: &Path, names: &[&str]) -> anyhow::Result<Exit> {
    use anyhow::Context;
    crate::files::make_dir(dir)?;
    let dir = &dir.canonicalize().with_context(|| format!("{} cannot be used", dir.display()))?;
    let program = std::env::current_exe().context("the path of this program is not known")?;
    for name in names {
        let link = dir.join(name);
        let is_ours = std::fs::read_link(&link).is_ok_and(|to| to == program);
        if is_ours {
            continue;
        }
        // What is there may be Slurm's own.
        if link.symlink_metadata().is_ok() {
            return Err(crate::exit::usage(format_args!(
                "{} is there already; choose an empty directory",
                link.display()
            )));
        }
        std::os::unix::fs::symlink(&program, &link)
            .with_context(|| format!("{} cannot be made", link.display()))?;
    }
    say(format_args!(
        "{} {} made; now type: export PATH={}:$PATH",
        names.len(),
        if names.len() == 1 { "link" } else { "links" },
        dir.display()
    ));
    Ok(Exit::Done)
}

pub(crate) fn put(text: &str) -> std::io::Result<()> {
    let mut out = data();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Speaks with the hub.
pub(crate) fn ask(
    args: &HubArgs,
    conversation: impl AsyncFnOnce(&Hub) -> Result<u8, Fault>,
) -> Result<u8, Fault> {
    let mut came_to = Ok(0);
    let exit = talk(args, async |hub| {
        came_to = conversation(hub).await;
        Ok(Exit::Done)
    })?;
    if exit == Exit::Interrupted { Ok(130) } else { came_to }
}

/// How long one question waits for the end of a job.
const PATIENCE: Duration = Duration::from_secs(60);

/// The exit status is that of the worst task.
pub(crate) async fn wait_for(hub: &Hub, job: u32) -> Result<u8, Fault> {
    loop {
        let waited = hub.wait(&[job], PATIENCE).await.map_err(anyhow::Error::from)?;
        if waited.finished {
            break;
        }
    }
    let known = known(hub, job).await?;
    let rows = known.rows(hub, true).await?;
    Ok(rows.iter().map(jobs::JobRow::status).max().unwrap_or(0))
}

async fn known(hub: &Hub, job: u32) -> Result<KnownJob, Fault> {
    KnownJob::ask(hub, job).await
}

/// Who is asking; jobs of a hub are everybody's who may ask it.
fn user() -> String {
    let uid = rustix::process::getuid().as_raw();
    let named = std::fs::read_to_string("/etc/passwd").ok().and_then(|text| {
        let is_it = |line: &&str| line.split(':').nth(2) == Some(uid.to_string().as_str());
        text.lines().find(is_it).and_then(|line| line.split(':').next()).map(str::to_owned)
    });
    named.or_else(|| std::env::var("USER").ok()).unwrap_or_else(|| uid.to_string())
}

/// Without the domain.
fn host() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    name.split('.').next().unwrap_or_default().to_owned()
}

fn signal_number(name: &str) -> Option<i32> {
    if let Ok(number) = name.parse::<i32>() {
        return (1..=64).contains(&number).then_some(number);
    }
    let name = name.to_ascii_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    Some(match name {
        "HUP" => 1,
        "INT" => 2,
        "QUIT" => 3,
        "KILL" => 9,
        "USR1" => 10,
        "USR2" => 12,
        "ALRM" => 14,
        "TERM" => 15,
        "CONT" => 18,
        "STOP" => 19,
        "TSTP" => 20,
        _ => return None,
    })
}
