//! Submits of any size, one task a line. The job is made open and held, filled batch by batch, and let go at
//! the end, so nothing of it runs before all of it is there. A stream with a key that breaks off can be sent
//! again from its beginning and goes on where it stopped; one without a key is cancelled. A stream with a
//! mistake in it leaves nothing behind.

use super::answer::{Answer, Refused};
use super::entry::Visitor;
use super::extract::{drain, object};
use super::lines::{LineTrouble, Lines};
use super::seats::Taken;
use super::submit::{assembled, options};
use super::{Api, Shared};
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use bytes::Bytes;
use laboro_api::{Converter, IfTaken, Problem, SubmitJob, Submitted, TaskSpec};
use laboro_core::{Command, JobId, JobOptions, Name, Reply, Selection, Submit, SubmitTo, Which};

/// A job of any size as NDJSON: the first line is the job, every further one a task or an array.
#[utoipa::path(post, path = "/jobs/stream", tag = "jobs",
    request_body(content = String, content_type = "application/x-ndjson",
        description = "first a SubmitJob, then a TaskSpec a line"),
    responses((status = 200, body = Submitted), (status = 400, body = Problem),
        (status = 409, body = Problem), (status = 422, body = Problem)))]
pub(super) async fn stream(State(api): Shared, visitor: Visitor, body: Body) -> Answer<Submitted> {
    visitor.must_submit()?;
    // A task of its own: when the client goes away this handler is dropped, and the job must not be left
    // half-filled.
    let writing = tokio::spawn(async move {
        let limits = &api.services.limits;
        let room = api.budget.room(&visitor.who.id);
        let mut lines = Lines::new(body, room, limits.line_bytes, limits.body);
        let written = write(&api, &visitor, &mut lines).await;
        if written.is_err() {
            drain(lines.into_body(), limits.body_bytes).await;
        }
        written
    });
    match writing.await {
        Ok(written) => written.map(Json),
        Err(error) => Err(super::operation::internal(&error)),
    }
}

async fn write(api: &Api, visitor: &Visitor, lines: &mut Lines) -> Result<Submitted, Refused> {
    let first = match lines.next().await {
        Ok(Some(line)) => line,
        Ok(None) => {
            return Err(Refused::bad_request("empty_stream", "the stream has no lines")
                .hint("its first line is the job: {}"));
        }
        Err(LineTrouble::BrokenOff(refused) | LineTrouble::Wrong(refused)) => return Err(refused),
    };
    let bytes = first.len();
    let (head, _) = api.readers.read(bytes, move || object(&first)).await?;
    let mut head: SubmitJob = head.map_err(|refused| refused.at("line 1"))?;
    if head.if_taken != IfTaken::Refuse {
        let detail =
            "a stream cannot have `if_taken`: its tasks are counted, so that it can be resumed";
        return Err(Refused::bad_request("bad_value", detail));
    }
    if !head.tasks.is_empty() {
        let detail = "line 1 has `tasks`: in a stream they follow, one per line";
        return Err(Refused::bad_request("bad_value", detail));
    }
    let group = visitor.group(head.group.take().map(|group| group.name()))?;
    let converter =
        visitor.converter(head.defaults.take()).map_err(|bad| Refused::from(bad).at("line 1"))?;
    let (job, there, seat) = open(api, visitor, &group, &head).await?;
    visitor.note(format!("job {job}"));
    let is_resumed = there > 0;
    if !is_resumed || is_open(api, visitor, job).await? {
        let mut filling = Filling { api, group, job, head: &head, converter, there, count: 0 };
        match filling.fill(lines, seat).await {
            Ok(()) => {}
            Err(StreamEnd::Later(refused)) => return Err(refused),
            Err(StreamEnd::Cancelled(refused)) if !visitor.has_ended() => {
                abandon(api, job).await;
                return Err(refused);
            }
            Err(StreamEnd::Cancelled(refused) | StreamEnd::Undone(refused)) => {
                // It has never run, so nothing is lost, and its key can be used again. Nor has anybody submitted
                // anything whose token ended meanwhile.
                abandon(api, job).await;
                drop(api.services.handle.ask(Command::Forget(JobId(job))).await);
                return Err(refused);
            }
        }
        let count = filling.count;
        finish(api, job, &head).await?;
        return Ok(Submitted { job, first: 1, count, again: is_resumed && count == there });
    }
    // The whole of it was there before.
    while let Ok(Some(_)) = lines.next().await {}
    Ok(Submitted { job, first: 1, count: there, again: true })
}

/// The job, how many tasks it has already, and with a key the right to write into it.
async fn open(
    api: &Api,
    visitor: &Visitor,
    group: &Name,
    head: &SubmitJob,
) -> Result<(u32, u32, Option<Taken>), Refused> {
    let made = |options| Submit {
        group: group.clone(),
        job: SubmitTo::New(options),
        profiles: Vec::new(),
        tasks: Vec::new(),
        arrays: Vec::new(),
        unknown_pred: head.unknown_after.into(),
        if_taken: laboro_core::IfTaken::Refuse,
    };
    api.check_on_end(visitor, &head.on_end)?;
    let options = JobOptions { open: true, held: true, ..options(head, visitor) };
    let Submitted { job, .. } = api.submitted(made(options.clone())).await?;
    if head.key.is_none() {
        return Ok((job, 0, None));
    }
    let seat = api.seats.take(job).await;
    // Counted only now: whoever had the seat may have added some.
    let Submitted { job: same, count, .. } = api.submitted(made(options)).await?;
    if same != job {
        return Err(Refused::new(
            StatusCode::CONFLICT,
            "job_gone",
            "the job was forgotten meanwhile",
        )
        .hint("send the stream again"));
    }
    Ok((job, count, Some(seat)))
}

