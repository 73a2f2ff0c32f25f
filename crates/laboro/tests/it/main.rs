//! `laboro run` and its companions from outside: the real program, real processes, a directory a test.

// The lint knows test functions, not the functions they share.
#![allow(clippy::unwrap_used)]

mod rig;

mod checks;
mod completions;
mod contract;
mod curve;
mod dashboard;
mod doors;
mod dwork;
mod examples;
mod faults;
mod flows;
mod fuq;
mod hosts;
mod hq;
mod hub;
mod inputs;
mod interrupts;
mod kills;
mod limits;
mod logs;
mod looks;
mod metrics;
mod mq;
mod nats;
mod outputs;
mod pools;
mod progress;
mod room;
mod runexp;
mod scripts;
mod service;
mod shared_home;
mod shortage;
mod slurm;
mod state;
mod surroundings;
mod terminal;
mod traces;
mod tunnel;
mod typed;
mod upgrade;
mod words;
mod workers;
