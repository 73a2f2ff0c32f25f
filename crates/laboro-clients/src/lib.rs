//! Connections to servers that speak a dialect other than the native one, ours or originals: dwork hubs, servers of the
//! rrmq message queue, foremen of fuq. What is said on them is in `laboro-dialects`; what a person should do when one
//! fails is said by the program.

#![forbid(unsafe_code)]

pub mod dwork;
mod error;
pub mod fuq;
pub mod mq;

pub use error::LinkError;
