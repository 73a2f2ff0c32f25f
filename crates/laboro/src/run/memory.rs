//! Memory of this machine: how much there is, and whether enough is free to start something more.

use crate::output::bytes;

/// Starts nothing while less memory than asked for is available.
pub(crate) struct MemoryGuard {
    wanted: Option<u64>,
    is_short: bool,
}

impl MemoryGuard {
    pub(crate) fn new(wanted: Option<u64>) -> MemoryGuard {
        MemoryGuard { wanted, is_short: false }
    }

    /// Whether to wait; with words for people when that is news.
    pub(crate) fn wait(&mut self) -> (bool, Option<String>) {
        let Some(wanted) = self.wanted else { return (false, None) };
        // A system that does not say how much is free is not waited for.
        let available = laboro_worker::memory_available().unwrap_or(u64::MAX);
        let was_short = std::mem::replace(&mut self.is_short, available < wanted);
        let words = (self.is_short && !was_short).then(|| {
            let (available, wanted) = (bytes(available), bytes(wanted));
            format!("nothing more starts: {available} of memory available, --memory wants {wanted}")
        });
        (self.is_short, words)
    }
}

/// Bytes, for tasks that say how much they need.
pub(crate) fn memory_total() -> u64 {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = info.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib: Option<u64> =
        line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok());
    kib.map_or(u64::MAX, |kib| kib * 1024)
}
