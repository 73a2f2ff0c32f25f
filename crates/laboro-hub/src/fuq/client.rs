//! What the command line asks: to queue, list, hold, release and cancel jobs, and to list and stop nodes. Whoever
//! has the password may.

use super::answer::{FuqAnswer, FuqRefused, done, json};
use super::jobs::{JobStatus, NodeInfo, StateChange, description, is_over, node_info, status};
use super::message::Message;
use super::register::Node;
use super::serve::FuqConnection;
use laboro_core::{
    ArraySpec, Command, Drain, JobId, JobOptions, JobView, Name, Query, Refusal, Reply, Selection,
    State, Submit, SubmitTo, TaskView, Which, Work, WorkerRef,
};

pub(super) const PATHS: [&str; 7] = [
    "client/job/new",
    "client/job/list",
    "client/job/state",
    "client/job/clear",
    "client/nodes/list",
    "client/nodes/shutdown",
    "client/shutdown",
];

/// What one list shows at most, of jobs and of a job's tasks.
const JOBS_MAX: usize = 10_000;
const TASKS_MAX: usize = 100_000;
const PAGE: u32 = 1000;

impl FuqConnection {
    pub(super) async fn client(&self, path: &str, said: &Message) -> Result<FuqAnswer, FuqRefused> {
        let now = self.reception.hall.clock.now();
        self.door.admit(&said.inner("auth")?.text("password")?, self.peer, now)?;
        let said = said.inner("msg")?;
        match path {
            "client/job/new" => self.new_job(&said).await,
            "client/job/list" => self.list_jobs(&said).await,
            "client/job/state" => self.change_jobs(&said).await,
            "client/job/clear" => self.clear_jobs().await,
            "client/nodes/list" => self.list_nodes(&said),
            "client/nodes/shutdown" => self.stop_nodes(&said).await,
            _ if self.door.stays => {
                Err(FuqRefused::Forbidden("403 this door does not stop the hub"))
            }
            _ => {
                tracing::info!("{}: {} stops the hub", self.reception.door, self.peer);
                self.reception.hall.stop.cancel();
                Ok(done())
            }
        }
    }

    async fn new_job(&self, said: &Message) -> Result<FuqAnswer, FuqRefused> {
        let (name, command) = (said.text("name")?, said.text("command")?);
        let (dir, log_dir) = (said.text("working_dir")?, said.text("logging_dir")?);
        let (tasks, status) = (said.number("num_tasks")?, said.text("status")?);
        let bad = |why: String| Err(FuqRefused::Bad(why));
        // It becomes part of the name of a file.
        if name.contains(['/', '\0']) {
            return bad(format!("the name {name:?} has a slash in it"));
        }
        if command.is_empty() || [&command, &dir, &log_dir].iter().any(|text| text.contains('\0')) {
            return bad("the command is missing, or there is a NUL in a path".into());
        }
        let Some(count) = u32::try_from(tasks).ok().filter(|&count| count > 0) else {
            return bad(format!("num_tasks {tasks}: a job has at least one task"));
        };
        if !matches!(status.as_str(), "" | "waiting") {
            return bad(format!("status {status}: a new job is waiting"));
        }
        if log_dir.is_empty() {
            let door = &self.reception.door;
            self.reception.complaints.warn(format_args!(
                "{door}: job {} has no logging_dir: Laboro's workers discard what its tasks print",
                Name::from(name.as_str())
            ));
        }
        let part = |text: String| text.into_bytes().into_boxed_slice();
        let (program, dir, log_dir) = (part(command), part(dir), part(log_dir));
        let owner = Some("door:fuq".into());
        let options = JobOptions { name: Name::from(name), owner, ..JobOptions::default() };
        // Jobs may share a name and arrays may not, so the array has none.
        let work = Work::indexed(program, dir, log_dir);
        let arrays = vec![ArraySpec::numbered("", count, work)];
        let submit = Submit { job: SubmitTo::New(options), arrays, ..Submit::new(self.group()) };
        match self.ask(Command::Submit(submit)).await? {
            Reply::Submitted { job, .. } => Ok(json(&Queued { job_id: job.0 })),
            Reply::Refused(refusal) => bad(refusal.to_string()),
            reply => Err(unexpected(&reply)),
        }
    }

