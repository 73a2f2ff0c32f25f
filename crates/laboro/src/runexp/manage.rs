//! The manager itself: finds what is left to do, opens a hub in this process and a door for runners, and waits
//! until all is done. The files are its journal, so that an original manager could go on where it stopped.

use super::args::Manage;
use super::config::Config as Home;
use super::dashboard::{self, Entrance, ManagerDashboard};
use super::files::{ManagerNews, ResultFiles, SharedFiles};
use super::journal::ResultJournal;
use super::recorder::Recorder;
use super::telling::{follow, tell, tell_interrupted};
use crate::args::Success;
use crate::exit::{Exit, usage};
use crate::output::{counted, data, safe, say};
use crate::run::Signals;
use crate::run::results::check_names;
use anyhow::bail;
use bytes::Bytes;
use laboro_core::{
    Command, Conduct, ConductRule, Config, Hub, JobId, JobOptions, Ledger, Name, Profile, Reply,
    Setting, Submit, SubmitTo, TaskSpec, Work,
};
use laboro_dialects::runexp::{self, ManagerDoor};
use laboro_dialects::session::SessionContext;
use laboro_hub::history::History;
use laboro_hub::listen::{DoorStats, OwnDoor, listen_own};
use laboro_hub::{Handle, ServerOptions, server};
use laboro_journal::Journal;
use laboro_net::Clock;
use laboro_plan::{Run, find_runs};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::HashSet;
use std::ffi::OsString;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

pub(super) const GROUP: &str = "default";
pub(super) const JOB: JobId = JobId(1);

/// A runner that was told to wait comes back after ten seconds, and shall hear then that all is done.
const LINGER: Duration = Duration::from_secs(15);

/// How often it is looked whether everybody has gone.
const LEAVING_LOOK: Duration = Duration::from_millis(5);

/// Whoever comes when so many are there is turned away.
const RUNNERS_MAX: u64 = 4096;

/// Of each runner: its connection, and a long result that is on its way.
const FILES_A_RUNNER: u64 = 2;

/// Kept for the manager itself: the table, results in one piece, and who is turned away.
const FILES_OWN: u64 = 32;

/// For conversations that are cut off.
const ENDING: Duration = Duration::from_secs(2);

/// Runners that lost the manager before this one are back by then, and may bring results.
const COMING_BACK: Duration = Duration::from_secs(6);

pub(super) fn run(args: &Manage) -> anyhow::Result<Exit> {
    let home = Home::of_home()?;
    let group = args.group.as_deref().unwrap_or(runexp::DEFAULT_GROUP);
    let success = match args.success {
        Success::ResLine => runexp::Success::ResLine,
        Success::ExitCode => runexp::Success::ExitCode,
    };
    let door = ManagerDoor::new(group).map_err(usage)?.with_success(success);
    let runs = args.base.join(&args.runs);
    let outputs = args.base.join(&args.outputs);
    let scripts = find_runs(&runs).map_err(usage)?;
    check_names(scripts.iter().map(|run| &*run.name))?;
    let count = scripts.len();
    let mut files = ResultFiles::open(&outputs)?;
    let Sorted { done, names, tasks } = sort(scripts, &files)?;
    if args.print_jobs {
        let mut out = std::io::BufWriter::new(data());
        // A program gets the names as they are; a terminal must not obey them.
        let is_seen = std::io::stdout().is_terminal();
        for name in &names {
            match is_seen {
                true => writeln!(out, "{}", safe(&name.to_string_lossy()))?,
                false => out.write_all(&[name.as_bytes(), b"\n"].concat())?,
            }
        }
        out.flush()?;
        return Ok(Exit::Done);
    }
    // Runners may still have jobs of its; which, the files do not tell.
    let door = if files.had_a_manager() { door.following_another(done) } else { door };
    let is_going_on = files.had_a_manager() && names.iter().any(|name| !files.has_told(name));
    files.claim()?;
    if tasks.is_empty() {
        say(format_args!("{}: all {count} are done", runs.display()));
        return Ok(Exit::Done);
    }
    files.expect(names);
    if args.timings.is_some() {
        files.keep_timings();
    }
    // There is no word for errors, so what a runner did wrong stands here only.
    tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::WARN)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .init();
    let address = SocketAddr::new(args.listen, args.port.or(home.port).unwrap_or(0));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let task = Task { address, door, files: SharedFiles::new(files), tasks, is_going_on };
    runtime.block_on(serve(args, task))
}

/// What a manager has to do.
struct Task {
    address: SocketAddr,
    door: ManagerDoor,
    files: SharedFiles,
    tasks: Vec<TaskSpec>,
    /// The manager before this one did not come to its end.
    is_going_on: bool,
}

/// What was found, by whether it is done.
#[derive(Default)]
struct Sorted {
    done: HashSet<Bytes>,
    /// Of what is left, in the order of its tasks.
    names: Vec<OsString>,
    tasks: Vec<TaskSpec>,
}

fn sort(scripts: Vec<Run>, files: &ResultFiles) -> anyhow::Result<Sorted> {
    let mut sorted = Sorted::default();
    let setting = Arc::new(Setting::default());
    for Run { name, kind, body } in scripts {
        if !runexp::words::is_sayable(name.as_bytes()) {
            let most = runexp::words::NAME_BYTES_MAX;
            let name = safe(&name.to_string_lossy());
            return Err(usage(format!("{name}: a name has at most {most} bytes: shorten it")));
        }
        if files.is_done(&name) {
            sorted.done.insert(name.into_vec().into());
            continue;
        }
        sorted.tasks.push(TaskSpec {
            name: Name::new(name.as_bytes()),
            profile: 0,
            work: Some(Arc::new(Work::script(kind.kind(), body, Arc::clone(&setting)))),
            preds: Default::default(),
            memo: None,
        });
        sorted.names.push(name);
    }
    Ok(sorted)
}

