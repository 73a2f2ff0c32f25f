//! What the dialect promises: bytes against the originals', the numbers of a conversation, and whole
//! conversations between a real hub core, the foreman and a worker.

mod golden;
mod hostile;
mod native;
mod original;
mod plain;
mod plain_worker;
mod rig;
mod talk;
mod waking;
