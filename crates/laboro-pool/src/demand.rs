//! How many allocations would have something to do: the ready tasks that fit a pool's workers and their time, less what
//! those that are coming will take. Nothing is counted for tasks that wait for others or fit no worker of the pool.

use laboro_api::PoolSpec;
use laboro_core::{Backlog, Capacity, Name, Needs, Supply, counted};

/// What a worker of a pool is.
#[derive(Clone, Debug)]
pub struct Shape {
    capacity: Capacity,
    tags: Vec<Name>,
    /// For tasks. `None`: no end is known.
    time_ms: Option<u64>,
}

/// Parts of an allocation, as whole numbers.
const WHOLE: u64 = 1 << 32;

/// What a worker keeps for ending tasks and saying so.
const FAREWELL_MS: u64 = 10_000;

impl Shape {
    pub fn of(spec: &PoolSpec) -> Shape {
        let supply =
            |(name, count): (&String, &u64)| (Name::from(name.as_str()), Supply::of(*count));
        let capacity = Capacity {
            slots: spec.slots,
            memory: spec.memory_bytes.unwrap_or(u64::MAX),
            resources: spec.resources.iter().map(supply).collect(),
            time_left_ms: None,
        };
        let time_ms = worker_time_ms(spec).map(|time| time.saturating_sub(FAREWELL_MS));
        let tags = spec.tags.iter().map(|tag| Name::from(tag.as_str())).collect();
        Shape { capacity, tags, time_ms }
    }

    /// How many of these tasks a new worker runs at once.
    pub fn tasks_at_once(&self, tasks: &Backlog) -> u64 {
        match (tasks.limit_ms, self.time_ms) {
            (Some(limit), Some(time)) if limit > time => 0,
            _ => self.capacity.tasks_at_once(&self.tags, &tasks.needs),
        }
    }

    /// What a task needs that a worker of the pool has not, in words.
    pub fn lacks(&self, needs: &Needs, limit_ms: Option<u64>) -> Option<String> {
        let tasks = Backlog { needs: needs.clone().into(), limit_ms, tasks: 1 };
        if self.tasks_at_once(&tasks) > 0 {
            return None;
        }
        if let (Some(limit), Some(time)) = (limit_ms, self.time_ms)
            && limit > time
        {
            return Some(format!(
                "it may take {} s, and its workers have {} s",
                limit / 1000,
                time / 1000
            ));
        }
        let Capacity { slots, memory, resources, .. } = &self.capacity;
        if needs.slots > *slots {
            return Some(format!(
                "it needs {}, and its workers have {slots}",
                counted(needs.slots, "slot")
            ));
        }
        if needs.memory > *memory {
            return Some(format!(
                "it needs {} bytes of memory, and its workers have {memory}",
                needs.memory
            ));
        }
        let tag = needs.tags.iter().find(|tag| !self.tags.contains(tag));
        if let Some(tag) = tag {
            return Some(format!("it needs the tag {tag}, which its workers do not have"));
        }
        needs.resources.iter().find_map(|(name, wanted)| {
            let has =
                resources.iter().find(|(known, _)| known == name).map_or(0, |(_, has)| has.count);
            let one =
                Needs { slots: 1, resources: vec![(name.clone(), *wanted)], ..Needs::default() };
            let is_short = self.capacity.tasks_at_once(&[], &one) == 0;
            is_short.then(|| format!("it needs {wanted} {name}, and its workers have {has}"))
        })
    }

    /// Takes for one allocation what it would run, and says whether that is anything.
    fn take(&self, backlog: &mut [Backlog]) -> bool {
        let mut room = WHOLE;
        for tasks in backlog.iter_mut().filter(|tasks| tasks.tasks > 0) {
            let at_once = self.tasks_at_once(tasks);
            if at_once == 0 {
                continue;
            }
            let each = (WHOLE / at_once).max(1);
            let taken = tasks.tasks.min(room / each);
            tasks.tasks -= taken;
            room -= taken * each;
        }
        room < WHOLE
    }
}

/// How long the worker of an allocation is there, where its end is known.
pub(crate) fn worker_time_ms(spec: &PoolSpec) -> Option<u64> {
    // Of a short time most is for work.
    spec.time_limit_ms.map(|limit| limit - spec.grace_ms.min(limit / 4))
}

/// For each pool of a group, with so many allocations coming: how many more would have something to do, at most so many.
/// Pools that stand first take first.
pub fn share_out(pools: &[(Shape, u32, u32)], backlog: &[Backlog]) -> Vec<u32> {
    let mut left = backlog.to_vec();
    for (shape, coming, _) in pools {
        for _ in 0..*coming {
            if !shape.take(&mut left) {
                break;
            }
        }
    }
    let more = pools
        .iter()
        .map(|(shape, _, most)| (0..*most).take_while(|_| shape.take(&mut left)).count() as u32);
    more.collect()
}
