//! The hub's side of version 1. There is no answer to a JOB and no CANCEL, so the server counts for itself
//! what the client has, and sends no more than fits.

use super::codec::Message;
use crate::fuq2::{AT_ONCE, HeldTask, connection_period_ms, held_by, held_of, outcome_of, task_of};
use crate::session::{Delivery, HangUp, Output, Session, SessionContext};
use bytes::BytesMut;
use laboro_core::{
    Capacity, Command, Drain, Grant, Join, Kinds, LeaseRef, Leave, Leaving, Name, Offer, Reply,
    Report, Return, Returned, Route, TaskRef, TaskResult, Time, WorkKind, WorkerId, WorkerRef,
};
use std::collections::VecDeque;

/// The hub's side of a conversation with a fuq 1 client.
#[derive(Debug)]
pub struct Server {
    context: SessionContext,
    phase: ServerPhase,
    /// Processors that the client has and may use.
    slots: u32,
    ready: VecDeque<Grant>,
    /// What the client has, oldest first.
    held: Vec<HeldTask>,
    /// UPDATEs that wait for the hub.
    unanswered: usize,
    /// The client had no room: no JOB until then, or until an UPDATE.
    held_until: Option<Time>,
    opened_at: Time,
    /// When the hub is told next that the connection stands.
    renew_at: Option<Time>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ServerPhase {
    /// Waits for OK(nproc).
    Strange,
    Joining(WorkerRef),
    Working(WorkerId),
    Left,
}

const JOIN: u64 = 1;
const UPDATE: u64 = 2;
const RENEW: u64 = 3;
const NOTHING: u64 = 0;
/// A client must say how much it has within this time.
const GREETING_MS: u64 = 30_000;
const NO_ROOM_MS: u64 = 50;
/// A client waits for each answer; one that does not is not a client.
const UNANSWERED_MAX: usize = 16;

impl Server {
    /// For one connection.
    pub fn new(context: SessionContext) -> Server {
        Server {
            context,
            phase: ServerPhase::Strange,
            slots: 0,
            ready: VecDeque::new(),
            held: Vec::new(),
            unanswered: 0,
            held_until: None,
            opened_at: Time::default(),
            renew_at: None,
        }
    }

    fn say(&self, message: &Message, out: &mut Output) {
        message.write(&mut out.say);
        out.end_message();
    }

    /// What the client may still take. OK(0) would make it leave, so it is not said while it has something.
    fn room_to_say(&self) -> u32 {
        let free = self.slots.saturating_sub(self.held.len() as u32);
        if self.held.is_empty() { free } else { free.max(1) }
    }

    fn hear(&mut self, now: Time, message: Message, out: &mut Output) {
        match (message, &self.phase) {
            (Message::Ok(slots), ServerPhase::Strange) => self.meet(now, slots, out),
            // An OK that answers nothing.
            (Message::Ok(_), _) => {}
            (Message::Update(update), &ServerPhase::Working(worker)) => {
                self.held_until = None;
                self.unanswered += 1;
                if self.unanswered > UNANSWERED_MAX {
                    return out.malformed("a client that does not wait for answers");
                }
                let worker = WorkerRef::Id(worker);
                let Some(HeldTask { task, .. }) = held_of(update.job, update.task) else {
                    return out.ask(UPDATE, Command::Renew(worker));
                };
                let at = self.held.iter().position(|held| held.task == task);
                let lease = match at.map(|at| self.held.remove(at)) {
                    Some(HeldTask { lease, .. }) => LeaseRef::Number { task, lease },
                    None => LeaseRef::Held(TaskRef::Id(task)),
                };
                let (outcome, message) = outcome_of(update.success, &update.status);
                let results = vec![TaskResult { lease, outcome, message, memo: None }];
                out.ask(UPDATE, Command::Report(Report { worker, results }));
            }
            (Message::Error(_), &ServerPhase::Working(worker)) => self.take_back(now, worker, out),
            (Message::Error(code), _) => out.malformed(format!("error {code} from a stranger")),
            (Message::Update(_), _) => out.malformed("an UPDATE before the greeting is over"),
            (Message::Job(_), _) => out.malformed("a JOB from a client"),
            (Message::Stop(_), _) => out.malformed("a STOP from a client"),
        }
    }

    fn meet(&mut self, now: Time, slots: u32, out: &mut Output) {
        let peer = self.context.peer.map_or("local".to_owned(), |peer| peer.to_string());
        let name = Name::from(format!("fuq1-{peer}-{}-{}", now.0, self.context.session.0));
        let group = self.context.group.clone();
        let period_ms = connection_period_ms(self.context.grace_ms);
        // A client with none would not come: all of it is busy with what it was given on an earlier connection, and
        // OK(0) would make it leave.
        let slots = slots.max(1);
        self.slots = slots;
        self.renew_at = Some(now.after_ms(period_ms / 3));
        self.phase =
            ServerPhase::Joining(WorkerRef::Name { group: group.clone(), name: name.clone() });
        let join = Join {
            group,
            name,
            dialect: "fuq1",
            session: self.context.session,
            life: None,
            kinds: Kinds::of(&[WorkKind::Indexed]),
            tags: Vec::new(),
            capacity: Capacity::slots(slots),
            period_ms: Some(period_ms),
            running: None,
            acknowledges: false,
            host: Default::default(),
        };
        out.ask(JOIN, Command::Join(join));
    }

