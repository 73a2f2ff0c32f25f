//! Which processors tasks run on, where they are pinned: as many as they have slots, no processor of two tasks, from as few
//! NUMA nodes as can be or from as many. Read from `/sys` and from what this process may use. Setting them is the
//! guardian's business.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use laboro_core::counted;
use rustix::thread::{CpuSet, sched_getaffinity};

/// How a task's processors are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pin {
    /// From as few NUMA nodes as can be.
    Compact,
    /// From all of them in turn.
    Spread,
}

/// Processors that no task has.
#[derive(Debug)]
pub(crate) struct Cpus {
    how: Pin,
    /// Of each NUMA node.
    free: Vec<BTreeSet<u32>>,
    node_of: BTreeMap<u32, usize>,
}

impl Cpus {
    /// Those of this machine that this process may use.
    pub(crate) fn here(how: Pin, slots: u32) -> Result<Cpus, String> {
        let allowed = sched_getaffinity(None).map_err(|error| error.to_string())?;
        let allowed = (0..CpuSet::MAX_CPU as u32).filter(|&cpu| allowed.is_set(cpu as usize));
        let cpus = Cpus::read(Path::new("/sys"), allowed.collect(), how);
        let count = cpus.node_of.len();
        if count < slots as usize {
            let (are, all) = (counted(count as u64, "processor"), counted(slots, "slot"));
            return Err(format!(
                "there is room on {are} for {all}: say -j {count}, or leave out --pin-tasks"
            ));
        }
        Ok(cpus)
    }

    /// What `sys` does not tell of is one node.
    fn read(sys: &Path, allowed: BTreeSet<u32>, how: Pin) -> Cpus {
        let mut nodes: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        let entries = fs::read_dir(sys.join("devices/system/node")).into_iter().flatten();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix("node")?.parse().ok());
            let list = fs::read_to_string(entry.path().join("cpulist"));
            if let (Some(number), Ok(list)) = (number, list) {
                let own = numbers(&list).into_iter().filter(|cpu| allowed.contains(cpu));
                nodes.insert(number, own.collect());
            }
        }
        let known: BTreeSet<u32> = nodes.values().flatten().copied().collect();
        let others: BTreeSet<u32> = allowed.difference(&known).copied().collect();
        let free: Vec<BTreeSet<u32>> =
            nodes.into_values().chain([others]).filter(|node| !node.is_empty()).collect();
        let numbered = free.iter().enumerate();
        let node_of =
            numbered.flat_map(|(at, node)| node.iter().map(move |&cpu| (cpu, at))).collect();
        Cpus { how, free, node_of }
    }

    /// So many, ascending. `None`: not as many are free.
    pub(crate) fn take(&mut self, count: u32) -> Option<Vec<u32>> {
        let count = count as usize;
        if self.free.iter().map(BTreeSet::len).sum::<usize>() < count {
            return None;
        }
        let (mut taken, mut given) = (Vec::with_capacity(count), vec![0; self.free.len()]);
        while taken.len() < count {
            let left = count - taken.len();
            let node = self.next_node(left, &given);
            let batch = if self.how == Pin::Compact { left } else { 1 };
            for _ in 0..batch {
                taken.extend(self.free[node].pop_first());
            }
            given[node] += batch;
        }
        taken.sort_unstable();
        Some(taken)
    }

    /// Where the next are taken from. Compact: the fullest node that has all of them, or the emptiest one. Spread: the one
    /// that has given least to this task.
    fn next_node(&self, count: usize, given: &[usize]) -> usize {
        let sizes =
            || self.free.iter().map(BTreeSet::len).enumerate().filter(|(_, free)| *free > 0);
        let most = |&(at, free): &(usize, usize)| (std::cmp::Reverse(free), at);
        let found = match self.how {
            Pin::Spread => sizes().min_by_key(|one| (given[one.0], most(one))),
            Pin::Compact => {
                let tightest = sizes().filter(|&(_, free)| free >= count);
                tightest.min_by_key(|&(at, free)| (free, at)).or_else(|| sizes().min_by_key(most))
            }
        };
        found.map_or(0, |(at, _)| at)
    }

    pub(crate) fn give_back(&mut self, cpus: &[u32]) {
        for cpu in cpus {
            if let Some(&node) = self.node_of.get(cpu) {
                self.free[node].insert(*cpu);
            }
        }
    }
}

/// `0-3,8,10-11`
fn numbers(list: &str) -> Vec<u32> {
    let range = |part: &str| -> Option<std::ops::RangeInclusive<u32>> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse().ok()?, last.trim().parse::<u32>().ok()?);
        Some(first..=last.min(CpuSet::MAX_CPU as u32))
    };
    list.trim().split(',').filter_map(range).flatten().collect()
}

/// What a task is told of its processors: `0,1,8`.
pub(crate) fn shown(cpus: &[u32]) -> String {
    let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
    cpus.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two nodes with four processors each, of which this process may not use number 7.
    fn machine(how: Pin) -> Cpus {
        let dir = tempfile::tempdir().expect("a directory can be made");
        for (node, list) in [("node0", "0-3\n"), ("node1", "4-5,6-7\n")] {
            let node = dir.path().join("devices/system/node").join(node);
            fs::create_dir_all(&node).expect("a directory can be made");
            fs::write(node.join("cpulist"), list).expect("a file can be written");
        }
        fs::write(dir.path().join("devices/system/node/online"), "0-1").expect("a file");
        Cpus::read(dir.path(), (0..7).collect(), how)
    }

    #[test]
    fn compact_tasks_share_no_node_where_they_need_not() {
        let mut cpus = machine(Pin::Compact);
        assert_eq!(cpus.take(2), Some(vec![4, 5]), "the smaller node has room");
        assert_eq!(cpus.take(1), Some(vec![6]));
        assert_eq!(cpus.take(3), Some(vec![0, 1, 2]));
        assert_eq!(cpus.take(2), None);
        cpus.give_back(&[4, 5]);
        assert_eq!(cpus.take(3), Some(vec![3, 4, 5]), "no node has three");
    }

    #[test]
    fn spread_tasks_have_something_of_each_node() {
        let mut cpus = machine(Pin::Spread);
        assert_eq!(cpus.take(4), Some(vec![0, 1, 4, 5]));
        assert_eq!(cpus.take(3), Some(vec![2, 3, 6]));
        assert_eq!(cpus.take(1), None);
        cpus.give_back(&[0, 6]);
        assert_eq!(cpus.take(2), Some(vec![0, 6]));
    }

    #[test]
    fn without_a_word_of_nodes_there_is_one() {
        let mut cpus = Cpus::read(Path::new("/nowhere"), [3, 5].into(), Pin::Compact);
        assert_eq!(cpus.take(2), Some(vec![3, 5]));
        assert_eq!(shown(&[3, 5]), "3,5");
    }
}