    async fn list_jobs(&self, said: &Message) -> Result<FuqAnswer, FuqRefused> {
        let (name, wanted) = (said.text("name")?, said.text("status")?);
        let is_wanted = |job: &JobView| {
            let status = status(job);
            let suits = if wanted.is_empty() { !is_over(status) } else { status == wanted };
            suits && (name.is_empty() || job.name.bytes() == name.as_bytes())
        };
        let mut shown = Vec::new();
        for job in self.jobs(is_wanted).await? {
            let first = self.tasks(job.job, None, 1).await?;
            let running = self.numbers(job.job, State::Leased).await?;
            let failed = self.numbers(job.job, State::Failed).await?;
            let counts = &job.counts;
            shown.push(JobStatus {
                description: description(&job, first.first()),
                tasks_finished: counts.of(State::Done).into(),
                tasks_pending: counts.unfinished() - u64::from(counts.of(State::Leased)),
                tasks_running: running,
                tasks_with_errors: failed,
            });
        }
        Ok(json(&shown))
    }

    async fn change_jobs(&self, said: &Message) -> Result<FuqAnswer, FuqRefused> {
        let (numbers, action) = (said.jobs("job_ids")?, said.text("action")?);
        if numbers.is_empty() {
            return Err(FuqRefused::Bad("job_ids: which jobs?".into()));
        }
        let (change, becomes): (fn(Selection) -> Command, _) = match action.as_str() {
            "hold" => (Command::Hold, "paused"),
            "release" => (Command::Release, "waiting"),
            "cancel" => (Command::Cancel, "cancelled"),
            other => {
                return Err(FuqRefused::Bad(format!("action {other}: hold, release or cancel")));
            }
        };
        // All of them are there, or nothing is changed.
        let mut jobs = Vec::new();
        for number in numbers {
            jobs.push(self.job(number).await?);
        }
        let mut changed = Vec::new();
        for job in jobs {
            let before = status(&job);
            let selection = Selection { job: job.job, which: Which::Job };
            // What is over stays what it is.
            let after = match is_over(before) {
                true => before,
                false => {
                    self.ask(change(selection)).await?;
                    becomes
                }
            };
            let (prev_status, new_status) = (before, after);
            changed.push(StateChange { job_id: job.job.0, prev_status, new_status });
        }
        Ok(json(&changed))
    }

    /// Only those that came in by a door like this one: others share the group.
    async fn clear_jobs(&self) -> Result<FuqAnswer, FuqRefused> {
        for job in self.jobs(|_| true).await? {
            let first = self.tasks(job.job, None, 1).await?;
            let work = first.first().and_then(|task| task.work.as_deref());
            if matches!(work, Some(Work::Indexed(_))) {
                let selection = Selection { job: job.job, which: Which::Job };
                self.ask(Command::Cancel(selection)).await?;
                self.ask(Command::Forget(job.job)).await?;
            }
        }
        Ok(done())
    }

