//! `GET jobs/{job}/results`: what the tasks of a job gave back, in bulk: those that have ended, or with `follow` all of
//! them as they end. Results are read from the store in pieces, so that a slow reader costs a piece and no more.

use super::answer::Refused;
use super::entry::Visitor;
use super::extract::{Asked, At};
use super::feed::Viewer;
use super::finishes::{EndedRange, FinishNews, Listener};
use super::jobs::PAGE;
use super::operation::internal;
use super::{Api, Shared};
use crate::keep::TaskEnd;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use laboro_api::{Outcome, Problem, ResultState, TaskResult, Text};
use laboro_core::{Command, JobId, Query, Reply, State as TaskState, TaskId};
use laboro_journal::outputs::{KeptResult, Wanted};
use serde::Deserialize;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use utoipa::{IntoParams, ToSchema};

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct ResultsQuery {
    /// The first task; 1 if not given.
    from: Option<u32>,
    /// The last task; the last of the job if not given.
    to: Option<u32>,
    /// `1`: stay until the job has ended, or all tasks up to `to`.
    #[serde(default)]
    follow: u8,
    #[serde(default)]
    #[param(inline)]
    order: ResultOrder,
    #[serde(default)]
    #[param(inline)]
    format: Format,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum ResultOrder {
    /// By number: with `follow`, each waits for those before it.
    #[default]
    Index,
    /// First those that have ended, by number, then the others as they end.
    End,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Format {
    /// A `TaskResult` a line; a blank line is a sign of life.
    #[default]
    Json,
    /// Binary; a frame of no bytes is a sign of life.
    Frames,
}

/// Results that are read at once, and about how many bytes of them.
const PIECE: usize = 2048;
const PIECE_BYTES: usize = 4 << 20;

/// A sign of life for proxies, and a way to notice that nobody reads.
const SILENCE_MAX: Duration = Duration::from_secs(15);

/// What tasks gave back.
#[utoipa::path(get, path = "/jobs/{job}/results", tag = "tasks",
    params(("job" = u32, Path), ResultsQuery),
    responses((status = 200, content((TaskResult = "application/x-ndjson"), (Vec<u8> = "application/octet-stream"))),
        (status = 404, body = Problem), (status = 503, body = Problem)))]
