//! Journals under a real hub: what it was told is what the next one finds.

mod checks;
mod journals;
mod random;
mod snapshots;
mod world;
