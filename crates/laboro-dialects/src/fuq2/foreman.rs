//! The hub's side of the conversation: work goes out as JOBs, results come in as UPDATEs. Laboro workers
//! (`native`) and originals (`plain`) differ in how they say who they are and what ended; everything else is
//! the same and is here. One request of ours is under way at a time, so work that arrives meanwhile forms
//! the next batch.

mod asked;
mod former;
mod joining;
mod native;
mod plain;
mod requests;
mod waking;

pub(crate) use plain::connection_period_ms;
pub use plain::{Plain, SeqNumbers};

use super::frame::{self, Frame};
use super::header::{MessageKind, SAY_HELLO, Trouble, counts};
use super::naming::{self, HeldTask};
use super::talk::{Meaning, Side, Talk};
use super::{Numbering, native as wire};
use crate::session::{Delivery, HangUp, Output, Session, SessionContext};
use asked::Asked;
use bytes::BytesMut;
use former::FormerSearch;
use laboro_core::{
    Command, Grant, LeaseNo, Leave, Leaving, Refusal, Reply, TaskId, Time, WorkerId, WorkerRef,
};
use requests::{ForemanRequest, Requests};
use std::collections::BTreeMap;
use waking::{QUIET_MS, Waking};

/// Who is served at this door.
#[derive(Clone, Debug)]
pub enum Mode {
    /// Laboro workers with a token.
    Native,
    /// Originals, and whoever speaks like them.
    Plain(Plain),
}

/// The hub's side of a conversation with a fuq 2 node or a Laboro worker.
#[derive(Debug)]
pub struct Foreman {
    context: SessionContext,
    mode: Mode,
    talk: Talk,
    phase: ForemanPhase,
    requests: Requests,
    /// What an original has: it knows no leases.
    held: BTreeMap<TaskId, HeldTask>,
    /// What a Laboro worker has: only the number matters.
    running: u32,
    slots: u32,
    /// The worker wants no more work: it need not be told.
    drains: bool,
    period_ms: Option<u64>,
    heard_at: Time,
    /// When the hub is told next that an original's connection stands.
    renew_at: Option<Time>,
    /// A node that has logged in and not said HELLO.
    waking: Waking,
    /// When something was last asked.
    asked_at: Time,
    /// It does not answer: what it has goes to others at once.
    is_lost: bool,
    /// UPDATEs that came before the HELLO was answered: answers are given in order.
    early: Vec<Frame>,
    /// The hub stops: nothing more is asked.
    stops: bool,
    /// Of a worker without a name.
    search: FormerSearch,
    /// The last lease that the worker has acknowledged, if the hub does not know.
    arrived: Option<LeaseNo>,
    tell_arrived_by: Option<Time>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ForemanPhase {
    /// Has not said who it is.
    Strange,
    /// Waits for the hub to know it.
    Joining {
        hello: u32,
        who: WorkerRef,
        /// Free and running, as it said itself.
        given: (u32, u32),
        ahead: u32,
        running: Vec<HeldTask>,
    },
    Working {
        worker: WorkerId,
        who: WorkerRef,
    },
    /// Was known and must say again who it is.
    Again {
        who: WorkerRef,
    },
    /// Has said goodbye.
    Left,
}

/// A stranger must say HELLO within this time.
const HELLO_MS: u64 = 30_000;
/// And its HELLO must not be larger.
const HELLO_BYTES_MAX: usize = 4 << 20;
/// What may wait for the answer to a HELLO.
const EARLY_BYTES_MAX: usize = 4 << 20;
/// How long the hub may be left in the dark about what has arrived: mostly something else is told before.
const ARRIVED_MS: u64 = 100;

impl Foreman {
    /// For one connection.
    pub fn new(context: SessionContext, mode: Mode) -> Foreman {
        let numbering = match &mode {
            Mode::Native => Numbering::Current,
            Mode::Plain(plain) => plain.numbering,
        };
        Foreman {
            context,
            mode,
            talk: Talk::new(Side::Foreman, numbering),
            phase: ForemanPhase::Strange,
            requests: Requests::default(),
            held: BTreeMap::new(),
            running: 0,
            slots: 0,
            drains: false,
            period_ms: None,
            heard_at: Time::default(),
            renew_at: None,
            waking: Waking::default(),
            asked_at: Time::default(),
            is_lost: false,
            early: Vec::new(),
            stops: false,
            search: FormerSearch::default(),
            arrived: None,
            tell_arrived_by: None,
        }
    }

