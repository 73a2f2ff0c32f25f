//! Tasks and results in the JSON of fuq.

use laboro_core::Outcome;
use laboro_dialects::fuq2::{JobDescription, Task, status_of};
use serde_json::{Value, json};

/// What a foreman gave, as it wrote it.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
struct Given {
    task: i64,
    job_id: u64,
    name: String,
    num_tasks: i64,
    working_dir: String,
    logging_dir: String,
    command: String,
}

/// What a list of tasks means to a node.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Work {
    Tasks(Vec<Task>),
    /// No task: leave.
    Stop,
}

pub(super) fn read(answer: Value) -> Result<Work, serde_json::Error> {
    let given: Option<Vec<Given>> = serde_json::from_value(answer)?;
    let given = given.unwrap_or_default();
    let is_stop = |given: &Given| given.task < 0 && given.job_id == 0 && given.name == "::stop::";
    if given.iter().any(is_stop) {
        return Ok(Work::Stop);
    }
    let task = |given: Given| Task {
        task: given.task,
        job: JobDescription {
            id: given.job_id,
            name: given.name.into(),
            tasks: given.num_tasks,
            dir: given.working_dir.into(),
            log_dir: given.logging_dir.into(),
            command: given.command.into(),
            status: 1,
        },
    };
    Ok(Work::Tasks(given.into_iter().map(task).collect()))
}

/// One that `asks` is answered with the next task, when there is one; only then is it known that the result is taken.
pub(super) fn update(task: &Task, outcome: Outcome, message: Option<&str>, asks: bool) -> Value {
    json!({
        "job_id": task.job.id,
        "task": task.task,
        "success": outcome.is_success(),
        "status": status_of(outcome, message),
        "newjob": asks.then(|| json!({ "nproc": 1 })),
    })
}
