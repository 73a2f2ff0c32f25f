//! The exact search for a cycle, along everything that comes after a task. Only for graphs in which an array stands
//! on the way: it is one node in `cycle`, but its elements may wait for different things.

use crate::id::TaskId;
use crate::ledger::Ledger;
use crate::task::State;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use smallvec::SmallVec;

/// A place on the way from a task to those that come after it. An array begins when its predecessors
/// have ended and ends when its elements have; an element alone leads to its end only.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum ExactNode {
    Task(TaskId),
    Begin(TaskId),
    End(TaskId),
}

impl ExactNode {
    /// Of a predecessor: what must have ended.
    fn ending(id: TaskId) -> ExactNode {
        if id.is_whole() { ExactNode::End(id) } else { ExactNode::Task(id) }
    }

    /// Of a successor: what may begin.
    fn beginning(id: TaskId) -> ExactNode {
        if id.is_whole() { ExactNode::Begin(id) } else { ExactNode::Task(id) }
    }
}

#[derive(Clone, Copy)]
enum Seen {
    OnTheWay,
    Over,
}

/// A search from tasks that are there along edges that are there or planned.
pub(in crate::hub) struct Search<'a> {
    ledger: &'a Ledger,
    planned: HashMap<ExactNode, SmallVec<[ExactNode; 2]>, FixedState>,
    /// With how many elements each has.
    new_arrays: Vec<(TaskId, u32)>,
}

impl<'a> Search<'a> {
    pub(in crate::hub) fn new(ledger: &'a Ledger) -> Search<'a> {
        Search { ledger, planned: HashMap::default(), new_arrays: Vec::new() }
    }

    pub(in crate::hub) fn plan(&mut self, pred: TaskId, succ: TaskId) {
        let to = ExactNode::beginning(succ);
        self.planned.entry(ExactNode::ending(pred)).or_default().push(to);
        if let Some(whole) = self.array_of(pred) {
            self.planned.entry(ExactNode::Begin(whole)).or_default().push(to);
        }
    }

    fn array_of(&self, element: TaskId) -> Option<TaskId> {
        if element.is_whole() {
            return None;
        }
        if let Some((_, array)) = self.ledger.array(element) {
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
        self.planned.entry(ExactNode::Begin(array)).or_default().push(ExactNode::End(array));
    }

    /// A new array whose elements each wait for those of another.
    pub(super) fn plan_each(&mut self, pred: TaskId, succ: TaskId) {
        self.planned.entry(ExactNode::Begin(pred)).or_default().push(ExactNode::Begin(succ));
    }

    /// One of these tasks that would wait for itself. What is there has no cycle, so one that is planned
    /// passes through a task that gets predecessors: looking after those is enough.
    pub(in crate::hub) fn cycle_after(
        &self,
        tasks: impl IntoIterator<Item = TaskId>,
    ) -> Option<TaskId> {
        let mut seen: HashMap<ExactNode, Seen, FixedState> = HashMap::default();
        let mut way: Vec<(ExactNode, Vec<ExactNode>)> = Vec::new();
        for task in tasks {
            let mut next = Some(ExactNode::beginning(task));
            loop {
                if let Some(node) = next.take() {
                    match seen.insert(node, Seen::OnTheWay) {
                        None => way.push((node, self.after(node))),
                        Some(Seen::OnTheWay) => return Some(task),
                        Some(Seen::Over) => _ = seen.insert(node, Seen::Over),
                    }
                }
                let Some((node, after)) = way.last_mut() else { break };
                next = after.pop();
                if next.is_none() {
                    seen.insert(*node, Seen::Over);
                    way.pop();
                }
            }
        }
        None
    }

    fn after(&self, here: ExactNode) -> Vec<ExactNode> {
        let mut after = Vec::new();
        self.for_each_after(here, |next| after.push(next));
        after
    }

    fn for_each_after(&self, here: ExactNode, mut visit: impl FnMut(ExactNode)) {
        self.planned.get(&here).into_iter().flatten().for_each(|&next| visit(next));
        let id = match here {
            ExactNode::Task(id) | ExactNode::Begin(id) | ExactNode::End(id) => id,
        };
        let array = self.ledger.array(id);
        match (here, array) {
            (ExactNode::Begin(whole), Some((job, array))) => {
                visit(ExactNode::End(whole));
                array.followers.iter().for_each(|&follower| visit(ExactNode::Begin(follower)));
                // Only an element with a record has successors of its own.
                let records = self.ledger.job(job).pages.range(array.first, array.last());
                records.for_each(|(index, _)| visit(ExactNode::Task(TaskId::new(id.job, index))));
                return;
            }
            (ExactNode::Task(_), Some((_, array))) => {
                let whole = TaskId::whole(id.job, array.first);
                visit(ExactNode::End(whole));
                for follower in &array.followers {
                    let index = follower.number() + (id.index - array.first);
                    visit(ExactNode::Task(TaskId::new(follower.job, index)));
                }
                // Elements of a new array are no more than its beginning here.
                let begins = self.planned.get(&ExactNode::Begin(whole)).into_iter().flatten();
                let arrays = begins.filter(|next| matches!(next, ExactNode::Begin(_)));
                arrays.for_each(|&next| visit(next));
            }
            _ => {}
        }
        // What waited for one that is done has been told, also when it starts over.
        if let Some(handle) = self.ledger.record_of(id)
            && self.ledger.task(handle).state() != Some(State::Done)
        {
            let succs = self.ledger.graph().succs_of(self.ledger.task(handle).succs);
            succs.for_each(|succ| visit(ExactNode::beginning(self.ledger.id_of(succ))));
        }
    }
}
