//! The tests of `it` once more, with so few tasks at once that the guardian has a thread for each
//! that waits for its end. No tests of its own.

// The lint knows test functions, not the functions they share.
#![allow(clippy::unwrap_used)]

/// More than any test runs at once, and few enough.
const AT_ONCE: Option<std::num::NonZeroUsize> = std::num::NonZeroUsize::new(64);

#[path = "../it/endings.rs"]
mod endings;
#[path = "../it/heirs.rs"]
mod heirs;
#[path = "../it/launches.rs"]
mod launches;
#[path = "../it/lives.rs"]
mod lives;
#[path = "../it/output.rs"]
mod output;
#[path = "../it/rig.rs"]
mod rig;
#[path = "../it/strays.rs"]
mod strays;
#[path = "../it/surroundings.rs"]
mod surroundings;
