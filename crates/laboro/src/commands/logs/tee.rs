//! `laboro submit --wait --tee`: what the tasks of a job print, line by line as it comes, with the task's label before each.
//! The hub's events say which tasks have begun; a few of them are followed at once, and the others as soon as one of those
//! ends. Many quick tasks are told together or not at all, so all of them are looked at once more at the end.

use super::follow::follow_both;
use super::job::idle;
use crate::hub_client::{Hub, Printed, TaskPages};
use crate::run::{Tee, print_teed};
use futures_util::stream::{FuturesUnordered, StreamExt};
use laboro_api::{Event, EventKind, TaskState};
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Tasks that are followed at once: each takes two connections.
const FOLLOWED: usize = 16;

/// What is known of the tasks of one job.
#[derive(Default)]
struct Seen {
    /// Something may have come of these.
    due: BTreeSet<u32>,
    followed: HashSet<u32>,
    /// The last attempt that was shown.
    shown: HashMap<u32, u16>,
}

impl Seen {
    fn event(&mut self, event: &Event) {
        let began = !matches!(
            event.state,
            None | Some(TaskState::Waiting | TaskState::Ready | TaskState::Blocked)
        );
        if let (EventKind::Tasks, Some(first), Some(last), true) =
            (event.kind, event.first, event.last, began)
        {
            self.due.extend(first..=last);
        }
    }

    fn next(&mut self) -> Option<u32> {
        let task = *self.due.iter().find(|task| !self.followed.contains(task))?;
        self.due.remove(&task);
        self.followed.insert(task);
        Some(task)
    }
}

pub(crate) async fn tee_job(hub: &Hub, job: u32) -> anyhow::Result<()> {
    let tee = RefCell::new(Tee::default());
    let (mut seen, mut following) = (Seen::default(), FuturesUnordered::new());
    let mut events = hub.follow(Some(job)).await?;
    // What happened before.
    for state in [TaskState::Running, TaskState::Done, TaskState::Failed, TaskState::Delayed] {
        look(hub, job, Some(state), &mut seen).await?;
    }
    let mut is_idle = false;
    let mut idle = Box::pin(idle(hub, job));
    loop {
        while following.len() < FOLLOWED
            && let Some(task) = seen.next()
        {
            let shown = seen.shown.get(&task).copied().unwrap_or(0);
            following.push(show(hub, (job, task), shown, &tee));
        }
        if is_idle && following.is_empty() {
            return Ok(());
        }
        tokio::select! {
            biased;
            Some(ended) = following.next() => {
                let (task, attempt) = ended?;
                seen.followed.remove(&task);
                seen.shown.insert(task, attempt);
            }
            event = events.next(), if !is_idle => seen.event(&event?),
            over = &mut idle, if !is_idle => {
                over?;
                is_idle = true;
                look(hub, job, None, &mut seen).await?;
            }
        }
    }
}

/// Tasks in this state of which not all was shown.
async fn look(
    hub: &Hub,
    job: u32,
    state: Option<TaskState>,
    seen: &mut Seen,
) -> anyhow::Result<()> {
    let mut tasks = TaskPages::new(hub, job, state, 1, Some(1000));
    while let Some(task) = tasks.next().await? {
        let last = task.attempts.last().map_or(0, |last| last.attempt);
        if last > seen.shown.get(&task.task).copied().unwrap_or(0) {
            seen.due.insert(task.task);
        }
    }
    Ok(())
}

/// Shows the attempts of a task after this one, to their end. Gives the last of them.
async fn show(
    hub: &Hub,
    (job, number): (u32, u32),
    shown: u16,
    tee: &RefCell<Tee>,
) -> anyhow::Result<(u32, u16)> {
    let task = hub.task(job, number).await?;
    let id = u64::from(number);
    for attempt in task.attempts.iter().map(|one| one.attempt).filter(|&one| one > shown) {
        let write = |stream: Printed, bytes: &[u8]| {
            let is_stderr = stream == Printed::Stderr;
            let lines = tee.borrow_mut().take(id, is_stderr, bytes);
            lines.iter().try_for_each(|line| print_teed(&task.label, is_stderr, line))
        };
        follow_both(hub, (job, number), Some(attempt), write).await?;
        for (is_stderr, line) in tee.borrow_mut().end(id) {
            print_teed(&task.label, is_stderr, &line)?;
        }
    }
    Ok((number, task.attempts.last().map_or(shown, |last| last.attempt.max(shown))))
}
