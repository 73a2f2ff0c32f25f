//! How much memory the machine has and can still give, for "start no more while less is free"; also how many processes
//! run on it.

use crate::gpus::machine_root;
use std::path::Path;

#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    #[error("/proc/meminfo: {0}")]
    Unreadable(#[from] std::io::Error),
    #[error("/proc/meminfo has no MemAvailable line in kB")]
    Missing,
}

/// Bytes that can be given to new processes without swapping, by the kernel's estimate.
pub fn memory_available() -> Result<u64, MemoryError> {
    let text = std::fs::read_to_string(Path::new("/proc/meminfo"))?;
    available_in(&text).ok_or(MemoryError::Missing)
}

fn available_in(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kib.checked_mul(1024)
}

/// Bytes that the machine has, for tasks that say how much they need: no more than the cgroups allow that this program is
/// in.
pub fn memory_total() -> u64 {
    let root = machine_root();
    let limit = cgroup_limit(&root).unwrap_or(u64::MAX);
    let info = std::fs::read_to_string(root.join("proc/meminfo")).unwrap_or_default();
    let line = info.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib: Option<u64> =
        line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok());
    kib.map_or(u64::MAX, |kib| kib * 1024).min(limit)
}

/// The lowest limit of the groups that this process is in, of either version.
fn cgroup_limit(root: &Path) -> Option<u64> {
    let own = std::fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let lowest = |line: &str| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let (base, file) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max"),
            list if list.split(',').any(|name| name == "memory") => {
                ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => return None,
        };
        // In a container the path may be that of the machine around it; the base is ours in any case.
        let groups = Path::new(path.trim_start_matches('/')).ancestors();
        let limit = |group: &Path| {
            let text = std::fs::read_to_string(root.join(base).join(group).join(file)).ok()?;
            text.trim().parse::<u64>().ok()
        };
        groups.filter_map(limit).min()
    };
    own.lines().filter_map(lowest).min()
}

/// Processes and threads that run at this moment or wait for a processor.
pub(crate) fn processes_running() -> Option<u32> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_ascii_whitespace().nth(3)?.split('/').next()?.parse().ok()
}

/// Has nothing started while less memory than asked for is available.
#[derive(Debug)]
pub struct MemoryGuard {
    wanted: Option<u64>,
    is_short: bool,
}

/// Why to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryShortage {
    pub available: u64,
    pub wanted: u64,
    /// There was enough when last asked.
    pub is_news: bool,
}

impl MemoryGuard {
    pub fn new(wanted: Option<u64>) -> MemoryGuard {
        MemoryGuard { wanted, is_short: false }
    }

    pub fn is_set(&self) -> bool {
        self.wanted.is_some()
    }

    /// `None`: something more may start.
    pub fn shortage(&mut self) -> Option<MemoryShortage> {
        let wanted = self.wanted?;
        // A system that does not say how much is free is not waited for.
        let available = memory_available().unwrap_or(u64::MAX);
        let was_short = std::mem::replace(&mut self.is_short, available < wanted);
        self.is_short.then_some(MemoryShortage { available, wanted, is_news: !was_short })
    }
}

/// For people.
pub(crate) fn size(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let mut size = bytes as f64 / 1024.0;
    let mut unit = 0;
    while size >= 1024.0 && unit + 1 < units.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.1} {}", units[unit])
}

#[cfg(test)]
mod tests;
