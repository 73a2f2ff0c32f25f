//! Leases that end without a result: they lapse, are handed back, or are taken back.

use super::Hub;
use super::search::{CycleCheck, Halt, Long};
use super::submit::{Check, Node, Search};
use crate::command::{Command, LeaseRef, Place, Return, TaskRef};
use crate::event::{Event, ReturnReason};
use crate::id::{GroupId, LeaseNo, Name, TaskId, WorkerId};
use crate::ledger::Phase;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::task::State;
use std::collections::BTreeSet;

/// What a lease reference means now.
pub(super) enum Claim {
    /// The lease is live.
    Live(TaskId),
    /// It lapsed or was not needed, and nobody else holds or has finished the task.
    Lapsed(TaskId),
    /// Another worker holds it, and any may say that it is done.
    Anothers(TaskId),
    /// It is done already, and any may say so.
    Done(TaskId),
    /// The worker is kept for it, and another runs it.
    Node(TaskId),
}

impl Hub {
    /// The one rule for results and returns: is this lease live, or lapsed with nobody after it?
    pub(super) fn claim(
        &self,
        worker: WorkerId,
        group: GroupId,
        lease: &LeaseRef,
    ) -> Result<Claim, Refusal> {
        let ledger = self.ledger();
        let (task, number) = match lease {
            LeaseRef::Number { task, lease } => (Some(*task), Some(*lease)),
            LeaseRef::Held(task) | LeaseRef::HeldOrFree(task) | LeaseRef::Anyones(task) => {
                (self.find_shown(Some(group), task), None)
            }
        };
        let is_anyones = matches!(lease, LeaseRef::Anyones(_));
        let may_be_free = is_anyones || matches!(lease, LeaseRef::HeldOrFree(_));
        let shown = || match (lease, task) {
            (
                LeaseRef::Held(TaskRef::Name(name))
                | LeaseRef::HeldOrFree(TaskRef::Name(name))
                | LeaseRef::Anyones(TaskRef::Name(name)),
                _,
            ) => name.clone(),
            (_, Some(task)) => ledger.shown_name(task),
            _ => Name::default(),
        };
        let Some(task) = task.filter(|task| !task.is_whole()) else {
            return Err(Refusal::NoSuchTask(shown()));
        };
        let Some(handle) = ledger.record_of(task) else {
            return match ledger.state_of(task) {
                Some(State::Ready) if may_be_free => Ok(Claim::Lapsed(task)),
                Some(State::Done) if is_anyones => Ok(Claim::Done(task)),
                _ => Err(self.verdict_without_record(task)),
            };
        };
        let record = ledger.task(handle);
        let lapsed = record.extra.as_ref().and_then(|extra| extra.lapsed);
        match record.phase {
            Phase::Leased { lease } => {
                let live = ledger.workers().lease(lease);
                let holder = ledger.workers().get(live.worker).id;
                if holder == worker && number.is_none_or(|number| number == live.no) {
                    Ok(Claim::Live(task))
                } else if self.is_node(worker, task, number) {
                    Ok(Claim::Node(task))
                } else if is_anyones {
                    Ok(Claim::Anothers(task))
                } else {
                    Err(Refusal::NotYours(shown()))
                }
            }
            Phase::Finished { outcome, .. } if is_anyones && outcome.is_success() => {
                Ok(Claim::Done(task))
            }
            Phase::Finished { worker: by, .. } => {
                Err(Refusal::AlreadyFinished { task: shown(), by_you: by == worker })
            }
            Phase::Cancelled => Err(Refusal::AlreadyFinished { task: shown(), by_you: false }),
            // Since it was given out somebody has put others before it.
            Phase::Waiting | Phase::Blocked => Err(Refusal::NotStarted(shown())),
            _ => match lapsed {
                Some((no, who)) if who == worker && number.is_none_or(|number| number == no) => {
                    Ok(Claim::Lapsed(task))
                }
                _ if may_be_free
                    && matches!(record.phase, Phase::Ready(_) | Phase::Delayed { .. }) =>
                {
                    Ok(Claim::Lapsed(task))
                }
                _ => Err(Refusal::NotStarted(shown())),
            },
        }
    }

    /// Is the worker kept for the task by this lease?
    fn is_node(&self, worker: WorkerId, task: TaskId, number: Option<LeaseNo>) -> bool {
        let workers = self.ledger().workers();
        // Who is kept for a task has nothing else.
        let first = workers.find(worker).and_then(|handle| workers.last_lease_of(handle));
        first.map(|lease| workers.lease(lease)).is_some_and(|lease| {
            lease.is_node
                && self.ledger().id_of(lease.task) == task
                && number.is_some_and(|number| number == lease.no)
        })
    }

