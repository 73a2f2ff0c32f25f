//! What Laboro promises, each with the name under which a run says that it was broken.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Promise {
    NothingLost,
    NoSecondRun,
    OneLease,
    LateResults,
    PredecessorsFirst,
    Graphs,
    Slots,
    BeginTimes,
    FairShares,
    Resources,
    WholeWorkers,
    NeighboursUnharmed,
    Understood,
    ResultsFirst,
    OneAnswer,
    OneWorkerAMessage,
    Limits,
    Drains,
    StartsAgain,
    Sound,
    NoPanic,
}

impl Promise {
    pub const ALL: [Promise; 21] = [
        Promise::NothingLost,
        Promise::NoSecondRun,
        Promise::OneLease,
        Promise::LateResults,
        Promise::PredecessorsFirst,
        Promise::Graphs,
        Promise::Slots,
        Promise::BeginTimes,
        Promise::FairShares,
        Promise::Resources,
        Promise::WholeWorkers,
        Promise::NeighboursUnharmed,
        Promise::Understood,
        Promise::ResultsFirst,
        Promise::OneAnswer,
        Promise::OneWorkerAMessage,
        Promise::Limits,
        Promise::Drains,
        Promise::StartsAgain,
        Promise::Sound,
        Promise::NoPanic,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Promise::NothingLost => "nothing-lost",
            Promise::NoSecondRun => "no-second-run",
            Promise::OneLease => "one-lease",
            Promise::LateResults => "late-results",
            Promise::PredecessorsFirst => "predecessors-first",
            Promise::Graphs => "graphs",
            Promise::Slots => "slots",
            Promise::BeginTimes => "begin-times",
            Promise::FairShares => "fair-shares",
            Promise::Resources => "resources",
            Promise::WholeWorkers => "whole-workers",
            Promise::NeighboursUnharmed => "neighbours-unharmed",
            Promise::Understood => "understood",
            Promise::ResultsFirst => "results-first",
            Promise::OneAnswer => "one-answer",
            Promise::OneWorkerAMessage => "one-worker-a-message",
            Promise::Limits => "limits",
            Promise::Drains => "drains",
            Promise::StartsAgain => "starts-again",
            Promise::Sound => "sound",
            Promise::NoPanic => "no-panic",
        }
    }

    pub fn words(self) -> &'static str {
        match self {
            Promise::NothingLost => "what was acknowledged is there after any crash",
            Promise::NoSecondRun => "a task whose end was recorded is not given out again",
            Promise::OneLease => "a task has one live lease, and no lease number is used twice",
            Promise::LateResults => "a late result never overwrites another",
            Promise::PredecessorsFirst => "a task is given out after its predecessors ended well",
            Promise::Graphs => "an acyclic graph is taken in any order, a cycle never is",
            Promise::Slots => "nobody is sent more than it has room for",
            Promise::BeginTimes => "nothing of a job starts before its time",
            Promise::FairShares => {
                "of equal tasks that wait, those of the owner with the least for its weight go first"
            }
            Promise::Resources => {
                "no worker gives more than it has, no item more than one whole, and no task gets less than it asks for"
            }
            Promise::WholeWorkers => {
                "a task that takes several workers has as many, and has them for itself"
            }
            Promise::NeighboursUnharmed => {
                "no task fails or is held because of another one on its worker"
            }
            Promise::Understood => "nobody is sent what it does not understand",
            Promise::ResultsFirst => "what a call gave back is kept before its end is reported",
            Promise::OneAnswer => "a request gets one answer, or its connection ends",
            Promise::OneWorkerAMessage => "a message of the broker reaches at most one worker",
            Promise::Limits => "queues and buffers stay inside their limits",
            Promise::Drains => "when the faults stop, everything that can end does",
            Promise::StartsAgain => "a hub starts on whatever a crash left",
            Promise::Sound => "the ledger agrees with itself and with its journal",
            Promise::NoPanic => "nothing panics",
        }
    }
}

/// A promise that did not hold, and how that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    pub promise: Promise,
    pub what: String,
}

impl Broken {
    pub fn new(promise: Promise, what: impl Into<String>) -> Broken {
        Broken { promise, what: what.into() }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.promise.name(), self.promise.words(), self.what)
    }
}

/// What any part of the world comes to.
pub(crate) type Kept = Result<(), Broken>;
