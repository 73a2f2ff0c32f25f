//! The local worker of a run: takes what the hub grants, runs it, keeps what it prints, reports how it ended.
//! A few tasks are taken ahead, so that a slot that falls free is filled at once and not after the journal.

use super::order::Order;
use super::process::{Attempt, Launcher};
use super::results::{ResLine, ResultFile};
use super::show::{Display, EndView};
use super::summary::{Summary, Tally};
use super::{GROUP, JOB, Layout, Options, job_view};
use crate::exit::Exit;
use anyhow::{Context, anyhow};
use laboro_core::{
    Capacity, Command, Drain, Grant, JobView, Join, Kinds, LeaseNo, LeaseRef, Offer, Outcome,
    Place, Query, Reply, Report, Return, Returned, Route, State, TaskId, TaskResult, WorkerRef,
};
use laboro_hub::{Delivery, Handle, Subscription};
use laboro_journal::outputs::{Ending as StoredEnding, Key, Stream as StoredStream, Writer};
use laboro_plan::Plan;
use laboro_worker::{Ending, EventSource, Runner, RunnerEvent, Stream, Usage};
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{Signal, SignalKind, signal};

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
    launcher: Launcher,
    outputs: Writer,
    display: Display,
    order: Option<Order>,
    results: Option<ResultFile>,
    tally: Tally,
    queue: VecDeque<Grant>,
    running: HashMap<u64, Running>,
    slots_used: u32,
    next_id: u64,
    /// Ended, not reported yet.
    ended: Vec<TaskResult>,
    /// Stopped by us, to go back.
    returned: Vec<Returned>,
    /// Asked and not answered.
    unanswered: u32,
    stopping: Stopping,
    last_flush: Instant,
    outputs_path: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stopping {
    No,
    /// Nothing more starts.
    Draining,
    /// What runs is being ended.
    Killing,
}

struct Running {
    task: TaskId,
    lease: LeaseNo,
    attempt: u16,
    fails: u16,
    attempts: u16,
    retry_on: Vec<i32>,
    slots: u32,
    name: String,
    stderr_tail: Vec<u8>,
    res_line: Option<ResLine>,
    script: Option<PathBuf>,
    files: [Option<File>; 2],
}

/// How much of the end of stderr is shown with a failure.
const TAIL_BYTES: usize = 2048;
const TICK: Duration = Duration::from_millis(100);
const FLUSH_EVERY: Duration = Duration::from_millis(200);

