//! Jobs of a hub as Slurm's commands show them: a row for each job, each element of an array, or for all elements of one
//! that have not begun.

use super::Fault;
use super::slip::{Slip, from_raw, raw};
use super::state::JobState;
use super::units::{Indices, set};
use crate::hub_client::{Hub, JobFilter, Newest, TaskPages};
use laboro_api::{After, Attempt, Job, OutcomeKind, Task, TaskState};

/// A job with what its first task says of all.
#[derive(Debug)]
pub(super) struct KnownJob {
    pub(super) job: Job,
    first: Task,
    pub(super) slip: Option<Slip>,
    indices: Option<Indices>,
}

/// One line of a list.
#[derive(Debug, Clone)]
pub(super) struct JobRow {
    pub(super) job: u32,
    /// Of an element, from 1.
    pub(super) place: Option<u32>,
    pub(super) index: Option<u32>,
    /// Elements that have not begun, in one row: `0-9%4`.
    pub(super) rest: Option<String>,
    pub(super) state: JobState,
    pub(super) reason: &'static str,
    pub(super) name: String,
    pub(super) user: String,
    pub(super) account: String,
    pub(super) partition: String,
    pub(super) comment: String,
    pub(super) work_dir: String,
    pub(super) output: String,
    pub(super) node: String,
    pub(super) cpus: u32,
    pub(super) nodes: u32,
    pub(super) tasks: u32,
    pub(super) memory_bytes: u64,
    pub(super) limit_ms: Option<u64>,
    pub(super) priority: i32,
    pub(super) submitted_ms: u64,
    pub(super) started_ms: Option<u64>,
    pub(super) ended_ms: Option<u64>,
    pub(super) exit_code: i32,
    pub(super) exit_signal: i32,
    pub(super) cpu_ms: u64,
    pub(super) peak_bytes: u64,
    pub(super) restarts: u32,
}

/// What a person means by `12`, `12_3` or `12.batch`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SlurmJobRef {
    pub(super) job: u32,
    pub(super) part: Part,
    /// As in `12.batch`.
    pub(super) step: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    All,
    Place(u32),
    Indices(Indices),
}

impl SlurmJobRef {
    pub(super) fn parse(text: &str) -> Result<SlurmJobRef, Fault> {
        let wrong = || Fault::from("Invalid job id specified");
        let (text, step) = match text.split_once('.') {
            Some((text, step)) => (text, Some(step.to_owned())),
            None => (text, None),
        };
        let (job, part) = match text.split_once('_') {
            Some((job, indices)) => {
                let set = indices.trim_start_matches('[').trim_end_matches(']');
                (job, Part::Indices(Indices::parse(set).map_err(|_| wrong())?))
            }
            None => (text, Part::All),
        };
        let (job, place) = job.parse().ok().and_then(from_raw).ok_or_else(wrong)?;
        match (place, part) {
            (Some(place), Part::All) => Ok(SlurmJobRef { job, part: Part::Place(place), step }),
            (None, part) => Ok(SlurmJobRef { job, part, step }),
            _ => Err(wrong()),
        }
    }

    pub(super) fn holds(&self, row: &JobRow) -> bool {
        self.job == row.job
            && match &self.part {
                Part::All => true,
                Part::Place(place) => row.place == Some(*place),
                Part::Indices(indices) => {
                    row.index.is_some_and(|index| indices.place(index).is_some())
                }
            }
    }
}

impl KnownJob {
    pub(super) async fn ask(hub: &Hub, job: u32) -> Result<KnownJob, Fault> {
        let found = hub.job(job).await.map_err(|_| Fault::from("Invalid job id specified"))?;
        KnownJob::of(hub, found).await
    }

    pub(super) async fn of(hub: &Hub, job: Job) -> Result<KnownJob, Fault> {
        let first = hub.task(job.job, 1).await?;
        let env = first.work.as_ref().map(|work| &work.env);
        let slip = Slip::read(|name| Some(env?.get(name)?.bytes().to_vec()))?;
        let typed = slip.as_ref().and_then(|slip| slip.array.as_deref());
        let is_array = first.work.as_ref().is_some_and(|work| work.element.is_some());
        let indices = match typed {
            Some(typed) => Indices::parse(typed).ok(),
            // Not by sbatch: elements count from 1.
            None if is_array || job.tasks > 1 => Indices::parse(&format!("1-{}", job.tasks)).ok(),
            None => None,
        };
        Ok(KnownJob { job, first, slip, indices })
    }

