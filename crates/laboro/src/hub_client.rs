//! The way to a hub: which one, how to speak to it, and what its refusals mean here. Everything goes through the
//! HTTP API; nothing is known here that another client could not know.

mod access;
mod away;
mod follow;
mod pages;
mod place;
mod verbs;

pub(crate) use access::path as access_path;
pub(crate) use away::Away;
pub(crate) use follow::Follow;
pub(crate) use pages::{JobFilter, Newest, Owner, TaskPages, WorkerPages};
pub(crate) use place::RunPlace;
pub(crate) use verbs::{Printed, Verb, WorkerVerb};

use crate::args::hub::{HubArgs, WhereArgs};
use crate::exit::{Exit, refused, usage};
use crate::resolve::{Chosen, Which};
use crate::run::Past;
use anyhow::Context;
use bytes::Bytes;
use laboro_api::client::{Client, ClientError, Download, Upload, segment};
use laboro_api::{
    AddTasks, Changed, Eject, Explained, Groups, Job, JobState, Limit, Prioritise, StopSlots,
    SubmitJob, Submitted, Task, Waited, Worker,
};
use place::HubOrRun;
use serde_json::{Value, json};
use std::pin::Pin;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

pub(crate) struct Hub {
    client: Client,
    /// The group meant when none is named.
    group: String,
    /// It is a run on this machine that is asked, by the same API.
    run: Option<RunPlace>,
}

/// Speaks with the hub that is meant. A signal ends it, whatever it waits for.
pub(crate) fn talk(
    args: &HubArgs,
    conversation: impl AsyncFnOnce(&Hub) -> anyhow::Result<Exit>,
) -> anyhow::Result<Exit> {
    let (target, group) = access::target(args)?;
    converse(HubOrRun::Hub(Box::new(target), group), conversation)
}

/// The same with a run or a hub, to look at something.
pub(crate) fn look(
    args: &WhereArgs,
    conversation: impl AsyncFnOnce(&Hub) -> anyhow::Result<Exit>,
) -> anyhow::Result<Exit> {
    converse(place::to_look(args)?, conversation)
}

/// The same where a wrong guess would do harm: where both could be meant, neither is.
pub(crate) fn attend(
    args: &WhereArgs,
    conversation: impl AsyncFnOnce(&Hub) -> anyhow::Result<Exit>,
) -> anyhow::Result<Exit> {
    converse(place::to_change(args)?, conversation)
}

/// The same, to change something.
pub(crate) fn change(
    args: &WhereArgs,
    conversation: impl AsyncFnOnce(&Hub) -> anyhow::Result<Exit>,
) -> anyhow::Result<Exit> {
    converse(place::to_change(args)?, async |hub| match hub.is_over() {
        true => Err(refused(format!(
            "{} is not running: only a run in progress can be changed",
            hub.address()
        ))),
        false => conversation(hub).await,
    })
}

fn converse(
    place: HubOrRun,
    conversation: impl AsyncFnOnce(&Hub) -> anyhow::Result<Exit>,
) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let hub = runtime.block_on(Hub::at(place))?;
    until_signalled(&runtime, Box::pin(conversation(&hub)))
}

/// Boxed, so that the program has this once and not for every conversation.
fn until_signalled(
    runtime: &Runtime,
    conversation: Pin<Box<dyn Future<Output = anyhow::Result<Exit>> + '_>>,
) -> anyhow::Result<Exit> {
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt()).context("signals cannot be caught")?;
        let mut terminate = signal(SignalKind::terminate()).context("signals cannot be caught")?;
        tokio::select! {
            biased;
            exit = conversation => exit,
            _ = interrupt.recv() => Ok(Exit::Interrupted),
            _ = terminate.recv() => Ok(Exit::Interrupted),
        }
    })
}

/// The address of the hub's dashboard with the token that goes with it. Asks nobody. `None`: a run is meant.
pub(crate) fn dashboard_link(args: &WhereArgs) -> anyhow::Result<Option<String>> {
    match place::to_look(args)? {
        HubOrRun::Run(_) => Ok(None),
        HubOrRun::Hub(target, _) => {
            let token = target.token.as_ref();
            let token = token
                .ok_or_else(|| usage("the access file has no token: make one with `laboro access` on the hub's machine"))?;
            Ok(Some(format!("https://{}/#token={token}", target.address())))
        }
    }
}

