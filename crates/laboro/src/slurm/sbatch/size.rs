//! How much of a worker a job takes, in slots, memory and countable things.

use crate::slurm::Fault;
use crate::slurm::options::TypedOptions;
use crate::slurm::units::memory;
use std::collections::BTreeMap;

const ONE_NODE: &str = "a job runs on one worker";

pub(super) struct Size {
    pub(super) tasks: u32,
    pub(super) cpus_per_task: u32,
    pub(super) cpus_min: u32,
    pub(super) memory_bytes: u64,
    pub(super) resources: BTreeMap<String, u32>,
}

impl Size {
    pub(super) fn read(typed: &TypedOptions) -> Result<Size, Fault> {
        let number = |option: &str| -> Result<Option<u32>, String> {
            let Some(text) = typed.value(option) else { return Ok(None) };
            let wrong = || format!("invalid number for --{option}: {text}");
            text.parse::<u32>().ok().filter(|&n| n > 0).map(Some).ok_or_else(wrong)
        };
        if let Some(nodes) = typed.value("nodes") {
            let most = nodes.rsplit('-').next().unwrap_or(nodes);
            let least = nodes.split('-').next().unwrap_or(nodes);
            if least != "1" || most.parse::<u32>().is_err() {
                return Err(Fault::from(format!("--nodes={nodes} cannot be honoured: {ONE_NODE}")));
            }
        }
        let tasks = number("ntasks")?.or(number("ntasks-per-node")?).unwrap_or(1);
        let cpus_per_task = number("cpus-per-task")?.unwrap_or(1);
        let cpus = tasks.saturating_mul(cpus_per_task);
        let mut resources = BTreeMap::new();
        let mut add = |name: &str, count: &str, times: u32| -> Result<(), String> {
            let count: u32 =
                count.parse().map_err(|_| format!("invalid number of {name}: {count}"))?;
            *resources.entry(name.to_owned()).or_insert(0) += count.saturating_mul(times);
            Ok(())
        };
        for item in typed.list("gres") {
            // `gpu`, `gpu:2`, `gpu:a100:2`; `none` is nothing.
            let parts: Vec<&str> = item.split(':').collect();
            match parts[..] {
                ["none"] => {}
                [name] => add(name, "1", 1)?,
                [name, count] if count.parse::<u32>().is_ok() => add(name, count, 1)?,
                [_, kind] | [_, kind, _] => {
                    return Err(Fault::from(format!(
                        "--gres={item} cannot be honoured: a kind ({kind}) is a tag of a worker here, use --constraint"
                    )));
                }
                _ => return Err(Fault::from(format!("invalid --gres: {item}"))),
            }
        }
        for (option, times) in [("gpus", 1), ("gpus-per-node", 1), ("gpus-per-task", tasks)] {
            if let Some(count) = typed.value(option) {
                add("gpu", count, times)?;
            }
        }
        for item in typed.list("licenses") {
            let (name, count) = item.split_once(':').unwrap_or((item, "1"));
            add(name, count, 1)?;
        }
        resources.retain(|_, count| *count > 0);
        let each = |option: &str, times: u64| -> Result<Option<u64>, String> {
            let bytes = typed.value(option).map(memory).transpose()?;
            Ok(bytes.map(|bytes| bytes.saturating_mul(times)))
        };
        let gpus = resources.get("gpu").copied().unwrap_or(0);
        let memory_bytes = each("mem", 1)?
            .or(each("mem-per-cpu", cpus.into())?)
            .or(each("mem-per-gpu", gpus.into())?);
        Ok(Size {
            tasks,
            cpus_per_task,
            cpus_min: number("mincpus")?.unwrap_or(1),
            memory_bytes: memory_bytes.unwrap_or(0),
            resources,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::OPTIONS;
    use super::*;
    use crate::slurm::options::{WordsBegin, parse};

    #[test]
    fn how_much_a_job_takes() {
        let size = |line: &str| {
            let typed = parse(&OPTIONS, WordsBegin::First, line.split(' ').map(str::to_owned));
            typed.map_err(Fault::from).and_then(|typed| Size::read(&typed))
        };
        let big = size("-n 4 -c 2 --mem-per-cpu=1G --gres=gpu:2 -L lic:3 -N 1-1")
            .unwrap_or_else(|_| panic!());
        assert_eq!((big.tasks, big.cpus_per_task, big.memory_bytes), (4, 2, 8 << 30));
        assert_eq!(big.resources, BTreeMap::from([("gpu".into(), 2), ("lic".into(), 3)]));
        for wrong in ["-N 2", "-n 0", "--gres=gpu:a100:1", "--mem=x", "--deadline now", "--colour"]
        {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
