//! Would somebody wait for itself? Among new tasks by counting, for a task that is there already by a
//! search along its successors, which is short because it mostly has none.

use crate::effect::Refusal;
use crate::id::TaskId;
use crate::ledger::State;
use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;

/// Between two nodes of a submit.
pub(super) struct Arrow {
    pub(super) pred: u32,
    pub(super) succ: u32,
}

/// A node that stands on a cycle, if one does.
pub(super) fn among(nodes: usize, arrows: &[Arrow]) -> Option<u32> {
    let mut waits = vec![0u32; nodes];
    let mut starts = vec![0u32; nodes + 1];
    for arrow in arrows {
        waits[arrow.succ as usize] += 1;
        starts[arrow.pred as usize + 1] += 1;
    }
    for at in 0..nodes {
        starts[at + 1] += starts[at];
    }
    let mut succs = vec![0u32; arrows.len()];
    let mut fill = starts.clone();
    for arrow in arrows {
        let place = &mut fill[arrow.pred as usize];
        succs[*place as usize] = arrow.succ;
        *place += 1;
    }
    let mut free: Vec<u32> = (0..nodes as u32).filter(|&node| waits[node as usize] == 0).collect();
    while let Some(node) = free.pop() {
        let (from, to) = (starts[node as usize] as usize, starts[node as usize + 1] as usize);
        for &succ in &succs[from..to] {
            waits[succ as usize] -= 1;
            if waits[succ as usize] == 0 {
                free.push(succ);
            }
        }
    }
    (0..nodes as u32).find(|&node| waits[node as usize] > 0)
}

/// A search from tasks that are there along edges that are there or planned. The budget is for all of a
/// submit, so that nobody can make the hub search for long.
pub(super) struct Search<'a> {
    state: &'a State,
    planned: HashMap<TaskId, SmallVec<[TaskId; 2]>, FixedState>,
    budget: usize,
    most: usize,
}

impl<'a> Search<'a> {
    pub(super) fn new(state: &'a State, most: usize) -> Search<'a> {
        Search { state, planned: HashMap::default(), budget: most, most }
    }

    pub(super) fn plan(&mut self, pred: TaskId, succ: TaskId) {
        self.planned.entry(pred).or_default().push(succ);
    }

    /// Does one of `preds` come after `task`? A detached one has none of its old successors.
    pub(super) fn would_close(
        &mut self,
        task: TaskId,
        preds: &[TaskId],
        detached: bool,
    ) -> Result<bool, Refusal> {
        let preds: HashSet<TaskId, FixedState> = preds.iter().copied().collect();
        let mut seen: HashSet<TaskId, FixedState> = HashSet::default();
        let mut open = vec![task];
        seen.insert(task);
        while let Some(here) = open.pop() {
            if preds.contains(&here) {
                return Ok(true);
            }
            let planned = self.planned.get(&here).into_iter().flatten().copied();
            open.extend(planned.filter(|&succ| seen.insert(succ)));
            if let Some(slot) = self.state.record_of(here)
                && !(detached && here == task)
            {
                let succs = self.state.graph().succs_of(self.state.task(slot).succs);
                let ids = succs.map(|succ| self.state.id_of(succ));
                open.extend(ids.filter(|&succ| seen.insert(succ)));
            }
            self.budget = self.budget.checked_sub(1).ok_or(Refusal::Limit {
                what: "tasks behind one that gets predecessors",
                most: self.most as u64,
            })?;
        }
        Ok(false)
    }
}
