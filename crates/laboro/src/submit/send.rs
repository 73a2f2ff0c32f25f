//! Sends a plan: a small one as one request, a large one as a stream of lines that is made while it is sent, so
//! that it never stands in memory as a whole.

use super::order::order;
use super::specs::specs;
use super::terms::Terms;
use crate::exit::usage;
use crate::hub_client::Hub;
use crate::output::counted;
use crate::progress::Progress;
use anyhow::Context;
use bytes::Bytes;
use laboro_api::{AddTasks, LINE_BYTES_MAX, SubmitJob, Submitted, TaskSpec};
use laboro_plan::Plan;
use serde::Serialize;
use tokio::sync::mpsc;

/// What is no longer small.
const ONE_REQUEST_BYTES: usize = 1 << 20;
const ONE_REQUEST_TASKS: usize = 10_000;

/// Lines are sent in pieces of about this size.
const PIECE_BYTES: usize = 64 << 10;

/// Every spec of the plan with its JSON, each after what it waits for.
fn encoded<'a>(
    plan: &'a Plan,
    terms: &'a Terms,
) -> impl Iterator<Item = anyhow::Result<(TaskSpec, Vec<u8>)>> {
    let parts = order(plan).into_iter().map(|at| &plan.parts[at as usize]);
    let specs = parts.flat_map(|part| {
        let (specs, error) = match specs(part, terms) {
            Ok(specs) => (Some(specs), None),
            Err(error) => (None, Some(Err(usage(error)))),
        };
        specs.into_iter().flatten().map(Ok).chain(error)
    });
    specs.map(|spec: anyhow::Result<TaskSpec>| {
        let spec = spec?;
        let json = line(&spec)?;
        if json.len() > LINE_BYTES_MAX {
            let name = spec.name.unwrap_or_default();
            return Err(usage(format!(
                "array {name}: its values take more than the {LINE_BYTES_MAX} bytes a hub takes at once: split it"
            )));
        }
        Ok((spec, json))
    })
}

/// One JSON object and a new line.
fn line(object: &impl Serialize) -> anyhow::Result<Vec<u8>> {
    let mut json = serde_json::to_vec(object).context("it cannot be written as JSON")?;
    json.push(b'\n');
    Ok(json)
}

/// Makes a new job of all tasks of the plan.
pub(crate) async fn submit(
    hub: &Hub,
    mut job: SubmitJob,
    plan: &Plan,
    terms: &Terms,
    is_quiet: bool,
) -> anyhow::Result<Submitted> {
    job.defaults = Some(Box::new(terms.defaults()));
    let mut all = encoded(plan, terms);
    let mut first = Vec::new();
    let mut bytes = 0;
    while bytes <= ONE_REQUEST_BYTES && first.len() < ONE_REQUEST_TASKS {
        let Some(spec) = all.next() else {
            job.tasks = first.into_iter().map(|(spec, _)| spec).collect();
            return hub.submit(&job).await;
        };
        let spec = spec?;
        bytes += spec.1.len();
        first.push(spec);
    }
    // Counted once: a plan of many parts is walked for it.
    let total = plan.task_count();
    let mut progress = Progress::new(total, is_quiet);
    let head = line(&job)?;
    hub.submit_stream(async |pieces| {
        let mut stream = Lines { pieces, piece: head, is_open: true };
        let mut sent = 0;
        for spec in first.into_iter().map(Ok).chain(all) {
            let (spec, json) = spec?;
            stream.push(&json).await;
            sent += count(&spec);
            progress.set(sent, total, "sent");
            if !stream.is_open {
                // The hub has said why.
                return Ok(());
            }
        }
        stream.flush().await;
        Ok(())
    })
    .await
}

/// Gives the tasks of the plan to an open job.
pub(crate) async fn add(
    hub: &Hub,
    job: u32,
    plan: &Plan,
    terms: &Terms,
    is_quiet: bool,
) -> anyhow::Result<Submitted> {
    let total = plan.task_count();
    let mut progress = Progress::new(total, is_quiet);
    let empty = || AddTasks { defaults: Some(Box::new(terms.defaults())), ..AddTasks::default() };
    let (mut batch, mut bytes) = (empty(), 0);
    let mut all: Option<Submitted> = None;
    let mut specs = encoded(plan, terms).peekable();
    while let Some(spec) = specs.next() {
        let (spec, json) = spec?;
        bytes += json.len();
        batch.tasks.push(spec);
        let is_small = bytes < ONE_REQUEST_BYTES && batch.tasks.len() < ONE_REQUEST_TASKS;
        if is_small && specs.peek().is_some() {
            continue;
        }
        bytes = 0;
        let taken = all.as_ref().map_or(0, |all| all.count);
        let added = hub.add(job, &std::mem::replace(&mut batch, empty())).await;
        let added = added.with_context(|| format!("after adding {}", counted(taken, "task")))?;
        let all = all.get_or_insert(Submitted { count: 0, again: true, ..added.clone() });
        all.count += added.count;
        all.again &= added.again;
        progress.set(u64::from(all.count), total, "added");
    }
    all.context("the plan has no tasks")
}

fn count(spec: &TaskSpec) -> u64 {
    match (&spec.values, spec.range) {
        (Some(values), _) => values.len() as u64,
        (None, Some(range)) => {
            let steps = (range.last - range.first) / range.step.max(1);
            u64::try_from(steps).unwrap_or(0) + 1
        }
        (None, None) => 1,
    }
}

/// Lines on their way, a piece at a time.
struct Lines {
    pieces: mpsc::Sender<Bytes>,
    piece: Vec<u8>,
    is_open: bool,
}

impl Lines {
    async fn push(&mut self, line: &[u8]) {
        self.piece.extend_from_slice(line);
        if self.piece.len() >= PIECE_BYTES {
            self.flush().await;
        }
    }

    async fn flush(&mut self) {
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE_BYTES));
        self.is_open &= self.pieces.send(piece.into()).await.is_ok();
    }
}