    /// All of it, as a predecessor.
    pub(super) fn whole(&self) -> After {
        match self.indices {
            Some(_) => After::Array { job: self.job.job, first: 1 },
            None => After::Task { job: self.job.job, task: 1 },
        }
    }

    pub(super) fn place(&self, index: u32) -> Result<u32, Fault> {
        let place = self.indices.as_ref().and_then(|indices| indices.place(index));
        place.ok_or_else(|| Fault::from("Invalid job id specified"))
    }

    pub(super) fn has_begun(&self) -> bool {
        let counts = &self.job.counts;
        counts.running + counts.done + counts.failed > 0
    }

    /// Which tasks of the job are meant; `None` for all.
    pub(super) fn places(&self, part: &Part) -> Result<Option<Vec<u32>>, Fault> {
        Ok(match part {
            Part::All => None,
            Part::Place(place) => Some(vec![*place]),
            Part::Indices(indices) => {
                Some(indices.all().map(|index| self.place(index)).collect::<Result<_, _>>()?)
            }
        })
    }

    /// Those that have not begun are one row, unless they are wanted one by one.
    pub(super) async fn rows(&self, hub: &Hub, one_by_one: bool) -> Result<Vec<JobRow>, Fault> {
        let Some(indices) = &self.indices else { return Ok(vec![self.row(&self.first, None)]) };
        let counts = &self.job.counts;
        let has_not_begun = counts.waiting + counts.blocked + counts.ready == counts.total();
        if has_not_begun && !one_by_one {
            let typed = self.slip.as_ref().and_then(|slip| slip.array.clone());
            let rest = typed.unwrap_or_else(|| format!("1-{}", self.job.tasks));
            return Ok(vec![JobRow { rest: Some(rest), ..self.row(&self.first, None) }]);
        }
        let (mut rows, mut rest) = (Vec::new(), Vec::new());
        let mut waiting = None;
        let mut tasks = TaskPages::new(hub, self.job.job, None, 1, None);
        while let Some(task) = tasks.next().await? {
            let index = indices.index(task.task);
            let row = self.row(&task, index);
            if row.state == JobState::Pending && !one_by_one && row.restarts == 0 {
                rest.extend(index);
                waiting.get_or_insert(row);
            } else {
                rows.push(row);
            }
        }
        if let Some(row) = waiting {
            rest.sort_unstable();
            let most = indices.running_max.map_or(String::new(), |most| format!("%{most}"));
            let rest = Some(format!("{}{most}", set(&rest)));
            rows.insert(0, JobRow { rest, place: None, index: None, ..row });
        }
        Ok(rows)
    }

    /// Those of an array that wait, in one row, and each that runs. Costs no more than what it shows, however large the
    /// array is.
    async fn active_rows(&self, hub: &Hub, indices: &Indices) -> Result<Vec<JobRow>, Fault> {
        let mut waiting: Vec<(u32, u32)> = Vec::new();
        use TaskState::{Blocked, Delayed, Held, Ready, Waiting};
        for state in [Waiting, Blocked, Ready, Delayed, Held].map(TaskState::word) {
            let mut from = Some(1);
            while let Some(first) = from {
                let path =
                    format!("jobs/{}/ranges?state={state}&limit=1000&from={first}", self.job.job);
                let page: laboro_api::Ranges = hub.get(&path).await?;
                waiting.extend(page.ranges.iter().map(|range| (range.first, range.last)));
                from = page.next;
            }
        }
        waiting.sort_unstable();
        let mut rows = Vec::new();
        if let Some(&(first, _)) = waiting.first() {
            let places = waiting.iter().flat_map(|&(first, last)| first..=last);
            let mut rest: Vec<u32> = places.filter_map(|place| indices.index(place)).collect();
            rest.sort_unstable();
            let most = indices.running_max.map_or(String::new(), |most| format!("%{most}"));
            let rest = Some(format!("{}{most}", set(&rest)));
            let row = self.row(&hub.task(self.job.job, first).await?, None);
            rows.push(JobRow { rest, ..row });
        }
        let mut running = TaskPages::new(hub, self.job.job, Some(TaskState::Running), 1, None);
        while let Some(task) = running.next().await? {
            rows.push(self.row(&task, indices.index(task.task)));
        }
        Ok(rows)
    }

