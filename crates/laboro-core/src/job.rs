//! What a job is made of: options that hold for all its tasks, and counts of where they are.

use crate::id::{Name, Time};
use crate::task::State;

/// What holds for all tasks of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct JobOptions {
    /// For people; need not be unique.
    pub name: Name,
    /// More tasks may be added until it is closed.
    pub open: bool,
    /// Submitted but not to be started until released.
    pub held: bool,
    pub max_running: Option<u32>,
    /// The job stops when more tasks than this have failed.
    pub max_fails: Option<u32>,
    /// A second submit with the same key is the first one.
    pub key: Option<Box<[u8]>>,
    /// The names of its tasks are unique in the job. Those of jobs without this are unique in their group.
    pub own_names: bool,
    /// Who it belongs to: whose quota and whose share its tasks count for.
    pub owner: Option<Name>,
    /// What is done outside when it has ended: commands, URLs, addresses. The core only keeps it.
    pub on_end: Box<[Box<str>]>,
    /// Nothing of it starts before this time. `None` when that time has come.
    pub begin: Option<Time>,
}

impl JobOptions {
    /// Does it have something that came later than owners? The journal writes such a job in another form.
    pub fn has_later_fields(&self) -> bool {
        !self.on_end.is_empty() || self.begin.is_some()
    }
}

/// How many tasks are in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([u32; State::COUNT]);

impl Counts {
    /// How many are in this state.
    pub fn of(&self, state: State) -> u32 {
        self.0[state as usize]
    }

    /// How many there are.
    pub fn total(&self) -> u64 {
        self.0.iter().map(|&count| u64::from(count)).sum()
    }

    /// Tasks that go on without a person.
    pub fn active(&self) -> u64 {
        [State::Ready, State::Delayed, State::Leased].iter().map(|&s| u64::from(self.of(s))).sum()
    }

    /// How many have not ended.
    pub fn unfinished(&self) -> u64 {
        State::ALL.iter().filter(|s| !s.is_finished()).map(|&s| u64::from(self.of(s))).sum()
    }

    /// Tasks of which something may come yet: all but those that finished or are blocked.
    pub fn not_over(&self) -> u64 {
        self.unfinished() - u64::from(self.of(State::Blocked))
    }

    /// The same where so many that are with workers wait there for a slot: they are as good as ready.
    #[must_use]
    pub fn with_waiting(mut self, waiting: u32) -> Counts {
        let waiting = waiting.min(self.of(State::Leased));
        self.subtract(State::Leased, waiting);
        self.add(State::Ready, waiting);
        self
    }

    pub(crate) fn add(&mut self, state: State, count: u32) {
        self.0[state as usize] += count;
    }

    pub(crate) fn subtract(&mut self, state: State, count: u32) {
        self.0[state as usize] = self.0[state as usize]
            .checked_sub(count)
            .expect("no more tasks leave a state than are in it");
    }
}
