//! The manager itself: finds what is left to do, opens a hub in this process and a door for runners, and waits
//! until all is done. The files are its journal, so that an original manager could go on where it stopped.

use super::args::Manage;
use super::config::Config as Home;
use super::files::Files;
use super::recorder::{Recorder, Shared};
use crate::args::Success;
use crate::exit::{Exit, usage};
use crate::output::{safe, say};
use crate::progress::Progress;
use crate::run::Signals;
use crate::run::results::check_names;
use anyhow::{Context, bail};
use bytes::Bytes;
use laboro_core::{
    Batch, Command, Conduct, ConductRule, Config, Counts, Effect, Hub, JobId, Ledger, Name,
    Profile, Query, Reply, Setting, State, Submit, TaskSpec, Work,
};
use laboro_dialects::runexp::{self, Door};
use laboro_hub::listen::{Embedded, receive_all};
use laboro_hub::{Clock, Handle, Server, ServerOptions, server};
use laboro_journal::{Journal, JournalError};
use laboro_plan::{Run, find_runs};
use std::collections::HashSet;
use std::ffi::OsString;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const GROUP: &str = "default";
const JOB: JobId = JobId(1);
const CONNECTIONS_MAX: u32 = 10_000;

/// A runner that was told to wait comes back after ten seconds, and shall hear then that all is done.
const LINGER: Duration = Duration::from_secs(15);

/// How often somebody who looks at the progress sees something new.
const LOOK_EVERY: Duration = Duration::from_millis(500);

pub(super) fn run(args: &Manage) -> anyhow::Result<Exit> {
    let home = Home::of_home()?;
    let group = args.group.as_deref().unwrap_or(runexp::DEFAULT_GROUP);
    let success = match args.success {
        Success::ResLine => runexp::Success::ResLine,
        Success::ExitCode => runexp::Success::ExitCode,
    };
    let door = Door::new(group).map_err(usage)?.with_success(success);
    let runs = args.base.join(&args.runs);
    let outputs = args.base.join(&args.outputs);
    let scripts = find_runs(&runs).map_err(usage)?;
    check_names(scripts.iter().map(|run| &*run.name))?;
    let count = scripts.len();
    let mut files = Files::open(&outputs)?;
    let Sorted { done, names, tasks } = sort(scripts, &files)?;
    if args.print_jobs {
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
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
    // Each connection is an open file. Whatever cannot be had is missed only when so many come.
    let _ = crate::run::make_room_for(CONNECTIONS_MAX, 1);
    let address = SocketAddr::new(args.listen, args.port.or(home.port).unwrap_or(0));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(args, address, door, Shared::new(files), tasks))
}

/// What was found, by whether it is done.
#[derive(Default)]
struct Sorted {
    done: HashSet<Bytes>,
    /// Of what is left, in the order of its tasks.
    names: Vec<OsString>,
    tasks: Vec<TaskSpec>,
}

