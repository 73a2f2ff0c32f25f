//! Goes on with a job that was changed since: what an earlier run has done is recorded as done before anything starts.

use super::earlier::{self, Carried, Store};
use super::layout::Layout;
use super::{GROUP, JOB, Options, WORKER};
use crate::submit::order;
use anyhow::{Context, anyhow};
use laboro_core::{
    Command, Join, LeaseRef, Outcome, Reply, Report, SessionId, TaskId, TaskRef, TaskResult,
    WorkerRef,
};
use laboro_hub::Handle;
use laboro_plan::Plan;
use std::path::Path;

pub(super) struct Resume<'a> {
    pub(super) path: &'a Path,
    pub(super) store: &'a mut Store,
    pub(super) plan: &'a Plan,
    /// How many tasks no earlier run has done, if one has done some.
    pub(super) new: Option<u64>,
}

/// Recorded in one step.
const RESULTS_MAX: usize = 50_000;

impl Resume<'_> {
    /// This job is not known: which of its tasks are?
    pub(super) fn look(&mut self, layout: &Layout, options: &Options) -> anyhow::Result<()> {
        let id = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let root = self.path.parent().unwrap_or(self.path);
        let contents = self.plan.contents(&order(self.plan));
        let firsts = layout.firsts();
        let found = match options.fresh {
            true => Vec::new(),
            false => earlier::find(root, self.store, &id, self.plan, &contents, &firsts),
        };
        let done: u64 = found.iter().map(count).sum();
        self.new = (done > 0).then(|| u64::from(layout.count()) - done);
        earlier::write(self.path, self.plan, &contents, &firsts, &found)
    }

    /// Also what a run that was killed meanwhile has not recorded.
    pub(super) async fn record(&mut self, handle: &Handle) -> anyhow::Result<()> {
        let id = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let written = self.store.begin(&id, false);
        written.with_context(|| format!("{} cannot be written", self.path.display()))?;
        let carried = earlier::unrecorded(self.path);
        if carried.is_empty() {
            return Ok(());
        }
        let session = SessionId(u64::MAX);
        handle.ask(Command::Join(Join::new(GROUP, WORKER, "local", session))).await?;
        let all = carried.iter().flat_map(|one| one.first..=one.last);
        let mut left: Vec<u32> = all.collect();
        // Those that come after others can only be done when those are.
        loop {
            let before = left.len();
            let mut refused = Vec::new();
            for some in left.chunks(RESULTS_MAX) {
                refused.extend(report(handle, some).await?);
            }
            if refused.is_empty() {
                break;
            }
            if refused.len() == before {
                return Err(anyhow!("{before} tasks that were done before cannot be recorded"));
            }
            left = refused;
        }
        earlier::note_recorded(self.path)
            .with_context(|| format!("{} cannot be written", self.path.display()))
    }
}

fn count(carried: &Carried) -> u64 {
    u64::from(carried.last - carried.first) + 1
}

/// Gives those that were not taken.
async fn report(handle: &Handle, tasks: &[u32]) -> anyhow::Result<Vec<u32>> {
    let result = |&index: &u32| TaskResult {
        lease: LeaseRef::Anyones(TaskRef::Id(TaskId::new(JOB, index))),
        outcome: Outcome::Success,
        message: None,
        memo: None,
    };
    let worker = WorkerRef::Name { group: GROUP.into(), name: WORKER.into() };
    let report = Report { worker, results: tasks.iter().map(result).collect() };
    match handle.ask(Command::Report(report)).await? {
        Reply::Reported(verdicts) => {
            let refused = verdicts.iter().zip(tasks).filter(|(verdict, _)| verdict.is_err());
            Ok(refused.map(|(_, &task)| task).collect())
        }
        other => Err(anyhow!("the hub answered {other:?}")),
    }
}
