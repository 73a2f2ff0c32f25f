//! What a machine has, as people say it: `--with gpu=4,5`, `--with licences=200`, `--with memory=64G`. GPUs keep the
//! numbers that they have here: where only some are visible to this program, those are given to tasks and no others.
//! What tasks need is said with other options.

use crate::exit::usage;
use laboro_core::{Name, Supply};
use laboro_plan::parse_size;
use laboro_worker::{GPU_VARIABLES, Gpus, memory_total};

/// What all tasks of a machine share.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    pub(crate) resources: Vec<(String, Supply)>,
    /// In bytes: what tasks may take together.
    pub(crate) memory: u64,
}

const COUNT_MAX: u64 = 1_000_000_000_000;

impl Machine {
    /// The values of `--with`.
    pub(crate) fn new(with: &[String]) -> anyhow::Result<Machine> {
        Machine::visible(with, |name| std::env::var(name).ok(), Gpus::here())
    }

    fn visible(
        with: &[String],
        variable: impl Fn(&str) -> Option<String>,
        found: Option<&Gpus>,
    ) -> anyhow::Result<Machine> {
        let mut has_no_gpus = false;
        let mut machine = Machine { resources: Vec::new(), memory: memory_total() };
        for text in with {
            let wrong = |why: &str| usage(format!("--with {text}: {why}"));
            let (name, value) = text.split_once('=').ok_or_else(|| wrong(SPELLINGS))?;
            if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c.is_control()) {
                return Err(wrong(SPELLINGS));
            }
            if name == "memory" {
                machine.memory = parse_size(value).map_err(|error| wrong(&error.to_string()))?;
                continue;
            }
            if machine.resources.iter().any(|(known, _)| known == name) {
                return Err(wrong("it is given twice"));
            }
            if name == "gpu" && value == "0" {
                has_no_gpus = true;
                continue;
            }
            let mut supply = supply(value).map_err(wrong)?;
            if name == "gpu" && supply.items.is_empty() {
                supply = visible_gpus(supply, &variable).map_err(|why| wrong(&why))?;
            }
            machine.resources.push((name.to_owned(), supply));
        }
        let is_said = has_no_gpus || machine.resources.iter().any(|(name, _)| name == "gpu");
        if let Some(gpus) = found.filter(|_| !is_said) {
            machine.resources.extend(found_gpus(gpus, &variable).map(|gpus| ("gpu".into(), gpus)));
        }
        Ok(machine)
    }

    /// What the items of each resource are called, for those who are told by their places.
    pub(crate) fn items(&self) -> Vec<(String, Vec<String>)> {
        let named = self.resources.iter().filter(|(_, supply)| !supply.items.is_empty());
        named
            .map(|(name, supply)| {
                (name.clone(), supply.items.iter().map(ToString::to_string).collect())
            })
            .collect()
    }
}

const SPELLINGS: &str =
    "write gpu=2 (so many), gpu=4,5 or gpu=[4] (these), gpu=0 (none), or memory=64G";

fn supply(value: &str) -> Result<Supply, &'static str> {
    let list = value.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if list.is_none() && !value.contains(',') {
        let count = value.parse().ok().filter(|count| (1..=COUNT_MAX).contains(count));
        return count.map(Supply::of).ok_or(SPELLINGS);
    }
    items(list.unwrap_or(value))
}

fn items(list: &str) -> Result<Supply, &'static str> {
    let items: Vec<&str> = list.split(',').map(str::trim).collect();
    let is_name = |item: &&str| {
        !item.is_empty() && !item.contains(|c: char| c.is_whitespace() || c.is_control())
    };
    if !items.iter().all(is_name) {
        return Err(SPELLINGS);
    }
    if (1..items.len()).any(|at| items[..at].contains(&items[at])) {
        return Err("one of them is given twice");
    }
    if items.len() as u64 > Supply::ITEMS_MAX {
        return Err("at most 128 can have names; for more, give their number");
    }
    let names: Vec<Name> = items.into_iter().map(Name::from).collect();
    Ok(Supply { count: names.len() as u64, items: names })
}

/// So many of those that this program may use, where that is said.
fn visible_gpus(
    supply: Supply,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<Supply, String> {
    let said = GPU_VARIABLES.iter().find_map(|name| Some((*name, variable(name)?)));
    let Some((name, list)) = said else { return Ok(supply) };
    let visible = match list.trim() {
        "" => Vec::new(),
        list => items(list).map_err(|why| format!("{name}={list}: {why}"))?.items,
    };
    if (visible.len() as u64) < supply.count {
        return Err(format!("{name}={list} shows only {} here", visible.len()));
    }
    let items: Vec<Name> = visible.into_iter().take(supply.count as usize).collect();
    Ok(Supply { items, ..supply })
}

/// Those with a driver here, as far as this program may use them.
fn found_gpus(gpus: &Gpus, variable: &impl Fn(&str) -> Option<String>) -> Option<Supply> {
    let found = match variable(gpus.vendor.variable()) {
        None => Supply::of(gpus.models.len() as u64),
        // Nothing, or what hides them all.
        Some(list) => {
            items(list.trim()).ok().filter(|supply| supply.items[0] != Name::from("-1"))?
        }
    };
    (found.count > 0).then_some(found)
}

/// An option that said what a machine has and says what a task needs now.
pub(crate) fn refuse_old(option: &str, given: &str, has: &str) -> anyhow::Error {
    usage(format!(
        "--{option} {given}: what a task needs is said in the job or with laboro submit --{option}; \
         what this machine has with {has}"
    ))
}

#[cfg(test)]
mod tests;
