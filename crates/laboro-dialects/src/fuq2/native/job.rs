//! Work going to a worker: a JOB of batches. The tasks of a batch have everything in common but what stands
//! in their tuples `[index, lease, attempt, value, share, nodes]`.

use super::super::naming::title;
use super::super::pack::{
    PackError, PackReader, write_array, write_bin, write_int, write_map, write_nil, write_str,
    write_uint,
};
use super::super::payload::{JobDescription, RUNNING, TASKS_MAX};
use super::LABORO;
use super::work::{read_work, write_work};
use bytes::{BufMut, Bytes, BytesMut};
use laboro_core::{
    Element, FEATURES_MAX, Grant, JobId, LeaseNo, NODES_MAX, Name, Node, Role, Share, TaskId,
    Values, Work,
};
use std::sync::Arc;

const UNKNOWN_KIND: &str = "work of a kind that this worker does not know: update the worker";
const KEYS: [&str; 8] = ["Work", "Base", "Numbers", "Slots", "Memory", "Limit", "Tasks", "Access"];

/// A task with this variable and this value wants access to its hub: its worker makes it a file.
const ACCESS: (&[u8], &[u8]) = (b"LABORO_ACCESS", b"@job");

/// Writes the grants as the body of a JOB, in order; neighbours that have their work in common share it. `secret` is what
/// opens the hub to tasks of a job.
pub(in super::super) fn write_job(
    to: &mut BytesMut,
    grants: &[Grant],
    secret: impl Fn(JobId) -> Option<String>,
) {
    let batches = grants.chunk_by(is_alike);
    // Most jobs are one array or all different; the number of batches is written when it is known.
    let at = to.len();
    to.put_slice(&[0xDD, 0, 0, 0, 0]);
    let mut count: u32 = 0;
    for batch in batches {
        count += 1;
        let first = &batch[0];
        let secret = if wants_access(first) { secret(first.task.job) } else { None };
        write_batch(to, batch, secret);
    }
    to[at + 1..at + 5].copy_from_slice(&count.to_be_bytes());
}

fn is_alike(one: &Grant, other: &Grant) -> bool {
    let same_work = match (&one.work, &other.work) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        _ => false,
    };
    let same_values = match (&one.element, &other.element) {
        (Some(one), Some(other)) => match (&one.values, &other.values) {
            (Values::List(one), Values::List(other)) => Arc::ptr_eq(one, other),
            (one, other) => one == other,
        },
        _ => false,
    };
    same_work
        && same_values
        && one.task.job == other.task.job
        && base(one) == base(other)
        && Arc::ptr_eq(&one.profile, &other.profile)
        && (&one.role, &other.role) == (&Role::Only, &Role::Only)
}

fn wants_access(grant: &Grant) -> bool {
    let setting = grant.work.as_ref().and_then(|work| work.setting());
    let mut env = setting.into_iter().flat_map(|setting| &setting.env);
    env.any(|(name, value)| (&**name, &**value) == ACCESS)
}

/// The number of the element at position 0.
fn base(grant: &Grant) -> Option<u32> {
    grant.element.as_ref().map(|element| grant.task.index.saturating_sub(element.position))
}

fn write_batch(to: &mut BytesMut, batch: &[Grant], secret: Option<String>) {
    let first = &batch[0];
    write_map(to, 3);
    write_str(to, b"Task");
    write_uint(to, first.task.index.into());
    write_str(to, b"JobDescription");
    // The name is all that is left to say; missing keys are zero.
    write_map(to, 3);
    write_str(to, b"JobId");
    write_uint(to, first.task.job.0.into());
    write_str(to, b"Name");
    let name = match first.work.as_deref() {
        Some(Work::Indexed(_)) => title(first),
        _ => &first.name,
    };
    write_str(to, name.bytes());
    write_str(to, b"Status");
    write_uint(to, RUNNING);

    write_str(to, LABORO.as_bytes());
    let numbers = match &first.element {
        Some(Element { values: Values::Numbers { first, step }, .. }) => Some((*first, *step)),
        _ => None,
    };
    let needs = &first.profile.needs;
    let limit_ms = first.profile.time_limit_ms;
    let keys = [
        true,
        first.element.is_some(),
        numbers.is_some(),
        needs.slots != 1,
        needs.memory != 0,
        limit_ms.is_some(),
        true,
        secret.is_some(),
    ];
    write_map(to, keys.iter().filter(|&&present| present).count());
    for (at, key) in KEYS.iter().enumerate().filter(|&(at, _)| keys[at]) {
        write_str(to, key.as_bytes());
        match at {
            0 => write_work(to, first.work.as_deref()),
            1 => write_uint(to, base(first).unwrap_or(0).into()),
            2 => {
                let (first, step) = numbers.unwrap_or_default();
                write_array(to, 2);
                write_int(to, first);
                write_int(to, step);
            }
            3 => write_uint(to, needs.slots.into()),
            4 => write_uint(to, needs.memory),
            5 => write_uint(to, limit_ms.unwrap_or(0)),
            7 => write_str(to, secret.as_deref().unwrap_or_default().as_bytes()),
            _ => {
                write_array(to, batch.len());
                batch.iter().for_each(|grant| write_task(to, grant));
            }
        }
    }
}

