//! What a runexp manager tells of itself with `--timings`: how long each job took, when the last result came, and what
//! all of it cost.

use anyhow::{Context, bail};
use std::path::Path;
use std::time::{Duration, SystemTime};

#[derive(Debug)]
pub(crate) struct Timings {
    /// From the hand-out of each job to its result.
    pub(crate) latencies: Vec<Duration>,
    pub(crate) last: SystemTime,
    /// Processor time of the whole process.
    pub(crate) cpu: Duration,
}

impl Timings {
    /// In nanoseconds, one a line: the last result, the processor time, then each latency.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Timings> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("{} cannot be read", path.display()))?;
        let times: Result<Vec<u64>, _> = text.lines().map(str::parse).collect();
        let times: Vec<Duration> = times?.into_iter().map(Duration::from_nanos).collect();
        let [last, cpu, latencies @ ..] = &times[..] else {
            bail!("{}: the manager told nothing", path.display());
        };
        let last = SystemTime::UNIX_EPOCH + *last;
        Ok(Timings { latencies: latencies.to_vec(), last, cpu: *cpu })
    }
}