impl Hub {
    async fn at(place: HubOrRun) -> anyhow::Result<Hub> {
        let (target, group, run) = match place {
            HubOrRun::Hub(target, group) => (*target, group, None),
            HubOrRun::Run(mut run) => {
                if !run.answers().await {
                    run = run.after_its_end().await;
                }
                let target = match &run.socket {
                    Some(socket) => run.target(socket),
                    None => Past::open(&run.dir).await?.target(run.name()),
                };
                (target, crate::run::GROUP.to_owned(), Some(run))
            }
        };
        Ok(Hub { client: Client::new(target), group, run })
    }

    /// The run that is asked, if it is one.
    pub(crate) fn run(&self) -> Option<&RunPlace> {
        self.run.as_ref()
    }

    /// The same run after its process has ended; that is waited for. `None`: it is a hub.
    pub(crate) async fn after_run(&self) -> anyhow::Result<Option<Hub>> {
        let Some(run) = &self.run else { return Ok(None) };
        let run = run.clone().after_its_end().await;
        Hub::at(HubOrRun::Run(run)).await.map(Some)
    }

    /// The same, if its process has ended already or is ending.
    pub(crate) async fn after_run_if_over(&self) -> anyhow::Result<Option<Hub>> {
        match &self.run {
            Some(run) if run.socket.is_none() || !run.answers().await => self.after_run().await,
            Some(_) | None => Ok(None),
        }
    }

