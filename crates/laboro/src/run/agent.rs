//! The local worker of a run: takes what the hub grants, runs it, keeps what it prints, reports how it ended.
//! A few tasks are taken ahead, so that a slot that falls free is filled at once and not after the journal.
//! An end is shown when the hub has recorded it, so what a person has seen is never undone.

mod talk;
mod tasks;

use super::attempts::Attempts;
use super::order::Order;
use super::results::Results;
use super::running::{Running, stored_ending};
use super::show::{Display, EndView, Progress};
use super::signals::Signals;
use super::summary::{FAILURES, Summary, Tally};
use super::{GROUP, JOB, Layout, Options, RunDir, job_view};
use crate::exit::Exit;
use crate::files::make_dir;
use anyhow::{Context, anyhow};
use laboro_core::{
    Command, Drain, Grant, JobView, Query, Reply, Returned, State, TaskResult, TaskView, WorkerRef,
};
use laboro_hub::{Handle, Subscription};
use laboro_journal::outputs::{Key, Writer};
use laboro_worker::{
    Common, Ending, EventSource, Maker, MemoryGuard, Runner, Scripts, Until, Usage,
};
use std::collections::{HashMap, VecDeque};
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant, UNIX_EPOCH};
use talk::{OTHER, given_back};
use tokio::io::unix::AsyncFd;
use tokio::time::sleep_until;

/// How a run is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    Finished,
    Interrupted,
}

/// A guardian on its way up.
pub(crate) struct Starting {
    runner: Runner,
    source: EventSource,
    /// Slots that may be launched, and that the hub may grant, beyond those there are.
    launch_ahead: u32,
    grant_ahead: u32,
}

impl Starting {
    pub(crate) fn nonce(&self) -> &str {
        self.runner.nonce()
    }
}

/// Enough at the guardian that no slot stands empty.
pub(crate) fn launch_ahead(options: &Options) -> u32 {
    options.slots.clamp(8, 64)
}

/// What an agent is made of.
pub(crate) struct Setup {
    pub(crate) starting: Starting,
    pub(crate) layout: Layout,
    pub(crate) options: Options,
    pub(crate) handle: Handle,
    pub(crate) outputs: Writer,
    pub(crate) display: Display,
    /// The directory of the run's state.
    pub(crate) path: PathBuf,
}

pub(crate) struct Agent {
    layout: Layout,
    options: Options,
    handle: Handle,
    session: Subscription,
    worker: WorkerRef,
    runner: Runner,
    source: EventSource,
    /// Tells when the source has something.
    readiness: AsyncFd<OwnedFd>,
    maker: Maker,
    scripts: Scripts,
    outputs: Writer,
    attempts: Attempts,
    memory: MemoryGuard,
    display: Display,
    order: Option<Order>,
    results: Option<Results>,
    tally: Tally,
    queue: VecDeque<Grant>,
    running: HashMap<u64, Running>,
    /// Of launched tasks, also of those that have not begun.
    slots_used: u32,
    /// Slots that may be launched, and that the hub may grant, beyond those there are.
    launch_ahead: u32,
    grant_ahead: u32,
    /// Launched tasks that have begun.
    begun: usize,
    next_id: u64,
    /// Since when something has ended and is not reported.
    unreported_since: Option<Instant>,
    /// Ended, not reported yet.
    ended: Vec<(TaskResult, EndView)>,
    /// Reported and not recorded yet, one entry a report.
    unrecorded: VecDeque<Vec<EndView>>,
    /// Stopped by us, to go back.
    returned: Vec<Returned>,
    /// Asked and not answered.
    unanswered: u32,
    stopping: Stopping,
    last_flush: Instant,
    path: PathBuf,
    has_said_settings_differ: bool,
    has_said_it_stops: bool,
    /// The machine has no room to start as many as there are slots.
    is_starved: bool,
    has_told_no_room: bool,
    /// Nothing is prepared before: there was no room for it.
    held_until: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stopping {
    No,
    /// Nothing more starts.
    Draining,
    /// What runs is being ended.
    Killing,
}

const TICK: Duration = Duration::from_millis(100);
const FLUSH_EVERY: Duration = Duration::from_millis(200);
/// While there is enough to do, results are reported together: each report costs a sync of the disk.
const REPORT_EVERY: Duration = Duration::from_millis(5);

impl Agent {
    pub(crate) fn start(
        layout: &Layout,
        options: &Options,
        ahead: u32,
    ) -> anyhow::Result<Starting> {
        // Tasks of one slot wait for their room at the guardian, which starts the next the moment one
        // ends. With a limit of failures or a memory to watch, nothing may start that is not asked for.
        let is_ahead =
            layout.one_slot_each && options.max_fails.is_none() && options.memory_free.is_none();
        // And enough behind them that the disk is not waited for.
        let (launch_ahead, grant_ahead) = match is_ahead {
            true => (ahead, options.slots.saturating_mul(4).clamp(64, 256)),
            false => (0, 0),
        };
        let options = laboro_worker::Options {
            orphans: laboro_worker::Orphans::All,
            at_once: NonZeroUsize::new(options.slots as usize).filter(|_| is_ahead),
            ..Default::default()
        };
        let (runner, source) = Runner::start(options)?;
        Ok(Starting { runner, source, launch_ahead, grant_ahead })
    }