impl Agent {
    pub(crate) fn start() -> anyhow::Result<Starting> {
        let options =
            laboro_worker::Options { orphans: laboro_worker::Orphans::All, ..Default::default() };
        let (runner, source) = Runner::start(options)?;
        Ok(Starting { runner, source })
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of a run, put together in one place")]
    pub(crate) async fn new(
        starting: Starting,
        _plan: Rc<Plan>,
        layout: Layout,
        options: Options,
        handle: Handle,
        outputs: Writer,
        display: Display,
        path: &Path,
    ) -> anyhow::Result<Agent> {
        let session = handle.open_session().await?;
        let worker = WorkerRef::Name { group: GROUP.into(), name: "local".into() };
        let outputs_path = path.join("outputs");
        if let Some(dir) = &options.output_dir {
            std::fs::create_dir_all(dir)
                .with_context(|| format!("{} cannot be made", dir.display()))?;
        }
        let mut agent = Agent {
            launcher: Launcher::new(&options.shell, path),
            readiness: readiness(&starting.source)?,
            source: starting.source,
            runner: starting.runner,
            order: None,
            results: options.results_dir.clone().map(ResultFile::new).transpose()?,
            layout,
            options,
            handle,
            session,
            worker,
            outputs,
            display,
            tally: Tally::default(),
            queue: VecDeque::new(),
            running: HashMap::new(),
            slots_used: 0,
            next_id: 1,
            ended: Vec::new(),
            returned: Vec::new(),
            unanswered: 0,
            stopping: Stopping::No,
            last_flush: Instant::now(),
            outputs_path,
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
        Ok(())
    }

    /// What ended in an earlier run is printed too, so that the whole output is there in order.
    async fn begin_order(&mut self) -> anyhow::Result<()> {
        let mut order = Order::new(&self.outputs_path, self.layout.input_order())?;
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
        order.print_ready()?;
        self.order = Some(order);
        Ok(())
    }

    async fn join(&mut self) -> anyhow::Result<()> {
        let ahead = if self.layout.one_slot_each { self.options.slots.clamp(2, 64) } else { 0 };
        let total = memory_total();
        let resources = &self.options.resources;
        let join = Join {
            group: GROUP.into(),
            name: "local".into(),
            dialect: "local",
            session: self.session.session,
            kinds: Kinds::ALL,
            tags: self.options.tags.iter().map(|tag| tag.as_str().into()).collect(),
            capacity: Capacity {
                slots: self.options.slots + ahead,
                memory: total,
                resources: resources.iter().map(|(name, n)| (name.as_str().into(), *n)).collect(),
            },
            period_ms: None,
            // Whatever an earlier run had on loan is not running any more.
            running: Some(Vec::new()),
        };
        match self.handle.ask(Command::Join(join)).await? {
            Reply::Joined { .. } => {}
            other => return Err(anyhow!("the hub answered {other:?}")),
        }
        let offer = Offer { worker: self.worker.clone(), route: Route::Push, lease_ms: None };
        self.ask(Command::Offer(offer)).await
    }

    async fn ask(&mut self, command: Command) -> anyhow::Result<()> {
        self.unanswered += 1;
        self.session.ask(0, command).await?;
        Ok(())
    }

    pub(crate) async fn run(&mut self) -> anyhow::Result<Ended> {
        let mut signals = Signals::listen()?;
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let mut look = false;
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
                _ = tick.tick() => {
                    self.display.tick(&self.progress());
                    self.flush_now_and_then()?;
                    look = true;
                }
            }
            self.start_more();
            self.report().await?;
            if look && let Some(how) = self.is_over().await? {
                return Ok(how);
            }
        }
    }

    fn progress(&self) -> super::show::Progress {
        super::show::Progress {
            done: self.tally.done,
            failed: self.tally.failed,
            running: self.running.len() as u64,
        }
    }

    async fn interrupted(&mut self) -> anyhow::Result<()> {
        match self.stopping {
            Stopping::No => {
                self.stopping = Stopping::Draining;
                let running = self.running.len();
                self.display.say(&format!(
                    "stopping: {running} running tasks are waited for; once more ends them now"
                ));
                self.ask(Command::Drain(self.worker.clone(), Drain::All)).await?;
                let held = std::mem::take(&mut self.queue);
                self.returned
                    .extend(held.into_iter().map(|grant| given_back(grant.task, grant.lease)));
            }
            Stopping::Draining | Stopping::Killing => {
                self.stopping = Stopping::Killing;
                self.runner.stop_all(self.options.grace);
            }
        }
        Ok(())
    }

    fn delivered(&mut self, delivery: Delivery) -> anyhow::Result<()> {
        match delivery {
            Delivery::Work { grants, .. } if self.stopping == Stopping::No => {
                self.queue.extend(grants)
            }
            Delivery::Work { grants, .. } => {
                let back = grants.into_iter().map(|grant| given_back(grant.task, grant.lease));
                self.returned.extend(back);
            }
            Delivery::Revoke { leases, .. } => {
                for (task, _) in leases {
                    let running = self.running.iter().find(|(_, running)| running.task == task);
                    if let Some((&id, _)) = running {
                        self.runner.stop(id, self.options.grace);
                    }
                }
            }
            Delivery::Reply { reply, .. } => {
                self.unanswered -= 1;
                if let Reply::Refused(refusal) = reply {
                    return Err(anyhow!("the hub refused: {refusal}"));
                }
            }
        }
        Ok(())
    }

    fn start_more(&mut self) {
        while let Some(grant) = self.queue.front() {
            let slots = grant.profile.needs.slots;
            if self.slots_used + slots > self.options.slots || self.short_of_memory() {
                return;
            }
            let grant = self.queue.pop_front().expect("looked at just now");
            self.begin(grant);
        }
    }

