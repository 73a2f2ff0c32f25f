//! Goes on with a job that was changed since: what an earlier run has done is recorded as done before anything starts.

use super::earlier::{self, Carried, Found, Store};
use super::layout::Layout;
use super::{JOB, Options};
use crate::submit::order;
use anyhow::{Context, anyhow};
use laboro_core::{Command, Reply, Selection, Which};
use laboro_hub::Handle;
use laboro_plan::Plan;
use std::path::Path;

pub(super) struct Resume<'a> {
    pub(super) path: &'a Path,
    pub(super) store: &'a mut Store,
    pub(super) plan: &'a Plan,
    /// Tasks that no earlier run has tried, and those that failed in one, if any of them is known.
    pub(super) new: Option<(u64, u64)>,
}

impl Resume<'_> {
    /// This job is not known: which of its tasks are?
    pub(super) fn look(&mut self, layout: &Layout, options: &Options) -> anyhow::Result<()> {
        let id = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let root = self.path.parent().unwrap_or(self.path);
        let contents = self.plan.contents(&order(self.plan));
        let firsts = layout.firsts();
        let found = match options.fresh {
            true => Found::default(),
            false => earlier::find(root, self.store, &id, self.plan, &contents, &firsts),
        };
        let Found { carried, failed } = found;
        let done: u64 = carried.iter().map(count).sum();
        let new = u64::from(layout.count()) - done - failed;
        self.new = (done + failed > 0).then_some((new, failed));
        earlier::write(self.path, self.plan, &contents, &firsts, &carried)
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
        let ranges = carried.iter().map(|one| (one.first, one.last)).collect();
        let selection = Selection { job: JOB, which: Which::Ranges(ranges) };
        match handle.ask(Command::MarkDone(selection)).await? {
            Reply::Changed { .. } => {}
            // A run that was killed before it could note it has recorded them all.
            Reply::Refused(laboro_core::Refusal::NothingSelected) => {}
            other => return Err(anyhow!("what was done before cannot be recorded: {other:?}")),
        }
        earlier::note_recorded(self.path)
            .with_context(|| format!("{} cannot be written", self.path.display()))
    }
}

fn count(carried: &Carried) -> u64 {
    u64::from(carried.last - carried.first) + 1
}
