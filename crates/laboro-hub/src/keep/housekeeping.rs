//! Once in a while: ends the output of attempts that nobody runs any more, and forgets the output of jobs
//! that the hub has forgotten; before that it tells the log. Asks the hub like anybody else, so it can be late, but never wrong.

use super::retention::Notice;
use super::{KeepError, Outputs, Piece};
use crate::inbox::Handle;
use laboro_core::{Command, JobId, LeaseNo, Name, Query, Reply, TaskId, TaskRef};
use laboro_journal::outputs::Key;
use std::ops::RangeInclusive;
use std::time::Duration;
use tokio::sync::oneshot;

const ROUND: Duration = Duration::from_secs(60);

/// Jobs are looked through on the first round and on every tenth from then on.
const ROUNDS_A_SEARCH: u32 = 10;

/// So many quiet attempts are asked about in one round.
const QUIET_MAX: usize = 1000;

/// Goes on until the hub or the store is gone.
pub(crate) async fn housekeeping(outputs: Outputs, handle: Handle) {
    let mut notice = Notice::default();
    for round in 0_u32.. {
        notice.look(&handle).await;
        if outputs.end_abandoned(&handle).await.is_err() {
            return;
        }
        if round.is_multiple_of(ROUNDS_A_SEARCH) && outputs.forget_unknown(&handle).await.is_err() {
            return;
        }
        tokio::time::sleep(ROUND).await;
    }
}

impl Outputs {
    async fn end_abandoned(&self, handle: &Handle) -> Result<(), KeepError> {
        let (answer, quiet) = oneshot::channel();
        self.send(Piece::Quiet(QUIET_MAX, answer)).await?;
        let mut abandoned = Vec::new();
        for (key, lease) in quiet.await.map_err(|_| KeepError::Closed)? {
            if !is_running(handle, key, lease).await? {
                abandoned.push(key);
            }
        }
        match abandoned.is_empty() {
            true => Ok(()),
            false => self.send(Piece::Abandoned(abandoned)).await,
        }
    }

    /// Jobs are numbered in order and numbers are not used twice: whatever is missing below the newest one
    /// has been forgotten.
    pub(super) async fn forget_unknown(&self, handle: &Handle) -> Result<(), KeepError> {
        let mut from = JobId(1);
        loop {
            let query = Query::Jobs { group: None, owner: None, from, most: u32::MAX };
            let reply = handle.ask(Command::Query(query)).await.map_err(|_| KeepError::Closed)?;
            let Reply::Jobs(jobs) = reply else { return Ok(()) };
            let Some(last) = jobs.last().map(|view| view.job) else { return Ok(()) };
            let gaps: Vec<_> = gaps(from, jobs.iter().map(|view| view.job)).collect();
            if !gaps.is_empty() {
                self.send(Piece::Forget(gaps)).await?;
            }
            from = JobId(last.0.saturating_add(1));
        }
    }
}

async fn is_running(handle: &Handle, key: Key, lease: LeaseNo) -> Result<bool, KeepError> {
    let task = TaskRef::Id(TaskId::new(JobId(key.job), key.index));
    // A task that is meant by its id needs no group.
    let query = Query::Task { group: Name::default(), task };
    let reply = handle.ask(Command::Query(query)).await.map_err(|_| KeepError::Closed)?;
    Ok(match reply {
        Reply::Task(view) => match view.lease {
            Some(current) => lease == LeaseNo(0) || current == lease,
            None => false,
        },
        _ => false,
    })
}

/// The numbers from `from` on that are not among the jobs, up to the last of these.
pub(super) fn gaps(
    from: JobId,
    jobs: impl Iterator<Item = JobId>,
) -> impl Iterator<Item = RangeInclusive<u32>> {
    let mut next = from.0;
    jobs.filter_map(move |job| {
        let gap = (next < job.0).then(|| next..=job.0 - 1);
        next = job.0.saturating_add(1);
        gap
    })
}