    fn short_of_memory(&self) -> bool {
        let Some(wanted) = self.options.memory_free else { return false };
        laboro_worker::memory_available().is_ok_and(|available| available < wanted)
    }

    fn begin(&mut self, grant: Grant) {
        let id = self.next_id;
        self.next_id += 1;
        let slots = grant.profile.needs.slots;
        let index = grant.task.index;
        let share = share(&grant);
        let element = self.layout.element(index).expect("the hub grants only what was submitted");
        let name = element.name.clone();
        let attempt = Attempt { id, index, number: grant.attempt, slots, share: &share };
        let (launch, script) = match self.launcher.launch(element, &attempt, &self.options) {
            Ok((launch, script)) => (Some(launch), script),
            Err(error) => {
                self.display.say(&format!("{name}: its script cannot be written: {error}"));
                (None, None)
            }
        };
        let running = Running {
            task: grant.task,
            lease: grant.lease,
            attempt: grant.attempt,
            fails: grant.fails,
            attempts: grant.profile.attempts,
            retry_on: grant.profile.retry_on.clone(),
            slots,
            name,
            stderr_tail: Vec::new(),
            res_line: self.options.res_line.then(ResLine::default),
            script,
            files: [None, None],
        };
        self.slots_used += slots;
        self.display.started(&running.name, index, running.attempt);
        self.running.insert(id, running);
        match launch {
            Some(launch) => self.runner.launch(launch),
            None => {
                let message = "its script cannot be written".to_owned();
                let reason = laboro_worker::Reason::Redirect;
                let ending = Ending::NotStarted { reason, message };
                self.end(id, &ending, &Usage::default(), SystemTime::now());
            }
        }
    }

    fn happened(&mut self, events: Vec<RunnerEvent>) -> anyhow::Result<()> {
        for event in events {
            match event {
                RunnerEvent::Started { .. } => {}
                RunnerEvent::Output { id, stream, bytes } => self.printed(id, stream, &bytes)?,
                RunnerEvent::Ended { id, ending, usage, started } => {
                    self.end(id, &ending, &usage, started);
                }
            }
        }
        Ok(())
    }

    fn printed(&mut self, id: u64, stream: Stream, bytes: &[u8]) -> anyhow::Result<()> {
        let Some(running) = self.running.get_mut(&id) else { return Ok(()) };
        let is_stderr = stream == Stream::Stderr;
        let key = Key { job: JOB.0, index: running.task.index, attempt: running.attempt };
        let stored = if is_stderr { StoredStream::Stderr } else { StoredStream::Stdout };
        self.outputs.append(key, stored, bytes).context("outputs cannot be written")?;
        if is_stderr {
            running.stderr_tail.extend_from_slice(bytes);
            let over = running.stderr_tail.len().saturating_sub(TAIL_BYTES);
            running.stderr_tail.drain(..over);
        } else if let Some(line) = &mut running.res_line {
            line.take(bytes);
        }
        if let Some(dir) = &self.options.output_dir {
            let ending = if is_stderr { "err" } else { "out" };
            let file = match &mut running.files[usize::from(is_stderr)] {
                Some(file) => file,
                empty => {
                    let path = dir.join(format!("{}.{ending}", file_name(&running.name)));
                    let made = File::create(&path);
                    empty.insert(
                        made.with_context(|| format!("{} cannot be written", path.display()))?,
                    )
                }
            };
            file.write_all(bytes).context("an output file cannot be written")?;
        }
        if self.options.show.tee {
            self.display.tee(id, &running.name, is_stderr, bytes);
        }
        Ok(())
    }