    #[cfg(test)]
    pub(super) fn talk(&mut self) -> &mut Talk {
        &mut self.talk
    }

    fn is_native(&self) -> bool {
        matches!(self.mode, Mode::Native)
    }

    /// How long one that works may say nothing before its connection is closed. Longer than its period: when that is
    /// over the hub takes its tasks back by itself, while a connection that ends first would give it the grace time.
    fn silence_ms(&self) -> Option<u64> {
        self.period_ms.map(|ms| ms.saturating_mul(2))
    }

    /// How long its tasks wait for a worker whose connection has ended. No longer than the worker itself would have the
    /// hub wait for a sign of life.
    fn away_ms(&self) -> u64 {
        self.period_ms.unwrap_or(u64::MAX).min(self.context.grace_ms)
    }

    fn body_max(&self) -> usize {
        match self.phase {
            ForemanPhase::Strange => self.context.message_max.min(HELLO_BYTES_MAX),
            _ => self.context.message_max,
        }
    }

    fn take(&mut self, now: Time, message: Frame, out: &mut Output) {
        match self.talk.hear(message) {
            Meaning::Request(request) => self.take_request(now, request, out),
            Meaning::Response(response) => self.take_response(now, response, out),
            Meaning::Nothing | Meaning::Greeting => {}
            Meaning::Overflow(seq) => {
                self.talk.refuse(&mut out.say, seq, Trouble::Overflow, 0);
                out.end_message();
            }
            Meaning::BadSeq { seq, why } => {
                if self.talk.knows_laboro() {
                    self.talk.refuse(&mut out.say, seq, Trouble::BadSeq, 0);
                    out.end_message();
                }
                out.malformed(format!("message number {seq} {why}"));
            }
            Meaning::Anew => self.start_anew(out),
        }
        while out.hang_up.is_none()
            && let Some(request) = self.talk.next_queued()
        {
            self.take_request(now, request, out);
        }
    }

    fn take_request(&mut self, now: Time, request: Frame, out: &mut Output) {
        let seq = request.header.seq;
        let result = match (request.header.kind, &self.phase) {
            (MessageKind::Hello, ForemanPhase::Joining { .. } | ForemanPhase::Left) => {
                out.malformed("a HELLO while another is not answered, or after the goodbye");
                return;
            }
            (MessageKind::Hello, _) if self.is_native() => self.native_hello(now, &request, out),
            (MessageKind::Hello, _) => self.plain_hello(now, &request, out),
            (MessageKind::Update, ForemanPhase::Working { .. }) if self.is_native() => {
                self.native_update(now, &request, out)
            }
            (MessageKind::Update, ForemanPhase::Strange) if self.is_native() => {
                out.malformed("an UPDATE before the HELLO");
                return;
            }
            (MessageKind::Update, _) if self.is_native() => {
                self.talk.answer(&mut out.say, seq, SAY_HELLO);
                out.end_message();
                return;
            }
            (MessageKind::Update, ForemanPhase::Joining { .. }) => {
                self.early.push(request);
                if self.early.iter().map(|update| update.body.len()).sum::<usize>()
                    > EARLY_BYTES_MAX
                {
                    out.malformed("too much was said before the answer to the HELLO");
                }
                return;
            }
            (MessageKind::Update, _) => self.plain_update(&request, out),
            (kind, _) => {
                out.malformed(format!("{kind:?} from a worker"));
                return;
            }
        };
        if let Err(error) = result {
            out.malformed(format!("{:?} number {seq}: {error}", request.header.kind));
        }
    }

    fn take_response(&mut self, now: Time, response: Frame, out: &mut Output) {
        let header = response.header;
        let Some(request) = self.requests.answered(header.seq) else {
            return self.waking_answered(now, header, out);
        };
        if header.kind == MessageKind::Ok {
            if let ForemanRequest::Job(grants) = &request {
                self.arrived = grants.last().map(|grant| grant.lease);
                self.tell_arrived_by.get_or_insert(now.after_ms(ARRIVED_MS));
            }
            self.requests.go_on(&request);
            return;
        }
        match (request, Trouble::of(header.subtype)) {
            (_, Trouble::BadSeq) => out.malformed("the peer does not accept our numbers"),
            (request, Trouble::Overflow) => {
                for task in self.requests.again(now, request) {
                    self.note_gone(task);
                }
            }
            (ForemanRequest::Job(grants), _) => {
                // Somebody else may have room; if it comes back here, it waits.
                self.requests.hold_jobs(now);
                for grant in grants {
                    self.note_gone(grant.task);
                    self.hand_back((grant.task, grant.lease), out);
                }
            }
            // STOP overtook the node's own bookkeeping, as JOB may. It says what it has left.
            (request @ ForemanRequest::Stop(_), Trouble::NoProcs) if !self.is_native() => {
                self.slots = (header.arg0 >> 16) + (header.arg0 & 0xFFFF);
                self.requests.again(now, request);
            }
            // What it does not run need not be ended.
            (ForemanRequest::Cancel(_) | ForemanRequest::Stop(_), _) => {}
        }
    }

