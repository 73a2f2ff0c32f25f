//! Workers and clients of the broker. A worker is the real one, with work that takes time; a client sends
//! requests that nobody else sends and counts their answers, and has the real client's streams beside them.

use crate::clock::Offset;
use crate::dice::Dice;
use crate::promise::{Broken, Kept, Promise};
use bytes::Bytes;
use laboro_core::Time;
use laboro_dialects::rrmq::{Answer, Client, Command, Envelope, Parts, Worker, WorkerOptions};
use laboro_dialects::zmtp::Message;
use std::collections::BTreeSet;

/// How the requests of our clients begin.
pub(super) const TAG: &[u8] = b"work-";

pub(super) struct Side {
    name: String,
    dice: Dice,
    trade: Trade,
    said: Vec<Message>,
    is_connected: bool,
    connect_at: u64,
    stalled_until: u64,
    is_calm: bool,
    requests: u64,
    answers: u64,
}

enum Trade {
    Worker { worker: Box<Worker>, slots: u32, running: Vec<(u64, Envelope)>, done: BTreeSet<Bytes> },
    Client { client: Box<Client>, next_at: u64, tags: u64, answered: BTreeSet<Bytes> },
}

const ANSWER_MS: u64 = 30_000;
const DATA_BYTES_MAX: usize = 1 << 20;

impl Side {
    pub fn worker(name: String, mut dice: Dice) -> Side {
        let slots = dice.small(1, 4);
        let trade = Trade::Worker {
            worker: Box::new(worker(slots)),
            slots,
            running: Vec::new(),
            done: BTreeSet::new(),
        };
        Side::new(name, dice, trade)
    }

    pub fn client(name: String, dice: Dice) -> Side {
        let client = Box::new(Client::new(ANSWER_MS, DATA_BYTES_MAX));
        let trade = Trade::Client { client, next_at: 0, tags: 0, answered: BTreeSet::new() };
        Side::new(name, dice, trade)
    }