fn write_task(to: &mut BytesMut, grant: &Grant) {
    let value = grant.element.as_ref().and_then(|element| match &element.values {
        Values::Numbers { .. } => None,
        Values::List(list) => list.get(element.position as usize),
    });
    let length = match (&grant.share, value) {
        _ if grant.role != Role::Only => 6,
        (Some(_), _) => 5,
        (None, Some(_)) => 4,
        (None, None) => 3,
    };
    write_array(to, length);
    write_uint(to, grant.task.index.into());
    write_uint(to, grant.lease.0);
    write_uint(to, grant.attempt.into());
    if length > 3 {
        match value {
            Some(value) => write_bin(to, value),
            None => write_nil(to),
        }
    }
    match &grant.share {
        Some(share) => write_share(to, share),
        None if length > 4 => write_array(to, 0),
        None => {}
    }
    match &grant.role {
        Role::Only => {}
        Role::First(nodes) => write_nodes(to, nodes),
        Role::Kept => write_array(to, 0),
    }
}

/// The workers of a task: `[[name, host, slots], ...]`; none for one that is only kept for it.
fn write_nodes(to: &mut BytesMut, nodes: &[Node]) {
    write_array(to, nodes.len());
    for node in nodes {
        write_array(to, 3);
        write_str(to, node.worker.bytes());
        write_str(to, node.host.bytes());
        write_uint(to, node.slots.into());
    }
}

/// Which ones of each resource: `[[name, bits as 16 bytes], ...]`.
fn write_share(to: &mut BytesMut, share: &Share) {
    // Of what is only counted there is nothing to tell.
    let visible = || share.portions.iter().filter(|(_, portion)| portion.visible() != 0);
    write_array(to, visible().count());
    for (name, portion) in visible() {
        write_array(to, 2);
        write_str(to, name.bytes());
        write_bin(to, &portion.visible().to_be_bytes());
    }
}

/// A batch as it arrives.
#[derive(Debug)]
pub(in super::super) struct Batch {
    pub(in super::super) job: JobId,
    pub(in super::super) name: Bytes,
    pub(in super::super) work: Arc<Work>,
    /// Why it cannot be run here, in words. The tasks are known all the same, and can be given back.
    pub(in super::super) unreadable: Option<String>,
    pub(in super::super) base: Option<u32>,
    pub(in super::super) numbers: Option<(i64, i64)>,
    pub(in super::super) slots: u32,
    pub(in super::super) memory: u64,
    pub(in super::super) time_limit_ms: Option<u64>,
    pub(in super::super) tasks: Vec<Given>,
    /// What opens the hub to these tasks, where they want it.
    pub(in super::super) access: Option<Bytes>,
}

/// One task of a batch.
#[derive(Debug, Default)]
pub(in super::super) struct Given {
    pub(in super::super) index: u32,
    pub(in super::super) lease: LeaseNo,
    pub(in super::super) attempt: u16,
    pub(in super::super) value: Option<Bytes>,
    pub(in super::super) share: Vec<(String, Vec<u32>)>,
    pub(in super::super) role: Role,
    pub(in super::super) unreadable: Option<String>,
}

impl Default for Batch {
    fn default() -> Batch {
        Batch {
            job: JobId::default(),
            name: Bytes::new(),
            work: Arc::new(Work::Named),
            unreadable: None,
            base: None,
            numbers: None,
            slots: 1,
            memory: 0,
            time_limit_ms: None,
            tasks: Vec::new(),
            access: None,
        }
    }
}

impl Batch {
    pub(in super::super) fn read_all(body: &Bytes) -> Result<Vec<Batch>, PackError> {
        let mut left = TASKS_MAX;
        PackReader::new(body).list(TASKS_MAX, |from| {
            let batch = Batch::read(from, left)?;
            left -= batch.tasks.len();
            Ok(batch)
        })
    }