    /// Nothing happens there any more.
    pub(crate) fn is_over(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.socket.is_none())
    }

    /// A link to a dashboard of a run that lives.
    pub(crate) async fn open_dashboard(&self) -> anyhow::Result<String> {
        self.client.post("dashboard", &json!({})).await.map_err(told)
    }

    pub(crate) fn address(&self) -> String {
        match &self.run {
            Some(run) => run.name(),
            None => self.client.target().address(),
        }
    }

    pub(crate) fn group(&self) -> &str {
        &self.group
    }

    pub(crate) async fn post<T: serde::de::DeserializeOwned>(
        &self,
        path: &str,
        body: &impl serde::Serialize,
    ) -> anyhow::Result<T> {
        self.client.post(path, body).await.map_err(told)
    }

    pub(crate) async fn delete<T: serde::de::DeserializeOwned>(
        &self,
        path: &str,
    ) -> anyhow::Result<T> {
        self.client.delete(path).await.map_err(told)
    }

    /// Anything that can only be looked at.
    pub(crate) async fn get<T: serde::de::DeserializeOwned>(
        &self,
        path: &str,
    ) -> anyhow::Result<T> {
        self.client.get(path).await.map_err(told)
    }

    pub(crate) async fn submit(&self, job: &SubmitJob) -> anyhow::Result<Submitted> {
        // With a key the hub knows it again.
        match job.key {
            Some(_) => self.client.post_again("jobs", job).await.map_err(told),
            None => self.client.post("jobs", job).await.map_err(told),
        }
    }

    /// Without what is called at its end, where the hub may not call that; says why.
    pub(crate) async fn submit_with_hooks_if_allowed(
        &self,
        mut job: SubmitJob,
    ) -> anyhow::Result<(Submitted, Option<String>)> {
        match self.client.post("jobs", &job).await {
            Ok(submitted) => Ok((submitted, None)),
            Err(ClientError::Refused(problem)) if problem.reason == "hook_not_allowed" => {
                job.on_end.clear();
                Ok((self.submit(&job).await?, Some(problem.detail)))
            }
            Err(error) => Err(told(error)),
        }
    }

    pub(crate) async fn add(&self, job: u32, tasks: &AddTasks) -> anyhow::Result<Submitted> {
        self.client.post(&format!("jobs/{job}/tasks"), tasks).await.map_err(told)
    }

    /// One JSON line for the job, then one for each task, as pieces of any size.
    pub(crate) async fn submit_stream(
        &self,
        feed: impl AsyncFnOnce(mpsc::Sender<Bytes>) -> anyhow::Result<()>,
    ) -> anyhow::Result<Submitted> {
        let (sender, upload) = Upload::new();
        let answer = self.client.upload("jobs/stream", upload);
        tokio::pin!(answer);
        let fed = feed(sender);
        tokio::pin!(fed);
        tokio::select! {
            // A refusal may come while there is still something to send.
            answered = &mut answer => return answered.map_err(told),
            fed = &mut fed => fed?,
        }
        answer.await.map_err(told)
    }

    pub(crate) async fn job(&self, job: u32) -> anyhow::Result<Job> {
        self.client.get(&format!("jobs/{job}")).await.map_err(told)
    }

    /// The job of this number, if there is one.
    pub(crate) async fn job_if_there(&self, job: u32) -> anyhow::Result<Option<Job>> {
        match self.client.get(&format!("jobs/{job}")).await {
            Ok(job) => Ok(Some(job)),
            Err(error) if error.reason() == Some("no_such_job") => Ok(None),
            Err(error) => Err(told(error)),
        }
    }

    pub(crate) async fn limit(&self, job: u32, limit: &Limit) -> anyhow::Result<Job> {
        self.client.post(&format!("jobs/{job}/limit"), limit).await.map_err(told)
    }

    pub(crate) async fn task(&self, job: u32, task: u32) -> anyhow::Result<Task> {
        self.client.get(&format!("jobs/{job}/tasks/{task}")).await.map_err(told)
    }

    /// The task of this name, if there is one.
    pub(crate) async fn task_named(
        &self,
        group: Option<&str>,
        name: &str,
    ) -> anyhow::Result<Option<Task>> {
        let group = segment(group.unwrap_or(&self.group));
        let found = self.client.get(&format!("groups/{group}/tasks/{}", segment(name))).await;
        match found {
            Ok(task) => Ok(Some(task)),
            Err(error) if matches!(error.reason(), Some("no_such_task" | "no_such_group")) => {
                Ok(None)
            }
            Err(error) => Err(told(error)),
        }
    }

    pub(crate) async fn explain(&self, job: u32, task: u32) -> anyhow::Result<Explained> {
        self.client.get(&format!("jobs/{job}/tasks/{task}/explain")).await.map_err(told)
    }

    pub(crate) async fn change(&self, chosen: &Chosen, verb: Verb) -> anyhow::Result<Changed> {
        let path = format!("jobs/{}/{}", chosen.job, verb.word());
        let selection = chosen.selection();
        let changed = match verb {
            Verb::Priority(priority) => {
                let (tasks, state) = (selection.tasks, selection.state);
                self.client.post(&path, &Prioritise { tasks, state, priority }).await
            }
            Verb::Cancel | Verb::Hold | Verb::Release | Verb::Retry => {
                self.client.post(&path, &selection).await
            }
        };
        match changed {
            Err(ClientError::Refused(problem)) if problem.reason == "nothing_selected" => {
                Err(self.nothing_to_do(chosen, verb).await)
            }
            changed => changed.map_err(told),
        }
    }

    async fn nothing_to_do(&self, chosen: &Chosen, verb: Verb) -> anyhow::Error {
        let (job, verb) = (chosen.job, verb.word());
        let state = match self.job(job).await {
            Ok(found) if chosen.which == Which::Job => found.state,
            _ => return refused(format!("nothing to {verb} among these tasks of job {job}")),
        };
        refused(match state {
            JobState::Done | JobState::Failed | JobState::Cancelled => {
                format!("nothing to {verb}: job {job} has already finished ({})", state.word())
            }
            state => format!("nothing to {verb}: job {job} is {}", state.word()),
        })
    }

    pub(crate) async fn close(&self, job: u32) -> anyhow::Result<()> {
        let closed: Result<Job, _> =
            self.client.post(&format!("jobs/{job}/close"), &json!({})).await;
        closed.map(drop).map_err(told)
    }

    pub(crate) async fn forget(&self, job: u32) -> anyhow::Result<()> {
        let forgotten: Result<Changed, _> = self.client.delete(&format!("jobs/{job}")).await;
        forgotten.map(drop).map_err(told)
    }

    /// Answers when all of the jobs are over, or after so long.
    pub(crate) async fn wait(
        &self,
        jobs: &[u32],
        patience: Duration,
    ) -> Result<Waited, ClientError> {
        let jobs: Vec<String> = jobs.iter().map(ToString::to_string).collect();
        let path =
            format!("wait?until=idle&jobs={}&timeout_ms={}", jobs.join(","), patience.as_millis());
        self.client.get_within(&path, patience).await
    }

    pub(crate) async fn groups(&self) -> anyhow::Result<Groups> {
        self.client.get("groups").await.map_err(told)
    }

    pub(crate) async fn pause(&self, group: &str, paused: bool) -> anyhow::Result<()> {
        let verb = if paused { "pause" } else { "resume" };
        let path = format!("groups/{}/{verb}", segment(group));
        let answer: Result<Value, _> = self.client.post(&path, &json!({})).await;
        answer.map(drop).map_err(told)
    }

    /// With what it holds.
    pub(crate) async fn worker(&self, worker: u32) -> anyhow::Result<Worker> {
        self.get(&format!("workers/{worker}")).await
    }

    pub(crate) async fn tell_worker(&self, worker: u32, verb: &WorkerVerb) -> anyhow::Result<()> {
        let path = |word: &str| format!("workers/{worker}/{word}");
        let told_it: Result<Worker, _> = match verb {
            WorkerVerb::Drain => self.client.post(&path("drain"), &json!({})).await,
            WorkerVerb::Stop(slots) => {
                self.client.post(&path("stop"), &StopSlots { slots: *slots }).await
            }
            WorkerVerb::Eject(reason) => {
                let reason = Some(reason.clone());
                self.client.post(&path("eject"), &Eject { reason }).await
            }
            WorkerVerb::Pardon => self.client.post(&path("pardon"), &json!({})).await,
            WorkerVerb::Lift => self.client.post(&path("lift"), &json!({})).await,
        };
        told_it.map(drop).map_err(told)
    }

    /// What a task printed, as it was. `from` is a place in it, or how many of the last bytes if negative;
    /// without an attempt it is the last one.
    pub(crate) async fn output(
        &self,
        job: u32,
        task: u32,
        attempt: Option<u16>,
        stream: Printed,
        from: Option<i64>,
    ) -> anyhow::Result<Download> {
        let mut path = format!("jobs/{job}/tasks/{task}/output?stream={}", stream.word());
        if let Some(attempt) = attempt {
            path.push_str(&format!("&attempt={attempt}"));
        }
        self.client.download(&path, from).await.map_err(told)
    }

    /// The same as it is printed, from this byte on, until the attempt is over or the hub goes away.
    pub(crate) async fn output_from(
        &self,
        job: u32,
        task: u32,
        attempt: Option<u16>,
        stream: Printed,
        from: u64,
    ) -> Result<Download, ClientError> {
        let mut path = format!("jobs/{job}/tasks/{task}/output?stream={}", stream.word());
        if let Some(attempt) = attempt {
            path.push_str(&format!("&attempt={attempt}"));
        }
        path.push_str(&format!("&follow=1&from={from}"));
        self.client.download(&path, None).await
    }

    /// What tasks gave back, in the order of their numbers; `None` where it is not kept.
    pub(crate) async fn results(
        &self,
        job: u32,
        first: u32,
        last: u32,
    ) -> anyhow::Result<Option<Download>> {
        let path = format!("jobs/{job}/results?from={first}&to={last}");
        match self.client.download(&path, None).await {
            Ok(stream) => Ok(Some(stream)),
            Err(error) if error.reason() == Some("no_outputs") => Ok(None),
            Err(error) => Err(told(error)),
        }
    }

    /// A task as it is now, however the question goes.
    pub(crate) async fn task_now(&self, job: u32, task: u32) -> Result<Task, ClientError> {
        self.client.get(&format!("jobs/{job}/tasks/{task}")).await
    }

    /// The last bytes of what a task printed to both streams.
    pub(crate) async fn output_end(
        &self,
        job: u32,
        task: u32,
        most: i64,
    ) -> anyhow::Result<Download> {
        let path = format!("jobs/{job}/tasks/{task}/output?stream=both");
        self.client.download(&path, Some(-most)).await.map_err(told)
    }

    pub(crate) async fn follow(&self, job: Option<u32>) -> anyhow::Result<Follow<'_>> {
        Follow::start(&self.client, job, self.run.is_none()).await
    }
}

