//! Keeps pools: what the hub has ready and what the batch system says goes to `laboro-pool`, which decides; commands are
//! run from here, on a thread of their own, so that one that hangs holds up neither tasks nor requests. What is known is
//! in the journal before a command is run.

mod keeper;
mod kept;
mod tending;
mod tokens;

#[cfg(test)]
mod tests;

pub use keeper::{PoolRefusal, Pools};
pub(crate) use tending::start;

use crate::documents::{DocumentError, Opening};
use std::path::Path;

const OLD_FILE: &str = "pools.json";

/// Nothing but the reading.
pub(crate) fn read_kept(opening: &mut Opening<'_>, dir: &Path) -> Result<(), DocumentError> {
    kept::open(opening, &dir.join(OLD_FILE)).map(drop)
}
