//! How long things take and how large they are, counted in buckets for the metrics. Each of these is taken anyway where
//! it is counted; nothing is kept of single tasks.

use laboro_core::Time;
use prometheus_client::metrics::histogram::Histogram;
use std::time::Duration;

/// Cheap to clone; all clones count the same.
#[derive(Clone, Debug)]
pub(crate) struct Measures {
    /// Of attempts, as their workers measured them.
    pub attempt: Histogram,
    /// From a task's submit to its first start, with the wait for tasks before it.
    pub queue: Histogram,
    /// Until a batch was written, with the wait for the disk.
    pub commit: Histogram,
    /// Events in a batch.
    pub batch: Histogram,
}

/// Seconds: tasks take from milliseconds to days.
const TASK_SECONDS: [f64; 13] =
    [0.001, 0.01, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0, 7200.0, 28_800.0, 86_400.0];
/// Seconds: a disk or a request.
pub(crate) const SHORT_SECONDS: [f64; 11] =
    [0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 10.0];
const EVENTS: [f64; 9] = [1.0, 2.0, 5.0, 10.0, 50.0, 100.0, 500.0, 1000.0, 10_000.0];

impl Default for Measures {
    fn default() -> Measures {
        Measures {
            attempt: Histogram::new(TASK_SECONDS),
            queue: Histogram::new(TASK_SECONDS),
            commit: Histogram::new(SHORT_SECONDS),
            batch: Histogram::new(EVENTS),
        }
    }
}

impl Measures {
    pub fn attempt_took(&self, ms: u64) {
        self.attempt.observe(seconds(ms));
    }

    pub fn waited(&self, from: Time, to: Time) {
        self.queue.observe(seconds(to.since_ms(from)));
    }

    pub fn committed(&self, events: usize, took: Duration) {
        self.commit.observe(took.as_secs_f64());
        self.batch.observe(events as f64);
    }
}

fn seconds(ms: u64) -> f64 {
    Duration::from_millis(ms).as_secs_f64()
}
