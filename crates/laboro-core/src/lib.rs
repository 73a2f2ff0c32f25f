//! Decides: the scheduling core of Laboro. Pure: no clock, no I/O, no threads, no random order. Time is
//! an argument, ids are counted, and one `Ledger::apply` serves live and replay.
//!
//! Read in this order: the words (`id task job command event effect reply view`), the ledger they change, who is
//! there (`presence`), and the hub that decides.

#![forbid(unsafe_code)]
// Fields and variants that their names and types explain are left out, type by type.
#![warn(missing_docs)]

mod argv;
mod backlog;
mod bounds;
mod broker;
mod command;
mod config;
mod document;
mod effect;
mod event;
mod explanation;
mod fields;
mod hub;
mod id;
mod job;
mod ledger;
mod presence;
mod profile;
mod refusal;
mod reply;
mod resources;
mod runner;
mod setting;
mod task;
mod value_list;
mod view;

pub use argv::Argv;
pub use backlog::Backlog;
pub use bounds::{
    CALL_BYTES_MAX, EXEC_BYTES_MAX, Excess, FEATURES_MAX, MESSAGE_BYTES_BESIDE, MESSAGE_BYTES_MAX,
    VARIABLES_MAX, WORDS_MAX, WORK_BYTES_MAX,
};
pub use broker::{Act, Broker, BrokerConfig, Counters, Dropped, PeerId, Rate, WorkerRow};
pub use command::*;
pub use config::{Conduct, Config, DocumentLimits, Keep, Limits, OwnerShare, Quotas, Shares};
pub use document::{DocumentChange, DocumentId};
pub use effect::{Archive, Batch, Change, Effect, Element, Grant, Node, Receipt, Role};
pub use event::{Added, Event, Ranges, ReturnReason, Share, Then, Words};
pub use explanation::{Before, Explanation, Lack, Prospect, Shortfall, counted};
pub use fields::{FieldError, Fields};
pub use hub::Hub;
pub use id::{GroupId, JobId, LeaseNo, Name, SessionId, TaskId, Time, Token, WorkerId};
pub use job::{Counts, JobOptions};
pub use ledger::restore;
pub use ledger::{Ledger, Load};
pub use profile::NODES_MAX;
pub use refusal::{Quota, QuotaOf, Refusal};
pub use reply::{Idle, Reply};
pub use resources::{Amount, Portion, Request, Supply};
pub use task::*;
pub use value_list::ValueList;
pub use view::{
    AttemptView, ConductView, GroupView, JobView, OwnerView, PartView, ResourceView, Retention,
    Standing, TaskView, Ties, WorkerView,
};