const NAME_TAKEN: &str = "\
Names are unique in a group: say --prefix TEXT to put something before them, --group GROUP for another group,
or let the hub forget the finished job that has them: laboro forget JOB";

/// What to do next, where the hub's own words are for those who speak to its API.
fn typed(reason: &str) -> Option<&'static str> {
    Some(match reason {
        "no_such_task" => "`laboro tasks JOB` lists them",
        "no_such_group" => "`laboro groups` lists them",
        "no_such_worker" => "`laboro workers` lists them",
        "no_such_pool" => "`laboro pool` lists them",
        "unknown_predecessor" => "submit it first",
        _ => return None,
    })
}

/// A no of the hub has its own exit status, and a hub that is not there a hint.
fn told(error: ClientError) -> anyhow::Error {
    match error {
        ClientError::Refused(problem) if problem.reason == "name_taken" => {
            refused(format!("{}\n{NAME_TAKEN}", problem.detail))
        }
        ClientError::Refused(mut problem) if problem.status < 500 => {
            if let Some(hint) = typed(&problem.reason) {
                problem.hint = Some(hint.to_owned());
            }
            refused(problem)
        }
        ClientError::Unreachable { .. } => {
            anyhow::Error::msg(format!("{error}\n{}", access::START_ONE))
        }
        error => error.into(),
    }
}
