//! Starts workers where there is work for them: a pool is a shape of worker and the commands of a batch system. What to
//! start, when to wait and what a failure means is decided in `pool` and `demand`, which are pure: time is an argument.
//! What the commands of a batch system are and what they print is in `scheduler`; `call` runs them within bounds, and
//! `store` is what is known of all pools. Talking to the hub is its caller's affair.

#![forbid(unsafe_code)]

mod call;
mod demand;
mod pool;
mod scheduler;
mod store;

pub use call::{Call, CallError, run, run_within};
pub use demand::{Shape, share_out};
pub use pool::{Allocation, Pool, Stage, Standing, worker_name};
pub use scheduler::{Listed, ListedState, Place, Scheduler};
pub use store::{State, StoreError};

use laboro_api::{PoolKind, PoolSpec};

/// What is wrong with a pool that somebody wants, in words.
pub fn check(spec: &PoolSpec) -> Result<(), String> {
    let is_name = |text: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        !text.is_empty()
            && text.len() <= 40
            && text.chars().all(plain)
            && !text.starts_with(['-', '.'])
    };
    if !is_name(&spec.name) {
        return Err(format!(
            "{:?} is not the name of a pool: 1 to 40 letters, digits, dots, dashes and underlines",
            spec.name
        ));
    }
    if spec.slots == 0 {
        return Err("a worker of the pool has at least one slot".into());
    }
    if spec.backlog == 0 || spec.max_allocations == 0 {
        return Err("a pool with no room for an allocation never starts one: backlog and max are at least 1".into());
    }
    if spec.max_allocations > ALLOCATIONS_MAX {
        return Err(format!("a pool has at most {ALLOCATIONS_MAX} allocations"));
    }
    let has_control = |text: &String| text.contains(|c: char| c.is_control());
    let tags = spec.tags.iter().chain(spec.resources.keys()).chain([&spec.group]);
    if tags.chain(&spec.arguments).chain(&spec.laboro).any(has_control) {
        return Err("names and arguments have no control characters".into());
    }
    if spec.time_limit_ms.is_some_and(|limit| limit < 60_000) {
        return Err("an allocation of less than a minute has no time for work".into());
    }
    match &spec.via {
        Some(via) if via.strip_prefix("ssh:").is_none_or(|host| !is_host(host)) => {
            return Err(format!("{via:?}: the commands run here, or at ssh:HOST"));
        }
        Some(_) if spec.kind == PoolKind::Ssh => {
            return Err("a pool of kind ssh reaches its machines from here".into());
        }
        _ => {}
    }
    match spec.kind {
        PoolKind::Ssh if spec.arguments.is_empty() => Err("name the machines of the pool".into()),
        PoolKind::Ssh => match spec.arguments.iter().find(|host| !is_host(host)) {
            Some(host) => Err(format!("{host:?} is not the name of a machine")),
            None => Ok(()),
        },
        PoolKind::Command if spec.arguments.is_empty() => {
            Err("say which command submits an allocation".into())
        }
        PoolKind::Command if spec.list_command.is_none() || spec.cancel_command.is_none() => {
            Err("say which commands list and cancel allocations".into())
        }
        _ => Ok(()),
    }
}

/// A cluster has more nodes than anybody is given.
const ALLOCATIONS_MAX: u32 = 10_000;

/// Not an option, and nothing that a shell would read.
fn is_host(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-@".contains(c);
    !text.is_empty() && !text.starts_with('-') && text.chars().all(plain)
}

#[cfg(test)]
mod tests;
