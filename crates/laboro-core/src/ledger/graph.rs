//! Which task comes after which: edges in two rings each, of its predecessor and of its successor,
//! in the order they were made. An edge stays until both its ends are forgotten, so that a finished
//! graph can still be drawn.

use super::handle::{EdgeHandle, TaskHandle};
use super::record::Record;
use super::slab::Slab;

#[derive(Debug, Default)]
pub(crate) struct Graph {
    edges: Slab<EdgeHandle, Edge>,
}

#[derive(Debug, Clone, Copy)]
struct Edge {
    pred: TaskHandle,
    succ: TaskHandle,
    next_of_pred: EdgeHandle,
    next_of_succ: EdgeHandle,
}

const VACANT: Edge = Edge {
    pred: TaskHandle::NONE,
    succ: TaskHandle::NONE,
    next_of_pred: EdgeHandle::NONE,
    next_of_succ: EdgeHandle::NONE,
};

#[derive(Clone, Copy)]
enum Side {
    Succs,
    Preds,
}

impl Graph {
    pub(crate) fn len(&self) -> usize {
        self.edges.len()
    }

    pub(crate) fn link(
        &mut self,
        tasks: &mut Slab<TaskHandle, Record>,
        pred: TaskHandle,
        succ: TaskHandle,
    ) {
        let edge = self.edges.insert(Edge { pred, succ, ..VACANT });
        let tail = std::mem::replace(&mut tasks[pred].succs, edge);
        let first = if tail == EdgeHandle::NONE { edge } else { self.edges[tail].next_of_pred };
        self.edges[edge].next_of_pred = first;
        if tail != EdgeHandle::NONE {
            self.edges[tail].next_of_pred = edge;
        }
        let tail = std::mem::replace(&mut tasks[succ].preds, edge);
        let first = if tail == EdgeHandle::NONE { edge } else { self.edges[tail].next_of_succ };
        self.edges[edge].next_of_succ = first;
        if tail != EdgeHandle::NONE {
            self.edges[tail].next_of_succ = edge;
        }
    }

    /// Walks a ring by hand, so that the caller may change tasks meanwhile.
    pub(crate) fn succs_of(&self, tail: EdgeHandle) -> Ring<'_> {
        Ring::new(self, tail, Side::Succs)
    }

    pub(crate) fn preds_of(&self, tail: EdgeHandle) -> Ring<'_> {
        Ring::new(self, tail, Side::Preds)
    }

    /// First edge of a ring of successors.
    pub(crate) fn first_succ(&self, tail: EdgeHandle) -> Option<EdgeHandle> {
        (tail != EdgeHandle::NONE).then(|| self.edges[tail].next_of_pred)
    }

    /// The successor at this edge and the edge after it, until `tail` was given.
    pub(crate) fn step_succ(
        &self,
        edge: EdgeHandle,
        tail: EdgeHandle,
    ) -> (TaskHandle, Option<EdgeHandle>) {
        let here = self.edges[edge];
        (here.succ, (edge != tail).then_some(here.next_of_pred))
    }

    /// The task has no successors and no predecessors any more.
    pub(crate) fn detach(&mut self, tasks: &mut Slab<TaskHandle, Record>, handle: TaskHandle) {
        let tail = std::mem::replace(&mut tasks[handle].succs, EdgeHandle::NONE);
        self.loosen(tail, Side::Succs);
        self.detach_preds(tasks, handle);
    }

    pub(crate) fn detach_preds(
        &mut self,
        tasks: &mut Slab<TaskHandle, Record>,
        handle: TaskHandle,
    ) {
        let tail = std::mem::replace(&mut tasks[handle].preds, EdgeHandle::NONE);
        self.loosen(tail, Side::Preds);
    }

    fn loosen(&mut self, tail: EdgeHandle, side: Side) {
        if tail == EdgeHandle::NONE {
            return;
        }
        let mut edge = self.next(tail, side);
        loop {
            let next = self.next(edge, side);
            let here = &mut self.edges[edge];
            match side {
                Side::Succs => here.pred = TaskHandle::NONE,
                Side::Preds => here.succ = TaskHandle::NONE,
            }
            if here.pred == TaskHandle::NONE && here.succ == TaskHandle::NONE {
                self.edges.release(edge, VACANT);
            }
            if edge == tail {
                return;
            }
            edge = next;
        }
    }

    fn next(&self, edge: EdgeHandle, side: Side) -> EdgeHandle {
        match side {
            Side::Succs => self.edges[edge].next_of_pred,
            Side::Preds => self.edges[edge].next_of_succ,
        }
    }
}

/// The handles at the other ends of a task's edges, without those that are forgotten.
pub(crate) struct Ring<'a> {
    graph: &'a Graph,
    tail: EdgeHandle,
    next: Option<EdgeHandle>,
    side: Side,
}

impl<'a> Ring<'a> {
    fn new(graph: &'a Graph, tail: EdgeHandle, side: Side) -> Ring<'a> {
        let next = (tail != EdgeHandle::NONE).then(|| graph.next(tail, side));
        Ring { graph, tail, next, side }
    }
}

impl Iterator for Ring<'_> {
    type Item = TaskHandle;

    #[inline]
    fn next(&mut self) -> Option<TaskHandle> {
        loop {
            let edge = self.next?;
            self.next = (edge != self.tail).then(|| self.graph.next(edge, self.side));
            let here = self.graph.edges[edge];
            let other = match self.side {
                Side::Succs => here.succ,
                Side::Preds => here.pred,
            };
            if other != TaskHandle::NONE {
                return Some(other);
            }
        }
    }
}
