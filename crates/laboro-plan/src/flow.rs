//! `flow.toml`: a job as a graph of tasks. `[job]` says what holds for all, `[defaults]` what tasks leave open,
//! and each `[[task]]` is a task or, with `foreach` or `matrix`, an array. The keys of a task are `decode`'s affair.

use std::path::Path;

use toml::de::DeTable;

use crate::decode::Decoder;
use crate::mistake::{Mistake, Mistakes, Source};
use crate::node::{Node, Value};
use crate::plan::{Job, Plan};
use crate::settings::Settings;

/// A flow is written by hand; what is larger wants `tasks.jsonl`, which is read as a stream.
pub const FLOW_BYTES_MAX: u64 = 16 << 20;

/// Reads a flow. `name` is for messages, and list files are looked for below `base`.
pub fn parse_flow(name: &str, text: &str, base: &Path) -> Result<Plan, Mistakes> {
    let source = Source::new(name, text);
    let (document, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let list = errors.iter().map(|error| {
            let at = error.span().map(|span| source.position(span)).unwrap_or_default();
            Mistake::new(at, error.message().to_owned())
        });
        return Err(source.mistakes(list.collect()));
    }
    let mut decoder = Decoder::new(base);
    let plan = plan(&mut decoder, name, &Node::from_toml(&source, &document));
    let related = plan.mistakes_beside(&decoder.broken);
    decoder.mistakes.extend(related);
    if decoder.mistakes.is_empty() { Ok(plan) } else { Err(source.mistakes(decoder.mistakes)) }
}

fn plan(decoder: &mut Decoder<'_>, name: &str, document: &Node) -> Plan {
    let (mut job, mut defaults, mut tasks) = (Job::default(), Settings::default(), Vec::new());
    for (key, node) in decoder.table("the flow", document) {
        match (key.text.as_str(), &node.value) {
            ("job", _) => job = decoder.job(node),
            ("defaults", _) => defaults = decoder.defaults(node),
            ("task", Value::List(items)) => tasks.extend(items),
            ("task", _) => {
                let message = "tasks are written `[[task]]`, with two brackets and a `name`";
                decoder.note(key.at, message);
            }
            _ => decoder.unknown_key(key, ["job", "defaults", "task"]),
        }
    }
    if tasks.is_empty() && decoder.mistakes.is_empty() {
        decoder.mistakes.push(Mistake::new(document.at, "the flow has no `[[task]]`"));
    }
    let mut plan = Plan { job, ..Plan::new(name) };
    plan.parts = tasks.iter().filter_map(|node| decoder.task(node, &defaults)).collect();
    plan.resolve();
    plan
}
