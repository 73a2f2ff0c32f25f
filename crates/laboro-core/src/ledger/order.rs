//! Levels: nothing has a higher level than what comes after it, so most new edges are seen to close no cycle
//! without a look at the graph. Levels are derived and never journaled: any that keep the rule will do, and after
//! a restart all are 0. An array is one node here, its gate, so a cycle of nodes is one of tasks only where no
//! array stands on it. What is done holds nothing up: its edges
//! mean nothing any more. Looking for a cycle is not done here.

use super::graph::Ring;
use super::handle::TaskHandle;
use super::jobs::Array;
use super::reading::Ledger;
use super::record::Record;
use crate::id::TaskId;
use crate::task::State;
use std::ops::ControlFlow;

/// By the handle of the record. Most hubs never need any.
#[derive(Debug, Default)]
pub(in crate::ledger) struct Levels(Vec<u32>);

impl Levels {
    /// A record begins here; another one may have been here before.
    pub(in crate::ledger) fn begin(&mut self, handle: TaskHandle) {
        if let Some(level) = self.0.get_mut(handle.at()) {
            *level = 0;
        }
    }

    fn set(&mut self, handle: TaskHandle, level: u32) {
        let at = handle.at();
        if at >= self.0.len() {
            if level == 0 {
                return;
            }
            self.0.resize(at + 1, 0);
        }
        self.0[at] = level;
    }
}

impl Ledger {
    pub(crate) fn level(&self, node: TaskHandle) -> u32 {
        self.levels.0.get(node.at()).copied().unwrap_or(0)
    }

    pub(in crate::ledger) fn set_level(&mut self, node: TaskHandle, level: u32) {
        self.levels.set(node, level);
    }

    pub(in crate::ledger) fn insert_record(&mut self, record: Record) -> TaskHandle {
        let handle = self.tasks.insert(record);
        self.levels.begin(handle);
        handle
    }

    /// The node of a task or an array that is there; an element of an array belongs to its gate.
    pub(crate) fn node(&self, id: TaskId) -> Option<TaskHandle> {
        match self.array(id) {
            Some((_, array)) => Some(array.gate),
            None => self.record_of(id),
        }
    }

    pub(crate) fn node_of(&self, handle: TaskHandle) -> TaskHandle {
        if !self.has_arrays {
            return handle;
        }
        let record = &self.tasks[handle];
        let job = self.job(record.job);
        job.array_at(record.index).map_or(handle, |at| job.arrays[at].gate)
    }

    /// Visits what comes right after a node, some perhaps more than once, also what is done.
    pub(crate) fn nodes_after(
        &self,
        node: TaskHandle,
        visit: impl FnMut(TaskHandle) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let succs = |record: &Record| self.graph.succs_of(record.succs);
        self.neighbours(node, succs, |array| &array.followers, visit)
    }

    /// The same for what a node waits for.
    pub(crate) fn nodes_before(
        &self,
        node: TaskHandle,
        visit: impl FnMut(TaskHandle) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let preds = |record: &Record| self.graph.preds_of(record.preds);
        self.neighbours(node, preds, |array| &array.each, visit)
    }

    fn neighbours<'a>(
        &'a self,
        node: TaskHandle,
        ring: impl Fn(&Record) -> Ring<'a>,
        arrays: impl Fn(&Array) -> &Vec<TaskId>,
        mut visit: impl FnMut(TaskHandle) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.each_record(node, |record| {
            let others = ring(record).map(|other| self.node_of(other));
            others.filter(|&other| other != node).try_for_each(&mut visit)
        })?;
        if self.tasks[node].is_gate() {
            let (job, at) = self.array_of(node);
            let others = arrays(&self.job(job).arrays[at]).iter();
            others.filter_map(|&id| self.record_of(id)).try_for_each(visit)?;
        }
        ControlFlow::Continue(())
    }

    /// The records whose edges are the node's: of an array also those of its elements.
    fn each_record(
        &self,
        node: TaskHandle,
        mut visit: impl FnMut(&Record) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let record = &self.tasks[node];
        if !record.is_gate() {
            return if self.is_done_node(node) { ControlFlow::Continue(()) } else { visit(record) };
        }
        visit(record)?;
        let (job, at) = self.array_of(node);
        let (job, array) = (self.job(job), &self.job(job).arrays[at]);
        job.pages
            .range(array.first, array.last())
            .try_for_each(|(_, handle)| visit(&self.tasks[handle]))
    }

    pub(crate) fn is_array_node(&self, node: TaskHandle) -> bool {
        self.has_arrays && self.tasks[node].is_gate()
    }

    pub(crate) fn is_done_node(&self, node: TaskHandle) -> bool {
        self.tasks[node].state() == Some(State::Done)
    }

    /// Something comes before the node that is not done.
    pub(crate) fn waits_for_something(&self, node: TaskHandle) -> bool {
        let record = &self.tasks[node];
        if record.is_gate() {
            return self.nodes_before(node, |_| ControlFlow::Break(())).is_break();
        }
        record.waiting > 0 || record.failed > 0
    }

    /// After an edge was made. Costs nothing where levels have not been needed.
    pub(in crate::ledger) fn keep_order(&mut self, pred: TaskHandle, succ: TaskHandle) {
        if self.levels.0.is_empty() {
            return;
        }
        let (pred, succ) = (self.node_of(pred), self.node_of(succ));
        let level = self.level(pred);
        if level > self.level(succ) {
            self.set_level(succ, level);
            self.raise_after(vec![succ], level);
        }
    }

    /// Raises what comes after these nodes, which have that level already.
    fn raise_after(&mut self, mut open: Vec<TaskHandle>, level: u32) {
        let mut lower = Vec::new();
        while let Some(node) = open.pop() {
            let _ = self.nodes_after(node, |after| {
                if self.level(after) < level && !self.is_done_node(after) {
                    lower.push(after);
                }
                ControlFlow::Continue(())
            });
            for after in lower.drain(..) {
                if self.level(after) < level {
                    self.set_level(after, level);
                    open.push(after);
                }
            }
        }
    }
}