async fn is_open(api: &Api, visitor: &Visitor, job: u32) -> Result<bool, Refused> {
    Ok(api.job(visitor, job).await?.open)
}

/// How a stream ended that did not come to its end.
enum StreamEnd {
    /// It can go on later.
    Later(Refused),
    /// Nobody can go on with it.
    Cancelled(Refused),
    /// There is a mistake in it.
    Undone(Refused),
}

struct Filling<'a> {
    api: &'a Api,
    group: Name,
    job: u32,
    head: &'a SubmitJob,
    converter: Converter,
    /// So many tasks are in the job from before.
    there: u32,
    /// So many tasks of the stream were seen.
    count: u32,
}

impl Filling<'_> {
    async fn fill(&mut self, lines: &mut Lines, mut seat: Option<Taken>) -> Result<(), StreamEnd> {
        let limits = &self.api.services.limits;
        let mut bytes = 0;
        loop {
            let line = match &mut seat {
                None => lines.next().await,
                Some(seat) => tokio::select! {
                    line = lines.next() => line,
                    () = seat.wanted() => return Err(StreamEnd::Later(taken_over())),
                },
            };
            let line = line.map_err(|trouble| self.ended_by(trouble))?;
            let is_over = line.is_none();
            if let Some(line) = line {
                bytes += line.len();
                self.push(line, lines.number).await?;
            }
            let waiting = self.converter.batch().len();
            let is_full = waiting >= limits.batch_tasks || bytes >= limits.batch_bytes;
            if (is_over || is_full) && waiting > 0 {
                self.send(lines.number).await?;
            }
            if is_full {
                lines.release();
                bytes = 0;
            }
            if is_over {
                return if self.count < self.there {
                    Err(StreamEnd::Later(other_stream()))
                } else {
                    Ok(())
                };
            }
        }
    }

    fn ended_by(&self, trouble: LineTrouble) -> StreamEnd {
        match trouble {
            LineTrouble::BrokenOff(refused) if self.head.key.is_some() => StreamEnd::Later(refused),
            LineTrouble::BrokenOff(refused) => StreamEnd::Cancelled(refused),
            LineTrouble::Wrong(refused) => self.mistake(refused),
        }
    }

    /// What other streams with this key have put there is not ours to undo.
    fn mistake(&self, refused: Refused) -> StreamEnd {
        if self.there > 0 { StreamEnd::Later(refused) } else { StreamEnd::Undone(refused) }
    }

    async fn push(&mut self, line: Bytes, number: u64) -> Result<(), StreamEnd> {
        let before = self.converter.batch().arrays.len();
        let mut converter = std::mem::take(&mut self.converter);
        let bytes = line.len();
        let work = move || {
            let pushed = object(&line).and_then(|task: TaskSpec| Ok(converter.push(task)?));
            (converter, pushed)
        };
        let read = self.api.readers.read(bytes, work).await;
        let ((converter, pushed), _) = read.map_err(StreamEnd::Later)?;
        self.converter = converter;
        if let Err(refused) = pushed {
            return Err(self.mistake(refused.at(&format!("line {number}"))));
        }
        // A piece of a stream can hold many lines; others are served in between.
        tokio::task::consume_budget().await;
        let array = self.converter.batch().arrays.get(before);
        let more = array.map_or(1, |array| array.count);
        self.count = self.count.saturating_add(more);
        if self.count <= self.there {
            // It is there from before the break.
            drop(self.converter.take());
        } else if self.count - more < self.there {
            return Err(StreamEnd::Later(other_stream()));
        }
        Ok(())
    }

    async fn send(&mut self, number: u64) -> Result<(), StreamEnd> {
        let to = SubmitTo::Add(JobId(self.job));
        let submit = assembled(&mut self.converter, self.group.clone(), to, self.head);
        let refused = |refused: Refused| refused.at(&format!("lines up to {number}"));
        match self.api.services.handle.ask(Command::Submit(submit)).await {
            Err(lost) => Err(StreamEnd::Later(lost.into())),
            Ok(Reply::Submitted { .. }) => Ok(()),
            Ok(Reply::Refused(refusal)) => Err(self.mistake(refused(refusal.into()))),
            Ok(reply) => Err(StreamEnd::Later(Refused::unexpected(&reply))),
        }
    }
}

/// First it may run, then it is closed: whatever is lost between the two, the same stream sent again does it.
async fn finish(api: &Api, job: u32, head: &SubmitJob) -> Result<(), Refused> {
    let selection = Selection { job: JobId(job), which: Which::Job };
    if !head.held {
        api.ask(Command::Release(selection)).await?;
    }
    if !head.open {
        api.ask(Command::Close(JobId(job))).await?;
    }
    Ok(())
}

/// Cancelled and closed, whatever it had. There may be nothing to cancel.
async fn abandon(api: &Api, job: u32) {
    let selection = Selection { job: JobId(job), which: Which::Job };
    for command in [Command::Cancel(selection), Command::Close(JobId(job))] {
        if api.services.handle.ask(command).await.is_err() {
            tracing::warn!(job, "the hub stopped before a broken stream could be cancelled");
        }
    }
}

fn taken_over() -> Refused {
    let detail = "another client sends the same stream and continues it";
    Refused::new(StatusCode::CONFLICT, "taken_over", detail)
}

fn other_stream() -> Refused {
    let detail = "the job with this key was started by another stream";
    Refused::new(StatusCode::CONFLICT, "other_stream", detail)
        .hint("send the same lines as before, or use another key")
}
