//! Translates: what peers say into commands, and what the hub does into what peers understand. Codecs and
//! sessions only: bytes come in and go out as values, time is an argument, and no socket is ever opened here.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod dwork;
pub mod rrmq;
pub mod session;
pub mod worker;

mod messages;
#[cfg(test)]
mod nowhere;

pub mod fuq1;
pub mod fuq2;
pub mod runexp;
pub mod websocket;
pub mod zmtp;