    fn end(&mut self, id: u64, ending: &Ending, usage: &Usage, started: SystemTime) {
        let Some(running) = self.running.remove(&id) else { return };
        self.slots_used -= running.slots;
        if let Some(script) = &running.script {
            // Left behind it costs nothing but room.
            let _ = std::fs::remove_file(script);
        }
        let index = running.task.index;
        let key = Key { job: JOB.0, index, attempt: running.attempt };
        if let Err(error) = self.outputs.end(key, stored_ending(ending, usage, started)) {
            self.display.say(&format!("{}: its record cannot be written: {error}", running.name));
        }
        self.display.tee_end(id, &running.name);
        let stopped_by_us =
            self.stopping != Stopping::No && matches!(ending, Ending::Stopped { .. });
        if stopped_by_us || *ending == Ending::GuardianLost {
            self.returned.push(given_back(running.task, running.lease));
            return;
        }
        let outcome = self.outcome(&running, ending);
        let again = !outcome.is_success() && running.is_tried_again(outcome);
        let view = EndView {
            name: &running.name,
            index,
            attempt: running.attempt,
            outcome,
            message: message(ending),
            again,
            usage,
            stderr_tail: &running.stderr_tail,
        };
        self.tally.add(&view);
        self.display.ended(&view, &self.progress());
        if !again {
            self.last_word(&running, ending, outcome, started, usage);
        }
        self.ended.push(TaskResult {
            lease: LeaseRef::Number { task: running.task, lease: running.lease },
            outcome,
            message: message(ending).map(Into::into),
            memo: None,
        });
    }

    /// A task has ended for good: its result file, its place in the order.
    fn last_word(
        &mut self,
        running: &Running,
        ending: &Ending,
        outcome: Outcome,
        started: SystemTime,
        usage: &Usage,
    ) {
        let index = running.task.index;
        if self.order.is_none() && self.results.is_none() {
            return;
        }
        let mut said = self.outputs.flush().map_err(anyhow::Error::from);
        if let (Ok(()), Some(order)) = (&said, &mut self.order) {
            said = order.ended(index, running.attempt);
        }
        if let (Ok(()), Some(results)) = (&said, &mut self.results) {
            let key = Key { job: JOB.0, index, attempt: running.attempt };
            let good = outcome.is_success();
            said =
                results.write(&self.outputs_path, key, &running.name, good, ending, started, usage);
        }
        if let Err(error) = said {
            self.display.say(&format!("{}: {error:#}", running.name));
        }
    }

    fn outcome(&self, running: &Running, ending: &Ending) -> Outcome {
        match (ending, &running.res_line) {
            (Ending::Exited(code), Some(line)) => match line.is_good() {
                true => Outcome::Success,
                false => Outcome::Exit(*code),
            },
            (Ending::Exited(0), None) => Outcome::Success,
            (Ending::Exited(code), None) => Outcome::Exit(*code),
            (Ending::Signalled(signal), _) => Outcome::Signal(*signal),
            (Ending::TimedOut { .. }, _) => Outcome::TimedOut,
            (Ending::NotStarted { .. }, _) => Outcome::Error,
            (Ending::Stopped { .. } | Ending::GuardianLost, _) => Outcome::Lost,
        }
    }

    /// Results go to the hub in one report, after what the tasks printed has left this program.
    async fn report(&mut self) -> anyhow::Result<()> {
        if self.ended.is_empty() && self.returned.is_empty() {
            return Ok(());
        }
        self.outputs.flush().context("outputs cannot be written")?;
        self.last_flush = Instant::now();
        if !self.ended.is_empty() {
            let results = std::mem::take(&mut self.ended);
            self.ask(Command::Report(Report { worker: self.worker.clone(), results })).await?;
        }
        if !self.returned.is_empty() {
            let tasks = std::mem::take(&mut self.returned);
            let worker = self.worker.clone();
            self.ask(Command::Return(Return { worker, tasks, place: Place::Front })).await?;
        }
        Ok(())
    }

    fn flush_now_and_then(&mut self) -> anyhow::Result<()> {
        if self.last_flush.elapsed() >= FLUSH_EVERY {
            self.outputs.flush().context("outputs cannot be written")?;
            self.last_flush = Instant::now();
        }
        Ok(())
    }

