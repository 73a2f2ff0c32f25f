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

/// A place on the way from a task to those that come after it. An array begins when its predecessors
/// have ended and ends when its elements have; an element alone leads to its end only.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Node {
    Task(TaskId),
    Begin(TaskId),
    End(TaskId),
}

impl Node {
    /// Of a predecessor: what must have ended.
    fn ending(id: TaskId) -> Node {
        if id.is_whole() { Node::End(id) } else { Node::Task(id) }
    }

    /// Of a successor: what may begin.
    fn beginning(id: TaskId) -> Node {
        if id.is_whole() { Node::Begin(id) } else { Node::Task(id) }
    }
}

/// A search from tasks that are there along edges that are there or planned. The budget is for all of a
/// submit, so that nobody can make the hub search for long.
pub(in crate::hub) struct Search<'a> {
    state: &'a State,
    planned: HashMap<Node, SmallVec<[Node; 2]>, FixedState>,
    /// Done and about to run again: whatever came after them has been told.
    detached: HashSet<TaskId, FixedState>,
    /// With how many elements each has.
    new_arrays: Vec<(TaskId, u32)>,
    budget: usize,
    most: usize,
}

impl<'a> Search<'a> {
    pub(in crate::hub) fn new(state: &'a State, most: usize) -> Search<'a> {
        Search {
            state,
            planned: HashMap::default(),
            detached: HashSet::default(),
            new_arrays: Vec::new(),
            budget: most,
            most,
        }
    }

    pub(in crate::hub) fn plan(&mut self, pred: TaskId, succ: TaskId) {
        let to = Node::beginning(succ);
        self.planned.entry(Node::ending(pred)).or_default().push(to);
        if let Some(whole) = self.array_of(pred) {
            self.planned.entry(Node::Begin(whole)).or_default().push(to);
        }
    }

    fn array_of(&self, element: TaskId) -> Option<TaskId> {
        if element.is_whole() {
            return None;
        }
        if let Some((_, array)) = self.state.array(element) {
            return Some(TaskId::whole(element.job, array.first));
        }
        let before = self.new_arrays.partition_point(|(first, _)| first.number() <= element.index);
        let (whole, count) = self.new_arrays[before.checked_sub(1)?];
        let inside = whole.job == element.job && element.index - whole.number() < count;
        inside.then_some(whole)
    }

    /// A new array. They all come before any `plan`, in the order of their numbers.
    pub(super) fn plan_array(&mut self, array: TaskId, count: u32) {
        self.new_arrays.push((array, count));
        self.planned.entry(Node::Begin(array)).or_default().push(Node::End(array));
    }

    /// A new array whose elements each wait for those of another.
    pub(super) fn plan_each(&mut self, pred: TaskId, succ: TaskId) {
        self.planned.entry(Node::Begin(pred)).or_default().push(Node::Begin(succ));
    }

    pub(super) fn detach(&mut self, task: TaskId) {
        self.detached.insert(task);
    }

    /// Does one of `preds` come after `task`?
    pub(in crate::hub) fn would_close(
        &mut self,
        task: TaskId,
        preds: &[TaskId],
    ) -> Result<bool, Refusal> {
        // When an array begins after the task, so do all its elements.
        let arrays = preds.iter().filter_map(|&id| self.array_of(id)).map(Node::Begin);
        let preds: HashSet<Node, FixedState> =
            preds.iter().map(|&id| Node::ending(id)).chain(arrays).collect();
        let start = Node::beginning(task);
        let mut seen: HashSet<Node, FixedState> = HashSet::default();
        let mut open = vec![start];
        seen.insert(start);
        while let Some(here) = open.pop() {
            if preds.contains(&here) {
                return Ok(true);
            }
            self.for_each_after(here, |next| {
                if seen.insert(next) {
                    open.push(next);
                }
            });
            self.budget = self.budget.checked_sub(1).ok_or(Refusal::Limit {
                what: "tasks behind one that gets predecessors",
                most: self.most as u64,
            })?;
        }
        Ok(false)
    }

    fn for_each_after(&self, here: Node, mut visit: impl FnMut(Node)) {
        self.planned.get(&here).into_iter().flatten().for_each(|&next| visit(next));
        let id = match here {
            Node::Task(id) | Node::Begin(id) | Node::End(id) => id,
        };
        let array = self.state.array(id);
        match (here, array) {
            (Node::Begin(whole), Some((job, array))) => {
                visit(Node::End(whole));
                array.followers.iter().for_each(|&follower| visit(Node::Begin(follower)));
                // Only an element with a record has successors of its own.
                let records = self.state.job(job).pages.range(array.first, array.last());
                records.for_each(|(index, _)| visit(Node::Task(TaskId::new(id.job, index))));
                return;
            }
            (Node::Task(_), Some((_, array))) => {
                let whole = TaskId::whole(id.job, array.first);
                visit(Node::End(whole));
                for follower in &array.followers {
                    let index = follower.number() + (id.index - array.first);
                    visit(Node::Task(TaskId::new(follower.job, index)));
                }
                // Elements of a new array are no more than its beginning here.
                let begins = self.planned.get(&Node::Begin(whole)).into_iter().flatten();
                let arrays = begins.filter(|next| matches!(next, Node::Begin(_)));
                arrays.for_each(|&next| visit(next));
            }
            _ => {}
        }
        if let Some(slot) = self.state.record_of(id)
            && !self.detached.contains(&id)
        {
            let succs = self.state.graph().succs_of(self.state.task(slot).succs);
            succs.for_each(|succ| visit(Node::beginning(self.state.id_of(succ))));
        }
    }
}