async fn serve(args: &Manage, task: Task) -> anyhow::Result<Exit> {
    let Task { address, door, files, tasks, is_going_on } = task;
    let mut signals = Signals::listen()?;
    let clock = Clock::start();
    let rule = if args.ban { ConductRule::Fixed } else { ConductRule::Off };
    let conduct = Conduct { rule, ..Conduct::default() };
    let config = Config { conduct, ..Config::default() };
    let seed = RandomState::new().build_hasher().finish();
    let (mut hub, first) = Hub::begin(Ledger::default(), config, clock.now(), seed);
    let (history, mut journal, recorder) = History::new(ResultJournal::new(files.clone()));
    journal.commit(first).await?;
    let (mut server, handle) = server(&ServerOptions::default(), clock);
    let engine =
        tokio::spawn(async move { laboro_hub::run(&mut hub, &mut server, &mut journal).await });

    let (listener, address) = laboro_hub::listen::listener("runexp", address)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let (count, group) = (tasks.len(), String::from_utf8_lossy(door.group()).into_owned());
    submit(&handle, args, tasks).await?;
    let jobs = counted(count as u64, "job");
    say(format_args!("runexp on {address}, group {}, {jobs}", safe(&group)));

    let back_by = is_going_on.then(|| Instant::now() + COMING_BACK);
    let (stats, stop) = (Arc::<DoorStats>::default(), CancellationToken::new());
    let (door, recorded) = (door.watched(), files.clone());
    let own = OwnDoor {
        handle: handle.clone(),
        clock,
        group: Name::from(GROUP),
        connections_max: runners_max(if args.dashboard.is_some() { dashboard::FILES } else { 0 }),
        stats: Arc::clone(&stats),
        stop: stop.clone(),
        session: move |context: SessionContext| {
            let number = context.session.0;
            Recorder::new(door.session(context), number, recorded.clone())
        },
    };
    let dashboard = args.dashboard.map(|at| {
        let entrance = Entrance {
            outputs: std::path::absolute(args.base.join(&args.outputs)).unwrap_or_default(),
            address,
            group: GROUP,
            stats: Arc::clone(&stats),
        };
        ManagerDashboard::open(at, (&handle, clock), (history, recorder), entrance)
    });
    let dashboard = dashboard.transpose()?;
    if let Some(dashboard) = &dashboard {
        say(format_args!("dashboard: {}", dashboard.link));
    }
    let doors = tokio::spawn(listen_own(listener, own));
    let exit = tokio::select! {
        exit = follow(args, &handle, &files) => exit,
        () = signals.next() => {
            tell_interrupted(&handle).await;
            Exit::Interrupted
        }
    };
    let all_left = async {
        while stats.counts().connections > 0 || back_by.is_some_and(|by| Instant::now() < by) {
            tokio::time::sleep(LEAVING_LOOK).await;
        }
    };
    if matches!(exit, Exit::Done | Exit::SomeFailed) {
        tokio::select! {
            _ = tokio::time::timeout(LINGER, all_left) => {}
            () = signals.next() => {}
        }
    }
    let tell_news =
        |news: Vec<ManagerNews>| news.into_iter().for_each(|news| tell(args, news, say));
    tell_news(files.lock().take_news());
    stop.cancel();
    // Whoever is just bringing a result ends that.
    let _ = tokio::time::timeout(ENDING, doors).await;
    let _ = handle.end().await;
    let ended = engine.await?;
    let mut files = files.lock();
    // Runners that were cut off here are no loss to tell of.
    let late = files.take_news().into_iter().filter(|news| matches!(news, ManagerNews::Result(..)));
    tell_news(late.collect());
    files.save()?;
    if let (Some(path), Some(timings)) = (&args.timings, files.timings()) {
        timings.write(path)?;
    }
    if let Some(trouble) = files.take_trouble() {
        return Err(trouble);
    }
    ended?;
    Ok(exit)
}

/// As many as may have open files, besides `others`.
fn runners_max(others: u64) -> usize {
    let needed = FILES_OWN + others + FILES_A_RUNNER * RUNNERS_MAX;
    let most = allowed_files(needed).saturating_sub(FILES_OWN + others) / FILES_A_RUNNER;
    usize::try_from(most.clamp(1, RUNNERS_MAX)).unwrap_or(usize::MAX)
}

/// How many files may be open: as many as are needed, or what the system allows.
fn allowed_files(needed: u64) -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let current = limit.current.unwrap_or(u64::MAX);
    let raised = limit.maximum.unwrap_or(u64::MAX).min(needed);
    let wanted = Rlimit { current: Some(raised), maximum: limit.maximum };
    if raised > current && setrlimit(Resource::Nofile, wanted).is_ok() { raised } else { current }
}

async fn submit(hub: &Handle, args: &Manage, tasks: Vec<TaskSpec>) -> anyhow::Result<()> {
    let attempts = args.retries.saturating_add(1);
    let profiles = vec![Profile { attempts, ..Profile::default() }];
    // For people who look at the dashboard.
    let base = std::path::absolute(&args.base).unwrap_or_default();
    let name = base.file_name().map(|name| Name::new(name.as_bytes())).unwrap_or_default();
    let job = SubmitTo::New(JobOptions { name, ..JobOptions::default() });
    let submit = Submit { job, profiles, tasks, ..Submit::new(GROUP) };
    match hub.ask(Command::Submit(submit)).await {
        Ok(Reply::Submitted { job: JOB, first: 1, .. }) => Ok(()),
        Ok(Reply::Refused(refusal)) => bail!("{refusal}"),
        other => bail!("a submit was answered with {other:?}"),
    }
}
