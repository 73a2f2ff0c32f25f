//! What the journal promises, against a stream of bad luck from a seed, and against real servers.

mod cluster;
mod condensing;
mod logins;
mod mirrors;
mod model;
mod real;
mod takeovers;
mod world;
mod writing;
