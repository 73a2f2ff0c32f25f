//! Runs a plan on this machine: an embedded hub with a durable journal and one local worker, both on this
//! thread. Everything that is recorded survives whatever ends the program.

mod attempt;
mod attempts;
pub(crate) mod collected;
mod desk;
pub(crate) mod earlier;
mod files;
mod finish;
mod foresee;
pub(crate) mod hosts;
mod joblog;
mod kept;
mod layout;
mod on_end;
mod order;
mod past;
pub(crate) mod results;
mod resume;
mod serve;
mod show;
mod side;
mod signals;
mod state;
mod summary;
mod tee;
mod worker;

pub(crate) use attempt::file_name;
pub(crate) use files::make_room_for;
pub(crate) use foresee::foresee;
pub(crate) use past::Past;
pub(crate) use serve::sockets;
pub(crate) use signals::Signals;
pub(crate) use state::RunDir;
pub(crate) use tee::{Tee, print_teed};

use crate::args::halt::{Halt, HaltWhat};
use crate::exit::{Exit, usage};
use crate::machine::Machine;
use crate::output::say;
use crate::submit::Terms;
use anyhow::{Context, anyhow};
use collected::ResultsPlace;
use desk::{Desk, RunEnd, Setup};
use joblog::JobLog;
use laboro_core::{
    Command, Config, Counts, Hub, JobId, JobOptions, JobView, Keep, Limits, Query, Reply,
    Selection, Which,
};
use laboro_hub::history::{History, Observed};
use laboro_hub::{Handle, Server, ServerOptions, Underway};
use laboro_journal::{FileJournal, Journal, log};
use laboro_net::Clock;
use laboro_plan::Plan;
use laboro_worker::Pin;
use laboro_worker::agent::LimitBy;
use layout::Layout;
use resume::Resume;
use serve::{ServedRun, Watchers, look_elsewhere};
use show::Display;
use side::SharedDesk;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use worker::Hands;

pub(crate) struct Options {
    pub(crate) slots: u32,
    pub(crate) machine: Machine,
    pub(crate) tags: Vec<String>,
    /// Nothing more starts while less memory is available.
    pub(crate) memory_free: Option<u64>,
    pub(crate) limit_by: LimitBy,
    pub(crate) pin: Option<Pin>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) grace: Duration,
    pub(crate) attempts: Option<u32>,
    pub(crate) max_fails: Option<u32>,
    /// Who is called when it has ended.
    pub(crate) on_end: Vec<String>,
    pub(crate) halt: Option<Halt>,
    /// Between two starts.
    pub(crate) delay: Option<Duration>,
    /// Nothing more starts while so many processes run on this machine.
    pub(crate) load_max: Option<u32>,
    pub(crate) joblog: Option<PathBuf>,
    /// Where the input of tasks is, if it is blocks of standard input; theirs once they are done.
    pub(crate) blocks: Option<PathBuf>,
    /// A line with `RES:` decides, not the exit code.
    pub(crate) res_line: bool,
    /// Where result files of scripts go.
    pub(crate) results_dir: Option<PathBuf>,
    pub(crate) output_dir: Option<PathBuf>,
    pub(crate) results: Option<ResultsPlace>,
    pub(crate) output_limit: u64,
    pub(crate) state: PathBuf,
    pub(crate) store: StoreOf,
    pub(crate) durability: log::Durability,
    pub(crate) retry_failed: bool,
    pub(crate) fresh: bool,
    /// Tasks run on other machines: where, and with what, if they do not say so themselves.
    pub(crate) elsewhere: Option<Terms>,
    /// A browser can look on.
    pub(crate) dashboard: bool,
    pub(crate) show: ShowOptions,
}

/// Whose earlier runs count.
#[derive(Debug, Clone)]
pub(crate) enum StoreOf {
    Name(String),
    /// A job file, or a directory of scripts.
    File(PathBuf),
    /// A command, whatever its values are.
    Template,
    /// What was read from a pipe: only the very same again.
    Nothing,
}

