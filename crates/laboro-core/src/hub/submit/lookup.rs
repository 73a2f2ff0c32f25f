//! Who a predecessor is: a task of the same submit, or one that is there. Changes nothing.

use super::cycle::Arrow;
use super::draft::{Draft, Fate};
use crate::command::{ArraySpec, TaskRef, UnknownPred};
use crate::hub::Hub;
use crate::id::{Name, TaskId};
use crate::ledger::{NameScope, TaskHandle};
use crate::refusal::Refusal;
use crate::task::State;
use foldhash::fast::FixedState;
use hashbrown::HashSet;
use smallvec::SmallVec;

/// The draft with its specs, for looking up who a predecessor is.
pub(super) struct Lookup<'a> {
    pub(super) draft: &'a Draft,
    pub(super) hub: &'a Hub,
}

impl Lookup<'_> {
    pub(super) fn preds<C: FromIterator<TaskId>>(
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
        let own = match (self.draft.scope, pred) {
            (Some(scope @ NameScope::Job(_)), TaskRef::Name(name)) => {
                self.hub.ledger().find_named(scope, name)
            }
            _ => None,
        };
        if let Some(found) = own.or_else(|| self.hub.find_task(self.draft.group, pred)) {
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
                Err(Refusal::UnknownPred { task: self.draft.name(node).clone(), pred })
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

    /// What a task waits for already, or need not wait for any more, is not new. A graph that is sent
    /// again costs no search.
    pub(super) fn keep_news(&self, node: usize, preds: &mut SmallVec<[TaskId; 2]>) {
        let ledger = self.hub.ledger();
        let handle =
            ledger.record_of(self.draft.ids[node]).expect("a task that is merged is there");
        if preds.is_empty() {
            return;
        }
        // By handles: a look at the record of every predecessor would cost most of the submit.
        let mut known = ledger.graph().preds_of(ledger.task(handle).preds);
        if let [pred] = preds[..] {
            // The most common case needs no set.
            let is_news = match self.is_done(pred) {
                true => self.draft.renewed.contains_key(&pred),
                false => ledger.record_of(pred).is_none_or(|pred| known.all(|other| other != pred)),
            };
            preds.truncate(usize::from(is_news));
            return;
        }
        let mut known: HashSet<TaskHandle, FixedState> = known.collect();
        let mut new: HashSet<TaskId, FixedState> = HashSet::default();
        preds.retain(|pred| match self.is_done(*pred) {
            true => self.draft.renewed.contains_key(pred),
            false => match ledger.record_of(*pred) {
                Some(pred) => known.insert(pred),
                None => new.insert(*pred),
            },
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
        if self.draft.fate.len() == 1 {
            return (self.draft.name(0) == name && self.draft.fate[0] == Fate::New).then_some(0);
        }
        let hash = self.hub.ledger().hash_name(name);
        self.draft.names.find(hash, |&other| self.draft.name(other as usize) == name).copied()
    }

    /// `array.7` of an array in the same submit: its node, and the position counted from 0.
    fn local_element(&self, name: &Name) -> Option<(u32, u32)> {
        let (array, number) = name.split_element()?;
        let local = self.local(&array)?;
        let count = self.draft.arrays.get(local as usize)?.count;
        let position = number.checked_sub(1).filter(|&position| position < count)?;
        Some((local, position))
    }

    pub(super) fn is_done(&self, id: TaskId) -> bool {
        let ledger = self.hub.ledger();
        let record = ledger.record_of(id).map(|handle| ledger.task(handle));
        record.is_some_and(|record| record.state() == Some(State::Done))
    }

    pub(super) fn check_same_count(
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
        let count = match self.draft.ids[..self.draft.arrays.len()].binary_search(&pred) {
            Ok(node) => self.draft.arrays[node].count,
            Err(_) => self.hub.ledger().array(pred).map_or(0, |(_, array)| array.count),
        };
        if count != array.count {
            return Err(Refusal::UnequalArrays { array: array.name.clone(), other: shown });
        }
        Ok(())
    }
}
