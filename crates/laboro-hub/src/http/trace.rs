//! The trace that a submit belongs to: taken over from the header of the W3C, or begun, and told to the tasks by their
//! variables. A job that begins none where nobody records spans has none.

use super::Api;
use laboro_api::Text;
use laboro_core::{Command, JobId, Name, Query, Reply, TaskId, TaskRef};
use laboro_net::trace::{self, TraceParent};
use ring::rand::{SecureRandom, SystemRandom};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub(super) struct SubmitTrace {
    /// What the submit is a part of.
    given: Option<TraceParent>,
    is_recorded: bool,
    /// Of the job that gets more tasks.
    of_job: Option<[(String, Text); 2]>,
}

impl SubmitTrace {
    pub(super) fn of(header: Option<&str>, is_recorded: bool) -> SubmitTrace {
        let given = header.and_then(TraceParent::parse);
        SubmitTrace { given, is_recorded, of_job: None }
    }

    /// What tasks are told.
    pub(super) fn variables(&self) -> BTreeMap<String, Text> {
        let mut env = BTreeMap::new();
        if let Some(known) = &self.of_job {
            env.extend(known.clone());
        } else if let Some(given) =
            self.given.filter(|given| !self.is_recorded || !given.is_sampled())
        {
            env.insert(trace::PARENT.into(), given.to_string().into());
        } else if self.is_recorded
            && let Some((trace, span)) = begun()
        {
            let trace = self.given.map_or(trace, |given| given.trace);
            let before = self.given.map_or(0, |given| given.span);
            let own = TraceParent::recorded(trace, span);
            env.insert(trace::PARENT.into(), own.to_string().into());
            env.insert(trace::STATE.into(), trace::state(before).into());
        }
        env
    }
}

/// A trace and a span that nobody has. `None`: there is no chance to be had, and so no trace.
fn begun() -> Option<(u128, u64)> {
    let mut bytes = [0; 24];
    SystemRandom::new().fill(&mut bytes).ok()?;
    let (trace, span) = bytes.split_at(16);
    let (trace, span) = (trace.try_into().ok()?, span.try_into().ok()?);
    Some((u128::from_le_bytes(trace).max(1), u64::from_le_bytes(span).max(1)))
}

impl Api {
    /// More tasks of a job are parts of its span, also those that another client adds.
    pub(super) async fn join_trace(&self, trace: &mut SubmitTrace, group: &Name, job: JobId) {
        if self.services.traces.is_none() {
            return;
        }
        let query = Query::Task { group: group.clone(), task: TaskRef::Id(TaskId::new(job, 1)) };
        let Ok(Reply::Task(view)) = self.services.handle.ask(Command::Query(query)).await else {
            return;
        };
        let Some(setting) = view.work.as_deref().and_then(|work| work.setting()) else { return };
        let text = |wanted: &str| {
            let found = setting.env.iter().find(|(name, _)| **name == *wanted.as_bytes());
            let text = found.and_then(|(_, value)| std::str::from_utf8(value).ok())?;
            Some((wanted.to_owned(), Text::from(text)))
        };
        trace.of_job = text(trace::PARENT).zip(text(trace::STATE)).map(|(one, two)| [one, two]);
    }
}
