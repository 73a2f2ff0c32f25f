//! A dwork program that does everything the wire has: creates tasks after others, steals, completes, gives
//! back behind new predecessors, looks up, leaves. It counts its answers. Some keep to an order of their own when
//! they say what comes after what, in whatever order they say it: they are never refused.

use crate::clock::Offset;
use crate::dice::Dice;
use crate::peer::{Peer, Turned};
use crate::promise::{Broken, Kept, Promise};
use bytes::BytesMut;
use laboro_dialects::dwork::{Client, ClientError, Dep, Kind, QueryWriter};
use laboro_dialects::zmtp::{Mechanism, ZmtpError};
use std::collections::BTreeMap;

pub(crate) struct Visitor {
    name: String,
    dice: Dice,
    /// Its tasks come after those of a lower rank only.
    is_orderly: bool,
    client: Client,
    is_connected: bool,
    has_to_open: bool,
    connect_at: u64,
    next_at: u64,
    /// Requests without an answer.
    asked: BTreeMap<u64, Kind>,
    held: Vec<Vec<u8>>,
    made: Vec<Vec<u8>>,
    is_calm: bool,
    /// It has said goodbye, and nothing more.
    has_left: bool,
    stalled_until: u64,
    broken: Option<Broken>,
    pub answers: u64,
}

/// It does not wait for its answers, up to here.
const ASKED_MAX: usize = 6;

impl Visitor {
    pub fn new(name: String, mut dice: Dice) -> Visitor {
        let is_orderly = dice.one_in(2);
        Visitor {
            name,
            dice,
            is_orderly,
            client: Client::new(Mechanism::Null),
            is_connected: false,
            has_to_open: false,
            connect_at: 0,
            next_at: 0,
            asked: BTreeMap::new(),
            held: Vec::new(),
            made: Vec::new(),
            is_calm: false,
            has_left: false,
            stalled_until: 0,
            broken: None,
            answers: 0,
        }
    }

    pub fn calm_down(&mut self, now: u64) {
        self.is_calm = true;
        self.stalled_until = self.stalled_until.min(now);
        self.connect_at = self.connect_at.min(now);
    }

    pub fn stall(&mut self, until: u64) {
        self.stalled_until = self.stalled_until.max(until);
    }

    pub fn is_settled(&self) -> bool {
        self.asked.is_empty() && self.held.is_empty()
    }

    pub fn check(&mut self) -> Kept {
        self.broken.take().map_or(Ok(()), Err)
    }

    fn break_promise(&mut self, promise: Promise, what: String) {
        self.broken.get_or_insert(Broken::new(promise, what));
    }

    fn hear(&mut self, now: u64, heard: &mut BytesMut, say: &mut BytesMut) -> bool {
        loop {
            match self.client.receive(Offset::USUAL.time(now), heard, say) {
                Ok(None) => return true,
                Ok(Some(reply)) => {
                    self.answers += 1;
                    let Some(asked) = self.asked.remove(&reply.number) else {
                        let what =
                            format!("{}: request {} answered twice", self.name, reply.number);
                        self.break_promise(Promise::OneAnswer, what);
                        return false;
                    };
                    let Ok(query) = reply.query() else {
                        let what = format!("{}: an answer cannot be read", self.name);
                        self.break_promise(Promise::OneAnswer, what);
                        return false;
                    };
                    if (asked, query.kind) == (Kind::Steal, Kind::Transfer) {
                        self.held.extend(query.tasks.iter().map(|task| task.name.to_vec()));
                    }
                    if self.is_orderly
                        && matches!(asked, Kind::Create | Kind::Transfer)
                        && query.kind == Kind::Error
                    {
                        let what = format!("{}: an acyclic graph was refused", self.name);
                        self.break_promise(Promise::Graphs, what);
                        return false;
                    }
                    if asked == Kind::Exit {
                        self.held.clear();
                        self.has_left = self.is_calm && self.asked.is_empty();
                    }
                }
                // It stood still for too long itself.
                Err(ClientError::Zmtp(
                    ZmtpError::SlowHandshake { .. } | ZmtpError::Silent { .. },
                )) => return false,
                Err(error) => {
                    self.break_promise(Promise::OneAnswer, format!("{}: {error}", self.name));
                    return false;
                }
            }
        }
    }

