//! The runexp dialect, protocol 1.3, both sides: `Manager` dispatches scripts and takes results, `Runner` works for a
//! manager, ours or an original one. The protocol is in `spec/runexp.md`. Nothing here runs or stores anything.

pub mod result;
pub mod words;

mod door;
mod manager;
mod roll;
mod runner;
mod script;

#[cfg(test)]
mod tests;

pub use door::{Fill, Filled, ManagerDoor, Success, Unsayable};
pub use manager::Manager;
pub use runner::{Runner, RunnerOptions};
pub use script::{Extra, MATLAB_OPTIONS, Script, matlab_statement, render};

/// What the original runner demands, to the letter.
pub const VERSION: &str = "1.3";

/// The group of managers and runners that were told none.
pub const DEFAULT_GROUP: &str = "__defaulte__";