    /// The hub is told what the worker has taken, so that it is known what it can have started if it is lost.
    fn tell_arrived(&mut self, out: &mut Output) {
        self.tell_arrived_by = None;
        let ForemanPhase::Working { worker, .. } = self.phase else { return };
        if let Some(lease) = self.arrived.take() {
            let arrived = Command::Acknowledge(WorkerRef::Id(worker), lease);
            out.ask(Asked::Nothing.tag(), arrived);
        }
    }

    fn note_given(&mut self, grants: &[Grant]) {
        if self.is_native() {
            self.running = self.running.saturating_add(grants.len() as u32);
        } else {
            let held = grants.iter().map(naming::held_by);
            self.held.extend(held.map(|held| (held.task, held)));
        }
    }

    fn note_gone(&mut self, task: TaskId) {
        if self.is_native() {
            self.running = self.running.saturating_sub(1);
        } else {
            self.held.remove(&task);
        }
    }

    /// Free and running, as this side counts them.
    fn counts(&self) -> u32 {
        let running = if self.is_native() { self.running } else { self.held.len() as u32 };
        counts(self.slots.saturating_sub(running), running)
    }

    /// The UPDATE is dealt with. Who has not said HELLO, or whom the hub has forgotten, is told to say it.
    fn answer_update(&mut self, now: Time, seq: u32, reply: &Reply, out: &mut Output) {
        if let Reply::Refused(Refusal::NoSuchWorker(_)) = reply {
            self.expect_hello();
        }
        let is_back = matches!(self.phase, ForemanPhase::Again { .. });
        let waits = is_back && !self.may_say_hello(now);
        let arg0 = match self.phase {
            ForemanPhase::Working { .. } | ForemanPhase::Left => self.counts(),
            ForemanPhase::Again { .. } if waits => self.counts(),
            ForemanPhase::Strange | ForemanPhase::Joining { .. } | ForemanPhase::Again { .. } => {
                SAY_HELLO
            }
        };
        self.talk.answer(&mut out.say, seq, arg0);
        out.end_message();
    }

    fn revoke(&mut self, leases: Vec<(TaskId, LeaseNo)>) {
        for (task, lease) in leases {
            let base = self.held.get(&task).map_or(0, |held| held.base);
            self.requests.revoke(HeldTask { task, lease, base });
        }
    }

    /// Says the next request, if it is time for one.
    fn flush(&mut self, now: Time, out: &mut Output) {
        if self.talk.answer_reset(&mut out.say) {
            out.end_message();
            self.start_anew(out);
        }
        if let ForemanPhase::Working { worker, .. } = self.phase
            && out.hang_up.is_none()
            && !self.stops
        {
            self.say_requests(now, worker, out);
        }
        self.note_numbers();
    }
}

impl Session for Foreman {
    fn open(&mut self, now: Time, out: &mut Output) {
        self.heard_at = now;
        self.greet(out);
        self.plain_return(now, out);
    }

    fn receive(&mut self, now: Time, input: &mut BytesMut, out: &mut Output) {
        self.hear(now, input, out);
        self.flush(now, out);
    }

    /// What was received is answered before something is asked, so nothing is asked before all of it was looked at.
    fn hear(&mut self, now: Time, input: &mut BytesMut, out: &mut Output) {
        while out.hang_up.is_none() {
            match frame::take(input, self.talk.numbering(), self.body_max()) {
                Ok(Some(message)) => {
                    self.heard_at = now;
                    out.heard += 1;
                    self.take(now, message, out);
                }
                Ok(None) => break,
                Err(error) => out.malformed(error.to_string()),
            }
        }
    }

