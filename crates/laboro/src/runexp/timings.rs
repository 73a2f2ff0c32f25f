//! What a measurement wants to know of a manager: how long each job took, when the last result came, and what all
//! of it cost. Passed through a file, since the manager is a process of its own.

use anyhow::Context;
use std::path::Path;
use std::time::{Duration, SystemTime};

#[derive(Debug)]
pub(super) struct Timings {
    /// From the hand-out of each job to its result.
    latencies: Vec<Duration>,
    last: SystemTime,
}

impl Default for Timings {
    fn default() -> Timings {
        Timings { latencies: Vec::new(), last: SystemTime::UNIX_EPOCH }
    }
}

impl Timings {
    pub(super) fn note(&mut self, latency: Duration) {
        self.latencies.push(latency);
        self.last = SystemTime::now();
    }

    /// In nanoseconds, one a line: the last result, the processor time of the whole process, then each latency.
    pub(super) fn write(&self, path: &Path) -> anyhow::Result<()> {
        let last = self.last.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let cpu = Duration::try_from(cpu).unwrap_or_default();
        let times = [last, cpu].into_iter().chain(self.latencies.iter().copied());
        let text: String = times.map(|time| format!("{}\n", time.as_nanos())).collect();
        std::fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))
    }
}
