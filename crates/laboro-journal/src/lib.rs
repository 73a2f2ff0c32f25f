//! What Laboro remembers on disk. It decides nothing: it keeps what it is given and gives it back.
//! A `Journal` takes the hub's batches: `record` turns them into bytes, and `log` keeps bytes durably
//! and in order and does not know what they mean. `outputs` keeps what tasks printed, which is less
//! precious and much more.

#![cfg_attr(not(test), forbid(unsafe_code))]
// Fields and variants that their names and types explain are left out, type by type.
#![warn(missing_docs)]

mod journal;
mod memory;

mod file;
mod replay;
mod wait;

pub mod log;
pub mod record;

mod check;
pub mod copy;

pub mod outputs;

#[cfg(test)]
mod tests;

pub use check::{Check, check};
pub use file::FileJournal;
pub use journal::{Journal, JournalError};
pub use memory::MemoryJournal;
pub use replay::{Replay, read_ledger};
pub use wait::wait;
