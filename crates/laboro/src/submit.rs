//! Giving a plan to a hub: what is sent, in what order and in what pieces. The hub checks it and takes all of it
//! or none, a stream piece by piece.

mod after;
mod order;
mod send;
mod specs;
mod terms;

pub(crate) use after::predecessors;
pub(crate) use order::order;
pub(crate) use send::{add, submit};
pub(crate) use specs::{millis, spec};
pub(crate) use terms::{Terms, name_of};

#[cfg(test)]
mod tests;