    fn row(&self, task: &Task, index: Option<u32>) -> JobRow {
        let none = Slip::default();
        let slip = self.slip.as_ref().unwrap_or(&none);
        let work = self.first.work.as_deref();
        let last = task.attempts.last();
        let (state, reason) = self.state(task, last);
        let outcome = last.and_then(|last| last.outcome);
        let code = outcome.and_then(|outcome| outcome.code).unwrap_or(0);
        let (exit_code, exit_signal) = match outcome.map(|outcome| outcome.kind) {
            Some(OutcomeKind::Exit) => (code, 0),
            Some(OutcomeKind::Signal) => (0, code),
            Some(OutcomeKind::TimedOut) => (0, 15),
            Some(OutcomeKind::Memory) => (0, 125),
            Some(OutcomeKind::Error | OutcomeKind::Lost | OutcomeKind::Unknown) => (1, 0),
            Some(OutcomeKind::Success) | None => (0, 0),
        };
        let used = last.and_then(|last| last.used).unwrap_or_default();
        let name =
            if self.job.name.is_empty() { "laboro".into() } else { self.job.name.to_string() };
        JobRow {
            job: self.job.job,
            place: index.map(|_| task.task),
            index,
            rest: None,
            state,
            reason,
            name,
            user: if slip.user.is_empty() { super::user() } else { slip.user.clone() },
            account: slip.account.clone(),
            partition: self.job.group.to_string(),
            comment: slip.comment.clone(),
            work_dir: slip.work_dir.clone(),
            output: slip.output.clone().unwrap_or_default(),
            node: last.map(|last| last.worker_name.to_string()).unwrap_or_default(),
            cpus: work.map_or(1, |work| work.slots * work.nodes.unwrap_or(1)),
            nodes: work.and_then(|work| work.nodes).unwrap_or(1),
            tasks: slip.ntasks.max(1),
            memory_bytes: work.map_or(0, |work| work.memory_bytes),
            limit_ms: work.and_then(|work| work.timeout_ms),
            priority: task.priority,
            submitted_ms: self.job.submitted_ms,
            started_ms: last.map(|last| last.started_ms).filter(|_| state != JobState::Pending),
            ended_ms: last
                .and_then(|last| last.ended_ms)
                .filter(|_| state.is_over())
                .or_else(|| state.is_over().then_some(self.job.ended_ms).flatten()),
            exit_code,
            exit_signal,
            cpu_ms: (used.user_us + used.system_us) / 1000,
            peak_bytes: used.peak_memory_bytes,
            restarts: u32::from(task.lost_attempts),
        }
    }

    fn state(&self, task: &Task, last: Option<&Attempt>) -> (JobState, &'static str) {
        let outcome = last.and_then(|last| last.outcome).map(|outcome| outcome.kind);
        match task.state {
            TaskState::Running => (JobState::Running, "None"),
            TaskState::Done => (JobState::Completed, "None"),
            TaskState::Cancelled => (JobState::Cancelled, "None"),
            TaskState::Failed => match outcome {
                Some(OutcomeKind::TimedOut) => (JobState::TimedOut, "TimeLimit"),
                Some(OutcomeKind::Memory) => (JobState::OutOfMemory, "OutOfMemory"),
                Some(OutcomeKind::Lost) => (JobState::NodeFail, "NodeDown"),
                _ => (JobState::Failed, "NonZeroExitCode"),
            },
            TaskState::Held => (JobState::Pending, "JobHeldUser"),
            _ if self.job.held => (JobState::Pending, "JobHeldUser"),
            _ if self.job.begin_ms.is_some() => (JobState::Pending, "BeginTime"),
            TaskState::Blocked => (JobState::Pending, "DependencyNeverSatisfied"),
            TaskState::Waiting => (JobState::Pending, "Dependency"),
            TaskState::Delayed => (JobState::Pending, "BeginTime"),
            TaskState::Ready | TaskState::Unknown => (JobState::Pending, "Resources"),
        }
    }
}

impl JobRow {
    pub(super) fn id(&self) -> String {
        match (self.index, &self.rest) {
            (_, Some(rest)) => format!("{}_[{rest}]", self.job),
            (Some(index), None) => format!("{}_{index}", self.job),
            (None, None) => self.job.to_string(),
        }
    }

    pub(super) fn raw(&self) -> u64 {
        raw(self.job, self.place)
    }

