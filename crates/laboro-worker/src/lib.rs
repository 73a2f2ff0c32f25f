//! Runs task processes on one machine: spawn, capture, limits, timeouts, ending.
//!
//! No process outlives its laboro: a small [`guardian`] process does the spawning, and ends
//! everything it started when the program that asked for it is gone, however it went.
//! The runner knows nothing of hubs; the [`agent`] on top of it is a worker of one.

pub mod agent;
mod gpus;
pub mod guardian;

mod calls;
mod cpus;
mod ending;
mod launch;
mod making;
mod memory;
mod proc;
mod runner;
mod scripts;
mod surroundings;
mod sys;
mod wire;
mod words;

pub use cpus::Pin;
pub use ending::{Ending, Reason, Usage};
pub use gpus::{GpuVendor, Gpus};
pub use launch::{Capture, Launch, Limits, Stdin, TASK_ID_VAR, Until, Warning, WriteMode};
pub use making::{Common, Made, Maker, Refusal};
pub use memory::{MemoryError, MemoryGuard, MemoryShortage, memory_available, memory_total};
pub use runner::{
    EventSource, Options, Orphans, Runner, RunnerError, RunnerEvent, Stream, end_left_behind,
    no_room_words,
};
pub use scripts::{Script, Scripts};
pub use surroundings::{GPU_VARIABLES, inherited};
pub use sys::is_shortage;
pub use words::{DEFAULT_SHELL, on_path};
