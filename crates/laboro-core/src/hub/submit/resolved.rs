//! A submit whose predecessors are all known: whether any task would wait for itself, and what is to be posted.

use super::cycle::{self, Arrow, Check, Node};
use super::draft::{Draft, Fate};
use super::exact::Search;
use super::lookup::Lookup;
use crate::command::{ArraySpec, TaskSpec, UnknownPred};
use crate::event::Added;
use crate::hub::Hub;
use crate::id::TaskId;
use crate::refusal::Refusal;
use crate::task::{NewTask, Profile};
use smallvec::SmallVec;
use std::sync::Arc;

pub(super) struct Resolved {
    draft: Draft,
    array_preds: Vec<(Vec<TaskId>, Vec<TaskId>)>,
    task_preds: Vec<SmallVec<[TaskId; 2]>>,
}

/// What is to be posted.
pub(super) struct Drafted {
    /// As they are to be posted.
    pub(super) steps: Vec<Step>,
    /// After them.
    pub(super) merged: Vec<(TaskId, Vec<TaskId>)>,
    known: u32,
}

pub(super) enum Step {
    Added(Added),
    Renewed(Renewed),
}

/// A finished task that starts over.
pub(super) struct Renewed {
    pub(super) task: TaskId,
    pub(super) memo: Option<Arc<[u8]>>,
}

impl Drafted {
    pub(super) fn adds_something(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Added(_)))
    }

    /// How many of the submit's tasks are no new ones.
    pub(super) fn taken(&self) -> u32 {
        self.known
    }
}

impl Draft {
    /// Resolves every predecessor. Cycles among new tasks alone are refused here.
    pub(super) fn resolve(self, hub: &Hub) -> Result<Resolved, Refusal> {
        let look = Lookup { draft: &self, hub };
        let mut arrows = Vec::new();
        let mut edges = 0;
        let mut array_preds = Vec::with_capacity(self.arrays.len());
        for (node, array) in self.arrays.iter().enumerate() {
            let preds: Vec<TaskId> = look.preds(node, &array.preds, &mut arrows)?;
            let each: Vec<TaskId> = look.preds(node, &array.each, &mut arrows)?;
            for (&pred, named) in each.iter().zip(&array.each) {
                look.check_same_count(array, pred, named)?;
            }
            edges += preds.len();
            array_preds.push((preds, each));
        }
        let mut task_preds: Vec<SmallVec<[TaskId; 2]>> = Vec::with_capacity(self.tasks.len());
        for (at, task) in self.tasks.iter().enumerate() {
            let node = self.arrays.len() + at;
            let mut preds: SmallVec<[TaskId; 2]> = look.preds(node, &task.preds, &mut arrows)?;
            match self.fate[node] {
                // It is left as it is.
                Fate::Known => preds.clear(),
                Fate::Merged => look.keep_news(node, &mut preds),
                Fate::New | Fate::Renewed | Fate::Again(_) | Fate::Twin(_) => {}
            }
            edges += preds.len();
            task_preds.push(preds);
        }
        let limits = &hub.config.limits;
        if hub.ledger().graph().len() + edges > limits.edges {
            return Err(Refusal::Limit { what: "dependencies", most: limits.edges as u64 });
        }
        self.check_new(&arrows)?;
        Ok(Resolved { draft: self, array_preds, task_preds })
    }

    /// A task that names only those before it cannot close a cycle among new tasks, and those that are done
    /// and start over: nothing else comes after either.
    fn check_new(&self, arrows: &[Arrow]) -> Result<(), Refusal> {
        if arrows.iter().any(|arrow| arrow.pred >= arrow.succ)
            && let Some(node) = cycle::among(self.ids.len(), arrows)
        {
            return Err(Refusal::Cycle(self.name(node as usize).clone()));
        }
        Ok(())
    }
}

