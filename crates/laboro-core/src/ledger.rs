//! The state that events add up to. `post` is the only way to change it, live and in replay alike:
//! what a journal holds is exactly what happened here.

mod apply;
mod check;
mod condense;
mod describe;
mod documents;
mod elements;
mod front;
mod graph;
mod handle;
mod index_set;
mod jobs;
mod lanes;
mod load;
mod moves;
mod names;
mod naming;
mod order;
mod pages;
mod profiles;
mod reading;
mod record;
pub mod restore;
mod slab;
mod workers;
mod writer;

pub(crate) use handle::{
    ClassHandle, JobHandle, LaneHandle, LeaseHandle, OfferHandle, TaskHandle, WorkerHandle,
};
pub(crate) use jobs::{Array, Job};
pub(crate) use lanes::{Class, most_slots};
pub use load::Load;
pub(crate) use load::Scale;
pub(crate) use names::NameScope;
pub use reading::Ledger;
pub(crate) use reading::Timer;
pub(crate) use record::{HELD_BECAUSE, Phase, Record};
pub(crate) use slab::Slab;
pub(crate) use workers::{RECENT, Tally, TrackRecord, Worker};
pub(crate) use writer::LedgerWriter;
