//! The crate from outside: real processes, killed in every way. Any number at once, so that the
//! guardian's loop waits for them; `each` runs the same tests with a thread for each task.

// The lint knows test functions, not the functions they share.
#![allow(clippy::unwrap_used)]

/// Of a runner that a test has no wish for.
const AT_ONCE: Option<std::num::NonZeroUsize> = None;

mod agents;
mod endings;
mod heirs;
mod launches;
mod lives;
mod output;
mod rig;
mod strays;
mod surroundings;