    fn new(name: String, dice: Dice, trade: Trade) -> Side {
        Side {
            name,
            dice,
            trade,
            said: Vec::new(),
            is_connected: false,
            connect_at: 0,
            stalled_until: 0,
            is_calm: false,
            requests: 0,
            answers: 0,
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn slots(&self) -> u32 {
        match self.trade {
            Trade::Worker { slots, .. } => slots,
            Trade::Client { .. } => 0,
        }
    }

    pub fn requests(&self) -> u64 {
        self.requests
    }

    pub fn answers(&self) -> u64 {
        self.answers
    }

    pub fn stalled_until(&self) -> u64 {
        self.stalled_until
    }

    pub fn stall(&mut self, until: u64) {
        self.stalled_until = self.stalled_until.max(until);
    }

    pub fn calm_down(&mut self, now: u64) {
        self.is_calm = true;
        self.stalled_until = self.stalled_until.min(now);
        self.connect_at = self.connect_at.min(now);
    }

    /// Its process is gone, and another takes its place.
    pub fn crash(&mut self, back_at: u64) {
        (self.is_connected, self.connect_at, self.stalled_until) = (false, back_at, 0);
        self.said.clear();
        match &mut self.trade {
            Trade::Worker { worker: this, slots, running, .. } => {
                **this = worker(*slots);
                running.clear();
            }
            Trade::Client { client, .. } => **client = Client::new(ANSWER_MS, DATA_BYTES_MAX),
        }
    }

    pub fn wants_connection(&self, now: u64) -> bool {
        !self.is_connected && self.connect_at <= now && self.stalled_until <= now
    }

    pub fn connected(&mut self) {
        self.is_connected = true;
    }

    /// The handshake is over.
    pub fn met(&mut self, now: Time) {
        match &mut self.trade {
            Trade::Worker { worker, .. } => {
                worker.open(now, &mut self.said);
                if !worker.is_on_duty() {
                    worker.register(&mut self.said);
                }
            }
            Trade::Client { client, .. } => client.open(now, &mut self.said),
        }
    }

    pub fn lost(&mut self, now: u64) {
        self.is_connected = false;
        // What was not sent is not sent: the wire has no memory.
        self.said.clear();
        self.connect_at = now + 20 + self.dice.mostly_short(2000);
        match &mut self.trade {
            Trade::Worker { worker, .. } => worker.lost(),
            Trade::Client { client, .. } => client.lost(),
        }
    }

    pub fn hear(&mut self, now: Time, message: &Message) -> Kept {
        match &mut self.trade {
            Trade::Worker { worker, running, done, .. } => {
                let given = worker.receive_or_give(now, message, &mut self.said);
                let Ok(Some(asked)) = given else { return Ok(()) };
                if let Some(tag) = asked.args.first()
                    && !done.insert(tag.clone())
                {
                    let what = format!("{} gets {} twice", self.name, tag.escape_ascii());
                    return Err(Broken::new(Promise::OneWorkerAMessage, what));
                }
                let takes = self.dice.mostly_short(4000);
                running.push((Offset::USUAL.world(now) + takes, asked));
            }
            Trade::Client { client, answered, .. } => {
                let is_answer =
                    |said: &Envelope| said.command == Command::Response && said.id.starts_with(TAG);
                if let Ok(said) = Envelope::parse(message)
                    && is_answer(&said)
                {
                    self.answers += 1;
                    if !answered.insert(said.id.clone()) {
                        let what = format!("{} answered twice", said.id.escape_ascii());
                        return Err(Broken::new(Promise::OneAnswer, what));
                    }
                }
                if let Ok(Some(Answer::Data(..))) = client.receive(now, message, &mut self.said) {
                    self.answers += 1;
                }
            }
        }
        Ok(())
    }

    /// What goes on without a connection, and what is asked for.
    pub fn work(&mut self, now: u64) {
        if self.stalled_until > now {
            return;
        }
        match &mut self.trade {
            Trade::Worker { worker, running, .. } => {
                let due = |(ends_at, _): &mut (u64, Envelope)| *ends_at <= now;
                let ended: Vec<(u64, Envelope)> = running.extract_if(.., due).collect();
                for (_, asked) in ended {
                    let answer = Parts::from_iter([Bytes::from_static(b"done")]);
                    worker.finish(&asked, Some(answer), &mut self.said);
                }
                if !self.is_connected {
                    self.said.clear();
                }
            }
            Trade::Client { client, next_at, tags, .. } => {
                if !self.is_connected || self.is_calm || *next_at > now {
                    return;
                }
                *next_at = now + self.dice.between(5, 800);
                self.requests += 1;
                if self.dice.one_in(5) {
                    let host = Bytes::copy_from_slice(self.name.as_bytes());
                    let ones = self.dice.small(1, 30_000);
                    client.stream(Offset::USUAL.time(now), host, ones, &mut self.said);
                } else {
                    *tags += 1;
                    let tag = [TAG, self.name.as_bytes(), format!("-{tags}").as_bytes()].concat();
                    let tag = Bytes::from(tag);
                    let asked = Envelope::new(Command::TrackExec, tag.clone(), [tag]);
                    self.said.push(asked.to_message());
                }
            }
        }
    }

    /// False: it wants a new connection.
    pub fn tick(&mut self, now: Time) -> bool {
        let is_due = |at: Option<Time>| at.is_some_and(|at| at <= now);
        match &mut self.trade {
            Trade::Worker { worker, .. } if is_due(worker.deadline()) => {
                worker.tick(now, &mut self.said)
            }
            Trade::Client { client, .. } if is_due(client.deadline()) => {
                client.tick(now, &mut self.said, &mut Vec::new())
            }
            Trade::Worker { .. } | Trade::Client { .. } => true,
        }
    }

    pub fn take_said(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.said)
    }

    pub fn is_settled(&self) -> bool {
        match &self.trade {
            Trade::Worker { running, .. } => running.is_empty(),
            Trade::Client { client, .. } => client.in_flight() == 0,
        }
    }

    pub fn due(&self, now: u64) -> Option<u64> {
        let connects = (!self.is_connected).then_some(self.connect_at);
        let (side, own) = match &self.trade {
            Trade::Worker { worker, running, .. } => {
                (worker.deadline(), running.iter().map(|(at, _)| *at).min())
            }
            Trade::Client { client, next_at, .. } => {
                let asks = self.is_connected && !self.is_calm;
                (client.deadline(), asks.then_some(*next_at))
            }
        };
        let side = side.map(|at| Offset::USUAL.world(at)).filter(|_| self.is_connected);
        let due = [connects, side, own].into_iter().flatten().min();
        due.map(|due| due.max(self.stalled_until).max(now))
    }
}

fn worker(slots: u32) -> Worker {
    Worker::new(WorkerOptions { slots, ..WorkerOptions::default() })
}
