//! The worker's side of a conversation, whatever its dialect: work comes in as assignments, results and
//! output go out as bytes. Running anything is not done here, and neither is connecting.

use crate::messages;
use crate::session::Stream;
use bytes::{Bytes, BytesMut};
use laboro_core::{Outcome, Role, Time, Work};
use std::ffi::OsString;
use std::sync::Arc;

/// Driven by whoever holds the connection and the processes: one method at a time, then everything that
/// stands in the orders is done.
pub trait WorkerSide: Send {
    /// A connection stands, the first or a later one. Says who this is and what still runs.
    fn open(&mut self, now: Time, out: &mut Orders);

    /// Takes all whole messages off the front of `input`.
    fn receive(&mut self, now: Time, input: &mut BytesMut, out: &mut Orders);

    /// Something happened at the worker. Also called without a connection: what matters is said later.
    fn tell(&mut self, now: Time, news: News, out: &mut Orders);

    /// The task could not be started. Where the dialect has a word for failures, that is one of them.
    fn not_started(&mut self, now: Time, key: Key, why: String, out: &mut Orders) {
        let how = TaskEnd { outcome: Outcome::Error, message: Some(why), used: Used::default() };
        self.tell(now, News::Ended { key, how }, out);
    }

    /// These words are about to be run. For those who tell them to people; most do not, so it is no news.
    fn launching(&mut self, _: Key, _words: &[OsString]) {}

    /// When `tick` is to be called at the latest.
    fn deadline(&self) -> Option<Time>;

    /// The deadline has come: says again or gives up what was waiting for it.
    fn tick(&mut self, now: Time, out: &mut Orders);

    /// The connection is gone. What was said without an answer is said again after the next `open`.
    fn lost(&mut self, now: Time);

    /// How many bytes of output wait to be said or answered. Whoever reads pipes stops while it is high.
    fn unsaid(&self) -> usize;

    /// Whether what was taken and not begun can be given back. Where it cannot, a worker that is told to take no more
    /// runs everything it has taken.
    fn takes_back(&self) -> bool {
        true
    }

    /// Whether nobody else would ever get what this worker has taken and does not finish. Then what it has not begun is
    /// run too when it is to leave, for as long as it may.
    fn must_finish(&self) -> bool {
        false
    }

    /// Every result and all output have their answer. What else there is to say may stay unsaid.
    fn is_settled(&self) -> bool;
}

/// How one assignment is known between the worker and its side of the conversation. Never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub u64);

/// What the worker's side wants done. Filled by the side, emptied by the agent that drives it.
#[derive(Debug, Default)]
pub struct Orders {
    /// Bytes for the peer, in order; see `end_message`.
    pub say: BytesMut,
    ends: Vec<usize>,
    /// What the worker has to do, in order.
    pub orders: Vec<Order>,
    /// The connection shall be closed, for this reason.
    pub hang_up: Option<Parting>,
}

impl Orders {
    /// What was written to `say` since the last call is one message.
    pub fn end_message(&mut self) {
        self.ends.push(self.say.len());
    }

    /// Adds one order.
    pub fn order(&mut self, order: Order) {
        self.orders.push(order);
    }

    /// The first reason stands.
    pub fn hang_up(&mut self, why: Parting) {
        self.hang_up.get_or_insert(why);
    }

    /// Everything to be said, as one piece.
    pub fn take_bytes(&mut self) -> BytesMut {
        self.ends.clear();
        self.say.split()
    }

    /// Everything to be said, message by message, for whoever copies it anyway.
    pub fn drain_messages(&mut self, take: impl FnMut(&[u8])) {
        messages::drain(&mut self.say, &mut self.ends, take);
    }

    /// Everything to be said, message by message.
    pub fn take_messages(&mut self) -> Vec<Bytes> {
        messages::take(&mut self.say, &mut self.ends)
    }
}

/// What the worker is told to do.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Order {
    /// The hub knows this worker now, under this name.
    Welcome { name: String },
    /// Run this task.
    Start(Box<Assignment>),
    /// End it; its result does not count any more.
    Cancel(Key),
    /// Have so many slots less from now on.
    GiveUpSlots(u32),
    /// Take nothing more, finish what runs, leave.
    Drain,
    /// End everything and leave.
    StopNow,
    /// This worker cannot do its work, for this reason: take nothing more, finish what runs, leave.
    Fail(String),
    /// People should know this.
    Say(String),
}

/// One task to run.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Assignment {
    pub key: Key,
    /// For people and for `LABORO_TASK`.
    pub name: String,
    pub job: u64,
    pub index: u32,
    pub attempt: u16,
    pub work: Arc<Work>,
    /// Of an array's element: what its placeholders stand for.
    pub value: Option<ElementValue>,
    pub slots: u32,
    pub memory: u64,
    pub time_limit_ms: Option<u64>,
    /// Which ones of each countable resource.
    pub resources: Vec<(String, Vec<u32>)>,
    /// Whether it is run here, and which other workers are kept for it.
    pub role: Role,
    /// A secret that opens the hub to this task, where it wants that.
    pub access: Option<Box<str>>,
}

/// What one element of an array stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ElementValue {
    /// Counted from 0.
    pub position: u32,
    pub bytes: Bytes,
}

/// What happened at the worker.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum News {
    /// The process runs.
    Started(Key),
    /// It printed this, or gave it back as its result.
    Wrote { key: Key, stream: Stream, bytes: Bytes },
    /// It is over; its outcome counts.
    Ended { key: Key, how: TaskEnd },
    /// The worker could not even begin, gives back what it has not begun, or had to end it because it leaves.
    Returned(Key),
    /// So many small tasks shall be sent beyond the free slots.
    Ahead(u32),
    /// No more work, please; what runs is finished.
    Draining,
    /// Everything is finished or given back: say goodbye.
    Leaving,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskEnd {
    /// How its process ended.
    pub outcome: Outcome,
    /// Words for people, where the outcome does not say enough.
    pub message: Option<String>,
    /// Time and memory.
    pub used: Used,
}

/// What an attempt used. Zero where it is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Used {
    pub wall_us: u64,
    pub user_us: u64,
    pub system_us: u64,
    pub peak_kib: u64,
}

/// Why a worker's side ends a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parting {
    /// Everything is said; do not come back.
    Finished,
    /// The hub will not have this worker; do not come back.
    Refused(String),
    /// The hub will not have this worker now; try again later.
    NotNow(String),
    /// The hub said what its dialect does not have; try again later.
    Malformed(String),
    /// Silence or a planned new start; try again at once.
    Again(String),
}
