//! Ids, times, names and ranges, each as what it differs by from the last of its kind in the record:
//! neighbours in a batch are neighbours in number, so most take one byte.

use super::{Decoder, Encoder};
use crate::record::RecordError;
use crate::record::bytes::{unzigzag, zigzag};
use laboro_core::{GroupId, JobId, LeaseNo, Name, Profile, Ranges, TaskId, Time, WorkerId};

/// How much of a name may come from the name before it. Without a bound, a short record could stand for
/// names without end.
const PREFIX_MAX: usize = 63;

/// The last of each kind, which the next one is told by. Both sides keep one and change it alike.
#[derive(Debug, Default)]
pub(super) struct Last {
    pub at: Time,
    pub time: Time,
    pub job: JobId,
    pub worker: WorkerId,
    pub lease: LeaseNo,
    /// Of the last lease granted; `time` is of other things.
    pub until: Option<Time>,
    /// Of records from before profiles had tags.
    pub profile: Option<Profile>,
    tasks: [TaskId; 5],
    name: Vec<u8>,
}

/// Tasks of one event kind follow one another, tasks of different kinds do not.
#[derive(Debug, Clone, Copy)]
pub(super) enum Line {
    Leased,
    Finished,
    Pred,
    Succ,
    Other,
}

impl Last {
    pub fn begin(&mut self, at: Time) {
        let mut name = std::mem::take(&mut self.name);
        name.clear();
        *self = Last { at, time: at, name, ..Last::default() };
    }

    pub fn task(&self, line: Line) -> TaskId {
        self.tasks[line as usize]
    }

    pub fn set_task(&mut self, line: Line, task: TaskId) {
        self.tasks[line as usize] = task;
    }

    /// The one that is most likely next.
    pub fn next_task(&self, line: Line) -> TaskId {
        let last = self.task(line);
        TaskId::new(last.job, last.index.wrapping_add(1))
    }

    pub fn next_lease(&self) -> LeaseNo {
        LeaseNo(self.lease.0.wrapping_add(1))
    }
}

impl Encoder {
    pub(super) fn job(&mut self, job: JobId) {
        self.step(job.0, self.last.job.0);
        self.last.job = job;
    }

    pub(super) fn worker(&mut self, worker: WorkerId) {
        self.step(worker.0, self.last.worker.0);
        self.last.worker = worker;
    }

    pub(super) fn lease(&mut self, lease: LeaseNo) {
        self.out.i64(lease.0.wrapping_sub(self.last.lease.0).cast_signed());
        self.last.lease = lease;
    }

    pub(super) fn time(&mut self, time: Time) {
        self.out.i64(time.0.wrapping_sub(self.last.time.0).cast_signed());
        self.last.time = time;
    }

    pub(super) fn task(&mut self, line: Line, task: TaskId) {
        let last = self.last.task(line);
        let step = zigzag(i64::from(task.number()) - i64::from(last.number()));
        let elsewhere = task.job != last.job;
        self.out.u64(step << 2 | u64::from(task.is_whole()) << 1 | u64::from(elsewhere));
        if elsewhere {
            self.step(task.job.0, last.job.0);
        }
        self.last.set_task(line, task);
    }

    pub(super) fn tasks(&mut self, line: Line, tasks: &[TaskId]) {
        self.list(tasks, |to, &task| to.task(line, task));
    }

    pub(super) fn name(&mut self, name: &Name) {
        let (bytes, last) = (name.bytes(), &mut self.last.name);
        let most = bytes.len().min(last.len()).min(PREFIX_MAX);
        let same = (0..most).find(|&at| bytes[at] != last[at]).unwrap_or(most);
        last.truncate(same);
        last.extend_from_slice(&bytes[same..]);
        self.out.u8(same as u8);
        self.out.string(&bytes[same..]);
    }

    pub(super) fn job_ranges(&mut self, tag: u8, job: JobId, ranges: &Ranges) {
        self.out.u8(tag);
        self.job(job);
        self.ranges(ranges);
    }

    pub(super) fn ranges(&mut self, ranges: &Ranges) {
        let mut last = 0;
        self.list(ranges, |to, &(from, upto)| {
            to.step(from, last);
            to.step(upto, from);
            last = upto;
        });
    }

    pub(super) fn step(&mut self, value: u32, last: u32) {
        self.out.i64(i64::from(value) - i64::from(last));
    }
}

impl Decoder<'_> {
    pub(super) fn group(&mut self) -> Result<GroupId, RecordError> {
        Ok(GroupId(self.from.u32()?))
    }

    pub(super) fn job(&mut self) -> Result<JobId, RecordError> {
        self.last.job = JobId(self.step(self.last.job.0)?);
        Ok(self.last.job)
    }

    pub(super) fn worker(&mut self) -> Result<WorkerId, RecordError> {
        self.last.worker = WorkerId(self.step(self.last.worker.0)?);
        Ok(self.last.worker)
    }

    pub(super) fn lease(&mut self) -> Result<LeaseNo, RecordError> {
        let step = self.from.i64()?;
        self.last.lease = LeaseNo(self.last.lease.0.wrapping_add_signed(step));
        Ok(self.last.lease)
    }

    pub(super) fn time(&mut self) -> Result<Time, RecordError> {
        let step = self.from.i64()?;
        self.last.time = Time(self.last.time.0.wrapping_add_signed(step));
        Ok(self.last.time)
    }

    pub(super) fn task(&mut self, line: Line) -> Result<TaskId, RecordError> {
        let (last, told) = (self.last.task(line), self.from.u64()?);
        let number = i64::from(last.number()).checked_add(unzigzag(told >> 2));
        let Some(number) = number
            .and_then(|number| u32::try_from(number).ok())
            .filter(|&number| number <= TaskId::INDEX_MAX)
        else {
            return self.from.malformed("a task's number has more than 31 bits");
        };
        let job = if told & 1 == 0 { last.job } else { JobId(self.step(last.job.0)?) };
        let task =
            if told & 2 == 0 { TaskId::new(job, number) } else { TaskId::whole(job, number) };
        self.last.set_task(line, task);
        Ok(task)
    }

    pub(super) fn tasks(&mut self, line: Line) -> Result<Vec<TaskId>, RecordError> {
        self.list(|from| from.task(line))
    }

    pub(super) fn name(&mut self) -> Result<Name, RecordError> {
        let same = usize::from(self.from.u8()?);
        if same > self.last.name.len().min(PREFIX_MAX) {
            return self.from.malformed("a name shares more than there is with the one before it");
        }
        let rest = self.from.string()?;
        self.last.name.truncate(same);
        self.last.name.extend_from_slice(rest);
        Ok(Name::new(&self.last.name))
    }

    /// One that resembles no other.
    pub(super) fn plain_name(&mut self) -> Result<Name, RecordError> {
        Ok(Name::new(self.from.string()?))
    }

    pub(super) fn ranges(&mut self) -> Result<Ranges, RecordError> {
        let mut last = 0;
        self.list(|from| {
            let first = from.step(last)?;
            last = from.step(first)?;
            Ok((first, last))
        })
    }

    pub(super) fn step(&mut self, last: u32) -> Result<u32, RecordError> {
        let value = i64::from(last).checked_add(self.from.i64()?);
        match value.and_then(|value| u32::try_from(value).ok()) {
            Some(value) => Ok(value),
            None => self.from.malformed("a step leads out of the 32-bit numbers"),
        }
    }
}