    pub(crate) async fn new(setup: Setup) -> anyhow::Result<Agent> {
        let Setup { starting, layout, options, handle, outputs, display, path } = setup;
        let stored = path.join("outputs");
        if let Some(dir) = &options.output_dir {
            make_dir(dir)?;
        }
        let results = options.results_dir.as_deref();
        let mut agent = Agent {
            session: handle.open_session().await?,
            worker: WorkerRef::Name { group: GROUP.into(), name: "local".into() },
            maker: Maker::new(Common {
                shell: options.shell.clone(),
                dir: None,
                command: Vec::new(),
                worker: None,
                grace: options.grace,
                nice: None,
                until: Until::default(),
            }),
            scripts: Scripts::in_dir(&path.join("scripts")),
            readiness: readiness(&starting.source)?,
            source: starting.source,
            runner: starting.runner,
            attempts: Attempts::open(&stored)?,
            memory: MemoryGuard::new(options.memory_free),
            order: None,
            results: results.map(|dir| Results::open(dir, &stored)).transpose()?,
            layout,
            options,
            handle,
            outputs,
            display,
            tally: Tally::default(),
            queue: VecDeque::new(),
            running: HashMap::new(),
            slots_used: 0,
            launch_ahead: starting.launch_ahead,
            grant_ahead: starting.grant_ahead,
            begun: 0,
            next_id: 1,
            unreported_since: None,
            ended: Vec::new(),
            unrecorded: VecDeque::new(),
            returned: Vec::new(),
            unanswered: 0,
            stopping: Stopping::No,
            last_flush: Instant::now(),
            path,
            has_said_settings_differ: false,
            has_said_it_stops: false,
            is_starved: false,
            has_told_no_room: false,
            held_until: None,
        };
        agent.end_lost_outputs()?;
        if agent.options.show.keep_order {
            agent.begin_order().await?;
        }
        agent.join().await?;
        Ok(agent)
    }

    /// Attempts that a killed run left open in the store.
    fn end_lost_outputs(&mut self) -> anyhow::Result<()> {
        let open: Vec<Key> = self.outputs.running().collect();
        for key in open {
            self.outputs
                .end(key, stored_ending(&Ending::GuardianLost, &Usage::default(), UNIX_EPOCH))?;
        }
        self.outputs.flush().context(OUTPUTS_TROUBLE)
    }

