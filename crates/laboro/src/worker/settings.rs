//! From what was typed to how the worker works: numbers, times, names.

use super::allocation::Allocation;
use super::args::Worker;
use crate::exit::usage;
use crate::machine::Machine;
use anyhow::Context;
use laboro_plan::{QuantityError, parse_duration, parse_size};
use laboro_worker::Until;
use laboro_worker::agent::{AgentOptions, ScratchPlace};
use std::time::Duration;

/// A batch job has its say where nothing was typed.
pub(super) fn agent_options(
    args: &Worker,
    allocation: Option<&Allocation>,
) -> anyhow::Result<AgentOptions> {
    args.old.refuse()?;
    let here = || std::env::current_dir().context("the current directory no longer exists");
    let dir = match &args.workdir {
        Some(dir) => dir.canonicalize().with_context(|| format!("--workdir {}", dir.display()))?,
        None => here()?,
    };
    Ok(AgentOptions {
        name: name(args),
        slots: slots(args, allocation)?,
        shell: args.shell.clone(),
        dir: Some(dir),
        scratch: ScratchPlace::Among(args.scratch.clone().unwrap_or_else(std::env::temp_dir)),
        task_dirs: true,
        command: if args.ssh.is_empty() { args.words.clone() } else { Vec::new() },
        nice: args.nice,
        grace: quantity("--grace", &args.grace, parse_duration)?,
        drain: Some(quantity("--drain", &args.drain, parse_duration)?),
        haste: Duration::ZERO,
        launch_ahead: u32::MAX,
        ahead: 0,
        memory_free: optional(memory_option(args), args.memory_free.as_deref(), parse_size)?,
        delay: None,
        load_max: None,
        idle_timeout: optional("--idle-timeout", args.idle_timeout.as_deref(), parse_duration)?,
        time_limit: optional("--time-limit", args.time_limit.as_deref(), parse_duration)?
            .or_else(|| allocation.and_then(Allocation::time_limit)),
        output_limit: quantity("--output-limit", &args.output_limit, parse_size)?,
        until: Until::default(),
        limit_by: args.limits.into(),
        pin: args.pin_tasks.map(Into::into),
        items: Machine::new(&args.with)?.items(),
        shares_signals: allocation.is_some(),
        access: None,
    })
}

/// By the name that people of its dialect know.
fn memory_option(args: &Worker) -> &'static str {
    if args.is_runner() { "--mem" } else { "--memory-free" }
}

/// Shorter, and a busy machine loses its tasks.
const LEASE_MIN: Duration = Duration::from_secs(1);

pub(crate) fn lease_ms(args: &Worker) -> anyhow::Result<u64> {
    let lease = quantity("--lease", &args.lease, parse_duration)?;
    if lease < LEASE_MIN {
        return Err(usage(format!("--lease {}: at least 1s", args.lease)));
    }
    Ok(u64::try_from(lease.as_millis()).unwrap_or(u64::MAX))
}

/// The number of cores is what this process may use of them, also where a cgroup or an affinity gives less.
fn slots(args: &Worker, allocation: Option<&Allocation>) -> anyhow::Result<u32> {
    let cores = || std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    match args.jobs {
        Some(0) => Err(usage("-j 0: at least one slot is needed")),
        slots => Ok(slots
            .or_else(|| allocation.and_then(|allocation| allocation.slots))
            .unwrap_or_else(cores)),
    }
}

/// Names that nobody else has, as long as hosts have names of their own.
fn name(args: &Worker) -> String {
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy();
    args.name.clone().unwrap_or_else(|| format!("{host}-{}", std::process::id()))
}

fn optional<T>(
    option: &str,
    text: Option<&str>,
    parse: impl Fn(&str) -> Result<T, QuantityError>,
) -> anyhow::Result<Option<T>> {
    text.map(|text| quantity(option, text, parse)).transpose()
}

/// The value of an option, or words that name the option.
fn quantity<T>(
    option: &str,
    text: &str,
    parse: impl Fn(&str) -> Result<T, QuantityError>,
) -> anyhow::Result<T> {
    parse(text).map_err(|error| usage(format!("{option}: {error}")))
}

/// Room for open files: every task that runs costs this program a few.
pub(crate) fn make_room(options: &AgentOptions) -> Result<(), String> {
    // As many as the agent launches ahead.
    crate::run::make_room_for(options.slots, options.slots.clamp(8, 64), FILES_A_TASK).map(drop)
}

/// Two pipes and a copy.
const FILES_A_TASK: u64 = 3;
