//! How long attempts took, as counts in buckets that grow with the time: four for every doubling, so that a
//! millisecond and a week have the same relative precision in a few hundred bytes.

use laboro_api as api;

/// Up to 2^34 ms, which is half a year.
const BUCKETS: usize = 34 * STEPS + 1;
/// Buckets a doubling.
const STEPS: usize = 4;

#[derive(Debug)]
pub(super) struct Durations {
    counts: Box<[u32; BUCKETS]>,
    count: u64,
    sum_ms: u64,
    min_ms: u64,
    max_ms: u64,
}

impl Default for Durations {
    fn default() -> Durations {
        let counts = Box::new([0; BUCKETS]);
        Durations { counts, count: 0, sum_ms: 0, min_ms: u64::MAX, max_ms: 0 }
    }
}

impl Durations {
    pub fn add(&mut self, took_ms: u64) {
        let bucket = &mut self.counts[bucket(took_ms)];
        *bucket = bucket.saturating_add(1);
        self.count += 1;
        self.sum_ms = self.sum_ms.saturating_add(took_ms);
        self.min_ms = self.min_ms.min(took_ms);
        self.max_ms = self.max_ms.max(took_ms);
    }

    /// Buckets from the first that is not empty to the last.
    pub fn view(&self) -> api::Durations {
        if self.count == 0 {
            return api::Durations::default();
        }
        let first = self.counts.iter().position(|&count| count > 0).unwrap_or(0);
        let last = self.counts.iter().rposition(|&count| count > 0).unwrap_or(0);
        let buckets = (first..=last).map(|at| api::Bucket {
            from_ms: lower(at),
            to_ms: lower(at + 1),
            count: self.counts[at].into(),
        });
        // Where buckets are narrower than a millisecond several have the same borders; nothing is in them.
        let buckets = buckets.filter(|bucket| bucket.from_ms < bucket.to_ms).collect();
        api::Durations {
            count: self.count,
            sum_ms: self.sum_ms,
            min_ms: self.min_ms,
            max_ms: self.max_ms,
            p50_ms: self.quantile(0.5),
            p90_ms: self.quantile(0.9),
            p99_ms: self.quantile(0.99),
            buckets,
        }
    }

    /// As exact as a bucket is wide.
    fn quantile(&self, share: f64) -> u64 {
        let wanted = (self.count as f64 * share).ceil() as u64;
        let mut seen = 0;
        for (at, &count) in self.counts.iter().enumerate() {
            seen += u64::from(count);
            if seen >= wanted && count > 0 {
                return (lower(at + 1).saturating_sub(1)).clamp(self.min_ms, self.max_ms);
            }
        }
        self.max_ms
    }
}

fn bucket(took_ms: u64) -> usize {
    if took_ms == 0 {
        return 0;
    }
    let at = ((took_ms as f64).log2() * STEPS as f64).floor() as usize + 1;
    // The logarithm may be a hair off at a border.
    let at = if lower(at) > took_ms { at - 1 } else { at };
    let at = if lower(at + 1) <= took_ms { at + 1 } else { at };
    at.min(BUCKETS - 1)
}

/// The first millisecond of a bucket. The first bucket is for what took none.
fn lower(at: usize) -> u64 {
    match at {
        0 => 0,
        at => ((at - 1) as f64 / STEPS as f64).exp2().ceil() as u64,
    }
}
