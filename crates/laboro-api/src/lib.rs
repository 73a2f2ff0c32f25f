//! The words of the HTTP API: every JSON body that goes in or out, shared by the hub and its clients, and their
//! conversion to and from the core's types. Nothing here listens, asks or knows who may do what.
//!
//! What a client sends is strict: an unknown field is refused by its name. What the hub sends may grow: a client
//! ignores fields it does not know and takes an unknown word as `Unknown`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod access;
mod broker;
mod bulk;
pub mod client;
mod convert;
mod event;
mod history;
mod hook;
mod job;
mod label;
mod needs;
mod operation;
mod overview;
mod packed;
mod part;
mod pool;
mod problem;
mod reference;
mod result;
mod runner;
mod schedule;
mod selection;
mod streams;
mod submit;
mod task;
mod text;
pub mod tunnel;
mod worker;

pub use broker::{Broker, BrokerTable, BrokerWorker, Brokers};
pub use bulk::{Bulk, BulkAction, BulkChanged, BulkJob, JobWord, fits};
pub use convert::{BadTask, Batch, Converter};
pub use event::{Event, EventKind};
pub use history::{Bucket, Durations, EndedAttempt, History, JobHistory, Rate, Sample, Share};
pub use hook::{Deliveries, Delivery, DeliveryState};
pub use job::{Counts, Failure, Group, Groups, Job, JobState, Jobs, Waited, shown_target};
pub use label::label;
pub use needs::{Missing, MissingNeed, ResourceRequest, Variant, advice};
pub use operation::{AuditEntry, AuditPage, DoorStatus, Doors, Health, Version};
pub use overview::{Disk, Fleet, FleetResource, Me, Overview, Warning};
pub use packed::{List, Packed};
pub use part::{Part, Parts, Range, Ranges};
pub use pool::{Pool, PoolAllocation, PoolEvent, PoolKind, PoolSpec, PoolStep, PoolTest, Pools};
pub use problem::Problem;
pub use reference::{After, Line};
pub use result::{ResultState, TaskResult};
pub use runner::Runner;
pub use schedule::{Schedule, ScheduleRun, Schedules};
pub use selection::{BadSelection, Changed, Eject, Limit, Prioritise, Selection, StopSlots};
pub use streams::{Output, Stdin};
pub use submit::{AddTasks, IfTaken, Script, Span, SubmitJob, Submitted, TaskSpec, UnknownAfter};
pub use task::{Attempt, Explained, Outcome, OutcomeKind, Task, TaskState, TaskWork, Tasks, Used};
pub use text::Text;
pub use worker::{Conduct, Held, Resource, Standing, Worker, Workers};

#[cfg(test)]
mod tests;

/// The first part of every path.
pub const BASE: &str = "/api/v1";

/// Which words are spoken. The first number changes when an old client would be misunderstood, the second when
/// something was added.
pub const API_VERSION: &str = "1.3";

/// Every answer says which words it is in.
pub const API_VERSION_HEADER: &str = "laboro-api";
/// Which attempt it was, on every answer with what a task printed.
pub const ATTEMPT_HEADER: &str = "laboro-attempt";
/// How many bytes of what an attempt printed were not kept, where there are some.
pub const OUTPUT_LOST_HEADER: &str = "laboro-output-lost";

/// Every answer says which program gave it.
pub const VERSION_HEADER: &str = "laboro-version";

/// The version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The group meant when none is named.
pub const DEFAULT_GROUP: &str = "default";

/// What a line of `POST jobs/stream` may be long, in bytes.
pub const LINE_BYTES_MAX: usize = 16 << 20;
