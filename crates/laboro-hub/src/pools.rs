//! Keeps pools: what the hub has ready and what the batch system says goes to `laboro-pool`, which decides; commands are
//! run from here, on a thread of their own, so that one that hangs holds up neither tasks nor requests. What is known is
//! on the disk before a command is run.

mod keeper;
mod tending;

pub use keeper::{PoolRefusal, Pools};
pub(crate) use tending::start;
