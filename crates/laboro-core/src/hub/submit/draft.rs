//! A submit being checked: who is new, who is there already, who comes after whom. Changes nothing.

use super::check_name;
use crate::command::{ArraySpec, IfTaken, Submit, TaskSpec, UnknownPred};
use crate::hub::Hub;
use crate::id::{GroupId, Name, TaskId};
use crate::ledger::{NameScope, TaskHandle};
use crate::refusal::Refusal;
use crate::task::State;
use foldhash::fast::FixedState;
use hashbrown::hash_map::Entry;
use hashbrown::{HashMap, HashTable};

/// Arrays come first, then tasks: a node is a position in that row.
pub(super) struct Draft {
    pub(super) group: Option<GroupId>,
    /// Where its names must be new. `None`: nothing is there yet.
    pub(super) scope: Option<NameScope>,
    pub(super) tasks: Vec<TaskSpec>,
    pub(super) arrays: Vec<ArraySpec>,
    /// For each node the id that it gets or has.
    pub(super) ids: Vec<TaskId>,
    pub(super) fate: Vec<Fate>,
    /// Nodes by name, when there is more than one.
    pub(super) names: HashTable<u32>,
    /// Nodes that start a finished task over, by its id.
    pub(super) renewed: HashMap<TaskId, u32, FixedState>,
    pub(super) unknown_pred: UnknownPred,
    pub(super) job_first: TaskId,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    New,
    /// The same task is there.
    Known,
    /// It is there and gets more predecessors.
    Merged,
    /// It is there, finished, and runs again.
    Renewed,
    /// The same, and another node of this submit starts it over.
    Again(u32),
    /// Another node of this submit has its name and takes its predecessors.
    Twin(u32),
}

impl Draft {
    pub(super) fn new(
        hub: &Hub,
        group: Option<GroupId>,
        scope: Option<NameScope>,
        job_first: TaskId,
        submit: &mut Submit,
    ) -> Result<Draft, Refusal> {
        let Submit { unknown_pred, if_taken, .. } = *submit;
        let (tasks, arrays) =
            (std::mem::take(&mut submit.tasks), std::mem::take(&mut submit.arrays));
        let nodes = tasks.len() + arrays.len();
        let names = HashTable::with_capacity(if nodes > 1 { nodes } else { 0 });
        let mut draft = Draft {
            group,
            scope,
            tasks,
            arrays,
            ids: Vec::with_capacity(nodes),
            fate: Vec::with_capacity(nodes),
            names,
            renewed: HashMap::default(),
            unknown_pred,
            job_first,
        };
        let mut next = job_first.index;
        for node in 0..nodes {
            let mut fate = draft.fate_of(hub, node, if_taken)?;
            if let (Fate::Renewed, id) = fate {
                match draft.renewed.entry(id) {
                    Entry::Occupied(first) => fate.0 = Fate::Again(*first.get()),
                    Entry::Vacant(here) => _ = here.insert(node as u32),
                }
            }
            let id = match fate {
                (Fate::New, _) if node < draft.arrays.len() => {
                    let id = TaskId::whole(job_first.job, next);
                    next += draft.arrays[node].count;
                    id
                }
                (Fate::New, _) => {
                    next += 1;
                    TaskId::new(job_first.job, next - 1)
                }
                (Fate::Twin(other), _) => draft.ids[other as usize],
                (_, id) => id,
            };
            draft.ids.push(id);
            draft.fate.push(fate.0);
        }
        Ok(draft)
    }

    pub(super) fn name(&self, node: usize) -> &Name {
        match self.arrays.get(node) {
            Some(array) => &array.name,
            None => &self.tasks[node - self.arrays.len()].name,
        }
    }

    fn fate_of(
        &mut self,
        hub: &Hub,
        node: usize,
        if_taken: IfTaken,
    ) -> Result<(Fate, TaskId), Refusal> {
        let new = Ok((Fate::New, TaskId::default()));
        let name = self.name(node);
        if name.is_empty() {
            return new;
        }
        check_name(name, hub.config.limits.name_bytes)?;
        if let Some(scope) = self.scope
            && let Some(handle) = hub.ledger().find_name(scope, name)
        {
            return self.fate_of_taken(hub, node, handle, if_taken);
        }
        if self.arrays.len() + self.tasks.len() > 1
            && let Some(twin) = self.remember(hub, node)
        {
            let refused = Err(Refusal::NameTwice(self.name(node).clone()));
            return match if_taken {
                IfTaken::Merge if twin as usize >= self.arrays.len() => {
                    Ok((Fate::Twin(twin), TaskId::default()))
                }
                _ => refused,
            };
        }
        new
    }

    /// Keeps the node's name; gives the node that has it already.
    fn remember(&mut self, hub: &Hub, node: usize) -> Option<u32> {
        let seed = hub.ledger();
        let hash = seed.hash_name(self.name(node));
        let same = |&other: &u32| self.name(other as usize) == self.name(node);
        if let Some(&twin) = self.names.find(hash, same) {
            return Some(twin);
        }
        let mut names = std::mem::take(&mut self.names);
        names.insert_unique(hash, node as u32, |&other| seed.hash_name(self.name(other as usize)));
        self.names = names;
        None
    }

    fn fate_of_taken(
        &self,
        hub: &Hub,
        node: usize,
        handle: TaskHandle,
        if_taken: IfTaken,
    ) -> Result<(Fate, TaskId), Refusal> {
        let record = hub.ledger().task(handle);
        let id = hub.ledger().id_of(handle);
        let taken = || Err(Refusal::NameTaken(record.name.clone()));
        let (Some(state), Some(spec)) =
            (record.state(), self.tasks.get(node.wrapping_sub(self.arrays.len())))
        else {
            return taken();
        };
        match if_taken {
            IfTaken::Refuse => taken(),
            IfTaken::Same if record.work == spec.work => Ok((Fate::Known, id)),
            IfTaken::Same => taken(),
            IfTaken::Merge => match state {
                State::Done | State::Failed | State::Cancelled => Ok((Fate::Renewed, id)),
                State::Leased => Ok((Fate::Known, id)),
                _ => Ok((Fate::Merged, id)),
            },
        }
    }
}
