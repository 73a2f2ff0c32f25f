//! The agent with a hub of few words: real processes, a real connection, every way in which a worker's day ends.

mod calls;
mod days;
mod hub;
mod links;
mod orders;
mod work;
