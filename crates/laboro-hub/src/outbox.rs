//! Takes effects to whoever waits for them. Never waits itself: a session or watcher whose queue is full
//! is cut off, so that one slow peer cannot hold up the others.

use laboro_core::{
    Change, Effect, Grant, LeaseRef, Place, Reply, Return, Returned, SessionId, Token, WorkerRef,
};
use laboro_dialects::session::Delivery;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

#[derive(Debug, Default)]
pub(crate) struct Outbox {
    next_token: u64,
    waiting: HashMap<Token, WaitingReply>,
    sessions: HashMap<SessionId, mpsc::Sender<Delivery>>,
    watchers: HashMap<Token, mpsc::Sender<Arc<[Change]>>>,
    /// Watches that nobody listens to any more.
    unwatched: Vec<Token>,
    /// Offers of sessions that may still wait, by the tag that the session gave them.
    patient: HashMap<(SessionId, u64), Token>,
    /// Work whose worker did not wait for it any more: to be given back.
    undelivered: Vec<Return>,
}

#[derive(Debug)]
enum WaitingReply {
    Once(oneshot::Sender<Reply>),
    Session(SessionId, u64),
    /// The same, with an entry among the patient ones.
    Patient(SessionId, u64),
}

impl Outbox {
    fn token(&mut self) -> Token {
        self.next_token += 1;
        Token(self.next_token)
    }

    pub(crate) fn expect(&mut self, answer: oneshot::Sender<Reply>) -> Token {
        let token = self.token();
        self.waiting.insert(token, WaitingReply::Once(answer));
        token
    }

    pub(crate) fn expect_for(&mut self, session: SessionId, tag: u64) -> Token {
        let token = self.token();
        self.waiting.insert(token, WaitingReply::Session(session, tag));
        token
    }

    /// An offer that may have to be withdrawn.
    pub(crate) fn expect_patiently(&mut self, session: SessionId, tag: u64) -> Token {
        let token = self.token();
        self.waiting.insert(token, WaitingReply::Patient(session, tag));
        self.patient.insert((session, tag), token);
        token
    }

    /// The offer that a session knows by this tag, if it still waits.
    pub(crate) fn patient(&self, session: SessionId, tag: u64) -> Option<Token> {
        self.patient.get(&(session, tag)).copied()
    }

    pub(crate) fn has_undelivered(&self) -> bool {
        !self.undelivered.is_empty()
    }

    pub(crate) fn take_undelivered(&mut self) -> std::vec::IntoIter<Return> {
        std::mem::take(&mut self.undelivered).into_iter()
    }

    /// For commands whose answer nobody wants.
    pub(crate) fn nobody(&self) -> Token {
        Token(0)
    }

    pub(crate) fn watch(&mut self, to: mpsc::Sender<Arc<[Change]>>) -> Token {
        let token = self.token();
        self.watchers.insert(token, to);
        token
    }

    pub(crate) fn open(&mut self, session: SessionId, to: mpsc::Sender<Delivery>) {
        // One that has departed before its turn came is not closed once more.
        if !to.is_closed() {
            self.sessions.insert(session, to);
        }
    }

    pub(crate) fn close(&mut self, session: SessionId) {
        self.sessions.remove(&session);
    }

    /// What a session was sent and did not take.
    pub(crate) fn take_back(&mut self, delivery: Delivery) {
        self.undelivered.extend(unanswered_work(delivery));
    }

    pub(crate) fn take_unwatched(&mut self) -> std::vec::IntoIter<Token> {
        std::mem::take(&mut self.unwatched).into_iter()
    }

    pub(crate) fn deliver(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Reply { token, reply } => self.reply(token, reply),
                Effect::Dispatch { session, worker, grants } => {
                    self.send(session, Delivery::Work { worker, grants });
                }
                Effect::Revoke { session, worker, leases } => {
                    self.send(session, Delivery::Revoke { worker, leases });
                }
                Effect::Stop { session, worker, drain } => {
                    self.send(session, Delivery::Stop { worker, drain });
                }
                Effect::Replaced { session, .. } => self.send(session, Delivery::Replaced),
                Effect::Notify { watch, changes } => self.notify(watch, changes),
            }
        }
    }

    fn reply(&mut self, token: Token, reply: Reply) {
        match self.waiting.remove(&token) {
            Some(WaitingReply::Once(answer)) => {
                if let Err(reply) = answer.send(reply) {
                    // Whoever asked has gone meanwhile.
                    self.undelivered.extend(work_back(reply));
                }
            }
            Some(WaitingReply::Session(session, tag)) => {
                self.send(session, Delivery::Reply { tag, reply });
            }
            Some(WaitingReply::Patient(session, tag)) => {
                self.patient.remove(&(session, tag));
                self.send(session, Delivery::Reply { tag, reply });
            }
            None => {}
        }
    }

    fn send(&mut self, session: SessionId, what: Delivery) {
        let Some(to) = self.sessions.get(&session) else {
            self.take_back(what);
            return;
        };
        if let Err(error) = to.try_send(what) {
            // Full or gone. The leases of work that was pushed lapse when the worker's period is over;
            // whoever serves a worker without one has to say that it left.
            self.sessions.remove(&session);
            self.take_back(error.into_inner());
        }
    }

    fn notify(&mut self, watch: Token, changes: Arc<[Change]>) {
        if let Some(to) = self.watchers.get(&watch)
            && to.try_send(changes).is_err()
        {
            self.watchers.remove(&watch);
            self.unwatched.push(watch);
        }
    }
}

/// The work in a delivery that nobody takes: asked for once, so nobody will ask for it again by its lease.
fn unanswered_work(delivery: Delivery) -> Option<Return> {
    match delivery {
        Delivery::Reply { reply, .. } => work_back(reply),
        Delivery::Work { .. }
        | Delivery::Revoke { .. }
        | Delivery::Stop { .. }
        | Delivery::Replaced => None,
    }
}

fn work_back(reply: Reply) -> Option<Return> {
    let Reply::Work { worker, grants } = reply else { return None };
    let back = |grant: Grant| Returned {
        lease: LeaseRef::Number { task: grant.task, lease: grant.lease },
        preds: Vec::new(),
    };
    let tasks = grants.into_iter().map(back).collect();
    Some(Return { worker: WorkerRef::Id(worker), tasks, place: Place::Front })
}
