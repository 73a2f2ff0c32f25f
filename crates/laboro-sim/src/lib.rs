//! Doubts: hub, journal, network and peers of every dialect in one world that a seed decides, with faults of
//! every kind, and an oracle beside it that knows what must be true all the same. The parts are the real ones:
//! the core, its loop, the inbox and outbox, the file journal, both sides of every conversation. What is made
//! up is time, the network, the disk's last write, processes, and people.

mod dice;
mod promise;
mod results;
mod timeline;

mod clock;
mod network;
mod plan;

mod disk;
mod journal;
mod tap;

mod engine;
mod talk;

mod agent;
mod clerk;
mod peer;
mod visitor;

mod oracle;
mod simulation;

mod broker;

#[cfg(test)]
mod tests;

use broker::BrokerWorld;
use dice::Dice;
pub use plan::Sabotage;
use promise::Kept;
pub use promise::{Broken, Promise};
use simulation::Simulation;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use timeline::Timeline;

/// How a seed is run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Keep what happened, line by line.
    pub timeline: bool,
    pub sabotage: Option<Sabotage>,
}

/// What came of a seed.
#[derive(Clone, Debug)]
pub struct Run {
    pub seed: u64,
    pub broken: Option<Broken>,
    pub timeline: Vec<String>,
    pub tally: Tally,
}

/// What workers speak.
pub const DIALECTS: [&str; 6] = ["native", "dwork", "fuq2", "fuq", "fuq1", "runexp"];

/// How much happened. A run in which nothing did proves nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub lives: u64,
    pub torn: u64,
    pub refusals: u64,
    pub cuts: u64,
    pub worker_crashes: u64,
    pub stalls: u64,
    pub batches: u64,
    pub grants: u64,
    pub submits: u64,
    /// Tasks that began at workers of each dialect, in the order of `DIALECTS`.
    pub started: [u64; DIALECTS.len()],
    /// Of the request broker.
    pub requests: u64,
    pub virtual_ms: u64,
}

impl Tally {
    pub fn add(&mut self, other: &Tally) {
        self.lives += other.lives;
        self.torn += other.torn;
        self.refusals += other.refusals;
        self.cuts += other.cuts;
        self.worker_crashes += other.worker_crashes;
        self.stalls += other.stalls;
        self.batches += other.batches;
        self.grants += other.grants;
        self.submits += other.submits;
        for (sum, count) in self.started.iter_mut().zip(other.started) {
            *sum += count;
        }
        self.requests += other.requests;
        self.virtual_ms += other.virtual_ms;
    }
}

/// Runs one seed to its end, or to the first promise that does not hold.
pub fn simulate(seed: u64, options: &Options) -> Run {
    let timeline = if options.timeline { Timeline::kept() } else { Timeline::default() };
    let mut simulation = match Simulation::new(seed, options.sabotage, timeline) {
        Ok(simulation) => simulation,
        Err(broken) => {
            let (timeline, tally) = (Vec::new(), Tally::default());
            return Run { seed, broken: Some(broken), timeline, tally };
        }
    };
    let ran = unless_it_panics(|| simulation.run());
    let mut tally = simulation.tally();
    let mut timeline = simulation.into_timeline();
    let ran = ran.and_then(|()| {
        let dice = Dice::new(seed).split();
        let mut broker = BrokerWorld::new(dice, options.sabotage, &mut timeline);
        let ran = unless_it_panics(|| broker.run());
        tally.requests = broker.requests;
        ran
    });
    Run { seed, broken: ran.err(), timeline: timeline.into_lines(), tally }
}

fn unless_it_panics(run: impl FnOnce() -> Kept) -> Kept {
    catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|panic| Err(Broken::new(Promise::NoPanic, words(&*panic))))
}

fn words(panic: &(dyn Any + Send)) -> &str {
    match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
        (Some(words), _) => words,
        (None, Some(words)) => words,
        (None, None) => "no reason given",
    }
}

/// What a future has already, without waiting for it.
fn now_or_never<T>(future: impl Future<Output = T>) -> Option<T> {
    now_or_never_pinned(pin!(future))
}

fn now_or_never_pinned<F: Future + ?Sized>(future: Pin<&mut F>) -> Option<F::Output> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}
