//! A worker around the real worker's side of a conversation, whatever its dialect. Its tasks are times and
//! outcomes. It behaves as the real agent does: finishes what runs when told to go, gives back what waits,
//! comes back when a connection is lost, and says everything again.

use crate::clock::Offset;
use crate::dice::Dice;
use crate::peer::{Peer, Turned};
use crate::plan::{Dialect, Room, WorkerPlan};
use bytes::{Bytes, BytesMut};
use laboro_core::{Outcome, Role, Setting, Supply, Time, Work};
use laboro_dialects::session::Stream;
use laboro_dialects::worker::{
    Assignment, Key, News, Order, Orders, Parting, TaskEnd, Used, WorkerSide,
};
use laboro_dialects::zmtp::Mechanism;
use laboro_dialects::{dwork, fuq1, fuq2, runexp, websocket};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub(crate) struct Agent {
    plan: WorkerPlan,
    dice: Dice,
    offset: Offset,
    side: Box<dyn WorkerSide>,
    orders: Orders,
    stage: Stage,
    slots: u32,
    waiting: VecDeque<Box<Assignment>>,
    /// It is kept for these, which run on others.
    kept: BTreeSet<Key>,
    running: BTreeMap<Key, RunningTask>,
    is_connected: bool,
    connect_at: u64,
    stalled_until: u64,
    lives: u64,
    /// What it has beside slots, by its place in the plan.
    room: usize,
    /// It may stay no longer than until then.
    leaves_at: Option<u64>,
    /// In the calm everything succeeds at once.
    is_calm: bool,
    /// Tasks that began here, in all its lives.
    pub started: u64,
    /// Why it is gone for good, if it is: a new process takes its place then.
    gone: Option<String>,
}

#[derive(Debug)]
struct RunningTask {
    ends_at: u64,
    slots: u32,
    outcome: Outcome,
    is_stopped: bool,
    /// Its worker does not survive it.
    kills: bool,
    /// A call: what it gives back if all goes well.
    gives: Option<Bytes>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Working,
    Draining,
    Leaving { until: u64 },
}

/// An order may lead to news, and those to an order; not for ever.
const ROUNDS_MAX: u32 = 1000;
const GOODBYE_MS: u64 = 5000;
const MESSAGE_BYTES: usize = 1 << 20;

impl Agent {
    pub fn new(plan: WorkerPlan, dice: Dice) -> Agent {
        let side = side(&plan, 1, &plan.rooms[0], None);
        let slots = plan.slots;
        Agent {
            plan,
            dice,
            offset: Offset::USUAL,
            side,
            orders: Orders::default(),
            stage: Stage::Working,
            slots,
            waiting: VecDeque::new(),
            kept: BTreeSet::new(),
            running: BTreeMap::new(),
            is_connected: false,
            connect_at: 0,
            stalled_until: 0,
            lives: 1,
            room: 0,
            leaves_at: None,
            is_calm: false,
            started: 0,
            gone: None,
        }
    }

    pub fn plan(&self) -> &WorkerPlan {
        &self.plan
    }

    /// It dies with all that runs, and another process takes its place. Meanwhile the machine's clock may be set.
    pub fn crash(&mut self, back_at: u64, clock: Option<Offset>) {
        self.offset = clock.unwrap_or(self.offset);
        self.begin_anew(back_at);
    }

    pub fn stall(&mut self, until: u64) {
        self.stalled_until = self.stalled_until.max(until);
    }

    pub fn calm_down(&mut self, now: u64) {
        self.is_calm = true;
        self.stalled_until = self.stalled_until.min(now);
        self.connect_at = self.connect_at.min(now);
    }

    /// Somebody wants an end to it: what runs is finished.
    pub fn signal(&mut self, now: u64) {
        self.drain(now);
    }

    pub fn is_settled(&self) -> bool {
        self.side.is_settled() && self.running.is_empty() && self.waiting.is_empty()
    }