    /// What ended in an earlier run is printed too, so that the whole output is there in order.
    async fn begin_order(&mut self) -> anyhow::Result<()> {
        let mut order = Order::new(&self.path.join("outputs"), self.layout.input_order())?;
        for state in [State::Done, State::Failed] {
            let mut from = Some(1);
            while let Some(index) = from {
                let query = Query::Tasks { job: JOB, state: Some(state), from: index, most: 1000 };
                let Reply::Tasks { tasks, next } = self.handle.ask(Command::Query(query)).await?
                else {
                    break;
                };
                for task in tasks {
                    order.ended_before(task.task.index)?;
                }
                from = next;
            }
        }
        self.display.above(|| order.print_ready())?;
        self.order = Some(order);
        Ok(())
    }

    pub(crate) async fn run(&mut self) -> anyhow::Result<Ended> {
        let mut signals = Signals::listen()?;
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let mut look = false;
            let report_at = self.unreported_since.unwrap_or_else(Instant::now) + REPORT_EVERY;
            tokio::select! {
                biased;
                () = signals.next() => self.interrupted().await?,
                ready = self.readiness.readable() => {
                    let mut ready = ready?;
                    let events = self.source.wait(Some(Duration::ZERO))?;
                    let events = events.unwrap_or_default();
                    if events.is_empty() {
                        ready.clear_ready();
                    }
                    self.happened(events)?;
                }
                delivery = self.session.next() => {
                    self.delivered(delivery.ok_or_else(|| anyhow!("the hub stopped"))?)?;
                    look = true;
                }
                () = sleep_until(report_at.into()), if self.unreported_since.is_some() => look = true,
                _ = tick.tick() => {
                    self.display.tick(&self.progress());
                    self.flush_now_and_then()?;
                    look = true;
                }
            }
            self.start_more()?;
            self.say_once_that_it_stops();
            if self.report_is_due() {
                self.report().await?;
            }
            if look && let Some(how) = self.is_over().await? {
                return Ok(how);
            }
        }
    }

    fn progress(&self) -> Progress {
        let running = self.running_now() as u64;
        Progress { done: self.tally.done, failed: self.tally.failed, running }
    }

    /// News of a start may be on its way; but who has room for a launch starts it.
    fn running_now(&self) -> usize {
        let running = if self.is_starved { self.begun } else { self.running.len() };
        running.min(self.options.slots as usize)
    }

    async fn interrupted(&mut self) -> anyhow::Result<()> {
        match self.stopping {
            Stopping::No => {
                self.stopping = Stopping::Draining;
                self.runner.recall();
                self.ask(OTHER, Command::Drain(self.worker.clone(), Drain::All)).await?;
                let held = std::mem::take(&mut self.queue);
                self.returned.extend(held.iter().map(given_back));
            }
            Stopping::Draining | Stopping::Killing => {
                self.stopping = Stopping::Killing;
                self.runner.stop_all(self.options.grace);
            }
        }
        Ok(())
    }

    /// When it is true: what was launched ahead has come back, and nothing more begins.
    fn say_once_that_it_stops(&mut self) {
        if self.stopping == Stopping::Draining
            && self.running.len() == self.begun
            && !std::mem::replace(&mut self.has_said_it_stops, true)
        {
            let running = self.begun;
            self.display.note(&format!(
                "stopping: {running} running tasks are waited for; once more ends them now"
            ));
        }
    }

    fn flush_now_and_then(&mut self) -> anyhow::Result<()> {
        if self.last_flush.elapsed() >= FLUSH_EVERY {
            self.outputs.flush().context(OUTPUTS_TROUBLE)?;
            self.last_flush = Instant::now();
        }
        Ok(())
    }

