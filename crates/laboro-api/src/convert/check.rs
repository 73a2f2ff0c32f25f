//! What is wrong with a task whatever the hub knows: numbers out of their range, names with spaces, zero bytes, and
//! defaults of what only a task can have. Reads nothing but the request.

use super::BadTask;
use crate::submit::TaskSpec;
use crate::text::Text;
use laboro_core::NODES_MAX;

/// What could never run, or never count.
pub(super) fn check_settings(spec: &TaskSpec, task: &Text) -> Result<(), BadTask> {
    let bad =
        |field, value: i64, why| Err(BadTask::BadNumber { task: task.clone(), field, value, why });
    if spec.slots == Some(0) {
        return bad("slots", 0, "a task takes at least one");
    }
    if let Some(nodes) = spec.nodes.filter(|nodes| !(1..=NODES_MAX).contains(nodes)) {
        return bad("nodes", nodes.into(), "a task takes 1 to 4096 whole workers");
    }
    if let (Some(nodes), true) = (spec.nodes, spec.call.is_some()) {
        return bad("nodes", nodes.into(), "a call goes to a runner on one worker");
    }
    if let (Some(nodes), false) = (spec.nodes, spec.variants.is_empty()) {
        return bad("nodes", nodes.into(), "a task that takes whole workers has no variants");
    }
    if spec.attempts == Some(0) {
        return bad("attempts", 0, "a task has at least one");
    }
    if spec.variants.iter().any(|variant| variant.slots == Some(0)) {
        return bad("slots", 0, "a task takes at least one");
    }
    if spec.timeout_ms == Some(0) {
        return bad("timeout_ms", 0, "the task could never run");
    }
    if let Some(nice) = spec.nice.filter(|nice| !(-20..=19).contains(nice)) {
        return bad("nice", nice.into(), "it goes from -20 to 19");
    }
    if let Some(code) = spec.retry_on.iter().find(|code| !(0..=255).contains(*code)) {
        return bad("retry_on", i64::from(*code), "exit codes go from 0 to 255");
    }
    let is_label =
        |name: &str| !name.is_empty() && !name.chars().any(|c| c.is_whitespace() || c.is_control());
    let variants = || spec.variants.iter();
    let resources = spec.resources.keys().chain(variants().flat_map(|one| one.resources.keys()));
    let resources = resources.map(|name| ("resources", name.clone()));
    let tags = spec.tags.iter().chain(variants().flat_map(|one| &one.tags));
    let tags = tags.map(|tag| ("tags", tag.to_string()));
    match resources.chain(tags).find(|(_, name)| !is_label(name)) {
        None => Ok(()),
        Some((field, name)) => Err(BadTask::BadLabel { task: task.clone(), field, name }),
    }
}

pub(super) fn check_zero(bytes: &[u8], task: &Text, field: &'static str) -> Result<(), BadTask> {
    if bytes.contains(&0) {
        return Err(BadTask::ZeroByte { task: task.clone(), field });
    }
    Ok(())
}

/// Only settings can be left open.
pub(super) fn check_defaults(defaults: &TaskSpec) -> Result<(), BadTask> {
    let of_a_task = [
        ("name", defaults.name.is_some()),
        ("command", defaults.command.is_some()),
        ("script", defaults.script.is_some()),
        ("call", defaults.call.is_some()),
        ("count", defaults.count.is_some()),
        ("range", defaults.range.is_some()),
        ("values", defaults.values.is_some()),
        ("after", !defaults.after.is_empty()),
        ("each", !defaults.each.is_empty()),
    ];
    match of_a_task.into_iter().find(|(_, given)| *given) {
        Some((field, _)) => Err(BadTask::NotADefault(field)),
        None => Ok(()),
    }
}