    async fn is_over(&mut self) -> anyhow::Result<Option<Ended>> {
        if !self.running.is_empty() || !self.queue.is_empty() || self.unanswered > 0 {
            return Ok(None);
        }
        if self.stopping != Stopping::No {
            return Ok(Some(Ended::Interrupted));
        }
        let job = job_view(&self.handle).await?;
        let over = job.counts.active() == 0 || job.stopped && job.counts.of(State::Leased) == 0;
        Ok(over.then_some(Ended::Finished))
    }

    /// Says how it went and gives the exit status.
    pub(crate) fn finish(
        mut self,
        how: Ended,
        before: &JobView,
        after: &JobView,
        path: &Path,
    ) -> anyhow::Result<Exit> {
        self.outputs.flush().context("outputs cannot be written")?;
        if how == Ended::Finished {
            self.outputs.seal().context("outputs cannot be written")?;
        }
        if let Some(order) = &mut self.order {
            order.print_rest()?;
        }
        let exit = super::exit_of(how, &after.counts);
        let summary = Summary { how, before, after, tally: &self.tally, path, exit };
        self.display.finish(&summary);
        self.runner.shutdown();
        // Scripts of tasks that were cut short.
        let _ = std::fs::remove_dir_all(path.join("scripts"));
        Ok(exit)
    }
}

impl Running {
    /// The hub decides; this says the same, so that people see whether a failure is final.
    fn is_tried_again(&self, outcome: Outcome) -> bool {
        let worth_it = match outcome {
            Outcome::Exit(code) => self.retry_on.is_empty() || self.retry_on.contains(&code),
            _ => true,
        };
        worth_it && self.fails + 1 < self.attempts
    }
}

/// The source's descriptor, for the runtime to wait on.
fn readiness(source: &EventSource) -> std::io::Result<AsyncFd<OwnedFd>> {
    let descriptor = source.as_fd().try_clone_to_owned()?;
    // SAFETY: an `OwnedFd` is open and stays the same until it is dropped, which `AsyncFd` does last.
    unsafe { AsyncFd::register(descriptor) }.map_err(|error| error.into_parts().1)
}

fn given_back(task: TaskId, lease: LeaseNo) -> Returned {
    Returned { lease: LeaseRef::Number { task, lease }, preds: Vec::new() }
}

fn message(ending: &Ending) -> Option<String> {
    match ending {
        Ending::NotStarted { message, .. } => Some(message.clone()),
        _ => None,
    }
}

fn share(grant: &Grant) -> Vec<(String, Vec<u32>)> {
    let indices = grant.share.iter().flat_map(|share| &share.indices);
    let bits = |bits: u128| (0..128).filter(|bit| bits >> bit & 1 == 1).collect();
    indices.map(|(name, mask)| (name.to_string(), bits(*mask))).collect()
}

/// A file name for a task's output: no directories, whatever its name.
fn file_name(name: &str) -> String {
    name.replace('/', "_").replace('\0', "_")
}

fn stored_ending(ending: &Ending, usage: &Usage, started: SystemTime) -> StoredEnding {
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let (kind, code) = match ending {
        Ending::Exited(code) => (0, *code),
        Ending::Signalled(signal) => (1, *signal),
        Ending::TimedOut { .. } => (2, 0),
        Ending::NotStarted { .. } => (3, ending.exit_code()),
        Ending::Stopped { .. } => (4, 0),
        Ending::GuardianLost => (5, 0),
    };
    let since = started.duration_since(UNIX_EPOCH).unwrap_or_default();
    StoredEnding {
        kind,
        code,
        started_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
        wall_us: micros(usage.wall),
        user_us: micros(usage.user),
        sys_us: micros(usage.system),
        max_rss_kib: usage.max_rss_kib,
    }
}

/// Memory of this machine in bytes, for tasks that say how much they need.
fn memory_total() -> u64 {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = info.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib: Option<u64> =
        line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok());
    kib.map_or(u64::MAX, |kib| kib * 1024)
}

/// The signals by which people and systems end programs.
struct Signals([Signal; 3]);

impl Signals {
    fn listen() -> std::io::Result<Signals> {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [interrupt, terminate, hangup] = kinds.map(signal);
        Ok(Signals([interrupt?, terminate?, hangup?]))
    }

    async fn next(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}
