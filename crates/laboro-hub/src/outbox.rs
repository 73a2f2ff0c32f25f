//! Takes effects to whoever waits for them. Never waits itself: a session or watcher whose queue is full
//! is cut off and counted, so that one slow peer cannot hold up the others.

use laboro_core::{Change, Effect, Reply, SessionId, Token};
use laboro_dialects::session::Delivery;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

#[derive(Debug, Default)]
pub(crate) struct Outbox {
    next_token: u64,
    waiting: HashMap<Token, Waiting>,
    sessions: HashMap<SessionId, mpsc::Sender<Delivery>>,
    watchers: HashMap<Token, mpsc::Sender<Arc<[Change]>>>,
    /// Watches that nobody listens to any more.
    unwatched: Vec<Token>,
    cut_off: u64,
}

#[derive(Debug)]
enum Waiting {
    Once(oneshot::Sender<Reply>),
    Session(SessionId, u64),
}

impl Outbox {
    fn token(&mut self) -> Token {
        self.next_token += 1;
        Token(self.next_token)
    }

    pub(crate) fn expect(&mut self, answer: oneshot::Sender<Reply>) -> Token {
        let token = self.token();
        self.waiting.insert(token, Waiting::Once(answer));
        token
    }

    pub(crate) fn expect_for(&mut self, session: SessionId, tag: u64) -> Token {
        let token = self.token();
        self.waiting.insert(token, Waiting::Session(session, tag));
        token
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
        self.sessions.insert(session, to);
    }

    pub(crate) fn close(&mut self, session: SessionId) {
        self.sessions.remove(&session);
    }

    pub(crate) fn cut_off(&self) -> u64 {
        self.cut_off
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
                Effect::Notify { watch, changes } => self.notify(watch, changes),
            }
        }
    }

    fn reply(&mut self, token: Token, reply: Reply) {
        match self.waiting.remove(&token) {
            // Whoever asked may have gone meanwhile.
            Some(Waiting::Once(answer)) => drop(answer.send(reply)),
            Some(Waiting::Session(session, tag)) => {
                self.send(session, Delivery::Reply { tag, reply });
            }
            None => {}
        }
    }

    fn send(&mut self, session: SessionId, what: Delivery) {
        if let Some(to) = self.sessions.get(&session)
            && to.try_send(what).is_err()
        {
            // Full or gone. The leases of its worker lapse when its period is over; whoever serves a
            // worker without one has to say that it left.
            self.sessions.remove(&session);
            self.cut_off += 1;
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
