//! Readers of single messages, one file a dialect. What is read is written and read again wherever there is a
//! writer.

pub(crate) mod dwork;
pub(crate) mod fuq;
pub(crate) mod rrmq;
pub(crate) mod runexp;
pub(crate) mod zmtp;
