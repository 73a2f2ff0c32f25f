//! What Laboro remembers on disk. It decides nothing: it keeps what it is given and gives it back.
//! `log` keeps bytes durably and in order and does not know what they mean; `outputs` keeps what tasks
//! printed, which is less precious and much more.

pub mod log;
pub mod outputs;
pub mod record;
