//! A worker's side of a conversation: steals as many tasks as there is room for, reports what is done, gives back what
//! is not wanted or could not be started, and reports when it leaves. Every result is sent until the hub has answered;
//! what a task prints goes nowhere, because the wire has no place for it.

mod pending;
mod template;

pub use template::{Template, TemplateError};

use super::client::{Client, ClientError, Reply};
use super::codec::{Kind, Log, Note, QueryWriter, Task, put_notes};
use crate::worker::{Assignment, Key, News, Order, Orders, Parting, TaskEnd, WorkerSide};
use crate::zmtp::Mechanism;
use bytes::{Bytes, BytesMut};
use laboro_core::{Name, Outcome, Time};
use pending::{OpenRequests, ResultReport, Results};
use std::collections::{BTreeMap, BTreeSet};

/// What a worker steals, how it runs it, and its limits.
#[derive(Clone, Debug)]
pub struct WorkerSettings {
    /// Who steals. One worker a name: its Exit gives back all that was stolen under it.
    pub location: Vec<u8>,
    /// How many tasks it runs at once.
    pub slots: u32,
    /// What a task runs.
    pub template: Template,
    /// What a failed task becomes.
    pub on_failure: OnFailure,
    /// Stay and ask again when the hub says that everything is done.
    pub stays: bool,
    /// How it proves who it is.
    pub mechanism: Mechanism,
}

/// The wire has no word for a task that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// It has run, so it is complete, and what waited for it goes on.
    Complete,
    /// It goes back behind all that is ready, and runs again: here or elsewhere, as often as it fails.
    Transfer,
}

/// A worker of a dwork hub, ours or an original.
#[derive(Debug)]
pub struct Worker {
    settings: WorkerSettings,
    client: Client,
    phase: WorkerPhase,
    /// Stolen and not ended, by key.
    held: BTreeMap<Key, StolenTask>,
    /// The same by name: a hub may say a name twice.
    names: BTreeSet<Bytes>,
    next_key: u64,
    ahead: u32,
    results: Results,
    pending: OpenRequests,
    /// Not to steal before, because the last steal was in vain.
    steal_at: Time,
    wait_ms: u64,
    /// Something may be ours without our knowing: a process of this name was killed before, or a steal was not
    /// answered before its connection was lost.
    may_hold_unknown: bool,
    scratch: BytesMut,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WorkerPhase {
    Working,
    /// Takes nothing more.
    Draining,
    /// Everything is ended or given back.
    Leaving,
}

#[derive(Debug)]
struct StolenTask {
    name: Bytes,
    /// Origin and log as the hub told them.
    notes: Bytes,
    started_us: Option<i64>,
}

const STEAL_MOST: u32 = 10_000;
const WAIT_MS_FIRST: u64 = 20;
const WAIT_MS_MOST: u64 = 1000;

impl Worker {
    /// Not connected yet.
    pub fn new(settings: WorkerSettings) -> Worker {
        Worker {
            client: Client::new(settings.mechanism.clone()),
            settings,
            phase: WorkerPhase::Working,
            held: BTreeMap::new(),
            names: BTreeSet::new(),
            next_key: 1,
            ahead: 0,
            results: Results::default(),
            pending: OpenRequests::default(),
            steal_at: Time(0),
            wait_ms: WAIT_MS_FIRST,
            may_hold_unknown: true,
            scratch: BytesMut::new(),
        }
    }

    /// Says all that may be said now.
    fn speak(&mut self, now: Time, out: &mut Orders) {
        if !self.client.is_ready() {
            return;
        }
        if self.pending.told.is_none()
            && let Some(told) = self.results.next()
        {
            self.tell_results(now, told, out);
        }
        let is_idle = self.held.is_empty() && self.is_settled();
        if is_idle && self.pending.steal.is_none() && self.pending.exit.is_none() {
            // Also when it may hold something that it never heard of: the hub gives that to others then.
            if self.phase == WorkerPhase::Leaving || self.may_hold_unknown {
                self.write(Kind::Exit, |query| query);
                self.pending.exit = Some(self.ask(now, out));
                return;
            }
        }
        let room = self.room();
        if room > 0 && now >= self.steal_at {
            self.write(Kind::Steal, |query| query.n(room as i32));
            self.pending.steal = Some((self.ask(now, out), now));
        }
    }