    fn list_nodes(&self, said: &Message) -> Result<FuqAnswer, FuqRefused> {
        let nodes = match said.flag("cookie_list")? {
            true => self.door.register().nodes(self.reception.hall.clock.now()),
            false => self.nodes_here(),
        };
        Ok(json(&nodes.iter().map(node_info).collect::<Vec<NodeInfo<'_>>>()))
    }

    /// Connected by websocket, or polling.
    fn nodes_here(&self) -> Vec<Node> {
        let mut nodes: Vec<Node> = self.door.connected().values().cloned().collect();
        let known = self.door.register().nodes(self.reception.hall.clock.now());
        nodes.extend(known.into_iter().filter(|node| self.door.polls(&node.name)));
        nodes.sort_by(|one, other| one.name.cmp(&other.name));
        nodes.dedup_by(|one, other| one.name == other.name);
        nodes
    }

    async fn stop_nodes(&self, said: &Message) -> Result<FuqAnswer, FuqRefused> {
        for name in said.texts("uniq_names")? {
            if !self.door.register().knows(&name) {
                // Workers of other kinds in the group are not for fuq's clients to stop.
                continue;
            }
            self.door.register().send_away(&name);
            let worker = WorkerRef::Name { group: self.group(), name: Name::from(name) };
            // One that is not there hears of it when it comes.
            self.ask(Command::Drain(worker, Drain::All)).await?;
        }
        Ok(done())
    }

    fn group(&self) -> Name {
        Name::from(self.reception.door.group.as_str())
    }

    async fn ask(&self, command: Command) -> Result<Reply, FuqRefused> {
        crate::listen::stats::count(&self.reception.door.stats.commands, 1);
        Ok(self.reception.handle.ask(command).await?)
    }

    /// A job of this door's group.
    async fn job(&self, number: u64) -> Result<JobView, FuqRefused> {
        let none = || FuqRefused::Bad(format!("there is no job {number}"));
        let job = u32::try_from(number).map(JobId).map_err(|_| none())?;
        match self.ask(Command::Query(Query::Job(job))).await? {
            Reply::Jobs(views) => {
                views.into_iter().find(|view| view.group == self.group()).ok_or_else(none)
            }
            _ => Err(none()),
        }
    }

    /// The jobs of the group that are wanted, oldest first.
    async fn jobs(&self, is_wanted: impl Fn(&JobView) -> bool) -> Result<Vec<JobView>, FuqRefused> {
        let (mut wanted, mut from) = (Vec::new(), JobId(0));
        loop {
            let query = Query::Jobs { group: Some(self.group()), owner: None, from, most: PAGE };
            let views = match self.ask(Command::Query(query)).await? {
                Reply::Jobs(views) => views,
                Reply::Refused(Refusal::NoSuchGroup(_)) => return Ok(wanted),
                reply => return Err(unexpected(&reply)),
            };
            let Some(last) = views.last().map(|view| view.job.0) else { return Ok(wanted) };
            wanted.extend(views.into_iter().filter(&is_wanted));
            if wanted.len() >= JOBS_MAX || last == u32::MAX {
                wanted.truncate(JOBS_MAX);
                return Ok(wanted);
            }
            from = JobId(last + 1);
        }
    }

    async fn tasks(
        &self,
        job: JobId,
        state: Option<State>,
        most: u32,
    ) -> Result<Vec<TaskView>, FuqRefused> {
        let query = Query::Tasks { job, state, from: 1, most };
        match self.ask(Command::Query(query)).await? {
            Reply::Tasks { tasks, .. } => Ok(tasks),
            // Forgotten meanwhile.
            _ => Ok(Vec::new()),
        }
    }

    /// The numbers of a job's tasks in this state.
    async fn numbers(&self, job: JobId, state: State) -> Result<Vec<u32>, FuqRefused> {
        let (mut numbers, mut from) = (Vec::new(), 1);
        while numbers.len() < TASKS_MAX {
            let query = Query::Tasks { job, state: Some(state), from, most: PAGE };
            let Reply::Tasks { tasks, next } = self.ask(Command::Query(query)).await? else {
                break;
            };
            numbers.extend(tasks.iter().map(|task| task.task.index));
            match next {
                Some(next) => from = next,
                None => break,
            }
        }
        Ok(numbers)
    }
}

/// A job that was taken.
#[derive(Debug, serde::Serialize)]
struct Queued {
    job_id: u32,
}

fn unexpected(reply: &Reply) -> FuqRefused {
    FuqRefused::Trouble(format!("the hub answered with {reply:?}"))
}
