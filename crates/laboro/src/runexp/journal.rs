//! The journal of a manager: its result files. A batch is kept when every result that it counts is in its place; then
//! runners may hear of it. Runners and leases are not written down: a manager that starts again knows what is done,
//! and gives out the rest.

use super::files::{ResultFiles, SharedFiles};
use crate::output::safe;
use laboro_core::{Archive, Batch, Effect, Event, Name, ReturnReason, Standing, TaskId, WorkerId};
use laboro_journal::{Journal, JournalError};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

pub(super) struct ResultJournal {
    files: SharedFiles,
    /// What each runner is called.
    runners: HashMap<WorkerId, Name>,
    /// Who has each task that is out, by its number, and since when.
    lent: HashMap<u32, (WorkerId, Instant)>,
}

/// What one runner lost in one batch.
#[derive(Default)]
struct Losses {
    returned: usize,
    /// Lost too often, and not given out again.
    held: usize,
}

/// The files say what is wrong with them; see `ResultFiles::take_trouble`.
#[derive(Debug, thiserror::Error)]
#[error("a result cannot be written")]
struct Unwritten;

impl ResultJournal {
    pub(super) fn new(files: SharedFiles) -> ResultJournal {
        ResultJournal { files, runners: HashMap::new(), lent: HashMap::new() }
    }

    fn keep(&mut self, events: &[Event]) -> Result<(), Unwritten> {
        let shared = self.files.clone();
        let mut files = shared.lock();
        let mut losses: BTreeMap<WorkerId, Losses> = BTreeMap::new();
        for event in events {
            match event {
                Event::WorkerMet { worker, name, .. } => {
                    self.runners.insert(*worker, name.clone());
                }
                Event::WorkerForgotten { worker } => {
                    self.runners.remove(worker);
                }
                Event::Leased { task, worker, .. } => {
                    self.lent.insert(task.number(), (*worker, Instant::now()));
                }
                Event::Finished { task, worker, outcome, .. } => {
                    if let Some((_, since)) = self.lent.remove(&task.number()) {
                        files.note_time(since.elapsed());
                    }
                    let runner = self.runners.get(worker).cloned().unwrap_or_default();
                    files.place((runner, task.number()), outcome.is_success());
                }
                Event::Returned {
                    task, why: ReturnReason::Lapsed | ReturnReason::Left, ..
                } => {
                    self.count_loss(&mut losses, *task, |lost| &mut lost.returned);
                }
                Event::HeldBack { task, .. } => {
                    self.count_loss(&mut losses, *task, |lost| &mut lost.held);
                }
                Event::Judged { worker, standing, .. } => self.tell(&mut files, *worker, *standing),
                _ => {}
            }
        }
        for (worker, lost) in losses {
            let runner = self.shown(worker);
            files.tell(format!("runner {runner} was lost: {}", lost.words()));
        }
        if files.is_worth_a_word() {
            self.files.news.notify_one();
        }
        if files.has_trouble() { Err(Unwritten) } else { Ok(()) }
    }

    fn count_loss(
        &mut self,
        losses: &mut BTreeMap<WorkerId, Losses>,
        task: TaskId,
        kind: impl Fn(&mut Losses) -> &mut usize,
    ) {
        if let Some((worker, _)) = self.lent.remove(&task.number()) {
            *kind(losses.entry(worker).or_default()) += 1;
        }
    }

    fn tell(&self, files: &mut ResultFiles, worker: WorkerId, standing: Standing) {
        let words = match standing {
            Standing::OnHold => "is on hold: too many of its last jobs failed (--ban)",
            Standing::Ejected => "is ejected: too many of its jobs failed (--ban)",
            Standing::Good | Standing::Probation => return,
        };
        files.tell(format!("runner {} {words}", self.shown(worker)));
    }

    fn shown(&self, worker: WorkerId) -> String {
        safe(&self.runners.get(&worker).map(Name::to_string).unwrap_or_default())
    }
}

impl Losses {
    fn words(&self) -> String {
        let returned = match self.returned {
            0 => None,
            1 => Some("1 of its jobs goes back".to_owned()),
            more => Some(format!("{more} of its jobs go back")),
        };
        let held = match self.held {
            0 => None,
            1 => Some("1 of its jobs has failed: it was lost too often".to_owned()),
            more => Some(format!("{more} of its jobs have failed: they were lost too often")),
        };
        returned.into_iter().chain(held).collect::<Vec<_>>().join(", and ")
    }
}

impl Archive for ResultJournal {}

impl Journal for ResultJournal {
    async fn commit(&mut self, batch: Batch) -> Result<Vec<Effect>, JournalError> {
        self.keep(&batch.events).map_err(|error| JournalError::Elsewhere(Arc::new(error)))?;
        Ok(batch.release(self.receipt()))
    }
}