    /// How many tasks may be stolen now.
    fn room(&self) -> u32 {
        let may_steal = self.client.is_ready()
            && self.phase == WorkerPhase::Working
            && self.pending.steal.is_none()
            && self.pending.exit.is_none();
        let room = self.settings.slots.saturating_add(self.ahead);
        let room = room.saturating_sub(self.held.len() as u32).min(STEAL_MOST);
        if may_steal { room } else { 0 }
    }

    fn tell_results(&mut self, now: Time, told: ResultReport, out: &mut Orders) {
        let (kind, tasks) = match &told {
            ResultReport::Done(tasks) => (Kind::Complete, tasks),
            ResultReport::Back(tasks) => (Kind::Transfer, tasks),
        };
        self.write(kind, |mut query| {
            tasks.iter().for_each(|task| query.noted_task(&task.name, &task.notes, &[]));
            query
        });
        self.pending.told = Some((self.ask(now, out), told));
    }

    /// A request of this worker.
    fn write(&mut self, kind: Kind, fill: impl for<'b> FnOnce(QueryWriter<'b>) -> QueryWriter<'b>) {
        self.scratch.clear();
        fill(QueryWriter::new(kind, &mut self.scratch)).location(&self.settings.location);
    }

    /// Makes the request that was just written.
    fn ask(&mut self, now: Time, out: &mut Orders) -> u64 {
        self.pending.asked_at = now;
        let number = self.client.ask(&self.scratch, &mut out.say);
        out.end_message();
        number
    }

    fn hear(&mut self, now: Time, reply: &Reply, out: &mut Orders) {
        let Ok(query) = reply.query() else {
            return out.hang_up(Parting::Malformed("the hub's answer cannot be read".into()));
        };
        let number = reply.number;
        self.pending.asked_at = now;
        if let Some((asked, told)) = self.pending.told.take_if(|(asked, _)| *asked == number) {
            self.told(asked, told, query.kind, out);
            // What was completed may have made others ready.
            self.steal_soon();
        } else if let Some((_, asked_at)) =
            self.pending.steal.take_if(|(asked, _)| *asked == number)
        {
            match query.kind {
                Kind::Transfer => {
                    self.wait_ms = WAIT_MS_FIRST;
                    self.steal_at = now;
                    query.tasks.iter().for_each(|task| self.start(task, out));
                }
                Kind::NotFound => self.found_nothing(now, asked_at),
                Kind::Exit if self.settings.stays => self.found_nothing(now, asked_at),
                Kind::Exit if self.phase == WorkerPhase::Working => {
                    self.phase = WorkerPhase::Draining;
                    out.order(Order::Drain);
                }
                Kind::Exit => {}
                kind => out.hang_up(odd(kind, "a steal")),
            }
        } else if self.pending.exit.take_if(|asked| *asked == number).is_some() {
            self.may_hold_unknown = false;
            match (query.kind, self.phase) {
                (Kind::Ok | Kind::NotFound | Kind::Exit, WorkerPhase::Leaving) => {
                    out.hang_up(Parting::Finished);
                }
                (Kind::Ok | Kind::NotFound | Kind::Exit, _) => {}
                (kind, _) => out.hang_up(odd(kind, "an exit")),
            }
        }
    }

    /// The hub has answered what it was told. What it did not find is somebody else's by now.
    fn told(&mut self, asked: u64, told: ResultReport, kind: Kind, out: &mut Orders) {
        match (kind, told) {
            (Kind::Ok, _) | (Kind::NotFound, ResultReport::Done(_)) => {}
            (Kind::NotFound, ResultReport::Back(tasks)) => {
                // All or nothing: one by one the others get through.
                if tasks.len() > 1 {
                    tasks.into_iter().for_each(|task| self.results.back_alone(task));
                }
            }
            (Kind::Exit, told) => {
                // The hub stops and has done nothing: the next one is told again.
                self.pending.told = Some((asked, told));
                out.hang_up(Parting::Again("the hub stops".into()));
            }
            (kind, _) => out.hang_up(odd(kind, "results")),
        }
    }

