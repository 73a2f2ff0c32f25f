//! How much room the disk has, and how much of it may be taken ahead of need.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Asks the system, or a test.
#[derive(Clone)]
pub(super) struct DiskRoom(Arc<FreeBytes>);

/// How much is free on the disk of a directory; `None` if nobody can tell.
type FreeBytes = dyn Fn(&Path) -> Option<u64> + Send + Sync;

/// A segment made ahead takes at most this part of what is free.
const SHARE: u64 = 4;
/// Sizes are whole pages.
const PAGE_BYTES: u64 = 4096;

impl DiskRoom {
    #[cfg(test)]
    pub fn of(free: impl Fn(&Path) -> Option<u64> + Send + Sync + 'static) -> DiskRoom {
        DiskRoom(Arc::new(free))
    }

    /// How large a segment may be that is made ahead: `wanted`, less where little is free, `None` where that would
    /// be less than `least`. A system that does not say is taken at its word when it refuses.
    pub fn to_spare(&self, dir: &Path, wanted: u64, least: u64) -> Option<u64> {
        let free = (self.0)(dir).unwrap_or(u64::MAX);
        let most = free / SHARE / PAGE_BYTES * PAGE_BYTES;
        Some(wanted.min(most)).filter(|&bytes| bytes >= least)
    }

    /// Whether a segment of this size that waits for its use takes what others need now.
    pub fn is_short(&self, dir: &Path, bytes: u64) -> bool {
        (self.0)(dir).is_some_and(|free| free < bytes)
    }
}

impl Default for DiskRoom {
    fn default() -> DiskRoom {
        DiskRoom(Arc::new(free_bytes))
    }
}

fn free_bytes(dir: &Path) -> Option<u64> {
    let about = rustix::fs::statvfs(dir).ok()?;
    Some(about.f_bavail.saturating_mul(about.f_frsize))
}

impl fmt::Debug for DiskRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DiskRoom")
    }
}
