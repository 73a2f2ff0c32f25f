//! `laboro worker --detect`: what a worker that is started here with the same options would offer. Starts nothing and
//! asks no hub.

use super::allocation::Allocation;
use super::args::Worker;
use crate::machine::Machine;
use crate::output::{bytes, duration, print, safe};
use laboro_core::Supply;
use laboro_worker::Gpus;
use laboro_worker::agent::AgentOptions;
use serde_json::json;

pub(super) fn run(
    args: &Worker,
    options: &AgentOptions,
    allocation: Option<&Allocation>,
) -> anyhow::Result<()> {
    let machine = Machine::new(&args.with)?;
    let memory = super::source::memory(&machine, allocation);
    if args.json {
        let resources = machine.resources.iter().map(|(name, supply)| {
            let items: Vec<String> = supply.items.iter().map(ToString::to_string).collect();
            (name.clone(), json!({ "count": supply.count, "items": items }))
        });
        let left_ms = options.time_limit.map(|time| u64::try_from(time.as_millis()).ok());
        let offer = json!({
            "slots": options.slots,
            "memory_bytes": memory,
            "resources": resources.collect::<serde_json::Map<_, _>>(),
            "tags": args.with_tags,
            "time_limit_ms": left_ms,
            "batch_job": allocation.map(|allocation| allocation.job.clone()),
        });
        return Ok(print(offer)?);
    }
    let mut lines = vec![("slots", options.slots.to_string()), ("memory", bytes(memory))];
    for (name, supply) in &machine.resources {
        lines.push(("has", format!("{} {}", supply.count, safe(&described(name, supply)))));
    }
    if machine.resources.iter().all(|(name, _)| name != "gpu") {
        lines
            .push(("has", "no gpu: none found (--with gpu=N says that there are some)".to_owned()));
    }
    if !args.with_tags.is_empty() {
        lines.push(("tags", safe(&args.with_tags.join(" "))));
    }
    if let Some(limit) = options.time_limit {
        lines.push(("leaves", format!("after {}", duration(limit))));
    }
    if let Some(allocation) = allocation {
        lines.push(("from", safe(&allocation.job)));
    }
    for (what, said) in lines {
        print(format_args!("{what:<8} {said}"))?;
    }
    Ok(())
}

/// `gpu (4, 5)`, with what they are where the driver tells.
fn described(name: &str, supply: &Supply) -> String {
    let items: Vec<String> = supply.items.iter().map(ToString::to_string).collect();
    let mut words = name.to_owned();
    if !items.is_empty() {
        words += &format!(" ({})", items.join(", "));
    }
    let models = Gpus::here().filter(|_| name == "gpu").map(|gpus| &gpus.models);
    let mut models: Vec<&str> =
        models.into_iter().flatten().flatten().map(String::as_str).collect();
    models.dedup();
    match models.is_empty() {
        true => words,
        false => format!("{words}: {}", models.join(", ")),
    }
}