impl Resolved {
    /// Tasks that are there, are not done, and get predecessors: only these can close a cycle.
    fn merged<'a>(&'a self, hub: &'a Hub) -> impl Iterator<Item = (TaskId, &'a [TaskId])> {
        let (draft, base) = (&self.draft, self.draft.arrays.len());
        let look = Lookup { draft, hub };
        (self.task_preds.iter().enumerate())
            .filter(|(_, preds)| !preds.is_empty())
            .map(move |(at, preds)| (base + at, &preds[..]))
            .filter(move |&(node, _)| match draft.fate[node] {
                Fate::Merged => true,
                Fate::Renewed | Fate::Again(_) => !look.is_done(draft.ids[node]),
                Fate::New | Fate::Known | Fate::Twin(_) => false,
            })
            .map(move |(node, preds)| (draft.ids[node], preds))
    }

    /// A check by levels, if one is needed.
    pub(super) fn check(&self, hub: &Hub) -> Option<Check> {
        self.merged(hub).next()?;
        let news = NewNodes::of(&self.draft);
        let ledger = hub.ledger();
        let node = |id: TaskId| match news.find(id) {
            Some(new) => Some(Node::New(new)),
            None => ledger.node(id).map(Node::There),
        };
        let all = (self.array_preds.iter().map(|(preds, each)| (&preds[..], &each[..])))
            .chain(self.task_preds.iter().map(|preds| (&preds[..], &[][..])));
        let (mut to_new, mut edges) = (Vec::new(), Vec::new());
        for (&id, (preds, each)) in self.draft.ids.iter().zip(all) {
            let Some(succ) = node(id) else { continue };
            let preds = preds.iter().chain(each).filter_map(|&pred| node(pred));
            match succ {
                Node::New(_) => to_new.extend(preds.map(|pred| (pred, succ))),
                Node::There(_) => edges.extend(preds.map(|pred| (pred, succ))),
            }
        }
        Some(Check::new(ledger, self.draft.ids.len(), to_new, edges))
    }

    pub(super) fn check_exactly(&self, hub: &Hub) -> Result<(), Refusal> {
        let mut search = Search::new(hub.ledger());
        let ids = &self.draft.ids;
        for (&id, array) in ids.iter().zip(&self.draft.arrays) {
            search.plan_array(id, array.count);
        }
        for (&array, (preds, each)) in ids.iter().zip(&self.array_preds) {
            preds.iter().for_each(|&pred| search.plan(pred, array));
            each.iter().for_each(|&pred| search.plan_each(pred, array));
        }
        for (&id, preds) in ids[self.draft.arrays.len()..].iter().zip(&self.task_preds) {
            preds.iter().for_each(|&pred| search.plan(pred, id));
        }
        match search.cycle_after(self.merged(hub).map(|(task, _)| task)) {
            Some(task) => Err(Refusal::Cycle(hub.ledger().shown_name(task))),
            None => Ok(()),
        }
    }

    /// The specs as they came, for a submit that is tried again.
    pub(super) fn into_specs(self) -> (Vec<TaskSpec>, Vec<ArraySpec>) {
        (self.draft.tasks, self.draft.arrays)
    }

    pub(super) fn place(self, profiles: Vec<Profile>) -> Drafted {
        let Resolved { draft, array_preds, task_preds } = self;
        let Draft { tasks, arrays, ids, fate, renewed, unknown_pred, job_first, .. } = draft;
        let array_count = arrays.len();
        let job = job_first.job;
        let nothing = |profiles| Added { job, profiles, arrays: Vec::new(), tasks: Vec::new() };
        let mut added = nothing(profiles);
        for (array, (preds, each)) in arrays.into_iter().zip(array_preds) {
            added.arrays.push(array.placed(preds, each));
        }
        // Those that start over stand where they are named, so what is new comes in pieces. Otherwise they
        // come first: anybody may have named them.
        let in_pieces = unknown_pred == UnknownPred::InOrder && !renewed.is_empty();
        let mut drafted = Drafted { steps: Vec::new(), merged: Vec::new(), known: 0 };
        let base = array_count as u32;
        // Where the new tasks stand, for those that merge into one.
        let mut places: Vec<u32> = Vec::new();
        let merges = fate.iter().any(|fate| matches!(fate, Fate::Twin(_)));
        for (at, (task, preds)) in tasks.into_iter().zip(task_preds).enumerate() {
            let node = array_count + at;
            if merges {
                places.push(added.tasks.len() as u32);
            }
            match fate[node] {
                Fate::New => {
                    let TaskSpec { name, profile, work, memo, .. } = task;
                    added.tasks.push(NewTask { name, profile, work, preds, memo });
                    continue;
                }
                Fate::Twin(other) if !in_pieces => {
                    let place = places[(other - base) as usize] as usize;
                    added.tasks[place].preds.extend(preds);
                }
                other => {
                    let id = ids[node];
                    if other == Fate::Renewed {
                        if in_pieces && !(added.tasks.is_empty() && added.arrays.is_empty()) {
                            let next = nothing(added.profiles.clone());
                            drafted.steps.push(Step::Added(std::mem::replace(&mut added, next)));
                        }
                        drafted.steps.push(Step::Renewed(Renewed { task: id, memo: task.memo }));
                    }
                    if !preds.is_empty() {
                        drafted.merged.push((id, preds.to_vec()));
                    }
                }
            }
            drafted.known += 1;
        }
        if !(added.tasks.is_empty() && added.arrays.is_empty()) {
            drafted.steps.push(Step::Added(added));
        }
        drafted
    }
}

/// The new ones among the nodes of a draft, by their numbers.
struct NewNodes {
    job_first: TaskId,
    /// First number and node, ascending: an array has one entry for all its elements.
    starts: Vec<(u32, u32)>,
}

impl NewNodes {
    fn of(draft: &Draft) -> NewNodes {
        let is_new = |node: &usize| draft.fate[*node] == Fate::New;
        let starts = (0..draft.ids.len()).filter(is_new);
        let starts = starts.map(|node| (draft.ids[node].number(), node as u32)).collect();
        NewNodes { job_first: draft.job_first, starts }
    }

    fn find(&self, id: TaskId) -> Option<u32> {
        if id.job != self.job_first.job || id.number() < self.job_first.index {
            return None;
        }
        let before = self.starts.partition_point(|(first, _)| *first <= id.number());
        Some(self.starts[before.checked_sub(1)?].1)
    }
}
