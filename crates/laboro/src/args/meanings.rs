//! Options of `laboro run` that once said what the machine has and say now what each task needs. Where a line could
//! still be meant the old way, it is refused, or answered, by both spellings. Changes nothing about what they mean.

use super::Run;
use crate::exit::usage;
use crate::machine::Machine;
use crate::output::bytes;
use laboro_plan::{Part, Plan};

/// What is worth telling about a line that means one thing only. `Err`: it could mean two.
pub(crate) fn check(args: &Run, plan: &Plan, slots: u32) -> anyhow::Result<Option<String>> {
    if let (Some(needs), None) = (args.needs.slots, args.jobs) {
        return Err(usage(format!(
            "--slots {needs} is what each task takes: say with -j how many slots there are \
             (-j {needs} for so many tasks at once, -j 8 --slots {needs} for both)"
        )));
    }
    // Other hosts have what they have.
    if !args.sshlogin.is_empty() {
        return Ok(None);
    }
    let with = |name: &str| {
        let has_name = |with: &&String| with.split('=').next() == Some(name);
        args.with.iter().any(|given| has_name(&given))
    };
    for given in &args.needs.resources {
        let name = given.split('=').next().unwrap_or(given);
        let is_found = Machine::new(&args.with)?.resources.iter().any(|(known, _)| known == name);
        if !is_found {
            return Err(usage(format!(
                "--resource {given} is what each task needs, and nothing says that this machine has {name}: \
                 --with {given} is what it has; say both (--with {name}=2 --resource {name}=1), or only --with"
            )));
        }
    }
    if let Some(tag) = args.needs.tags.iter().find(|tag| !args.with_tags.contains(tag)) {
        return Err(usage(format!(
            "--tag {tag} is what a task requires of a machine, and nothing says that this one has it: \
             --with-tag {tag} is what it has; say both, or only --with-tag"
        )));
    }
    match &args.needs.memory {
        Some(given) if !with("memory") => check_memory(given, plan, slots),
        Some(_) | None => Ok(None),
    }
}

/// Tasks that say themselves how much they need were limited together.
fn check_memory(given: &str, plan: &Plan, slots: u32) -> anyhow::Result<Option<String>> {
    let memory = |part: &Part| match part {
        Part::Task(task) => task.settings.memory_bytes,
        Part::Array(array) => array.settings.memory_bytes,
    };
    let Ok(each) = laboro_plan::parse_size(given) else { return Ok(None) };
    let own = plan.parts.iter().find(|part| memory(part).is_some_and(|own| own != each));
    if let Some(part) = own {
        return Err(usage(format!(
            "--memory {given} is what each task needs that does not say so itself, and task {} does: \
             --with memory={given} is what all of them may take together; say both, or only --with",
            part.name()
        )));
    }
    let has = Machine::new(&[])?.memory;
    let at_once = has.checked_div(each).unwrap_or(u64::MAX);
    Ok((at_once < u64::from(slots)).then(|| {
        format!(
            "laboro: --memory {given} is what each task needs: of {slots} slots {at_once} can be used \
             with {} (--with memory={given} is what all tasks may take together)",
            bytes(has)
        )
    }))
}