    fn start(&mut self, task: &Task<'_>, out: &mut Orders) {
        let name = Bytes::copy_from_slice(task.name);
        let mut notes = BytesMut::new();
        put_notes(task.origin, task.log(), &mut notes);
        let held = StolenTask { name: name.clone(), notes: notes.freeze(), started_us: None };
        if self.phase != WorkerPhase::Working {
            self.results.back(held.told(&[]));
            return;
        }
        if !self.names.insert(name) {
            // An original hub may hand out the same task twice; it runs here already.
            return;
        }
        let key = Key(self.next_key);
        self.next_key += 1;
        out.order(Order::Start(Box::new(Assignment {
            key,
            name: Name::new(task.name).to_string(),
            job: 0,
            index: 0,
            attempt: 1,
            work: self.settings.template.fill(task.name),
            value: None,
            slots: 1,
            memory: 0,
            time_limit_ms: None,
            resources: Vec::new(),
            role: laboro_core::Role::Only,
            access: None,
        })));
        self.held.insert(key, held);
    }

    /// A hub that kept the steal waiting may be asked again at once; one that did not wants a pause.
    fn found_nothing(&mut self, now: Time, asked_at: Time) {
        if now.since_ms(asked_at) >= WAIT_MS_MOST / 2 {
            self.wait_ms = WAIT_MS_FIRST;
            self.steal_at = now;
        } else {
            self.steal_at = now.after_ms(self.wait_ms);
            self.wait_ms = (self.wait_ms * 2).min(WAIT_MS_MOST);
        }
    }

    fn steal_soon(&mut self) {
        self.steal_at = Time(0);
        self.wait_ms = WAIT_MS_FIRST;
    }

    fn ended(&mut self, now: Time, key: Key, how: &TaskEnd, out: &mut Orders) {
        if how.outcome == Outcome::Lost {
            // It was not the task that ended it.
            return self.give_back(key);
        }
        let Some(held) = self.release(key) else { return };
        if !how.outcome.is_success() {
            // The hub is told nothing of it.
            let then = match self.settings.on_failure {
                OnFailure::Complete => "counts as done",
                OnFailure::Transfer => "goes back",
            };
            let (name, outcome) = (Name::new(&held.name), how.outcome);
            let why = how.message.as_deref().map_or(String::new(), |why| format!(", {why}"));
            out.order(Order::Say(format!("{name} failed, {outcome}{why}: it {then}")));
        }
        let done_us = micros(now);
        let took_us = i64::try_from(how.used.wall_us).unwrap_or(i64::MAX);
        let started_us = held.started_us.unwrap_or(done_us.saturating_sub(took_us));
        let log = [Log::new(Note::Started, started_us), Log::new(Note::Done, done_us)];
        if how.outcome.is_success() || self.settings.on_failure == OnFailure::Complete {
            self.results.done(held.told(&log));
        } else {
            self.results.back(held.told(&[]));
        }
    }

    fn give_back(&mut self, key: Key) {
        if let Some(held) = self.release(key) {
            self.results.back(held.told(&[]));
        }
    }

    fn release(&mut self, key: Key) -> Option<StolenTask> {
        let held = self.held.remove(&key)?;
        self.names.remove(&held.name);
        Some(held)
    }
}

impl WorkerSide for Worker {
    fn open(&mut self, now: Time, out: &mut Orders) {
        self.client = Client::new(self.settings.mechanism.clone());
        self.pending.asked_at = now;
        self.client.open(now, &mut out.say);
        out.end_message();
    }

