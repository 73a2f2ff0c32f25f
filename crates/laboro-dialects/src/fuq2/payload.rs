//! The bodies that the originals know: maps with fixed keys in a fixed order, every key there. Laboro's own
//! fields are in `native`. Status words and numbers are carried, not judged.

use super::pack::{
    PackError, PackReader, write_array, write_bool, write_int, write_map, write_nil, write_str,
    write_uint,
};
use bytes::{Bytes, BytesMut};

/// Tasks that one message may name.
pub(super) const TASKS_MAX: usize = 65_536;

/// What a job's status is while its tasks are handed out.
pub(crate) const RUNNING: u64 = 1;

/// One task as originals know it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// Counted from 1. Below 0: no task at all.
    pub task: i64,
    /// The job that it is a part of.
    pub job: JobDescription,
}

/// A job as originals know it: every field travels with each of its tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct JobDescription {
    pub id: u64,
    pub name: Bytes,
    /// How many it has.
    pub tasks: i64,
    pub dir: Bytes,
    pub log_dir: Bytes,
    pub command: Bytes,
    pub status: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct JobStatusUpdate {
    pub(crate) job: u64,
    pub(crate) task: i64,
    pub(crate) success: bool,
    pub(crate) status: Bytes,
    /// Asks for so many more, on carriers where work is asked for.
    pub(crate) new_job: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TaskPair {
    pub(super) job: u64,
    /// Below 0: the whole job.
    pub(super) task: i64,
    /// Only between Laboro peers.
    pub(super) lease: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PlainHello {
    pub(super) free: i64,
    pub(super) running: Vec<Task>,
}

impl Task {
    pub(crate) fn write(&self, to: &mut BytesMut) {
        write_map(to, 2);
        self.write_fields(to);
    }

    /// Without the head of the map, for those who add a field.
    pub(super) fn write_fields(&self, to: &mut BytesMut) {
        write_str(to, b"Task");
        write_int(to, self.task);
        write_str(to, b"JobDescription");
        self.job.write(to);
    }

    /// The description is nested, and flat from those who flatten it.
    pub(crate) fn read(from: &mut PackReader<'_>) -> Result<Task, PackError> {
        const KEYS: [&str; 9] = [
            "Task",
            "JobDescription",
            "JobId",
            "Name",
            "NumTasks",
            "WorkingDir",
            "LoggingDir",
            "Command",
            "Status",
        ];
        let mut task = Task::default();
        from.fields(&KEYS, |at, from| {
            match at {
                0 => task.task = from.int()?,
                1 => task.job = JobDescription::read(from)?,
                flat => task.job.read_field(flat - 2, from)?,
            }
            Ok(())
        })?;
        Ok(task)
    }
}

impl JobDescription {
    fn write(&self, to: &mut BytesMut) {
        write_map(to, 7);
        write_str(to, b"JobId");
        write_uint(to, self.id);
        write_str(to, b"Name");
        write_str(to, &self.name);
        write_str(to, b"NumTasks");
        write_int(to, self.tasks);
        write_str(to, b"WorkingDir");
        write_str(to, &self.dir);
        write_str(to, b"LoggingDir");
        write_str(to, &self.log_dir);
        write_str(to, b"Command");
        write_str(to, &self.command);
        write_str(to, b"Status");
        write_uint(to, self.status);
    }

    pub(super) fn read(from: &mut PackReader<'_>) -> Result<JobDescription, PackError> {
        const KEYS: [&str; 7] =
            ["JobId", "Name", "NumTasks", "WorkingDir", "LoggingDir", "Command", "Status"];
        let mut job = JobDescription::default();
        from.fields(&KEYS, |at, from| job.read_field(at, from))?;
        Ok(job)
    }

    fn read_field(&mut self, at: usize, from: &mut PackReader<'_>) -> Result<(), PackError> {
        match at {
            0 => self.id = from.uint()?,
            1 => self.name = from.shared()?,
            2 => self.tasks = from.int()?,
            3 => self.dir = from.shared()?,
            4 => self.log_dir = from.shared()?,
            5 => self.command = from.shared()?,
            _ => self.status = from.uint()?,
        }
        Ok(())
    }
}

impl JobStatusUpdate {
    pub(crate) fn write(&self, to: &mut BytesMut) {
        write_map(to, 5);
        write_str(to, b"JobId");
        write_uint(to, self.job);
        write_str(to, b"Task");
        write_int(to, self.task);
        write_str(to, b"Success");
        write_bool(to, self.success);
        write_str(to, b"Status");
        write_str(to, &self.status);
        write_str(to, b"NewJob");
        match self.new_job {
            None => write_nil(to),
            Some(n) => {
                write_map(to, 1);
                write_str(to, b"NumProc");
                write_int(to, n);
            }
        }
    }

    pub(crate) fn read(from: &mut PackReader<'_>) -> Result<JobStatusUpdate, PackError> {
        const KEYS: [&str; 5] = ["JobId", "Task", "Success", "Status", "NewJob"];
        let mut update = JobStatusUpdate::default();
        from.fields(&KEYS, |at, from| {
            match at {
                0 => update.job = from.uint()?,
                1 => update.task = from.int()?,
                2 => update.success = from.bool()?,
                3 => update.status = from.shared()?,
                _ if from.nil() => update.new_job = None,
                _ => {
                    let mut n = 0;
                    from.fields(&["NumProc"], |_, from| from.int().map(|given| n = given))?;
                    update.new_job = Some(n);
                }
            }
            Ok(())
        })?;
        Ok(update)
    }
}

impl TaskPair {
    fn write(&self, to: &mut BytesMut) {
        write_map(to, 2 + usize::from(self.lease.is_some()));
        write_str(to, b"JobId");
        write_uint(to, self.job);
        write_str(to, b"Task");
        write_int(to, self.task);
        if let Some(lease) = self.lease {
            write_str(to, b"Lease");
            write_uint(to, lease);
        }
    }

    fn read(from: &mut PackReader<'_>) -> Result<TaskPair, PackError> {
        let mut pair = TaskPair::default();
        from.fields(&["JobId", "Task", "Lease"], |at, from| {
            match at {
                0 => pair.job = from.uint()?,
                1 => pair.task = from.int()?,
                _ => pair.lease = Some(from.uint()?),
            }
            Ok(())
        })?;
        Ok(pair)
    }
}

impl PlainHello {
    pub(super) fn write(&self, to: &mut BytesMut) {
        write_map(to, 2);
        self.write_fields(to);
    }

    /// Without the head of the map, for those who add a field.
    pub(super) fn write_fields(&self, to: &mut BytesMut) {
        write_str(to, b"NumProcs");
        write_int(to, self.free);
        write_str(to, b"Running");
        write_tasks(to, &self.running);
    }

    /// An empty body is a worker that runs nothing and does not say what it has.
    pub(super) fn read(body: &Bytes) -> Result<PlainHello, PackError> {
        let mut hello = PlainHello::default();
        if body.is_empty() {
            return Ok(hello);
        }
        PackReader::new(body).fields(&["NumProcs", "Running"], |at, from| {
            match at {
                0 => hello.free = from.int()?,
                _ => hello.running = from.list(TASKS_MAX, Task::read)?,
            }
            Ok(())
        })?;
        Ok(hello)
    }
}

pub(super) fn write_tasks(to: &mut BytesMut, tasks: &[Task]) {
    write_array(to, tasks.len());
    tasks.iter().for_each(|task| task.write(to));
}

pub(super) fn read_tasks(body: &Bytes) -> Result<Vec<Task>, PackError> {
    PackReader::new(body).list(TASKS_MAX, Task::read)
}

pub(super) fn write_pairs(to: &mut BytesMut, pairs: &[TaskPair]) {
    write_array(to, pairs.len());
    pairs.iter().for_each(|pair| pair.write(to));
}

pub(super) fn read_pairs(body: &Bytes) -> Result<Vec<TaskPair>, PackError> {
    PackReader::new(body).list(TASKS_MAX, TaskPair::read)
}
