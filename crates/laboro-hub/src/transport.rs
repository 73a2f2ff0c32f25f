//! What carries bytes between peers and sessions. A transport knows time, limits and sockets, and nothing
//! of what is said.

mod stall;
mod tcp;

#[cfg(test)]
mod tests;

pub(crate) use stall::Stall;
pub(crate) use tcp::{ConnectionLimits, Hall, Parting, drive, drive_known};
