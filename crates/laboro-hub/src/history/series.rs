//! Numbers over time in bounded room: the hub's last minutes by the second and its last day by the minute, and
//! a job's whole life in a fixed number of steps that grow as it does.

use super::history_file::Step;
use laboro_api as api;
use laboro_core::{Counts, State};
use std::collections::VecDeque;

const SECONDS_KEPT: usize = 600;
const MINUTES_KEPT: usize = 1440;

/// What happened since the last sample.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub started: u64,
    pub done: u64,
    pub failed: u64,
    pub again: u64,
    pub lost: u64,
}

impl Tally {
    pub fn add(&mut self, other: &Tally) {
        self.started += other.started;
        self.done += other.done;
        self.failed += other.failed;
        self.again += other.again;
        self.lost += other.lost;
    }
}

/// How many tasks are where at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Queues {
    queued: u64,
    waiting: u64,
    running: u64,
}

impl Queues {
    pub fn of(counts: &Counts) -> Queues {
        let of = |state| u64::from(counts.of(state));
        Queues {
            queued: of(State::Ready) + of(State::Delayed),
            waiting: of(State::Waiting) + of(State::Blocked) + of(State::Held),
            running: of(State::Leased),
        }
    }

    pub fn add(&mut self, other: &Queues) {
        self.queued += other.queued;
        self.waiting += other.waiting;
        self.running += other.running;
    }
}

/// Of one group, or of all.
#[derive(Debug, Default)]
pub(super) struct Series {
    pub now: Tally,
    minute: Tally,
    seconds: VecDeque<api::Sample>,
    minutes: VecDeque<api::Sample>,
    seconds_in_minute: u32,
}

impl Series {
    /// Called every second with how the queues are. Gives the minute that is over with it, if one is.
    pub fn sample(&mut self, at_ms: u64, queues: &Queues) -> Option<api::Sample> {
        let now = std::mem::take(&mut self.now);
        self.minute.add(&now);
        push(&mut self.seconds, SECONDS_KEPT, sample(at_ms, &now, queues));
        self.seconds_in_minute += 1;
        if self.seconds_in_minute < 60 {
            return None;
        }
        self.seconds_in_minute = 0;
        let minute = sample(at_ms, &std::mem::take(&mut self.minute), queues);
        push(&mut self.minutes, MINUTES_KEPT, minute.clone());
        Some(minute)
    }

    pub fn samples(&self, step: Step) -> &VecDeque<api::Sample> {
        match step {
            Step::Second => &self.seconds,
            Step::Minute => &self.minutes,
        }
    }

    /// One from before the start, unless it is too old, or later than what is known.
    pub fn restore(&mut self, step: Step, sample: api::Sample, now_ms: u64) {
        let (ring, most, width_ms) = match step {
            Step::Second => (&mut self.seconds, SECONDS_KEPT, 1000),
            Step::Minute => (&mut self.minutes, MINUTES_KEPT, 60_000),
        };
        let oldest = now_ms.saturating_sub(most as u64 * width_ms);
        let is_next = ring.back().is_none_or(|last| last.at_ms < sample.at_ms);
        if is_next && (oldest..=now_ms).contains(&sample.at_ms) {
            push(ring, most, sample);
        }
    }

    pub fn view(&self) -> api::History {
        api::History {
            seconds: self.seconds.iter().cloned().collect(),
            minutes: self.minutes.iter().cloned().collect(),
        }
    }
}

fn push(ring: &mut VecDeque<api::Sample>, most: usize, sample: api::Sample) {
    if ring.len() == most {
        ring.pop_front();
    }
    ring.push_back(sample);
}

fn sample(at_ms: u64, tally: &Tally, queues: &Queues) -> api::Sample {
    api::Sample {
        at_ms,
        started: tally.started,
        done: tally.done,
        failed: tally.failed,
        again: tally.again,
        lost: tally.lost,
        queued: queues.queued,
        waiting: queues.waiting,
        running: queues.running,
    }
}

/// Steps of a job's life.
const STEPS_MAX: usize = 120;

/// Two counts over the whole life of a job: done and not. Full, every two steps become one.
#[derive(Debug)]
pub(super) struct Folding {
    start_ms: u64,
    width_ms: u64,
    steps: Vec<(u32, u32)>,
}

impl Folding {
    pub fn new(start_ms: u64) -> Folding {
        Folding { start_ms, width_ms: 1000, steps: Vec::new() }
    }

    pub fn add(&mut self, at_ms: u64, is_good: bool) {
        let passed = at_ms.saturating_sub(self.start_ms);
        while passed / self.width_ms >= STEPS_MAX as u64 {
            self.fold();
        }
        let at = usize::try_from(passed / self.width_ms).unwrap_or(STEPS_MAX - 1);
        if self.steps.len() <= at {
            self.steps.resize(at + 1, (0, 0));
        }
        let (good, bad) = &mut self.steps[at];
        let count = if is_good { good } else { bad };
        *count = count.saturating_add(1);
    }

    fn fold(&mut self) {
        let joined = self.steps.chunks(2).map(|pair| {
            let sum = |(a, b): (u32, u32), &(c, d): &(u32, u32)| (a + c, b + d);
            pair.iter().fold((0, 0), sum)
        });
        self.steps = joined.collect();
        self.width_ms *= 2;
    }

    pub fn view(&self) -> api::Rate {
        api::Rate {
            start_ms: self.start_ms,
            width_ms: self.width_ms,
            done: self.steps.iter().map(|step| step.0).collect(),
            failed: self.steps.iter().map(|step| step.1).collect(),
        }
    }
}
