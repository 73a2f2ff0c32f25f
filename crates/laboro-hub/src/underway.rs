//! Which of the tasks at a worker run. A worker is given a few short ones beyond its slots, so that none stands empty; a
//! hub that has its worker in the same process need not show those as running. Changes only what is shown.

use laboro_core::{Reply, State, TaskId};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Shared by the worker, which fills it, and by those who show tasks.
#[derive(Clone, Debug, Default)]
pub struct Underway(Arc<Mutex<HashSet<TaskId>>>);

impl Underway {
    pub fn begun(&self, task: TaskId) {
        self.with(|tasks| tasks.insert(task));
    }

    pub fn ended(&self, task: TaskId) {
        self.with(|tasks| tasks.remove(&task));
    }

    fn with<T>(&self, look: impl FnOnce(&mut HashSet<TaskId>) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What was given and has not begun is shown as ready. All tasks are at the one worker. `asks_for`: only tasks in this
    /// state were asked for.
    pub(crate) fn correct(&self, asks_for: Option<State>, reply: &mut Reply) {
        self.with(|begun| {
            let waits =
                |task: &TaskId, state: State| state == State::Leased && !begun.contains(task);
            let waiting = |leased: u32| leased.saturating_sub(begun.len() as u32);
            match reply {
                Reply::Jobs(jobs) => jobs.iter_mut().for_each(|job| {
                    job.counts = job.counts.with_waiting(waiting(job.counts.of(State::Leased)));
                }),
                Reply::Groups(groups) => groups.iter_mut().for_each(|group| {
                    let leased = group.counts.of(State::Leased);
                    group.counts = group.counts.with_waiting(waiting(leased));
                }),
                Reply::Parts { parts, .. } => parts.iter_mut().for_each(|part| {
                    let (first, last) = (part.first, part.first + (part.count.max(1) - 1));
                    let runs = |task: &&TaskId| (first..=last).contains(&task.index);
                    let runs = begun.iter().filter(runs).count() as u32;
                    let leased = part.counts.of(State::Leased);
                    part.counts = part.counts.with_waiting(leased.saturating_sub(runs));
                    if part.state == Some(State::Leased) && runs == 0 {
                        part.state = Some(State::Ready);
                    }
                }),
                Reply::Tasks { tasks, .. } => {
                    for task in tasks.iter_mut().filter(|task| waits(&task.task, task.state)) {
                        task.state = State::Ready;
                    }
                    tasks.retain(|task| asks_for.is_none_or(|state| state == task.state));
                }
                Reply::Task(task) if waits(&task.task, task.state) => task.state = State::Ready,
                _ => {}
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use laboro_core::{Counts, JobId, Name, PartView};

    #[test]
    fn what_was_given_and_has_not_begun_is_ready() {
        let underway = Underway::default();
        underway.begun(TaskId::new(JobId(1), 2));
        let part = |first, state| PartView {
            first,
            count: 1,
            name: Name::default(),
            state: Some(state),
            counts: Counts::default(),
            preds: Default::default(),
            each: Default::default(),
        };
        let parts = vec![part(1, State::Leased), part(2, State::Leased), part(3, State::Done)];
        let mut reply = Reply::Parts { parts, next: None };
        underway.correct(None, &mut reply);
        let Reply::Parts { parts, .. } = reply else { unreachable!("it stays what it was") };
        let states: Vec<_> = parts.iter().filter_map(|part| part.state).collect();
        assert_eq!(states, [State::Ready, State::Leased, State::Done]);
    }
}
