//! How much memory the machine can still give, for "start no more while less is free".

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

#[cfg(test)]
mod tests;