pub(super) async fn results(
    State(api): Shared,
    visitor: Visitor,
    At(job): At<u32>,
    Asked(asked): Asked<ResultsQuery>,
) -> Result<Response, Refused> {
    if api.services.outputs.is_none() {
        let detail = "this hub does not keep what tasks give back";
        return Err(Refused::new(StatusCode::NOT_FOUND, "no_outputs", detail));
    }
    api.job(&visitor, job).await?;
    let live = match asked.follow {
        0 => None,
        _ => {
            // First the watch, then the questions: whatever ends after them is told.
            let viewer = api.view(None).await?;
            let listener = api.feed.finishes.listen(JobId(job));
            Some(Live { _viewer: viewer, listener })
        }
    };
    let is_over = api.job(&visitor, job).await?.ended.is_some();
    let from = asked.from.unwrap_or(1).max(1);
    let to = asked.to.unwrap_or(TaskId::INDEX_MAX);
    let sending = ResultPages {
        api,
        job: JobId(job),
        from,
        to,
        format: asked.format,
        in_order: asked.order == ResultOrder::Index,
        live,
        scan: Some(from),
        next: from,
        queue: VecDeque::new(),
        given: Given::default(),
        is_over,
    };
    let kind = match asked.format {
        Format::Json => "application/x-ndjson",
        Format::Frames => "application/octet-stream",
    };
    let headers = [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-store")];
    let body = Body::from_stream(stream::try_unfold(sending, ResultPages::step));
    Ok((headers, body).into_response())
}

struct Live {
    /// While somebody looks, changes are told.
    _viewer: Viewer,
    listener: Listener,
}

struct ResultPages {
    api: Arc<Api>,
    job: JobId,
    from: u32,
    to: u32,
    format: Format,
    in_order: bool,
    live: Option<Live>,
    /// From this number on it is not known which tasks have ended.
    scan: Option<u32>,
    /// In order: the number that is given next.
    next: u32,
    queue: VecDeque<EndedRange>,
    given: Given,
    /// The job has ended, and all of it is in the queue.
    is_over: bool,
}

impl ResultPages {
    /// A connection that breaks off tells a client that something is missing.
    async fn step(mut self) -> io::Result<Option<(Bytes, ResultPages)>> {
        let piece = self.piece().await.map_err(|_| io::Error::other("results broke off"))?;
        Ok(piece.map(|piece| (piece.into(), self)))
    }

    /// `None`: that was all.
    async fn piece(&mut self) -> Result<Option<Vec<u8>>, Refused> {
        loop {
            if !self.queue.is_empty() {
                return self.read().await.map(Some);
            }
            if let Some(at) = self.scan {
                self.look(at).await?;
                continue;
            }
            let count = u64::from(self.to).saturating_sub(u64::from(self.from)) + 1;
            if self.is_over || self.given.count >= count {
                return Ok(None);
            }
            let Some(live) = &self.live else { return Ok(None) };
            match tokio::time::timeout(SILENCE_MAX, live.listener.next()).await {
                Ok(news) => self.hear(news).await?,
                Err(_) => return Ok(Some(self.sign_of_life())),
            }
        }
    }

    fn sign_of_life(&self) -> Vec<u8> {
        match self.format {
            Format::Json => b"\n".to_vec(),
            Format::Frames => vec![0; 4],
        }
    }

    async fn hear(&mut self, news: FinishNews) -> Result<(), Refused> {
        if news.has_gap {
            self.scan = Some(if self.in_order { self.next } else { self.from });
        } else if self.in_order {
            let next = self.next;
            if news.ended.iter().any(|range| (range.first..=range.last).contains(&next)) {
                self.scan = Some(next);
            }
        } else {
            let ended: Vec<EndedRange> =
                news.ended.iter().filter_map(|range| self.within(*range)).collect();
            self.queue.extend(ended);
        }
        if news.job || news.has_gap {
            let query = Command::Query(Query::Job(self.job));
            let Reply::Jobs(jobs) = self.api.ask(query).await? else { return Ok(()) };
            self.is_over = jobs.first().is_none_or(|job| job.ended.is_some());
        }
        Ok(())
    }

    fn within(&self, range: EndedRange) -> Option<EndedRange> {
        let (first, last) = (range.first.max(self.from), range.last.min(self.to));
        (first <= last).then_some(EndedRange { first, last, ..range })
    }

    /// Puts the next tasks that have ended into the queue.
    async fn look(&mut self, at: u32) -> Result<(), Refused> {
        let mut ended: Vec<(u32, TaskState)> = Vec::new();
        let mut horizon = None;
        for state in [TaskState::Done, TaskState::Failed, TaskState::Cancelled] {
            let (job, state, most) = (self.job, Some(state), PAGE);
            let query = Query::Tasks { job, state, from: at, most };
            match self.api.ask(Command::Query(query)).await? {
                Reply::Tasks { tasks, next } => {
                    ended.extend(tasks.iter().map(|task| (task.task.number(), task.state)));
                    horizon = [horizon, next].into_iter().flatten().min();
                }
                reply => return Err(Refused::unexpected(&reply)),
            }
        }
        ended.retain(|(task, _)| horizon.is_none_or(|horizon| *task < horizon) && *task <= self.to);
        ended.sort_unstable();
        self.scan = horizon.filter(|horizon| *horizon <= self.to);
        for (task, state) in ended {
            // What follows one that has not ended waits for it.
            if self.in_order && self.live.is_some() {
                if task != self.next {
                    self.scan = None;
                    break;
                }
                self.next += 1;
            }
            match self.queue.back_mut() {
                Some(range) if range.last + 1 == task && range.state == state => range.last = task,
                _ => self.queue.push_back(EndedRange { first: task, last: task, state }),
            }
        }
        Ok(())
    }

    /// What is in the queue, or the beginning of it.
    async fn read(&mut self) -> Result<Vec<u8>, Refused> {
        let mut tasks: Vec<(u32, TaskState)> = Vec::new();
        while tasks.len() < PIECE
            && let Some(range) = self.queue.front_mut()
        {
            if !self.given.has(range.first) {
                tasks.push((range.first, range.state));
            }
            if range.first == range.last {
                self.queue.pop_front();
            } else {
                range.first += 1;
            }
        }
        let mut wanted: Vec<Wanted> = (tasks.iter())
            .map(|&(index, state)| Wanted { index, succeeded: state == TaskState::Done })
            .collect();
        wanted.sort_unstable_by_key(|wanted| wanted.index);
        wanted.dedup_by_key(|wanted| wanted.index);
        let numbers: Vec<u32> = wanted.iter().map(|wanted| wanted.index).collect();
        let outputs = self.api.services.outputs.as_ref().expect("looked at before");
        let ends = outputs.task_ends(self.job.0, wanted, PIECE_BYTES).await;
        let ends = ends.map_err(|error| internal(&error))?;
        let mut ends: HashMap<u32, TaskEnd> = numbers.into_iter().zip(ends).collect();
        let mut piece = Vec::new();
        let mut left = Vec::new();
        for (task, state) in tasks {
            match ends.remove(&task) {
                Some(end) => {
                    self.given.add(task);
                    self.write(&shown(task, state, end), &mut piece);
                }
                None if self.given.has(task) => {}
                None => left.push(EndedRange { first: task, last: task, state }),
            }
        }
        left.into_iter().rev().for_each(|range| self.queue.push_front(range));
        Ok(piece)
    }

    fn write(&self, result: &TaskResult, to: &mut Vec<u8>) {
        match self.format {
            Format::Json => {
                serde_json::to_writer(&mut *to, result).expect("a result is numbers and words");
                to.push(b'\n');
            }
            Format::Frames => result.write_frame(to),
        }
    }
}

fn shown(task: u32, state: TaskState, end: TaskEnd) -> TaskResult {
    let state = match state {
        TaskState::Done => ResultState::Done,
        TaskState::Cancelled => ResultState::Cancelled,
        _ => ResultState::Failed,
    };
    let lost = end.result == KeptResult::Incomplete;
    let result =
        if let KeptResult::Bytes(bytes) = end.result { Some(Text::from(bytes)) } else { None };
    TaskResult {
        task,
        state,
        result,
        lost,
        outcome: end.outcome.map(Outcome::from),
        message: (!end.words.is_empty()).then(|| Text::from(end.words)),
    }
}

/// Which tasks were given: a bit each.
#[derive(Default)]
struct Given {
    bits: Vec<u64>,
    count: u64,
}

impl Given {
    fn has(&self, task: u32) -> bool {
        self.bits.get(task as usize / 64).is_some_and(|bits| bits >> (task % 64) & 1 == 1)
    }

    fn add(&mut self, task: u32) {
        let at = task as usize / 64;
        if self.bits.len() <= at {
            self.bits.resize(at + 1, 0);
        }
        self.bits[at] |= 1 << (task % 64);
        self.count += 1;
    }
}
