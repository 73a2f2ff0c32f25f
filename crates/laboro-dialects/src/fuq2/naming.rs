//! How originals name tasks, in both versions: a job's number and a number in its array, without a lease; and
//! what such a task is to a Laboro hub and to a Laboro worker.

use super::payload::{JobDescription, RUNNING, Task, TaskPair};
use crate::worker::{Assignment, ElementValue, Key};
use bytes::Bytes;
use laboro_core::{Grant, JobId, LeaseNo, Name, TaskId, Work};
use std::sync::Arc;

/// One task at a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeldTask {
    pub(crate) task: TaskId,
    pub(crate) lease: LeaseNo,
    /// What its number in its job has more than its number in its array, as originals count.
    pub(crate) base: u32,
}

/// A task as originals name it is a job and a number in its array, counted from 1. An array that is not the
/// first of its job starts later: how much is told by the upper half of the job's number, which originals
/// only repeat.
pub(crate) fn pair_of(held: &HeldTask) -> TaskPair {
    let HeldTask { task, base, .. } = *held;
    let number = task.index.saturating_sub(base);
    TaskPair { job: job_number(task.job, base), task: number.into(), lease: None }
}

fn job_number(job: JobId, base: u32) -> u64 {
    u64::from(base) << 32 | u64::from(job.0)
}

/// What a job's number and a task's number mean, if they can mean something.
pub(crate) fn held_of(job: u64, task: i64) -> Option<HeldTask> {
    let base = (job >> 32) as u32;
    let index = u32::try_from(task).ok().filter(|&task| task > 0)?.checked_add(base)?;
    let task = TaskId::new(JobId(job as u32), index);
    (!task.is_whole()).then_some(HeldTask { task, lease: LeaseNo(0), base })
}

/// The task of the hub that originals mean with these numbers.
pub fn task_id(job: u64, task: i64) -> Option<TaskId> {
    held_of(job, task).map(|held| held.task)
}

pub(crate) fn held_by(grant: &Grant) -> HeldTask {
    let number = grant.element.as_ref().map_or(1, |element| element.position + 1);
    let base = grant.task.index.saturating_sub(number);
    HeldTask { task: grant.task, lease: grant.lease, base }
}

/// As originals are told of it.
pub fn task_of(grant: &Grant) -> Task {
    let held = held_by(grant);
    let pair = pair_of(&held);
    let part = |bytes: &[u8]| Bytes::copy_from_slice(bytes);
    let (command, dir, log_dir) = match grant.work.as_deref() {
        Some(Work::Indexed(work)) => (part(&work.program), part(&work.dir), part(&work.log_dir)),
        // Not offered, so not given.
        _ => Default::default(),
    };
    let tasks = grant.element.as_ref().map_or(1, |element| element.count.into());
    let name = part(title(grant).bytes());
    let job = JobDescription { id: pair.job, name, tasks, dir, log_dir, command, status: RUNNING };
    Task { task: pair.task, job }
}

/// What its log file is called after. Jobs of the originals may share a name and arrays may not, so theirs
/// have none.
pub(crate) fn title(grant: &Grant) -> &Name {
    if grant.name.is_empty() { &grant.job_name } else { &grant.name }
}

/// As a worker is told of it. `None`: there is no such task.
pub fn assignment(key: Key, task: &Task) -> Option<Assignment> {
    let number = u32::try_from(task.task).ok().filter(|&number| number > 0)?;
    let job = &task.job;
    let part = |bytes: &[u8]| Box::from(bytes);
    let (program, dir, log_dir) = (part(&job.command), part(&job.dir), part(&job.log_dir));
    Some(Assignment {
        key,
        // As elements of arrays are called; the log file has the job's name and the number apart.
        name: format!("{}.{number}", String::from_utf8_lossy(&job.name)),
        job: job.id,
        index: number,
        attempt: 1,
        work: Arc::new(Work::indexed(program, dir, log_dir)),
        value: Some(ElementValue { position: number - 1, bytes: Bytes::from(number.to_string()) }),
        slots: 1,
        memory: 0,
        time_limit_ms: None,
        resources: Vec::new(),
        role: laboro_core::Role::Only,
        access: None,
    })
}