    fn verdict_without_record(&self, task: TaskId) -> Refusal {
        let ledger = self.ledger();
        let shown = ledger.shown_name(task);
        let phase = ledger.find_job(task.job).and_then(|job| ledger.job(job).state_of(task.index));
        match phase {
            None => Refusal::NoSuchTask(shown),
            Some(phase) if phase.is_finished() => {
                Refusal::AlreadyFinished { task: shown, by_you: false }
            }
            Some(_) => Refusal::NotStarted(shown),
        }
    }

    pub(super) fn hand_back(
        &mut self,
        back: Return,
        cycle_check: CycleCheck,
    ) -> Result<Reply, Halt> {
        let worker = self.find_worker(&back.worker)?;
        self.note_alive(worker);
        self.presence.note_engaged(worker);
        let (id, group) = {
            let worker = self.ledger().workers().get(worker);
            (worker.id, worker.group)
        };
        let mut tasks: Vec<(TaskId, Vec<TaskId>)> = Vec::with_capacity(back.tasks.len());
        let mut nodes = Vec::new();
        let (mut known, mut edges) = (BTreeSet::new(), 0);
        for returned in &back.tasks {
            let task = match self.claim(id, group, &returned.lease)? {
                Claim::Live(task) => task,
                Claim::Node(task) => {
                    nodes.push(task);
                    task
                }
                Claim::Lapsed(task) | Claim::Anothers(task) | Claim::Done(task) => {
                    return Err(Refusal::NotYours(self.ledger().shown_name(task)).into());
                }
            };
            if !known.insert(task) {
                return Err(Refusal::NameTwice(self.ledger().shown_name(task)).into());
            }
            let preds = self.new_preds(group, &returned.preds)?;
            edges += preds.len();
            tasks.push((task, preds));
        }
        let most = self.config.limits.edges;
        if self.ledger().graph().len() + edges > most {
            return Err(Refusal::Limit { what: "dependencies", most: most as u64 }.into());
        }
        let by_level = |hub: &Hub| Some(hub.levels_check(&tasks));
        let long = self.check_edges(cycle_check, by_level, |hub| hub.check_no_cycle(&tasks))?;
        if let Some(check) = long {
            let command = Command::Return(back);
            return Err(Halt::Long(Box::new(Long { command, check })));
        }
        let why = match back.place {
            Place::Back => ReturnReason::Handed,
            Place::Front => ReturnReason::Left,
        };
        nodes.into_iter().for_each(|task| self.end_at_first(task));
        for (task, preds) in tasks {
            self.ledger.post(Event::Returned { task, why, preds });
        }
        Ok(Reply::Ok)
    }

    /// What a task that is given back has to wait for, each once: what is done holds nobody up.
    fn new_preds(&self, group: GroupId, preds: &[TaskRef]) -> Result<Vec<TaskId>, Refusal> {
        let most = self.config.limits.preds_a_task;
        if preds.len() > most {
            return Err(Refusal::Limit { what: "predecessors of a task", most: most as u64 });
        }
        let ledger = self.ledger();
        let is_done = |id: TaskId| {
            let record = ledger.record_of(id).map(|handle| ledger.task(handle));
            record.is_some_and(|record| record.state() == Some(State::Done))
        };
        let mut seen = BTreeSet::new();
        let found = preds.iter().filter_map(|pred| self.find_task(Some(group), pred));
        Ok(found.filter(|&pred| !is_done(pred) && seen.insert(pred)).collect())
    }

    fn levels_check(&self, tasks: &[(TaskId, Vec<TaskId>)]) -> Check {
        let node = |id: TaskId| self.ledger().node(id).map(Node::There);
        let mut edges = Vec::new();
        for (task, preds) in tasks {
            let Some(succ) = node(*task) else { continue };
            edges.extend(preds.iter().filter_map(|&pred| Some((node(pred)?, succ))));
        }
        Check::new(self.ledger(), 0, [], edges)
    }

    /// May tasks that are there come after these?
    fn check_no_cycle(&self, tasks: &[(TaskId, Vec<TaskId>)]) -> Result<(), Refusal> {
        let mut search = Search::new(self.ledger());
        for (task, preds) in tasks {
            preds.iter().for_each(|&pred| search.plan(pred, *task));
        }
        match search.cycle_after(tasks.iter().map(|(task, _)| *task)) {
            Some(task) => Err(Refusal::Cycle(self.ledger().shown_name(task))),
            None => Ok(()),
        }
    }
}