    fn begin_anew(&mut self, back_at: u64) {
        self.lives += 1;
        let rooms = self.plan.rooms.len();
        self.room = if self.is_calm { 0 } else { (self.lives as usize - 1) % rooms };
        let room = &self.plan.rooms[self.room];
        self.leaves_at = room.stays_ms.map(|ms| back_at + ms);
        let until = self.leaves_at.map(|at| self.offset.time(at));
        self.side = side(&self.plan, self.lives, room, until);
        self.orders = Orders::default();
        self.stage = Stage::Working;
        self.slots = self.plan.slots;
        self.waiting.clear();
        self.kept.clear();
        self.running.clear();
        self.is_connected = false;
        self.connect_at = back_at;
        self.stalled_until = 0;
        self.gone = None;
    }

    fn time(&self, now: u64) -> Time {
        self.offset.time(now)
    }

    fn tell(&mut self, now: u64, news: News) {
        let time = self.time(now);
        self.side.tell(time, news, &mut self.orders);
    }

    fn obey(&mut self, now: u64) {
        let mut rounds = 0;
        while !self.orders.orders.is_empty() {
            rounds += 1;
            assert!(rounds <= ROUNDS_MAX, "worker and conversation have no end of things to say");
            for order in std::mem::take(&mut self.orders.orders) {
                match order {
                    Order::Welcome { .. } => {
                        if self.plan.ahead > 0 && self.stage == Stage::Working {
                            self.tell(now, News::Ahead(self.plan.ahead));
                        }
                    }
                    Order::Start(assignment)
                        if self.stage == Stage::Working && assignment.role == Role::Kept =>
                    {
                        self.kept.insert(assignment.key);
                    }
                    Order::Start(assignment) if self.stage == Stage::Working => {
                        self.waiting.push_back(assignment);
                    }
                    Order::Start(assignment) => self.tell(now, News::Returned(assignment.key)),
                    Order::Cancel(key) => self.cancel(now, key),
                    Order::GiveUpSlots(slots) => self.slots = self.slots.saturating_sub(slots),
                    Order::Drain | Order::Fail(_) => self.drain(now),
                    Order::Say(_) => {}
                    Order::StopNow => {
                        self.drain(now);
                        for key in std::mem::take(&mut self.kept) {
                            self.tell(now, News::Returned(key));
                        }
                        for run in self.running.values_mut() {
                            (run.is_stopped, run.ends_at) = (true, now);
                        }
                    }
                }
            }
        }
    }

    fn cancel(&mut self, now: u64, key: Key) {
        if self.kept.remove(&key) {
            self.tell(now, News::Returned(key));
        } else if let Some(at) = self.waiting.iter().position(|waiting| waiting.key == key) {
            self.waiting.remove(at);
            self.tell(now, News::Returned(key));
        } else if let Some(run) = self.running.get_mut(&key) {
            run.ends_at = run.ends_at.min(now + 50);
            run.outcome = Outcome::Signal(15);
        }
    }

    fn start_more(&mut self, now: u64) {
        loop {
            let used: u32 = self.running.values().map(|run| run.slots).sum();
            let Some(next) = self.waiting.front() else { return };
            let slots = next.slots.max(1);
            if !self.running.is_empty() && used + slots > self.slots {
                return;
            }
            let key = next.key;
            let kills = *next.work == crate::clerk::poison() && !self.is_calm;
            let is_call = matches!(*next.work, Work::Call(_));
            let gives = is_call.then(|| Bytes::from(vec![b'r'; self.dice.index(2000)]));
            self.waiting.pop_front();
            self.started += 1;
            let takes = if self.is_calm { 5 } else { self.dice.mostly_short(6000) };
            let outcome = match self.dice.below(100) {
                _ if self.is_calm => Outcome::Success,
                0..=7 => Outcome::Exit(1 + self.dice.below(3) as i32),
                8 => Outcome::Signal(9),
                9 => Outcome::TimedOut,
                _ => Outcome::Success,
            };
            let run = RunningTask {
                ends_at: now + takes,
                slots,
                outcome,
                is_stopped: false,
                kills,
                gives,
            };
            self.running.insert(key, run);
            self.tell(now, News::Started(key));
            if self.dice.one_in(3) {
                let bytes = Bytes::from(vec![b'x'; 1 + self.dice.index(400)]);
                self.tell(now, News::Wrote { key, stream: Stream::Out, bytes });
            }
        }
    }

