//! Options for opening a log. Every limit has a default.

use super::LogError;
use super::format::RECORD_BYTES_CEILING;

/// When a commit counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// On the disk: survives a power cut.
    #[default]
    Sync,
    /// With the operating system: survives our own death. A power cut may lose the newest records,
    /// and out of order, so that the log needs a repair before it opens again.
    Os,
    /// In memory, written when a buffer is full and on close.
    None,
}

/// How a log is kept.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct Options {
    pub durability: Durability,
    /// Size of the first segment. Small, because it is zeroed while somebody waits.
    pub segment_bytes_min: u64,
    /// Segments grow to this; they are zeroed in the background.
    pub segment_bytes_max: u64,
    /// A larger payload is refused. As large as the format allows unless told otherwise: a hub whose
    /// batch is refused cannot go on.
    pub record_bytes_max: usize,
    /// Condense when the log has grown by this much (or by twice its last snapshot, if more).
    pub condense_after_bytes: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            durability: Durability::Sync,
            segment_bytes_min: 256 << 10,
            segment_bytes_max: 64 << 20,
            record_bytes_max: RECORD_BYTES_CEILING,
            condense_after_bytes: 64 << 20,
        }
    }
}

impl Options {
    pub(super) fn check(&self) -> Result<(), LogError> {
        let refuse = |name, value, reason| Err(LogError::Option { name, value, reason });
        if self.segment_bytes_min < 4096 {
            return refuse("segment_bytes_min", self.segment_bytes_min, "4096 is the least");
        }
        if self.segment_bytes_max < self.segment_bytes_min {
            return refuse(
                "segment_bytes_max",
                self.segment_bytes_max,
                "it is less than segment_bytes_min",
            );
        }
        if self.record_bytes_max > RECORD_BYTES_CEILING {
            let value = self.record_bytes_max as u64;
            return refuse("record_bytes_max", value, "1073741824 is the most");
        }
        Ok(())
    }
}
