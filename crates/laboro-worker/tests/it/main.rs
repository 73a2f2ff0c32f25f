//! The crate from outside: real processes, killed in every way. One binary.

// The lint knows test functions, not the functions they share.
#![allow(clippy::unwrap_used)]

mod endings;
mod launches;
mod lives;
mod output;
mod rig;
mod strays;
mod surroundings;
