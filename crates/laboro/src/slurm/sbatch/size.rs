//! How much of a worker a job takes, in slots, memory and countable things.

use crate::slurm::Fault;
use crate::slurm::options::TypedOptions;
use crate::slurm::units::memory;
use std::collections::BTreeMap;

pub(super) struct Size {
    /// Whole workers. `None`: a part of one.
    pub(super) nodes: Option<u32>,
    /// On all of them.
    pub(super) tasks: u32,
    pub(super) cpus_per_task: u32,
    /// Of each worker, as the memory and the resources.
    pub(super) slots: u32,
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
        let nodes = typed.value("nodes").map(least_nodes).transpose()?.unwrap_or(1);
        let a_node = number("ntasks-per-node")?;
        let tasks = number("ntasks")?;
        let tasks = tasks.or(a_node.map(|tasks| tasks.saturating_mul(nodes))).unwrap_or(nodes);
        let tasks_a_node = tasks.div_ceil(nodes);
        let cpus_per_task = number("cpus-per-task")?.unwrap_or(1);
        let cpus = tasks_a_node.saturating_mul(cpus_per_task);
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
        if let Some(count) = typed.value("gpus") {
            let wrong = || format!("invalid number of gpu: {count}");
            let all: u32 = count.parse().map_err(|_| wrong())?;
            add("gpu", &all.div_ceil(nodes).to_string(), 1)?;
        }
        for (option, times) in [("gpus-per-node", 1), ("gpus-per-task", tasks_a_node)] {
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
            nodes: (nodes > 1).then_some(nodes),
            slots: cpus,
            tasks,
            cpus_per_task,
            cpus_min: number("mincpus")?.unwrap_or(1),
            memory_bytes: memory_bytes.unwrap_or(0),
            resources,
        })
    }
}

/// Of `2` or `2-4` the fewest: a job takes as many as it must have.
fn least_nodes(text: &str) -> Result<u32, String> {
    let wrong = || format!("invalid number for --nodes: {text}");
    let (least, most) = text.split_once('-').unwrap_or((text, text));
    let [least, most] = [least, most].map(|n| n.parse::<u32>().ok().filter(|&n| n > 0));
    let (Some(least), Some(most)) = (least, most) else { return Err(wrong()) };
    if least > most { Err(wrong()) } else { Ok(least) }
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
        let wide = size("-N 3-4 -n 7 -c 2 --gpus=4 --mem-per-cpu=1G").unwrap_or_else(|_| panic!());
        assert_eq!(
            (wide.nodes, wide.tasks, wide.slots, wide.memory_bytes),
            (Some(3), 7, 6, 6 << 30)
        );
        assert_eq!(wide.resources, BTreeMap::from([("gpu".into(), 2)]));
        let each = size("-N 2 --ntasks-per-node=4").unwrap_or_else(|_| panic!());
        assert_eq!((each.nodes, each.tasks, each.slots), (Some(2), 8, 4));
        assert_eq!(size("-N 1").unwrap_or_else(|_| panic!()).nodes, None);
        for wrong in [
            "-N 0",
            "-N 4-2",
            "-N x",
            "-n 0",
            "--gres=gpu:a100:1",
            "--mem=x",
            "--deadline now",
            "--colour",
        ] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
