//! What each view needs to know, asked of the hub. Pages are bounded: whoever wants all of a million tasks wants a
//! list, not a screen.

use super::model::View;
use crate::hub_client::Hub;
use laboro_api::{
    Groups, History, Job, JobHistory, Jobs, Overview, Task, TaskState, Tasks, Worker, Workers,
};
use std::time::Duration;

/// What was seen, for the view it was asked for.
pub(super) enum ViewNews {
    Overview(Box<OverviewNews>),
    Jobs(Vec<Job>),
    Job(Box<JobNews>),
    Task(Box<TaskNews>),
    Workers(Vec<Worker>),
    Trouble(String),
}

#[derive(Default)]
pub(super) struct OverviewNews {
    pub seen: Overview,
    pub past: History,
    pub groups: Groups,
    pub jobs: Vec<Job>,
}

pub(super) struct JobNews {
    pub job: Job,
    pub past: JobHistory,
    pub tasks: Vec<Task>,
}

pub(super) struct TaskNews {
    pub task: Task,
    pub explanation: Option<String>,
    pub output: String,
}

const ROWS: u32 = 200;
/// Of what a task printed.
const OUTPUT_BYTES: i64 = 16 << 10;

/// Waits until it is time, then looks. May be given up at any moment.
pub(super) async fn look(hub: &Hub, view: View, wait: Duration) -> ViewNews {
    tokio::time::sleep(wait).await;
    match seen(hub, view).await {
        Ok(news) => news,
        Err(error) => ViewNews::Trouble(format!("{error:#}")),
    }
}

async fn seen(hub: &Hub, view: View) -> anyhow::Result<ViewNews> {
    Ok(match view {
        View::Overview => ViewNews::Overview(Box::new(OverviewNews {
            seen: hub.get("overview").await?,
            past: hub.get("history").await?,
            groups: hub.groups().await?,
            jobs: hub.get::<Jobs>("jobs?order=newest&limit=20").await?.jobs,
        })),
        View::Jobs => {
            ViewNews::Jobs(hub.get::<Jobs>(&format!("jobs?order=newest&limit={ROWS}")).await?.jobs)
        }
        View::Workers => {
            ViewNews::Workers(hub.get::<Workers>(&format!("workers?limit={ROWS}")).await?.workers)
        }
        View::Job(job, state) => {
            let state = state.map_or(String::new(), |state| format!("&state={}", state.word()));
            let tasks = format!("jobs/{job}/tasks?limit={ROWS}{state}");
            ViewNews::Job(Box::new(JobNews {
                job: hub.job(job).await?,
                past: hub.get(&format!("jobs/{job}/history")).await?,
                tasks: hub.get::<Tasks>(&tasks).await?.tasks,
            }))
        }
        View::Task(job, number) => {
            let task = hub.task(job, number).await?;
            let explanation = match task.state {
                TaskState::Running | TaskState::Done | TaskState::Failed | TaskState::Cancelled => {
                    None
                }
                _ => Some(hub.explain(job, number).await?.explanation),
            };
            let output = output(hub, job, number).await?;
            ViewNews::Task(Box::new(TaskNews { task, explanation, output }))
        }
    })
}

async fn output(hub: &Hub, job: u32, task: u32) -> anyhow::Result<String> {
    let mut printed = Vec::new();
    let mut output = hub.output_end(job, task, OUTPUT_BYTES).await?;
    while let Some(piece) = output.next().await? {
        printed.extend_from_slice(&piece);
        if printed.len() > 4 * OUTPUT_BYTES.unsigned_abs() as usize {
            break;
        }
    }
    Ok(String::from_utf8_lossy(&printed).into_owned())
}