    fn read(from: &mut PackReader<'_>, tasks_max: usize) -> Result<Batch, PackError> {
        let mut batch = Batch::default();
        from.fields(&["Task", "JobDescription", LABORO], |at, from| match at {
            0 => from.skip(),
            1 => {
                let described = JobDescription::read(from)?;
                let wanted = "a job's number";
                let job = u32::try_from(described.id).map_err(|_| PackError::Range { wanted })?;
                batch.job = JobId(job);
                batch.name = described.name;
                Ok(())
            }
            _ => from.fields(&KEYS, |at, from| batch.read_field(at, from, tasks_max)),
        })?;
        Ok(batch)
    }

    fn read_field(
        &mut self,
        at: usize,
        from: &mut PackReader<'_>,
        tasks_max: usize,
    ) -> Result<(), PackError> {
        if KEYS[at] == "Tasks" {
            self.tasks = from.list(tasks_max, Given::read)?;
        } else if let Err(error) = from.or_skip(|from| self.read_shared(at, from))? {
            self.unreadable.get_or_insert_with(|| format!("{}: {error}", KEYS[at]));
        }
        Ok(())
    }

    /// What its tasks have in common.
    fn read_shared(&mut self, at: usize, from: &mut PackReader<'_>) -> Result<(), PackError> {
        match at {
            0 => match read_work(from)? {
                Some(work) => self.work = Arc::new(work),
                None => self.unreadable = Some(UNKNOWN_KIND.into()),
            },
            1 => self.base = Some(from.small()?),
            2 => {
                let mut numbers = (0, 0);
                from.tuple(2, |at, from| {
                    *(if at == 0 { &mut numbers.0 } else { &mut numbers.1 }) = from.int()?;
                    Ok(())
                })?;
                self.numbers = Some(numbers);
            }
            3 => self.slots = from.small()?,
            4 => self.memory = from.uint()?,
            5 => self.time_limit_ms = Some(from.uint()?),
            _ => self.access = Some(from.shared()?),
        }
        Ok(())
    }

    /// Counted from 0 inside the array.
    pub(in super::super) fn position(&self, given: &Given) -> Option<u32> {
        self.base.map(|base| given.index.saturating_sub(base))
    }

    pub(in super::super) fn task(&self, given: &Given) -> TaskId {
        TaskId::new(self.job, given.index)
    }
}

impl Given {
    fn read(from: &mut PackReader<'_>) -> Result<Given, PackError> {
        let mut given = Given::default();
        from.tuple(6, |at, from| {
            match at {
                // Without these nobody knows which task is meant.
                0 => given.index = from.small()?,
                1 => given.lease = LeaseNo(from.uint()?),
                at => {
                    if let Err(error) = from.or_skip(|from| given.read_detail(at, from))? {
                        given.unreadable.get_or_insert_with(|| error.to_string());
                    }
                }
            }
            Ok(())
        })?;
        Ok(given)
    }

    fn read_detail(&mut self, at: usize, from: &mut PackReader<'_>) -> Result<(), PackError> {
        match at {
            2 => {
                let wanted = "the number of an attempt";
                let attempt = from.small()?;
                self.attempt = u16::try_from(attempt).map_err(|_| PackError::Range { wanted })?;
            }
            3 => self.value = if from.nil() { None } else { Some(from.shared()?) },
            4 => self.share = from.list(FEATURES_MAX, read_share)?,
            _ => {
                let nodes = from.list(NODES_MAX as usize, read_node)?;
                self.role = match nodes.is_empty() {
                    true => Role::Kept,
                    false => Role::First(nodes.into()),
                };
            }
        }
        Ok(())
    }
}

fn read_node(from: &mut PackReader<'_>) -> Result<Node, PackError> {
    let mut node = Node { worker: Name::default(), host: Name::default(), slots: 0 };
    from.tuple(3, |at, from| {
        match at {
            0 => node.worker = Name::new(from.bytes()?),
            1 => node.host = Name::new(from.bytes()?),
            _ => node.slots = from.small()?,
        }
        Ok(())
    })?;
    Ok(node)
}

fn read_share(from: &mut PackReader<'_>) -> Result<(String, Vec<u32>), PackError> {
    let (mut name, mut bits) = (String::new(), 0u128);
    from.tuple(2, |at, from| {
        let bytes = from.bytes()?;
        if at == 0 {
            name = super::text(bytes);
        } else {
            bits = bytes.iter().take(16).fold(0, |bits, &byte| bits << 8 | u128::from(byte));
        }
        Ok(())
    })?;
    Ok((name, (0..128).filter(|n| bits >> n & 1 == 1).collect()))
}
