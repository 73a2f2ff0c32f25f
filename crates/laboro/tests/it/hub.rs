//! The commands that talk to a hub, each the real program, against a hub in this process: the real engine, the
//! real HTTP door with TLS and tokens, and a worker that a test moves by hand.

mod control;
mod documents;
mod export;
mod hooks;
mod hostile;
mod lists;
mod looks;
mod place;
mod receiver;
mod schedules;
mod submits;
mod team;
mod waits;
mod whole;
mod words;

pub(super) use receiver::Receiver;