    fn end_due(&mut self, now: u64) {
        let due: Vec<Key> = (self.running.iter())
            .filter(|(_, run)| run.ends_at <= now)
            .map(|(key, _)| *key)
            .collect();
        for key in due {
            let Some(run) = self.running.remove(&key) else { continue };
            if run.kills && !self.is_calm {
                return self.go("its task killed it");
            }
            if run.is_stopped {
                self.tell(now, News::Returned(key));
                continue;
            }
            let message = match run.gives {
                Some(bytes) if run.outcome.is_success() => {
                    let message = crate::results::gave(bytes.len() as u64);
                    self.tell(now, News::Wrote { key, stream: Stream::Result, bytes });
                    Some(message)
                }
                _ => (!run.outcome.is_success()).then(|| "it went wrong".to_owned()),
            };
            let used = Used { wall_us: 1000, ..Used::default() };
            let how = TaskEnd { outcome: run.outcome, message, used };
            self.tell(now, News::Ended { key, how });
        }
    }

    /// The other side hears of it before anything is given back: else it might be given out again.
    fn drain(&mut self, now: u64) {
        if self.stage == Stage::Working {
            self.stage = Stage::Draining;
            self.tell(now, News::Draining);
            for assignment in std::mem::take(&mut self.waiting) {
                self.tell(now, News::Returned(assignment.key));
            }
        }
    }

    /// As far towards its end as it can go now.
    fn advance(&mut self, now: u64) {
        // In the calm another takes the place of one that was told to give slots up, or has less than it could.
        let slots_min = if self.is_calm { self.plan.slots } else { 1 };
        let has_too_little = self.slots < slots_min || self.is_calm && self.room > 0;
        let has_to_leave = self.leaves_at.is_some_and(|at| at <= now);
        if self.stage == Stage::Working && (has_too_little || has_to_leave) {
            self.drain(now);
        }
        let is_idle = self.running.is_empty() && self.waiting.is_empty() && self.kept.is_empty();
        match self.stage {
            Stage::Draining if is_idle && self.side.is_settled() && self.is_connected => {
                self.stage = Stage::Leaving { until: now + GOODBYE_MS };
                self.tell(now, News::Leaving);
            }
            Stage::Draining if is_idle && self.side.is_settled() => self.go("it had to go"),
            Stage::Leaving { until } if until <= now => self.go("its goodbye was not answered"),
            _ => {}
        }
    }

    fn go(&mut self, why: &str) {
        self.gone.get_or_insert(why.to_owned());
    }
}

impl Peer for Agent {
    fn name(&self) -> &str {
        &self.plan.name
    }

    fn wants_connection(&self, now: u64) -> bool {
        !self.is_connected && self.connect_at <= now && self.stalled_until <= now
    }

    fn connected(&mut self, now: u64) {
        self.is_connected = true;
        let time = self.time(now);
        self.side.open(time, &mut self.orders);
    }