    fn speak(&mut self, now: u64, say: &mut BytesMut) {
        if !self.may_speak() || self.next_at > now {
            return;
        }
        let pause = if self.is_calm { 500 } else { self.dice.between(5, 600) };
        self.next_at = now + pause;
        let mut request = BytesMut::new();
        let name = self.name.clone();
        let location = name.as_bytes();
        let kind = if self.is_calm { Kind::Exit } else { self.kind() };
        let query = QueryWriter::new(kind, &mut request);
        match kind {
            Kind::Create => {
                let count = self.dice.between(1, 4);
                let mut query = query;
                // Now and then what is there already gets something before it.
                let renames = self.dice.one_in(3);
                for _ in 0..count {
                    let known = self.dice.pick(&self.made).filter(|_| renames).cloned();
                    let is_new = known.is_none();
                    let task =
                        known.unwrap_or_else(|| format!("{name}-{}", self.made.len()).into_bytes());
                    let pred = self.pred(&task).filter(|_| renames || self.dice.one_in(2));
                    let preds = pred.iter().map(|pred| Dep::new(pred));
                    query = query.task(&task, b"somewhere", preds, &[]);
                    if is_new {
                        self.made.push(task);
                    }
                }
            }
            Kind::Steal => {
                query.n(self.dice.below(4) as i32).location(location);
            }
            Kind::Complete | Kind::Transfer => {
                let at = self.dice.index(self.held.len());
                // Now and then once more, or what somebody else holds.
                let task = if self.held.is_empty() || self.dice.one_in(6) {
                    self.dice.pick(&self.made).cloned().unwrap_or_default()
                } else {
                    self.held.swap_remove(at)
                };
                let pred = self.pred(&task).filter(|_| kind == Kind::Transfer);
                let preds = pred.iter().map(|pred| Dep::new(pred));
                query.task(&task, b"here", preds, &[]).location(location);
            }
            Kind::Lookup => {
                let task = self.dice.pick(&self.made).cloned().unwrap_or_default();
                query.name(&task);
            }
            Kind::Exit => {
                query.location(location);
            }
            Kind::Ok | Kind::NotFound | Kind::Error => {}
        }
        let number = self.client.ask(&request, say);
        self.asked.insert(number, kind);
    }

    /// Something that may come before this task.
    fn pred(&mut self, task: &[u8]) -> Option<Vec<u8>> {
        let pred = self.dice.pick(&self.made)?;
        let fits = if self.is_orderly { rank(pred) < rank(task) } else { pred != task };
        fits.then(|| pred.clone())
    }

    fn may_speak(&self) -> bool {
        self.client.is_ready() && self.asked.len() < ASKED_MAX && !self.has_left
    }

    fn kind(&mut self) -> Kind {
        match self.dice.below(20) {
            0..=5 => Kind::Create,
            6..=10 => Kind::Steal,
            11..=15 => Kind::Complete,
            16 => Kind::Transfer,
            17 => Kind::Lookup,
            18 => Kind::Ok,
            _ => Kind::Exit,
        }
    }
}

impl Peer for Visitor {
    fn name(&self) -> &str {
        &self.name
    }

    fn wants_connection(&self, now: u64) -> bool {
        !self.is_connected && self.connect_at <= now && self.stalled_until <= now
    }

    fn connected(&mut self, now: u64) {
        (self.is_connected, self.has_to_open) = (true, true);
        self.client = Client::new(Mechanism::Null);
        self.next_at = now;
    }

    fn turn(&mut self, now: u64, heard: &mut BytesMut) -> Turned {
        let mut turned = Turned::default();
        if !self.is_connected {
            return turned;
        }
        let time = Offset::USUAL.time(now);
        if std::mem::take(&mut self.has_to_open) {
            self.client.open(time, &mut turned.say);
        }
        if self.client.deadline().is_some_and(|at| at <= time) {
            turned.hangs_up = self.client.tick(time, &mut turned.say).is_err();
        }
        turned.hangs_up |= !self.hear(now, heard, &mut turned.say);
        if !turned.hangs_up {
            self.speak(now, &mut turned.say);
        }
        turned
    }

    /// What was not answered has come to an end too: nobody knows what became of it.
    fn lost(&mut self, now: u64) {
        self.is_connected = false;
        self.asked.clear();
        self.connect_at = now + 20 + self.dice.mostly_short(3000);
    }

    fn due(&self, now: u64) -> Option<u64> {
        let speaks = self.may_speak().then_some(self.next_at);
        let client = self.client.deadline().map(|at| Offset::USUAL.world(at));
        let connects = (!self.is_connected).then_some(self.connect_at);
        let due = [speaks, client, connects].into_iter().flatten().min();
        due.map(|due| due.max(self.stalled_until).max(now))
    }

    fn stalled_until(&self) -> u64 {
        self.stalled_until
    }
}

/// An order of names that has nothing to do with the one in which they are made.
fn rank(name: &[u8]) -> u32 {
    name.iter().fold(0, |rank: u32, byte| (rank ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}