    /// The version has no sign of life; the connection is one.
    fn renew(&mut self, now: Time, out: &mut Output) {
        if let ServerPhase::Working(worker) = self.phase
            && self.renew_at.is_some_and(|at| at <= now)
        {
            out.ask(RENEW, Command::Renew(WorkerRef::Id(worker)));
            let period_ms = connection_period_ms(self.context.grace_ms);
            self.renew_at = Some(now.after_ms(period_ms / 3));
        }
    }

    /// Which JOB cannot run is not said. Those before it took the room, so it is the last.
    fn take_back(&mut self, now: Time, worker: WorkerId, out: &mut Output) {
        let Some(HeldTask { task, lease, .. }) = self.held.pop() else { return };
        self.held_until = Some(now.after_ms(NO_ROOM_MS));
        let lease = LeaseRef::Number { task, lease };
        let tasks = vec![Returned { lease, preds: Vec::new() }];
        let (worker, place) = (WorkerRef::Id(worker), laboro_core::Place::Front);
        out.ask(NOTHING, Command::Return(Return { worker, tasks, place }));
    }

    fn stop(&mut self, drain: Drain, out: &mut Output) {
        if !matches!(self.phase, ServerPhase::Working(_)) {
            return;
        }
        let slots = match drain {
            Drain::Lift => return,
            Drain::AtOnce => AT_ONCE,
            Drain::Slots(slots) => slots.min(self.slots),
            Drain::All => self.slots,
        };
        self.slots = self.slots.saturating_sub(slots);
        // STOP 0 would mean all.
        if slots > 0 {
            self.say(&Message::Stop(slots), out);
        }
    }

    fn flush(&mut self, now: Time, out: &mut Output) {
        self.held_until.take_if(|until| *until <= now);
        if !matches!(self.phase, ServerPhase::Working(_)) || self.held_until.is_some() {
            return;
        }
        while (self.held.len() as u64) < u64::from(self.slots)
            && let Some(grant) = self.ready.pop_front()
        {
            self.held.push(held_by(&grant));
            self.say(&Message::Job(task_of(&grant)), out);
        }
    }
}

impl Session for Server {
    fn open(&mut self, now: Time, out: &mut Output) {
        self.opened_at = now;
        self.say(&Message::Ok(0), out);
    }

    fn receive(&mut self, now: Time, input: &mut BytesMut, out: &mut Output) {
        while out.hang_up.is_none() {
            match Message::take(input, self.context.message_max) {
                Ok(Some(message)) => {
                    out.heard += 1;
                    self.hear(now, message, out);
                }
                Ok(None) => break,
                Err(error) => out.malformed(error.to_string()),
            }
        }
        self.flush(now, out);
    }

    fn deliver(&mut self, now: Time, delivery: Delivery, out: &mut Output) {
        match delivery {
            Delivery::Reply { tag: JOIN, reply: Reply::Joined { worker, .. } } => {
                self.phase = ServerPhase::Working(worker);
                self.say(&Message::Ok(self.slots), out);
                let (worker, route) = (WorkerRef::Id(worker), Route::Push { ahead: 0 });
                out.ask(NOTHING, Command::Offer(Offer { worker, route, lease_ms: None }));
            }
            Delivery::Reply { tag: JOIN, reply: Reply::Refused(refusal) } => {
                self.phase = ServerPhase::Left;
                out.hang_up(HangUp::Denied(refusal.to_string()));
            }
            Delivery::Reply { tag: UPDATE, .. } => {
                self.unanswered = self.unanswered.saturating_sub(1);
                self.say(&Message::Ok(self.room_to_say()), out);
            }
            // It slept so long that its leases have lapsed: it has to come anew.
            Delivery::Reply { tag: RENEW, reply: Reply::Refused(refusal) } => {
                out.hang_up(HangUp::Denied(refusal.to_string()));
            }
            Delivery::Reply { .. } => {}
            Delivery::Work { grants, .. } => self.ready.extend(grants),
            Delivery::Revoke { leases, .. } => {
                // What was sent cannot be called back; its result will not count.
                let is_live = |grant: &Grant| !leases.contains(&(grant.task, grant.lease));
                self.ready.retain(is_live);
            }
            Delivery::Stop { drain, .. } => self.stop(drain, out),
            Delivery::Replaced => {}
        }
        self.flush(now, out);
    }

    fn deadline(&self) -> Option<Time> {
        match self.phase {
            ServerPhase::Strange => Some(self.opened_at.after_ms(GREETING_MS)),
            ServerPhase::Working(_) => [self.held_until, self.renew_at].into_iter().flatten().min(),
            ServerPhase::Joining(_) | ServerPhase::Left => self.held_until,
        }
    }

    fn tick(&mut self, now: Time, out: &mut Output) {
        if self.phase == ServerPhase::Strange && now >= self.opened_at.after_ms(GREETING_MS) {
            out.hang_up(HangUp::Silent);
        }
        self.renew(now, out);
        self.flush(now, out);
    }

    fn close(&mut self, _: Time, out: &mut Output) {
        let worker = match std::mem::replace(&mut self.phase, ServerPhase::Left) {
            ServerPhase::Joining(who) => who,
            ServerPhase::Working(worker) => WorkerRef::Id(worker),
            ServerPhase::Strange | ServerPhase::Left => return,
        };
        let how = Leaving::Away { grace_ms: self.context.grace_ms };
        let leave = Leave { worker, session: Some(self.context.session), how };
        out.ask(NOTHING, Command::Leave(leave));
    }
}