    pub(super) fn elapsed_ms(&self, now_ms: u64) -> u64 {
        self.started_ms.map_or(0, |started| self.ended_ms.unwrap_or(now_ms).saturating_sub(started))
    }

    /// As a command that waits for it exits.
    pub(super) fn status(&self) -> u8 {
        match (self.state, self.exit_code, self.exit_signal) {
            (JobState::Completed, ..) => 0,
            (_, 0, 0) => 1,
            (_, 0, signal) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
            (_, code, _) => u8::try_from(code).unwrap_or(1),
        }
    }
}

/// Which jobs a list is about.
#[derive(Debug, Default)]
pub(super) struct WantedRows {
    /// None given: all.
    pub(super) jobs: Vec<SlurmJobRef>,
    pub(super) names: Vec<String>,
    pub(super) users: Vec<String>,
    pub(super) partitions: Vec<String>,
    /// `None`: all.
    pub(super) states: Option<Vec<JobState>>,
    /// Those that ended before are left out.
    pub(super) since_ms: u64,
    pub(super) one_by_one: bool,
}

impl WantedRows {
    /// Oldest first.
    pub(super) async fn rows(&self, hub: &Hub) -> Result<Vec<JobRow>, Fault> {
        let mut rows = Vec::new();
        if self.jobs.is_empty() {
            let mut found = Vec::new();
            let mut jobs = Newest::new(hub, &JobFilter::default(), None);
            while let Some(job) = jobs.next().await? {
                if job.tasks > 0 && self.holds_job(&job) {
                    found.push(job);
                }
            }
            for job in found.into_iter().rev() {
                rows.extend(self.rows_of(hub, KnownJob::of(hub, job).await?).await?);
            }
        }
        let mut asked: Vec<u32> = self.jobs.iter().map(|job| job.job).collect();
        asked.sort_unstable();
        asked.dedup();
        for job in asked {
            // One that is not known is told only where nothing else is.
            match KnownJob::ask(hub, job).await {
                Ok(known) if known.job.tasks > 0 => rows.extend(self.rows_of(hub, known).await?),
                Ok(_) => {}
                Err(fault) if self.jobs.len() == 1 => return Err(fault),
                Err(_) => {}
            }
        }
        Ok(rows)
    }

    fn only_active(&self) -> bool {
        self.states.as_ref().is_some_and(|s| !s.iter().any(|state| state.is_over()))
    }

    fn holds_job(&self, job: &Job) -> bool {
        let only_active = self.only_active();
        let is_over = job.counts.unfinished() == 0;
        let is_in_time = job.ended_ms.is_none_or(|ended| ended >= self.since_ms);
        let name = job.name.to_string();
        !(only_active && is_over)
            && is_in_time
            && (self.names.is_empty() || self.names.contains(&name))
            && (self.partitions.is_empty() || self.partitions.contains(&job.group.to_string()))
    }

    async fn rows_of(&self, hub: &Hub, known: KnownJob) -> Result<Vec<JobRow>, Fault> {
        let one_by_one = self.one_by_one || self.jobs.iter().any(|job| job.part != Part::All);
        let mut rows = match &known.indices {
            Some(indices) if self.only_active() && !one_by_one && known.has_begun() => {
                known.active_rows(hub, indices).await?
            }
            _ => known.rows(hub, one_by_one).await?,
        };
        rows.retain(|row| {
            self.states.as_ref().is_none_or(|states| states.contains(&row.state))
                && (self.users.is_empty() || self.users.contains(&row.user))
                && (self.names.is_empty() || self.names.contains(&row.name))
                && (self.jobs.is_empty() || self.jobs.iter().any(|job| job.holds(row)))
        });
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_meant_in_several_ways() {
        let parse = |text: &str| SlurmJobRef::parse(text).ok();
        let of = |part| Some(SlurmJobRef { job: 12, part, step: None });
        assert_eq!(parse("12"), of(Part::All));
        assert_eq!(parse("12.batch").and_then(|job| job.step).as_deref(), Some("batch"));
        assert_eq!(parse(&raw(12, Some(3)).to_string()), of(Part::Place(3)));
        let indices = Part::Indices(Indices::parse("3-5").unwrap_or_else(|_| panic!()));
        assert_eq!(parse("12_[3-5]"), of(indices));
        for wrong in ["", "x", "12_x", "-1"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
