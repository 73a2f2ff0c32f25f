//! What an operator reads in the log of a hub about its jobs and workers: a line each at `info`, with a name in `event` that
//! does not change. Nothing is told of single tasks: there may be millions.

use laboro_core::{Event, JobId, Name, WorkerId};

#[derive(Debug)]
pub(super) enum LogLine {
    Submitted { job: JobId, name: Name },
    Stopped { job: JobId },
    Resumed { job: JobId },
    JobForgotten { job: JobId },
    WorkerMet { worker: WorkerId, name: Name, dialect: Name },
    WorkerForgotten { worker: WorkerId },
}

impl LogLine {
    pub(super) fn of(event: &Event) -> Option<LogLine> {
        Some(match event {
            Event::JobMade { job, options, .. } => {
                LogLine::Submitted { job: *job, name: options.name.clone() }
            }
            Event::JobStopped { job, stopped: true } => LogLine::Stopped { job: *job },
            Event::JobStopped { job, stopped: false } => LogLine::Resumed { job: *job },
            Event::JobForgotten { job } => LogLine::JobForgotten { job: *job },
            Event::WorkerMet { worker, name, dialect, .. } => {
                LogLine::WorkerMet { worker: *worker, name: name.clone(), dialect: dialect.clone() }
            }
            Event::WorkerForgotten { worker } => LogLine::WorkerForgotten { worker: *worker },
            _ => return None,
        })
    }

    pub(super) fn write(self) {
        match self {
            LogLine::Submitted { job, name } => {
                let name = name.to_string();
                tracing::info!(event = "job_submitted", job = job.0, name, "job submitted");
            }
            LogLine::Stopped { job } => {
                tracing::info!(
                    event = "job_stopped",
                    job = job.0,
                    "job stopped: too many failures"
                );
            }
            LogLine::Resumed { job } => {
                tracing::info!(event = "job_resumed", job = job.0, "job resumed");
            }
            LogLine::JobForgotten { job } => {
                tracing::info!(event = "job_forgotten", job = job.0, "job forgotten");
            }
            LogLine::WorkerMet { worker, name, dialect } => {
                let (name, dialect) = (name.to_string(), dialect.to_string());
                tracing::info!(
                    event = "worker_joined",
                    worker = worker.0,
                    name,
                    dialect,
                    "worker joined"
                );
            }
            LogLine::WorkerForgotten { worker } => {
                tracing::info!(event = "worker_forgotten", worker = worker.0, "worker forgotten");
            }
        }
    }
}
