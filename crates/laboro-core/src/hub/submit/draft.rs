//! A submit being checked: who is new, who is there already, who comes after whom. Changes nothing.

use super::check_name;
use super::cycle::{self, Arrow, Search};
use crate::command::{ArraySpec, IfTaken, TaskRef, TaskSpec, UnknownPred};
use crate::effect::Refusal;
use crate::event::Added;
use crate::hub::Hub;
use crate::id::{Name, TaskId};
use crate::task::{NewTask, Profile, State};
use foldhash::fast::FixedState;
use hashbrown::hash_map::Entry;
use hashbrown::{HashMap, HashSet, HashTable};
use smallvec::SmallVec;
use std::sync::Arc;

/// Arrays come first, then tasks: a node is a position in that row.
pub(super) struct Draft {
    group: Option<u32>,
    tasks: Vec<TaskSpec>,
    arrays: Vec<ArraySpec>,
    /// For each node the id that it gets or has.
    ids: Vec<TaskId>,
    fate: Vec<Fate>,
    /// Nodes by name, when there is more than one.
    names: HashTable<u32>,
    /// Nodes that start a finished task over, by its id.
    renewed: HashMap<TaskId, u32, FixedState>,
    unknown_pred: UnknownPred,
    job_first: TaskId,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
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
    pub(super) fn new(
        hub: &Hub,
        group: Option<u32>,
        job_first: TaskId,
        tasks: Vec<TaskSpec>,
        arrays: Vec<ArraySpec>,
        unknown_pred: UnknownPred,
        if_taken: IfTaken,
    ) -> Result<Draft, Refusal> {
        let nodes = tasks.len() + arrays.len();
        let names = HashTable::with_capacity(if nodes > 1 { nodes } else { 0 });
        let mut draft = Draft {
            group,
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

    fn name(&self, node: usize) -> &Name {
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
        if let Some(group) = self.group
            && let Some(slot) = hub.state().find_name(group, name)
        {
            return self.fate_of_taken(hub, node, slot, if_taken);
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
        let seed = hub.state();
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
        slot: u32,
        if_taken: IfTaken,
    ) -> Result<(Fate, TaskId), Refusal> {
        let record = hub.state().task(slot);
        let id = hub.state().id_of(slot);
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

    /// Resolves every predecessor and looks for cycles.
    pub(super) fn finish(mut self, hub: &Hub, profiles: Vec<Profile>) -> Result<Drafted, Refusal> {
        let specs = self.arrays.iter().map(|array| array.profile);
        for profile in specs.chain(self.tasks.iter().map(|task| task.profile)) {
            if profile as usize >= profiles.len() {
                return Err(Refusal::BadProfile(profile));
            }
        }
        let mut arrows = Vec::new();
        let mut edges = 0;
        let arrays = std::mem::take(&mut self.arrays);
        let array_count = arrays.len();
        let tasks = std::mem::take(&mut self.tasks);
        let look = Lookup { draft: &self, hub, arrays: &arrays, tasks: &tasks };

        let mut array_preds = Vec::with_capacity(array_count);
        for (node, array) in arrays.iter().enumerate() {
            let preds: Vec<TaskId> = look.preds(node, &array.preds, &mut arrows)?;
            let each: Vec<TaskId> = look.preds(node, &array.each, &mut arrows)?;
            for (&pred, named) in each.iter().zip(&array.each) {
                look.check_same_count(array, pred, named)?;
            }
            edges += preds.len();
            array_preds.push((preds, each));
        }
        let mut task_preds: Vec<SmallVec<[TaskId; 2]>> = Vec::with_capacity(tasks.len());
        for (at, task) in tasks.iter().enumerate() {
            let node = array_count + at;
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
        if hub.state().graph().len() + edges > limits.edges {
            return Err(Refusal::Limit { what: "dependencies", most: limits.edges as u64 });
        }
        look.check_cycles(&arrows, &array_preds, &task_preds)?;

        let job = self.job_first.job;
        let nothing = |profiles| Added { job, profiles, arrays: Vec::new(), tasks: Vec::new() };
        let mut added = nothing(profiles);
        for (array, (preds, each)) in arrays.into_iter().zip(array_preds) {
            added.arrays.push(array.placed(preds, each));
        }
        // Those that start over stand where they are named, so what is new comes in pieces. Otherwise they
        // come first: anybody may have named them.
        let in_pieces = self.unknown_pred == UnknownPred::InOrder && !self.renewed.is_empty();
        let mut drafted = Drafted { steps: Vec::new(), merged: Vec::new(), known: 0 };
        let base = array_count as u32;
        // Where the new tasks stand, for those that merge into one.
        let mut places: Vec<u32> = Vec::new();
        let merges = self.fate.iter().any(|fate| matches!(fate, Fate::Twin(_)));
        for (at, (task, preds)) in tasks.into_iter().zip(task_preds).enumerate() {
            let node = array_count + at;
            if merges {
                places.push(added.tasks.len() as u32);
            }
            match self.fate[node] {
                Fate::New => {
                    let TaskSpec { name, profile, work, memo, .. } = task;
                    added.tasks.push(NewTask { name, profile, work, preds, memo });
                    continue;
                }
                Fate::Twin(other) if !in_pieces => {
                    let place = places[(other - base) as usize] as usize;
                    added.tasks[place].preds.extend(preds);
                }
                fate => {
                    let id = self.ids[node];
                    if fate == Fate::Renewed {
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
        Ok(drafted)
    }
}

/// The draft with its specs, for looking up who a predecessor is.
struct Lookup<'a> {
    draft: &'a Draft,
    hub: &'a Hub,
    arrays: &'a [ArraySpec],
    tasks: &'a [TaskSpec],
}

impl Lookup<'_> {
    fn name(&self, node: usize) -> &Name {
        match self.arrays.get(node) {
            Some(array) => &array.name,
            None => &self.tasks[node - self.arrays.len()].name,
        }
    }

    fn preds<C: FromIterator<TaskId>>(
        &self,
        node: usize,
        preds: &[TaskRef],
        arrows: &mut Vec<Arrow>,
    ) -> Result<C, Refusal> {
        let most = self.hub.config.limits.preds_a_task;
        if preds.len() > most {
            return Err(Refusal::Limit { what: "predecessors of a task", most: most as u64 });
        }
        (preds.iter()).filter_map(|pred| self.pred(node, pred, arrows).transpose()).collect()
    }

    fn pred(
        &self,
        node: usize,
        pred: &TaskRef,
        arrows: &mut Vec<Arrow>,
    ) -> Result<Option<TaskId>, Refusal> {
        if let TaskRef::Name(name) = pred
            && let Some(local) = self.local(name)
            && (self.draft.unknown_pred != UnknownPred::InOrder || local as usize <= node)
        {
            arrows.push(Arrow { pred: local, succ: self.head(node as u32) });
            return Ok(Some(self.draft.ids[local as usize]));
        }
        if let Some(found) = self.hub.find_task(self.draft.group, pred) {
            return Ok(self.known_pred(node, found, arrows));
        }
        if let TaskRef::Name(name) = pred
            && let Some((local, position)) = self.local_element(name)
        {
            // For cycles an element is its array: none has predecessors that the others have not.
            arrows.push(Arrow { pred: local, succ: self.head(node as u32) });
            let array = self.draft.ids[local as usize];
            return Ok(Some(TaskId::new(array.job, array.number() + position)));
        }
        match self.draft.unknown_pred {
            UnknownPred::Ignore | UnknownPred::InOrder => Ok(None),
            UnknownPred::Refuse => {
                let pred = match pred {
                    TaskRef::Name(name) => name.clone(),
                    TaskRef::Id(id) | TaskRef::Own(id) => Name::from(id.to_string()),
                };
                Err(Refusal::UnknownPred { task: self.name(node).clone(), pred })
            }
        }
    }

    /// A predecessor that is there already. One that is done, and starts over only later in the same
    /// submit, is done still where the tasks come one by one.
    fn known_pred(&self, node: usize, found: TaskId, arrows: &mut Vec<Arrow>) -> Option<TaskId> {
        let Some(&first) = self.draft.renewed.get(&found) else { return Some(found) };
        let comes_later = self.draft.unknown_pred == UnknownPred::InOrder && first as usize > node;
        if comes_later && self.is_done(found) {
            return None;
        }
        arrows.push(Arrow { pred: first, succ: self.head(node as u32) });
        Some(found)
    }

    /// What a task waits for already, or need not wait for any more, is no news. A graph that is sent
    /// again costs no search.
    fn keep_news(&self, node: usize, preds: &mut SmallVec<[TaskId; 2]>) {
        let state = self.hub.state();
        let slot = state.record_of(self.draft.ids[node]).expect("a task that is merged is there");
        if preds.is_empty() {
            return;
        }
        let known = state.graph().preds_of(state.task(slot).preds).map(|pred| state.id_of(pred));
        let mut known: HashSet<TaskId, FixedState> = known.collect();
        preds.retain(|pred| match self.is_done(*pred) {
            true => self.draft.renewed.contains_key(pred),
            false => known.insert(*pred),
        });
    }

    /// The node that stands for one that has the same name.
    fn head(&self, node: u32) -> u32 {
        match self.draft.fate[node as usize] {
            Fate::Twin(other) | Fate::Again(other) => other,
            _ => node,
        }
    }

    fn local(&self, name: &Name) -> Option<u32> {
        if self.arrays.len() + self.tasks.len() == 1 {
            return (self.name(0) == name && self.draft.fate[0] == Fate::New).then_some(0);
        }
        let hash = self.hub.state().hash_name(name);
        self.draft.names.find(hash, |&other| self.name(other as usize) == name).copied()
    }

    /// `array.7` of an array in the same submit: its node, and the position counted from 0.
    fn local_element(&self, name: &Name) -> Option<(u32, u32)> {
        let (array, number) = name.split_element()?;
        let local = self.local(&array)?;
        let count = self.arrays.get(local as usize)?.count;
        let position = number.checked_sub(1).filter(|&position| position < count)?;
        Some((local, position))
    }

    fn is_done(&self, id: TaskId) -> bool {
        let state = self.hub.state();
        let record = state.record_of(id).map(|slot| state.task(slot));
        record.is_some_and(|record| record.state() == Some(State::Done))
    }

    fn check_same_count(
        &self,
        array: &ArraySpec,
        pred: TaskId,
        named: &TaskRef,
    ) -> Result<(), Refusal> {
        let shown = match named {
            TaskRef::Name(name) => name.clone(),
            TaskRef::Id(id) | TaskRef::Own(id) => Name::from(id.to_string()),
        };
        if !pred.is_whole() {
            return Err(Refusal::NotAnArray(shown));
        }
        // Arrays of a submit are all new, so their ids ascend.
        let count = match self.draft.ids[..self.arrays.len()].binary_search(&pred) {
            Ok(node) => self.arrays[node].count,
            Err(_) => self.hub.state().array(pred).map_or(0, |(_, array)| array.count),
        };
        if count != array.count {
            return Err(Refusal::UnequalArrays { array: array.name.clone(), other: shown });
        }
        Ok(())
    }

    fn check_cycles(
        &self,
        arrows: &[Arrow],
        array_preds: &[(Vec<TaskId>, Vec<TaskId>)],
        task_preds: &[SmallVec<[TaskId; 2]>],
    ) -> Result<(), Refusal> {
        // Whoever names only those before it cannot close a cycle among new tasks, and those that are done
        // and start over: nothing else comes after either.
        if arrows.iter().any(|arrow| arrow.pred >= arrow.succ)
            && let Some(node) = cycle::among(self.draft.ids.len(), arrows)
        {
            return Err(Refusal::Cycle(self.name(node as usize).clone()));
        }
        let base = self.arrays.len();
        let old = |at: usize| match self.draft.fate[base + at] {
            Fate::Merged => true,
            Fate::Renewed | Fate::Again(_) => !self.is_done(self.draft.ids[base + at]),
            Fate::New | Fate::Known | Fate::Twin(_) => false,
        };
        if !(0..task_preds.len()).any(|at| old(at) && !task_preds[at].is_empty()) {
            return Ok(());
        }
        let mut search = Search::new(self.hub.state(), self.hub.config.limits.cycle_search);
        for (&id, array) in self.draft.ids.iter().zip(self.arrays) {
            search.plan_array(id, array.count);
        }
        for (&array, (preds, each)) in self.draft.ids.iter().zip(array_preds) {
            preds.iter().for_each(|&pred| search.plan(pred, array));
            each.iter().for_each(|&pred| search.plan_each(pred, array));
        }
        for (at, (&id, preds)) in self.draft.ids[base..].iter().zip(task_preds).enumerate() {
            preds.iter().for_each(|&pred| search.plan(pred, id));
            if self.draft.fate[base + at] == Fate::Renewed && self.is_done(id) {
                search.detach(id);
            }
        }
        for (at, preds) in task_preds.iter().enumerate().filter(|(at, _)| old(*at)) {
            if search.would_close(self.draft.ids[base + at], preds)? {
                return Err(Refusal::Cycle(self.name(base + at).clone()));
            }
        }
        Ok(())
    }
}
