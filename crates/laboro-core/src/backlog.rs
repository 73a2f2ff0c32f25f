//! What waits for a worker, by what it needs, and how much of it a worker could run at once. For those who start
//! workers; nothing is decided here.

use crate::command::Capacity;
use crate::id::Name;
use crate::resources::{Request, Supply};
use crate::task::Needs;
use std::sync::Arc;

/// Ready tasks that need the same of a worker. All workers that could run them are busy, or there are none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backlog {
    /// What each of them needs.
    pub needs: Arc<Needs>,
    /// How long a worker must still be there.
    pub limit_ms: Option<u64>,
    /// How many there are, up to what was asked for; one that takes several workers counts as so many.
    pub tasks: u64,
}

impl Capacity {
    /// How many tasks with these needs a worker with nothing else to do runs at once; by the way in which it runs most.
    pub fn tasks_at_once(&self, tags: &[Name], needs: &Needs) -> u64 {
        let ways = needs.ways().map(|(_, way)| self.at_once(tags, way));
        ways.max().unwrap_or(0)
    }

    fn at_once(&self, tags: &[Name], needs: &Needs) -> u64 {
        if !needs.tags.iter().all(|tag| tags.contains(tag)) {
            return 0;
        }
        let by_slots = u64::from(self.slots / needs.slots.max(1));
        let by_memory = self.memory.checked_div(needs.memory).unwrap_or(u64::MAX);
        let each = needs.resources.iter().map(|(name, wanted)| {
            let found = self.resources.iter().find(|(known, _)| known == name);
            found.map_or(0, |(_, supply)| supply.times(*wanted))
        });
        let at_once = each.fold(by_slots.min(by_memory), u64::min);
        // A worker that is kept for a task has nothing else.
        if needs.nodes > 0 { at_once.min(1) } else { at_once }
    }
}

impl Supply {
    /// How many such requests it can meet at once.
    fn times(&self, request: Request) -> u64 {
        match request {
            Request::All => u64::from(self.count > 0),
            Request::Some(amount) if amount.wholes() == 0 => {
                // Fractions of one item: none is spread over two.
                let in_one = crate::resources::Amount::PARTS / u64::from(amount.fraction()).max(1);
                self.count.saturating_mul(in_one)
            }
            Request::Some(amount) => {
                crate::resources::Amount::whole(self.count).parts() / amount.parts().max(1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::Amount;

    fn needs(slots: u32, memory: u64, gpus: Option<Request>) -> Needs {
        let resources = gpus.into_iter().map(|wanted| ("gpu".into(), wanted)).collect();
        Needs { slots, memory, resources, ..Needs::default() }
    }

    #[test]
    fn a_worker_holds_as_many_as_its_scarcest_thing_allows() {
        let resources = vec![("gpu".into(), Supply::of(3))];
        let capacity = Capacity { slots: 8, memory: 100, resources, time_left_ms: None };
        let some = |parts| Some(Request::Some(Amount::of_parts(parts)));
        let tags = ["fast".into()];
        for (needs, times) in [
            (needs(1, 0, None), 8),
            (needs(3, 0, None), 2),
            (needs(9, 0, None), 0),
            (needs(1, 30, None), 3),
            (needs(1, 0, Some(Request::whole(2))), 1),
            (needs(1, 0, Some(Request::whole(4))), 0),
            (needs(1, 0, some(4000)), 6),
            (needs(1, 0, some(15_000)), 2),
            (needs(1, 0, Some(Request::All)), 1),
            (Needs { tags: vec!["fast".into()], ..Needs::default() }, 8),
            (Needs { tags: vec!["slow".into()], ..Needs::default() }, 0),
            (Needs { nodes: 4, ..needs(2, 0, None) }, 1),
            (Needs { nodes: 4, ..needs(9, 0, None) }, 0),
            (Needs { variants: vec![needs(2, 0, None)], ..needs(9, 0, None) }, 4),
        ] {
            assert_eq!(capacity.tasks_at_once(&tags, &needs), times, "{needs:?}");
        }
    }
}