    fn receive(&mut self, now: Time, input: &mut BytesMut, out: &mut Orders) {
        let was_ready = self.client.is_ready();
        while out.hang_up.is_none() {
            match self.client.receive(now, input, &mut out.say) {
                Ok(Some(reply)) => self.hear(now, &reply, out),
                Ok(None) => break,
                Err(error) => out.hang_up(parting(&error)),
            }
        }
        if !was_ready && self.client.is_ready() {
            let name = Name::new(&self.settings.location).to_string();
            out.order(Order::Welcome { name });
        }
        if out.hang_up.is_none() {
            self.speak(now, out);
        }
    }

    fn tell(&mut self, now: Time, news: News, out: &mut Orders) {
        match news {
            News::Started(key) => {
                if let Some(held) = self.held.get_mut(&key) {
                    held.started_us = Some(micros(now));
                }
                return;
            }
            News::Wrote { .. } => return,
            News::Ended { key, how } => self.ended(now, key, &how, out),
            News::Returned(key) => self.give_back(key),
            News::Ahead(ahead) => self.ahead = ahead,
            News::Draining => {
                if self.phase == WorkerPhase::Working {
                    self.phase = WorkerPhase::Draining;
                }
            }
            News::Leaving => self.phase = WorkerPhase::Leaving,
        }
        self.speak(now, out);
    }

    /// All tasks run the same command: what went wrong with one would go wrong with the others.
    fn not_started(&mut self, now: Time, key: Key, why: String, out: &mut Orders) {
        if let Some(held) = self.held.get(&key) {
            let name = Name::new(&held.name);
            out.order(Order::Fail(format!(
                "task {name} could not be started: {why}; it went back to the hub, and this worker takes no more: \
                 check the command after `--`"
            )));
        }
        self.give_back(key);
        if self.phase == WorkerPhase::Working {
            self.phase = WorkerPhase::Draining;
        }
        self.speak(now, out);
    }

    fn deadline(&self) -> Option<Time> {
        let steal = (self.room() > 0).then_some(self.steal_at);
        [self.client.deadline(), steal, self.pending.deadline()].into_iter().flatten().min()
    }

    fn tick(&mut self, now: Time, out: &mut Orders) {
        if self.client.deadline().is_some_and(|at| at <= now)
            && let Err(error) = self.client.tick(now, &mut out.say)
        {
            return out.hang_up(parting(&error));
        }
        if self.pending.deadline().is_some_and(|at| at <= now) {
            return out.hang_up(Parting::Again("the hub does not answer".into()));
        }
        self.speak(now, out);
    }

    fn lost(&mut self, _now: Time) {
        // A result told twice by the same worker is fine.
        if let Some((_, told)) = self.pending.told.take() {
            self.results.again(told);
        }
        self.may_hold_unknown |= self.pending.steal.take().is_some();
        self.pending.exit = None;
        self.client = Client::new(self.settings.mechanism.clone());
        self.steal_soon();
    }

    fn unsaid(&self) -> usize {
        0
    }

    fn is_settled(&self) -> bool {
        self.pending.told.is_none() && self.results.is_empty()
    }
}

impl StolenTask {
    fn told(self, log: &[Log]) -> pending::ReportedTask {
        let mut notes = BytesMut::from(&self.notes[..]);
        log.iter().for_each(|log| log.put(&mut notes));
        pending::ReportedTask { name: self.name, notes: notes.freeze() }
    }
}

fn micros(now: Time) -> i64 {
    i64::try_from(now.0.saturating_mul(1000)).unwrap_or(i64::MAX)
}

fn odd(kind: Kind, to: &str) -> Parting {
    Parting::Malformed(format!("the hub answered {to} with {kind:?}"))
}

fn parting(error: &ClientError) -> Parting {
    use crate::zmtp::ZmtpError;
    match error {
        ClientError::Zmtp(ZmtpError::Silent { .. }) => Parting::Again(error.to_string()),
        // Nothing that is said again would change its mind.
        ClientError::Zmtp(ZmtpError::Refused(_) | ZmtpError::OtherMechanism { .. }) => {
            Parting::Refused(error.to_string())
        }
        _ => Parting::Malformed(error.to_string()),
    }
}