    fn deliver(&mut self, now: Time, delivery: Delivery, out: &mut Output) {
        match delivery {
            Delivery::Reply { tag, reply } => match (Asked::of(tag), reply) {
                (Asked::Join, Reply::Joined { worker, unknown }) => {
                    self.joined(worker, &unknown, out);
                }
                (Asked::Join, Reply::Refused(refusal)) => self.refused(&refusal, out),
                (Asked::Return, Reply::Joined { worker, .. }) => {
                    self.waking = Waking::Quiet { worker, until: now.after_ms(QUIET_MS) };
                }
                (Asked::Holder, reply) => self.found_holder(&reply, out),
                (Asked::Former, reply) => self.found_former(now, reply, out),
                (Asked::Look, reply) => self.plain_join(now, reply, out),
                (Asked::Compare, reply) => self.waking_compared(now, &reply, out),
                (Asked::Empty, Reply::Joined { worker, .. }) => self.waking_emptied(worker, out),
                (Asked::Update(seq), reply) => self.answer_update(now, seq, &reply, out),
                // It slept so long that its leases have lapsed: it has to come anew.
                (Asked::Renew, Reply::Refused(refusal)) => {
                    out.hang_up(HangUp::Denied(refusal.to_string()));
                }
                (Asked::Join | Asked::Return | Asked::Renew | Asked::Empty | Asked::Nothing, _) => {
                }
            },
            Delivery::Work { grants, .. } => self.requests.ready.extend(grants),
            Delivery::Revoke { leases, .. } => self.revoke(leases),
            Delivery::Stop { drain, .. } => self.stop(drain),
            Delivery::Replaced => out.hang_up(HangUp::Finished),
        }
        self.flush(now, out);
    }

    fn deadline(&self) -> Option<Time> {
        let silent = match self.phase {
            ForemanPhase::Joining { .. } => None,
            ForemanPhase::Working { .. } => self.silence_ms().map(|ms| self.heard_at.after_ms(ms)),
            ForemanPhase::Strange | ForemanPhase::Again { .. } => self.hello_by(),
            ForemanPhase::Left => Some(self.heard_at.after_ms(HELLO_MS)),
        };
        let waking = self.waking_deadline();
        let requests = [self.requests.held_until(), self.tell_arrived_by];
        let times = [silent, waking, self.renew_at, self.lost_at()].into_iter().chain(requests);
        times.flatten().min()
    }

    fn tick(&mut self, now: Time, out: &mut Output) {
        self.requests.look_at_holds(now);
        if self.tell_arrived_by.is_some_and(|by| by <= now) {
            self.tell_arrived(out);
        }
        self.plain_renew(now, out);
        self.look_at_waking(now, out);
        self.look_at_lost(now, out);
        let silent_ms = now.since_ms(self.heard_at);
        match self.phase {
            ForemanPhase::Strange | ForemanPhase::Again { .. }
                if self.hello_by().is_some_and(|by| by <= now) =>
            {
                out.hang_up(HangUp::Silent);
            }
            ForemanPhase::Working { .. } if self.silence_ms().is_some_and(|ms| silent_ms >= ms) => {
                out.hang_up(HangUp::Silent);
            }
            ForemanPhase::Left if silent_ms >= HELLO_MS => out.hang_up(HangUp::Finished),
            _ => {}
        }
        self.flush(now, out);
    }

    /// What originals tell meanwhile is answered: one that hears no answer would wait for it for ever.
    fn last_words(&mut self, _: Time, _: &mut Output) {
        self.stops = !self.is_native();
    }

    fn owes_answers(&self) -> bool {
        self.stops && self.talk.owes()
    }

    fn answers_late(&self) -> bool {
        let may_run = !self.held.is_empty() || matches!(self.phase, ForemanPhase::Again { .. });
        self.stops && may_run
    }

    fn close(&mut self, _: Time, out: &mut Output) {
        self.tell_arrived(out);
        let worker = match std::mem::replace(&mut self.phase, ForemanPhase::Left) {
            ForemanPhase::Joining { who, .. } | ForemanPhase::Again { who } => who,
            ForemanPhase::Working { worker, .. } => WorkerRef::Id(worker),
            ForemanPhase::Strange | ForemanPhase::Left => return,
        };
        let how = match self.is_lost {
            true => Leaving::Away { grace_ms: 0 },
            false => Leaving::Away { grace_ms: self.away_ms() },
        };
        let leave = Leave { worker: worker.clone(), session: Some(self.context.session), how };
        out.ask(Asked::Nothing.tag(), Command::Leave(leave));
        if !self.is_native() && !self.is_lost {
            self.return_unsaid(worker, out);
        }
    }
}