impl StoreOf {
    fn path(&self) -> &Path {
        match self {
            StoreOf::File(path) => path,
            _ => Path::new(""),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ShowOptions {
    pub(crate) quiet: bool,
    pub(crate) json: bool,
    pub(crate) tee: bool,
    /// Before each line that is shown as it comes.
    pub(crate) has_labels: bool,
    pub(crate) keep_order: bool,
}

/// The name of a run's only worker.
const WORKER: &str = "local";

/// The group of a run's only job.
pub(crate) const GROUP: &str = "default";

pub(crate) fn execute(plan: Plan, mut options: Options) -> anyhow::Result<Exit> {
    let started = Instant::now();
    if let Some(begin) = &plan.job.begin {
        return Err(usage(format!(
            "{}: begin = {begin:?} is for `laboro submit`; a run begins at once",
            plan.source
        )));
    }
    let fails_max = plan.job.fails_max.map(|most| u32::try_from(most).unwrap_or(u32::MAX));
    options.max_fails = options.max_fails.or(fails_max);
    let plan = Arc::new(plan);
    let layout = Layout::new(&plan, &options).map_err(usage)?;
    if layout.count() == 0 {
        say(format_args!("{}: no tasks, nothing to do", plan.source));
        return Ok(Exit::Done);
    }
    // The guardian starts while the state is being read.
    let hands = Hands::start(&layout, &options)?;
    let dir = RunDir::open(&options.state, &plan, &options, hands.nonce())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = tokio::task::LocalSet::new();
    let blocks = options.blocks.clone();
    let exit =
        local.block_on(&runtime, drive(Arc::clone(&plan), layout, options, dir, hands, started))?;
    if let Some(dir) = blocks.filter(|_| exit == Exit::Done) {
        remove_blocks(&dir, &plan);
    }
    Ok(exit)
}

/// All are done. The same input typed again writes them anew.
fn remove_blocks(dir: &Path, plan: &Plan) {
    for part in &plan.parts {
        let laboro_plan::Part::Array(array) = part else { continue };
        for i in 0..array.count() {
            let name = array.values.row(i).unwrap_or_default().concat();
            let _ = std::fs::remove_file(dir.join(String::from_utf8_lossy(&name).as_ref()));
        }
    }
    // As long as others have none there.
    let _ = std::fs::remove_dir(dir);
}

async fn drive(
    plan: Arc<Plan>,
    mut layout: Layout,
    options: Options,
    dir: RunDir,
    hands: Hands,
    started: Instant,
) -> anyhow::Result<Exit> {
    let RunDir { path, mut store, mut journal, ledger, mut outputs } = dir;
    let clock = Clock::start();
    let seed = layout::seed();
    let (mut hub, first) = Hub::begin(ledger, config(), clock.now(), seed);
    journal.commit(first).await.context("the state cannot be written")?;
    let (mut server, handle) = laboro_hub::server(&ServerOptions::default(), clock);
    let (history, mut journal, recorder) = History::new(journal);
    // Charts are for browsers; without a recorder nothing is noted.
    let (history, recorder) = match options.dashboard {
        true => (Some(history), Some(recorder)),
        false => (None, None),
    };
    let (kept, underway) = (ServedRun::outputs(&path), Underway::default());
    let shown = ServedRun {
        handle: handle.clone().showing(underway.clone()),
        clock,
        dir: path.clone(),
        history,
        outputs: kept.clone(),
    };
    let mut watchers = Watchers::listen(shown, recorder);
    if options.dashboard {
        say(format_args!("dashboard: {}", watchers.open_dashboard()?));
    }

    let work = async {
        let mut resume = Resume { path: &path, store: &mut store, plan: &plan, new: None };
        let before = submit(&handle, &mut layout, &options, &mut resume).await?;
        let new = resume.new;
        look_elsewhere(&kept, &path);
        let display = Display::new(options.show, &before, new, started);
        worker::end_lost_outputs(&mut outputs)?;
        let subscription = handle.open_session().await?;
        let mut setup =
            Setup::open(layout, options, subscription.asker(), outputs, display, &path)?;
        setup.total = before.counts.total();
        setup.underway = underway;
        if let Some(file) = &setup.options.joblog {
            let goes_on = before.counts.unfinished() < before.counts.total();
            setup.joblog = Some(JobLog::open(file, goes_on)?);
        }
        if let Some(ResultsPlace::Table(file, separator)) = setup.options.results.clone() {
            setup.table =
                Some(worker::begin_table(&setup, &handle, &path, &file, separator).await?);
        }
        if setup.options.show.keep_order {
            setup.order = Some(worker::begin_order(&setup, &handle, &path).await?);
        }
        let hands = hands.options(&setup, &path);
        let desk = SharedDesk::new(Desk::new(setup));
        worker::work(hands, &desk, subscription).await?;
        finish::finish(&desk, &handle, &before, &path).await
    };
    // Whichever ends first: the work, or the hub because the journal failed.
    tokio::select! {
        biased;
        exit = work => exit,
        failed = turn(&mut hub, &mut server, &mut journal) => Err(failed),
        () = watchers.attend() => unreachable!("it never ends by itself"),
    }
}

/// How the hub of a run differs from others: it takes whatever the plan has, forgets nothing, and judges nobody.
fn config() -> Config {
    Config {
        limits: Limits { tasks_a_submit: usize::MAX, ..Limits::default() },
        keep: Keep { age_ms: u64::MAX, ..Keep::default() },
        conduct: laboro_core::Conduct { rule: laboro_core::ConductRule::Off, ..Default::default() },
        ..Config::default()
    }
}

async fn turn(
    hub: &mut Hub,
    server: &mut Server,
    journal: &mut Observed<FileJournal>,
) -> anyhow::Error {
    match laboro_hub::run(hub, server, journal).await {
        Ok(()) => anyhow!("the hub stopped"),
        Err(error) => anyhow::Error::new(error)
            .context("the state cannot be written; what was recorded before is safe: make room and type the same command again"),
    }
}

/// Submits the job, or finds it where it was. Gives what was there before this run.
async fn submit(
    handle: &Handle,
    layout: &mut Layout,
    options: &Options,
    resume: &mut Resume<'_>,
) -> anyhow::Result<JobView> {
    let known = matches!(handle.ask(Command::Query(Query::Job(JOB))).await?, Reply::Jobs(_));
    if !known {
        resume.look(layout, options)?;
        let job = JobOptions {
            name: layout.job_name().into(),
            max_fails: options.max_fails,
            ..JobOptions::default()
        };
        match handle.ask(Command::Submit(layout.submit(job))).await? {
            Reply::Submitted { .. } => {}
            Reply::Refused(refusal) => return Err(usage(refusal)),
            other => return Err(anyhow!("the hub answered {other:?}")),
        }
    } else {
        let job = Selection { job: JOB, which: Which::Job };
        let limit =
            Command::Limit { job: JOB, max_running: None, max_fails: Some(options.max_fails) };
        handle.ask(limit).await?;
        handle.ask(Command::Release(job.clone())).await?;
        if options.retry_failed {
            handle.ask(Command::Retry(job)).await?;
        }
    }
    resume.record(handle).await?;
    job_view(handle).await
}

/// A run's state holds this one job.
pub(crate) const JOB: JobId = JobId(1);

async fn job_view(handle: &Handle) -> anyhow::Result<JobView> {
    match handle.ask(Command::Query(Query::Job(JOB))).await? {
        Reply::Jobs(mut jobs) if jobs.len() == 1 => Ok(jobs.remove(0)),
        other => Err(anyhow!("the hub answered {other:?}")),
    }
}

/// What the run is over with.
pub(crate) fn exit_of(how: RunEnd, counts: &Counts) -> Exit {
    use laboro_core::State;
    match how {
        RunEnd::Interrupted => Exit::Interrupted,
        RunEnd::Halted(HaltWhat::Done) => Exit::Done,
        RunEnd::Halted(_) => Exit::SomeFailed,
        RunEnd::Finished if u64::from(counts.of(State::Done)) == counts.total() => Exit::Done,
        RunEnd::Finished => Exit::SomeFailed,
    }
}