fn sort(scripts: Vec<Run>, files: &Files) -> anyhow::Result<Sorted> {
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

/// What the hub decides need not be written: what counts is in the result files before it is told.
struct FilesRemember;

impl Journal for FilesRemember {
    async fn commit(&mut self, batch: Batch) -> Result<Vec<Effect>, JournalError> {
        Ok(batch.release())
    }
}

async fn serve(
    args: &Manage,
    address: SocketAddr,
    door: Door,
    files: Shared,
    tasks: Vec<TaskSpec>,
) -> anyhow::Result<Exit> {
    let mut signals = Signals::listen()?;
    let clock = Clock::start();
    let rule = if args.ban { ConductRule::Fixed } else { ConductRule::Off };
    let conduct = Conduct { rule, ..Conduct::default() };
    let config = Config { conduct, ..Config::default() };
    let seed = RandomState::new().build_hasher().finish();
    let (hub, first) = Hub::begin(Ledger::default(), config, clock.now(), seed);
    first.release();
    let (server, handle) = server(&ServerOptions::default(), clock);

    let embedded = Embedded {
        dialect: "runexp",
        handle: handle.clone(),
        clock,
        group: GROUP.to_owned(),
        connections_max: CONNECTIONS_MAX.into(),
        stats: Arc::default(),
        stop: CancellationToken::new(),
    };
    let (listener, address) = embedded.bind(address)?;
    let (count, group) = (tasks.len(), String::from_utf8_lossy(door.group()).into_owned());
    say(format_args!("runexp on {address}, group {}, {count} jobs", safe(&group)));

    let recorded = files.clone();
    let make = move |place: laboro_dialects::session::Place| {
        let number = place.session.0;
        Recorder::new(door.session(place), number, recorded.clone())
    };
    let (stop, stats) = (embedded.stop.clone(), Arc::clone(&embedded.stats));
    // Each by itself: whoever is woken is looked at alone.
    let doors = tokio::spawn(receive_all(listener, embedded, make));
    let engine = tokio::spawn(decide(hub, server));
    let attend = async {
        submit(&handle, tasks, args.retries).await?;
        let exit = tokio::select! {
            exit = follow(args, &handle, &files) => exit?,
            () = signals.next() => Exit::Interrupted,
        };
        if exit != Exit::Interrupted {
            let has_left = async {
                while stats.counts().connections > 0 {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            };
            tokio::select! {
                _ = tokio::time::timeout(LINGER, has_left) => {}
                () = signals.next() => {}
            }
        }
        anyhow::Ok(exit)
    };
    let exit = attend.await;
    stop.cancel();
    doors.await??;
    handle.end().await.context("the hub ended too early")?;
    engine.await??;
    let mut files = files.lock();
    files.save()?;
    if let (Some(path), Some(timings)) = (&args.timings, files.timings()) {
        timings.write(path)?;
    }
    match files.take_trouble() {
        Some(trouble) => Err(trouble),
        None => exit,
    }
}

async fn decide(mut hub: Hub, mut server: Server) -> Result<(), JournalError> {
    laboro_hub::run(&mut hub, &mut server, &mut FilesRemember).await
}

async fn submit(handle: &Handle, tasks: Vec<TaskSpec>, retries: u16) -> anyhow::Result<()> {
    let attempts = retries.saturating_add(1);
    let profiles = vec![Profile { attempts, ..Profile::default() }];
    let submit = Submit { profiles, tasks, ..Submit::new(GROUP) };
    match handle.ask(Command::Submit(submit)).await? {
        Reply::Submitted { job: JOB, first: 1, .. } => Ok(()),
        Reply::Refused(refusal) => bail!("{refusal}"),
        other => bail!("a submit was answered with {other:?}"),
    }
}

/// Until nothing is left to do.
async fn follow(args: &Manage, handle: &Handle, files: &Shared) -> anyhow::Result<Exit> {
    let mut progress = Progress::new(0, !args.progress);
    loop {
        let counts = counts(handle).await?;
        show(args, files, &counts, &mut progress);
        if files.lock().has_trouble() {
            return Ok(Exit::Trouble);
        }
        if counts.active() == 0 {
            drop(progress);
            let (done, failed) = (counts.of(State::Done), counts.of(State::Failed));
            say(format_args!("{done} done, {failed} failed"));
            let all = u64::from(done) == counts.total();
            return Ok(if all { Exit::Done } else { Exit::SomeFailed });
        }
        // Each result ends one job at most. A job that was lost for the last time has none.
        let enough = usize::try_from(counts.active()).unwrap_or(usize::MAX);
        if files.lock().await_news(enough) {
            let _ = tokio::time::timeout(LOOK_EVERY, files.news.notified()).await;
        }
    }
}

fn show(args: &Manage, files: &Shared, counts: &Counts, progress: &mut Progress) {
    for (name, good) in files.lock().take_news() {
        if args.shownames {
            let name = name.to_string_lossy();
            say(format_args!("{} {}", if good { "success" } else { "failure" }, safe(&name)));
        }
    }
    let (running, failed) = (counts.of(State::Leased), counts.of(State::Failed));
    let over = u64::from(counts.of(State::Done)) + u64::from(failed);
    progress.set(over, counts.total(), &format!("{running} running, {failed} failed"));
}

async fn counts(handle: &Handle) -> anyhow::Result<Counts> {
    match handle.ask(Command::Query(Query::Job(JOB))).await? {
        Reply::Jobs(jobs) if !jobs.is_empty() => Ok(jobs[0].counts),
        other => bail!("the job was answered with {other:?}"),
    }
}
