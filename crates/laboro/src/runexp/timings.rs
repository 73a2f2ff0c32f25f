//! What a measurement wants to know of a manager: how long each job took, when the last result came, and what all
//! of it cost. Passed through a file, since the manager is a process of its own.

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

impl Default for Timings {
    fn default() -> Timings {
        let (latencies, cpu) = (Vec::new(), Duration::ZERO);
        Timings { latencies, last: SystemTime::UNIX_EPOCH, cpu }
    }
}

impl Timings {
    pub(super) fn note(&mut self, latency: Duration) {
        self.latencies.push(latency);
        self.last = SystemTime::now();
    }

    /// In nanoseconds, one a line: the last result, the processor time, then each latency.
    pub(super) fn write(&self, path: &Path) -> anyhow::Result<()> {
        let last = self.last.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let cpu = Duration::try_from(cpu).unwrap_or_default();
        let times = [last, cpu].into_iter().chain(self.latencies.iter().copied());
        let text: String = times.map(|time| format!("{}\n", time.as_nanos())).collect();
        std::fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))
    }

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