    async fn is_over(&mut self) -> anyhow::Result<Option<Ended>> {
        let is_idle = self.running.is_empty() && self.queue.is_empty() && self.ended.is_empty();
        if !is_idle || self.unanswered > 0 {
            return Ok(None);
        }
        let job = self.job_view().await?;
        if self.stopping != Stopping::No && job.counts.active() > 0 {
            return Ok(Some(Ended::Interrupted));
        }
        let leased = job.counts.of(State::Leased);
        if job.counts.active() == 0 || job.stopped && leased == 0 {
            return Ok(Some(Ended::Finished));
        }
        let ready = job.counts.of(State::Ready);
        if ready > 0 && leased == 0 {
            // Nothing runs and all of this machine is free: it will not fit later either.
            return Err(anyhow!(
                "{ready} tasks need more than this machine was said to have when they were first \
                 run; raise -j or --resource, or use --fresh"
            ));
        }
        Ok(None)
    }

    pub(crate) async fn job_view(&self) -> anyhow::Result<JobView> {
        job_view(&self.handle).await
    }

    /// Says how it went and gives the exit status.
    pub(crate) async fn finish(
        mut self,
        how: Ended,
        before: &JobView,
        after: &JobView,
    ) -> anyhow::Result<Exit> {
        self.outputs.flush().context(OUTPUTS_TROUBLE)?;
        if how == Ended::Finished {
            self.outputs.seal().context(OUTPUTS_TROUBLE)?;
        }
        if let Some(order) = &mut self.order {
            self.display.above(|| order.print_rest())?;
        }
        if let Some(results) = &mut self.results {
            results.close()?;
        }
        let exit = super::exit_of(how, &after.counts);
        let cut = self.order.as_ref().map_or(0, Order::cut);
        let failed = self.failed_tasks().await?;
        let (tally, path) = (&self.tally, &*self.path);
        let summary = Summary { how, before, after, tally, failed, path, exit };
        self.display.finish(&summary);
        self.runner.shutdown();
        RunDir::leaves_nothing(&self.path);
        // Scripts of tasks that were cut short by a kill.
        let _ = std::fs::remove_dir_all(self.path.join("scripts"));
        if let Some(error) = self.display.take_trouble() {
            return Err(anyhow::Error::new(error).context(
                "what happened cannot be written to standard output; the run itself is recorded",
            ));
        }
        if cut > 0 && exit == Exit::Done {
            let tasks = if cut == 1 { "1 task".to_owned() } else { format!("{cut} tasks") };
            return Err(anyhow!(
                "the output of {tasks} was printed only in part: --output-limit kept no more"
            ));
        }
        Ok(exit)
    }

    /// The first few that have failed, in this run or an earlier one, and how, where that is known.
    async fn failed_tasks(&self) -> anyhow::Result<Vec<(String, String)>> {
        let state = Some(State::Failed);
        let query = Query::Tasks { job: JOB, state, from: 1, most: FAILURES as u32 };
        let tasks = match self.handle.ask(Command::Query(query)).await? {
            Reply::Tasks { tasks, .. } => tasks,
            other => return Err(anyhow!("the hub answered {other:?}")),
        };
        let known = |task: &TaskView| {
            let name = self.layout.name(task.task.index).unwrap_or_else(|| task.name.to_string());
            let outcome = task.attempts.last().and_then(|attempt| attempt.outcome);
            let outcome = outcome.map(|outcome| outcome.to_string());
            let outcome = outcome.or_else(|| self.tally.outcome_of(&name).map(str::to_owned));
            (name, outcome.unwrap_or_else(|| "in an earlier run".to_owned()))
        };
        Ok(tasks.iter().map(known).collect())
    }
}

const OUTPUTS_TROUBLE: &str = "what tasks print cannot be kept; what was recorded before is safe: \
                               make room and type the same command again";

/// The source's descriptor, for the runtime to wait on.
fn readiness(source: &EventSource) -> std::io::Result<AsyncFd<OwnedFd>> {
    let descriptor = source.as_fd().try_clone_to_owned()?;
    // SAFETY: an `OwnedFd` is open and stays the same until it is dropped, which `AsyncFd` does last.
    unsafe { AsyncFd::register(descriptor) }.map_err(|error| error.into_parts().1)
}
