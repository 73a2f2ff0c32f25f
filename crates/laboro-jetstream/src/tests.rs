//! What the journal promises, against a stream of bad luck from a seed, and against real servers.

mod condensing;
mod model;
mod takeovers;
mod world;
mod writing;
