//! Submits in one piece: a new job, or more tasks for an open one.

use super::Shared;
use super::answer::{Answer, Refused};
use super::body::Sent;
use super::budget::Room;
use super::entry::Visitor;
use super::extract::At;
use super::reading::Turn;
use super::submission::{self, AddHead, Head, JobHead, Most};
use axum::Json;
use axum::extract::State;
use laboro_api::{AddTasks, BadTask, Converter, Problem, SubmitJob, Submitted, TaskSpec, Text};
use laboro_core::{Command, JobOptions, Name, Reply, Submit, SubmitTo, Time, counted};

/// A new job with all its tasks: all of it or nothing.
#[utoipa::path(post, path = "/jobs", tag = "jobs", request_body = SubmitJob,
    responses((status = 200, body = Submitted), (status = 400, body = Problem),
        (status = 409, body = Problem), (status = 422, body = Problem)))]
pub(super) async fn submit(State(api): Shared, visitor: Visitor, sent: Sent) -> Answer<Submitted> {
    visitor.must_submit()?;
    let mut read = api.read::<JobHead>(&visitor, sent).await?;
    let group = visitor.group(read.head.group.take().map(|group| group.name()))?;
    api.check_on_end(&visitor, &read.head.on_end)?;
    let options = options(&read.head, &visitor);
    let submit = assembled(&mut read.converter, group, SubmitTo::New(options), &read.head);
    let submitted = api.submitted(submit).await?;
    visitor.note(format!("job {}, {}", submitted.job, counted(submitted.count, "task")));
    Ok(Json(submitted))
}

/// More tasks for an open job: all of them or none.
#[utoipa::path(post, path = "/jobs/{job}/tasks", tag = "jobs", params(("job" = u32, Path)),
    request_body = AddTasks,
    responses((status = 200, body = Submitted), (status = 404, body = Problem),
        (status = 409, body = Problem), (status = 422, body = Problem)))]
pub(super) async fn add(
    State(api): Shared,
    mut visitor: Visitor,
    At(job): At<u32>,
    sent: Sent,
) -> Answer<Submitted> {
    let view = api.job_to_change(&visitor, job).await?;
    api.join_trace(&mut visitor.trace, &view.group, view.job).await;
    let mut read = api.read::<AddHead>(&visitor, sent).await?;
    let to = SubmitTo::Add(view.job);
    let submit = assembled(&mut read.converter, view.group, to, &read.head);
    let submitted = api.submitted(submit).await?;
    visitor.note(counted(submitted.count, "task"));
    Ok(Json(submitted))
}

/// A submit that was read, and what it takes until it is answered.
struct Read {
    head: SubmitJob,
    converter: Converter,
    _room: Room,
    _turn: Turn,
}

pub(super) fn options(asked: &SubmitJob, visitor: &Visitor) -> JobOptions {
    JobOptions {
        name: asked.name.as_ref().map(Text::name).unwrap_or_default(),
        open: asked.open,
        held: asked.held,
        begin: asked.begin_ms.map(Time),
        max_running: asked.max_running,
        max_fails: asked.max_fails,
        key: asked.key.as_ref().map(|key| key.bytes().into()),
        // Who means tasks of earlier jobs by their names shares these with them.
        own_names: asked.if_taken == laboro_api::IfTaken::default(),
        owner: Some(visitor.owner()),
        on_end: asked.on_end.iter().map(|one| one.as_str().into()).collect(),
    }
}

/// Everything converted so far as one submit.
pub(super) fn assembled(
    converter: &mut Converter,
    group: Name,
    job: SubmitTo,
    how: &SubmitJob,
) -> Submit {
    let batch = converter.take();
    Submit {
        group,
        job,
        profiles: batch.profiles,
        tasks: batch.tasks,
        arrays: batch.arrays,
        unknown_pred: how.unknown_after.into(),
        if_taken: how.if_taken.into(),
    }
}

/// Keys are kept with their jobs, so they have a bound as names have.
const KEY_BYTES_MAX: usize = 4096;

pub(super) fn nothing_would_run() -> Refused {
    Refused::bad_request("bad_value", "`max_running` is 0: nothing would ever run")
        .hint("a job that is held starts nothing until it is released")
}

impl Visitor {
    /// For the tasks of one submit. A token bound to a group cannot wait for what it cannot see: that would
    /// tell which jobs others have and how they go.
    pub(super) fn converter(&self, defaults: Option<Box<TaskSpec>>) -> Result<Converter, BadTask> {
        let converter = Converter::new(defaults)?.in_trace(self.trace.variables());
        Ok(match self.bound_to() {
            Some(_) => converter.within_group(),
            None => converter,
        })
    }
}

impl super::Api {
    async fn read<H>(&self, visitor: &Visitor, sent: Sent) -> Result<Read, Refused>
    where
        H: Head + Into<SubmitJob> + Send + 'static,
    {
        let limits = &self.services.limits;
        let most = Most {
            tasks: limits.body_tasks,
            preds: limits.body_after,
            profiles: limits.body_profiles,
        };
        let (visitor, Sent { bytes, room }) = (visitor.clone(), sent);
        let bytes_len = bytes.len();
        let work = move || submission::read::<H>(&bytes, most, |spec| visitor.converter(spec));
        let (read, turn) = self.readers.read(bytes_len, work).await?;
        let (head, converter) = read?;
        Ok(Read { head: head.into(), converter, _room: room, _turn: turn })
    }

    pub(super) async fn submitted(&self, submit: Submit) -> Result<Submitted, Refused> {
        if let SubmitTo::New(options) = &submit.job {
            if options.max_running == Some(0) {
                return Err(nothing_would_run());
            }
            if options.key.as_ref().is_some_and(|key| key.is_empty()) {
                let detail = "`key` is empty: all submits with an empty key would be the same job";
                return Err(Refused::bad_request("bad_value", detail));
            }
            let key = options.key.as_ref().map_or(0, |key| key.len());
            if key.max(options.name.len()) > KEY_BYTES_MAX {
                let detail = format!("a name or a key is longer than {KEY_BYTES_MAX} bytes");
                return Err(Refused::bad_request("bad_value", detail));
            }
        }
        match self.ask(Command::Submit(submit)).await? {
            Reply::Submitted { job, first, count, again } => {
                Ok(Submitted { job: job.0, first, count, again })
            }
            reply => Err(Refused::unexpected(&reply)),
        }
    }
}
