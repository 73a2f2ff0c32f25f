//! Jobs, tasks and nodes of the hub in the words of fuq, with the keys in the original's order.

use super::register::Node;
use laboro_core::{Grant, JobView, State, TaskView, Work};
use laboro_dialects::fuq2;
use serde::Serialize;

#[derive(Debug, Serialize)]
pub(super) struct Description {
    job_id: u64,
    name: String,
    num_tasks: u64,
    working_dir: String,
    logging_dir: String,
    command: String,
    status: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct Task {
    task: i64,
    #[serde(flatten)]
    job: Description,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct JobStatus {
    pub description: Description,
    pub tasks_finished: u64,
    pub tasks_pending: u64,
    pub tasks_running: Vec<u32>,
    pub tasks_with_errors: Vec<u32>,
}

#[derive(Debug, Serialize)]
pub(super) struct StateChange {
    pub job_id: u32,
    pub prev_status: &'static str,
    pub new_status: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct NodeInfo<'a> {
    node: &'a str,
    pid: i64,
    /// The node's own secret, so it is not told.
    session: &'static str,
    unique_name: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    tags: &'a [String],
    nproc: u32,
}

/// A job's status, as a word.
pub(super) fn status(job: &JobView) -> &'static str {
    let counts = &job.counts;
    if counts.unfinished() == 0 {
        return if counts.of(State::Cancelled) > 0 { "cancelled" } else { "finished" };
    }
    let begun = [State::Leased, State::Done, State::Failed, State::Cancelled];
    let has_begun = begun.iter().any(|&state| counts.of(state) > 0);
    match (job.held, has_begun) {
        (true, _) => "paused",
        (false, true) => "running",
        (false, false) => "waiting",
    }
}

/// The statuses that a list of all jobs leaves out.
pub(super) fn is_over(status: &str) -> bool {
    matches!(status, "finished" | "cancelled")
}

/// `first` is any of its tasks, if it has some. Jobs of another kind have no command to show.
pub(super) fn description(job: &JobView, first: Option<&TaskView>) -> Description {
    let (command, working_dir, logging_dir) = match first.and_then(|task| task.work.as_deref()) {
        Some(Work::Indexed(work)) => (text(&work.program), text(&work.dir), text(&work.log_dir)),
        _ => Default::default(),
    };
    Description {
        job_id: job.job.0.into(),
        name: text(job.name.bytes()),
        num_tasks: job.counts.total(),
        working_dir,
        logging_dir,
        command,
        status: status(job),
    }
}

pub(super) fn task(grant: &Grant) -> Task {
    let fuq2::Task { task, job } = fuq2::task_of(grant);
    let job = Description {
        job_id: job.id,
        name: text(&job.name),
        num_tasks: job.tasks.unsigned_abs(),
        working_dir: text(&job.dir),
        logging_dir: text(&job.log_dir),
        command: text(&job.command),
        status: "running",
    };
    Task { task, job }
}

/// What is no task, but tells a node that polls to leave.
pub(super) fn stop_task() -> Task {
    let none = String::new;
    let job = Description {
        job_id: 0,
        name: "::stop::".into(),
        num_tasks: 0,
        working_dir: none(),
        logging_dir: none(),
        command: none(),
        status: "waiting",
    };
    Task { task: -1, job }
}

pub(super) fn node_info(node: &Node) -> NodeInfo<'_> {
    NodeInfo {
        node: &node.host,
        pid: node.pid,
        session: "",
        unique_name: &node.name,
        tags: &node.tags,
        nproc: node.slots,
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
