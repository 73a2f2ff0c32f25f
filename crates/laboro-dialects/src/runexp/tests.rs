//! The codec against recorded conversations, both sides against recordings and against each other, and what
//! peers may do wrong. Hubs are real; only sockets are missing.

mod back;
mod golden;
mod hostile;
mod manager;
mod pair;
mod replay;
mod result;
mod rig;
mod runner;
mod runners;
mod script;
mod words;