    fn turn(&mut self, now: u64, heard: &mut BytesMut) -> Turned {
        let time = self.time(now);
        if !heard.is_empty() && self.is_connected {
            self.side.receive(time, heard, &mut self.orders);
        }
        if self.side.deadline().is_some_and(|at| at <= time) {
            self.side.tick(time, &mut self.orders);
        }
        self.obey(now);
        self.end_due(now);
        self.start_more(now);
        self.advance(now);
        self.obey(now);
        let say = self.orders.take_bytes();
        let mut hangs_up = false;
        if let Some(parting) = self.orders.hang_up.take() {
            hangs_up = true;
            let wait = match parting {
                Parting::Finished => {
                    self.go("all is said");
                    0
                }
                Parting::Refused(why) => {
                    self.go(&why);
                    0
                }
                Parting::NotNow(_) | Parting::Malformed(_) => 500,
                Parting::Again(_) => 10,
            };
            self.connect_at = now + wait + self.dice.below(100);
        }
        if self.gone.take().is_some() {
            hangs_up = true;
            let pause = if self.is_calm { 200 } else { 200 + self.dice.below(3000) };
            self.begin_anew(now + pause);
        }
        Turned { say, hangs_up }
    }

    fn lost(&mut self, now: u64) {
        if self.is_connected {
            self.is_connected = false;
            let time = self.time(now);
            self.side.lost(time);
            self.connect_at = self.connect_at.max(now + 20 + self.dice.mostly_short(3000));
        }
    }

    fn due(&self, now: u64) -> Option<u64> {
        let ends = self.running.values().map(|run| run.ends_at).min();
        let connects = (!self.is_connected).then_some(self.connect_at);
        let side = self.side.deadline().map(|at| self.offset.world(at));
        let leaves = match self.stage {
            Stage::Leaving { until } => Some(until),
            Stage::Working => self.leaves_at,
            Stage::Draining => None,
        };
        let due = [ends, connects, side, leaves].into_iter().flatten().min();
        due.map(|due| due.max(self.stalled_until).max(now))
    }

    fn stalled_until(&self) -> u64 {
        self.stalled_until
    }
}

fn side(plan: &WorkerPlan, life: u64, room: &Room, until: Option<Time>) -> Box<dyn WorkerSide> {
    let (name, slots) = (plan.name.as_str(), plan.slots);
    match plan.dialect {
        Dialect::Native => {
            let settings = fuq2::WorkerSettings {
                memory: room.memory,
                resources: resources(room),
                tags: room.is_fast.then(|| "fast".to_owned()).into_iter().collect(),
                until,
                period_ms: plan.period_ms,
                fields: plan.fields,
                life: plan.number * 1000 + life,
                ..fuq2::WorkerSettings::new(name, slots)
            };
            Box::new(fuq2::NativeWorker::new(settings))
        }
        Dialect::Dwork => {
            let template = dwork::Template::new(["run", "{}"], Setting::default())
                .expect("two words are a command");
            Box::new(dwork::Worker::new(dwork::WorkerSettings {
                location: name.as_bytes().to_vec(),
                slots,
                template,
                on_failure: dwork::OnFailure::Transfer,
                stays: true,
                mechanism: Mechanism::Null,
            }))
        }
        Dialect::Fuq2 => {
            let settings = fuq2::PlainSettings::tcp(name, slots);
            let numbering = plan.numbering;
            Box::new(fuq2::PlainWorker::new(fuq2::PlainSettings { numbering, ..settings }))
        }
        Dialect::Fuq => {
            let settings = fuq2::PlainSettings::websocket(name, slots);
            let numbering = plan.numbering;
            let side = fuq2::PlainWorker::new(fuq2::PlainSettings { numbering, ..settings });
            Box::new(websocket::Client::new(side, MESSAGE_BYTES, name))
        }
        Dialect::Fuq1 => Box::new(fuq1::Client::new(fuq1::ClientSettings::new(name, slots))),
        Dialect::Runexp => Box::new(runexp::Runner::new(runexp::RunnerOptions::new(name, slots))),
    }
}

fn resources(room: &Room) -> Vec<(String, Supply)> {
    let items = room.gpu_names.iter().map(|name| name.as_str().into()).collect();
    let gpus = Supply { count: room.gpus, items };
    vec![("gpu".to_owned(), gpus), ("licences".to_owned(), Supply::of(room.licences))]
}
