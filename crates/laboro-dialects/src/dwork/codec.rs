//! The messages of dwork, both ways. Reading gives views into the bytes that came; writing goes straight
//! into the buffer that leaves. Which fields a request may have is not judged here.

use super::wire::{
    FieldValue, Fields, WireError, bytes_field_len, put_bytes_field, put_len_field,
    put_number_field,
};
use bytes::BytesMut;

/// What a message is: of a request what is asked, of a reply what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Kind {
    Create,
    Steal,
    Complete,
    Transfer,
    Lookup,
    NotFound,
    Ok,
    Exit,
    Error,
}

impl Kind {
    const ALL: [Kind; 9] = [
        Kind::Create,
        Kind::Steal,
        Kind::Complete,
        Kind::Transfer,
        Kind::Lookup,
        Kind::NotFound,
        Kind::Ok,
        Kind::Exit,
        Kind::Error,
    ];
}

/// One message, as views into its bytes.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Query<'a> {
    pub kind: Kind,
    pub tasks: Vec<Task<'a>>,
    pub name: Option<&'a [u8]>,
    pub n: Option<i32>,
    pub location: Option<&'a [u8]>,
}

/// One task in a message. All of it was checked when the message was decoded.
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct Task<'a> {
    pub name: &'a [u8],
    pub origin: &'a [u8],
    /// The whole message, walked again for what few tasks have.
    whole: &'a [u8],
    has: Has,
}

#[derive(Clone, Copy, Default)]
struct Has {
    pred: bool,
    succ: bool,
    log: bool,
}

/// A task that another one depends on, or that depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Dep<'a> {
    pub name: &'a [u8],
    pub location: Option<&'a [u8]>,
}

/// Where a task was at which time, as its log tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Log {
    /// What happened to it.
    pub note: Note,
    /// Microseconds since the epoch.
    pub at_us: i64,
}

/// What can happen to a task, in the words of the original.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Note {
    Pending,
    Stolen,
    Waiting,
    Copying,
    Ready,
    Started,
    Done,
    Recorded,
}

impl Note {
    const ALL: [Note; 8] = [
        Note::Pending,
        Note::Stolen,
        Note::Waiting,
        Note::Copying,
        Note::Ready,
        Note::Started,
        Note::Done,
        Note::Recorded,
    ];

    /// For people.
    pub fn word(self) -> &'static str {
        match self {
            Note::Pending => "pending",
            Note::Stolen => "stolen",
            Note::Waiting => "waiting",
            Note::Copying => "copying",
            Note::Ready => "ready",
            Note::Started => "started",
            Note::Done => "done",
            Note::Recorded => "recorded",
        }
    }
}

mod query {
    pub(super) const KIND: u32 = 1;
    pub(super) const TASK: u32 = 2;
    pub(super) const NAME: u32 = 3;
    pub(super) const N: u32 = 4;
    pub(super) const LOCATION: u32 = 6;
}

mod task {
    pub(super) const NAME: u32 = 1;
    pub(super) const ORIGIN: u32 = 2;
    pub(super) const PRED: u32 = 4;
    pub(super) const SUCC: u32 = 5;
    pub(super) const LOG: u32 = 6;
}

mod dep {
    pub(super) const NAME: u32 = 1;
    pub(super) const LOCATION: u32 = 2;
}

mod log {
    pub(super) const STATE: u32 = 1;
    pub(super) const TIME: u32 = 2;
}

/// Reads a whole message with at most so many tasks. Unknown fields are passed over, a field of the wrong
/// wire type and an unknown value of an enumeration count as unknown, and of a field given twice the last
/// one counts: the rules of protocol buffers.
pub fn decode(message: &[u8], tasks_max: usize) -> Result<Query<'_>, WireError> {
    let mut kind = None;
    let mut found =
        Query { kind: Kind::Error, tasks: Vec::new(), name: None, n: None, location: None };
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next()? {
        match (field, value) {
            (query::KIND, FieldValue::Number(n)) => kind = known(&Kind::ALL, n).or(kind),
            (query::TASK, FieldValue::Bytes(bytes)) => {
                if found.tasks.len() == tasks_max {
                    return Err(WireError::ManyTasks { most: tasks_max });
                }
                found.tasks.push(Task::decode(bytes)?);
            }
            (query::NAME, FieldValue::Bytes(bytes)) => found.name = Some(bytes),
            (query::N, FieldValue::Number(n)) => found.n = Some(n as i32),
            (query::LOCATION, FieldValue::Bytes(bytes)) => found.location = Some(bytes),
            _ => {}
        }
    }
    found.kind = kind.ok_or(WireError::Missing("type"))?;
    Ok(found)
}

/// An enumeration's value by its number, which is an int32 on the wire.
fn known<T: Copy>(all: &[T], n: u64) -> Option<T> {
    all.get(usize::try_from(n as i32).ok()?).copied()
}

impl<'a> Task<'a> {
    pub(super) fn decode(whole: &'a [u8]) -> Result<Task<'a>, WireError> {
        let (mut name, mut origin, mut has) = (None, None, Has::default());
        let mut fields = Fields::of(whole);
        while let Some((field, value)) = fields.next()? {
            match (field, value) {
                (task::NAME, FieldValue::Bytes(bytes)) => name = Some(bytes),
                (task::ORIGIN, FieldValue::Bytes(bytes)) => origin = Some(bytes),
                (task::PRED, FieldValue::Bytes(bytes)) => {
                    Dep::decode(bytes)?;
                    has.pred = true;
                }
                (task::SUCC, FieldValue::Bytes(bytes)) => {
                    Dep::decode(bytes)?;
                    has.succ = true;
                }
                (task::LOG, FieldValue::Bytes(bytes)) => {
                    Log::decode(bytes)?;
                    has.log = true;
                }
                _ => {}
            }
        }
        Ok(Task {
            name: name.ok_or(WireError::Missing("task.name"))?,
            origin: origin.ok_or(WireError::Missing("task.origin"))?,
            whole,
            has,
        })
    }

    /// The tasks that come before it.
    pub fn preds(&self) -> impl Iterator<Item = Dep<'a>> + use<'a> {
        self.messages(self.has.pred, task::PRED).filter_map(|bytes| Dep::decode(bytes).ok())
    }

    /// The tasks that come after it.
    pub fn succs(&self) -> impl Iterator<Item = Dep<'a>> + use<'a> {
        self.messages(self.has.succ, task::SUCC).filter_map(|bytes| Dep::decode(bytes).ok())
    }

    /// What happened to it, oldest first.
    pub fn log(&self) -> impl Iterator<Item = Log> + use<'a> {
        self.messages(self.has.log, task::LOG).filter_map(|bytes| Log::decode(bytes).ok())
    }

    pub(super) fn has_log(&self) -> bool {
        self.has.log
    }

    fn messages(&self, any: bool, wanted: u32) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut fields = Fields::of(if any { self.whole } else { &[] });
        std::iter::from_fn(move || {
            while let Some((field, value)) = fields.next().ok()? {
                if let (true, FieldValue::Bytes(bytes)) = (field == wanted, value) {
                    return Some(bytes);
                }
            }
            None
        })
    }
}

impl std::fmt::Debug for Task<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Task")
            .field("name", &self.name.escape_ascii().to_string())
            .field("origin", &self.origin.escape_ascii().to_string())
            .field("preds", &self.preds().collect::<Vec<_>>())
            .field("succs", &self.succs().collect::<Vec<_>>())
            .field("log", &self.log().collect::<Vec<_>>())
            .finish()
    }
}

impl<'a> Dep<'a> {
    /// A task of this name, wherever it is.
    pub fn new(name: &'a [u8]) -> Dep<'a> {
        Dep { name, location: None }
    }

    fn decode(bytes: &'a [u8]) -> Result<Dep<'a>, WireError> {
        let (mut name, mut location) = (None, None);
        let mut fields = Fields::of(bytes);
        while let Some((field, value)) = fields.next()? {
            match (field, value) {
                (dep::NAME, FieldValue::Bytes(bytes)) => name = Some(bytes),
                (dep::LOCATION, FieldValue::Bytes(bytes)) => location = Some(bytes),
                _ => {}
            }
        }
        Ok(Dep { name: name.ok_or(WireError::Missing("dep.name"))?, location })
    }

    fn len(&self) -> usize {
        bytes_field_len(self.name.len())
            + self.location.map_or(0, |location| bytes_field_len(location.len()))
    }

    fn put(&self, field: u32, to: &mut BytesMut) {
        put_len_field(field, self.len(), to);
        put_bytes_field(dep::NAME, self.name, to);
        if let Some(location) = self.location {
            put_bytes_field(dep::LOCATION, location, to);
        }
    }
}

impl Log {
    /// One line of a log.
    pub fn new(note: Note, at_us: i64) -> Log {
        Log { note, at_us }
    }

    fn decode(bytes: &[u8]) -> Result<Log, WireError> {
        let (mut note, mut at) = (None, None);
        let mut fields = Fields::of(bytes);
        while let Some((field, value)) = fields.next()? {
            match (field, value) {
                (log::STATE, FieldValue::Number(n)) => note = known(&Note::ALL, n).or(note),
                (log::TIME, FieldValue::Number(n)) => at = Some(n as i64),
                _ => {}
            }
        }
        Ok(Log {
            note: note.ok_or(WireError::Missing("log.state"))?,
            at_us: at.ok_or(WireError::Missing("log.time"))?,
        })
    }

    fn len(self) -> usize {
        3 + super::wire::number_len(self.at_us as u64)
    }

    pub(super) fn put(self, to: &mut BytesMut) {
        put_len_field(task::LOG, self.len(), to);
        put_number_field(log::STATE, self.note as u64, to);
        put_number_field(log::TIME, self.at_us as u64, to);
    }
}

/// Writes one message, field after field in the order of their numbers.
#[derive(Debug)]
pub struct QueryWriter<'b> {
    to: &'b mut BytesMut,
}

impl<'b> QueryWriter<'b> {
    /// Begins a message at the end of `to`.
    pub fn new(kind: Kind, to: &'b mut BytesMut) -> QueryWriter<'b> {
        put_number_field(query::KIND, kind as u64, to);
        QueryWriter { to }
    }

    /// How long it is so far, with all that stood before it.
    pub(super) fn bytes(&self) -> usize {
        self.to.len()
    }

    /// Adds a task.
    pub fn task<'a>(
        self,
        name: &[u8],
        origin: &[u8],
        preds: impl Iterator<Item = Dep<'a>> + Clone,
        log: &[Log],
    ) -> Self {
        let len = bytes_field_len(name.len())
            + bytes_field_len(origin.len())
            + preds.clone().map(|dep| bytes_field_len(dep.len())).sum::<usize>()
            + log.iter().map(|log| bytes_field_len(log.len())).sum::<usize>();
        put_len_field(query::TASK, len, self.to);
        put_bytes_field(task::NAME, name, self.to);
        put_bytes_field(task::ORIGIN, origin, self.to);
        preds.for_each(|dep| dep.put(task::PRED, self.to));
        log.iter().for_each(|log| log.put(self.to));
        self
    }

    /// A task whose fields beside its name stand written in `notes` (see `put_notes`), and what comes after
    /// them in its log.
    pub(super) fn noted_task(&mut self, name: &[u8], notes: &[u8], log: &[Log]) {
        let log_len: usize = log.iter().map(|log| bytes_field_len(log.len())).sum();
        let len = bytes_field_len(name.len()) + notes.len() + log_len;
        put_len_field(query::TASK, len, self.to);
        put_bytes_field(task::NAME, name, self.to);
        self.to.extend_from_slice(notes);
        log.iter().for_each(|log| log.put(self.to));
    }

    /// The task as it was read, without what was unknown in it.
    pub(super) fn task_again(&mut self, this: &Task<'_>) {
        let start = self.to.len();
        put_bytes_field(task::NAME, this.name, self.to);
        put_bytes_field(task::ORIGIN, this.origin, self.to);
        this.preds().for_each(|dep| dep.put(task::PRED, self.to));
        this.succs().for_each(|dep| dep.put(task::SUCC, self.to));
        this.log().for_each(|log| log.put(self.to));
        let body = self.to.split_off(start);
        put_bytes_field(query::TASK, &body, self.to);
    }

    /// Adds the name that the message is about.
    pub fn name(self, name: &[u8]) -> Self {
        put_bytes_field(query::NAME, name, self.to);
        self
    }

    /// Adds a number: how many tasks are asked for.
    pub fn n(self, n: i32) -> Self {
        // A negative int32 takes ten bytes on the wire.
        put_number_field(query::N, i64::from(n) as u64, self.to);
        self
    }

    /// Adds the worker that asks.
    pub fn location(self, location: &[u8]) -> Self {
        put_bytes_field(query::LOCATION, location, self.to);
        self
    }
}

/// Origin and log of a task as they stand on the wire: what is kept with it and given back by a steal.
pub(super) fn put_notes(origin: &[u8], log: impl Iterator<Item = Log>, to: &mut BytesMut) {
    put_bytes_field(task::ORIGIN, origin, to);
    log.for_each(|log| log.put(to));
}

/// Origin and log, if what is kept with a task are notes.
pub fn notes(bytes: &[u8]) -> Option<(&[u8], Vec<Log>)> {
    if !are_notes(bytes) {
        return None;
    }
    let (mut fields, mut origin, mut log) = (Fields::of(bytes), &[][..], Vec::new());
    while let Some((field, value)) = fields.next().ok()? {
        match value {
            FieldValue::Bytes(bytes) if field == task::ORIGIN => origin = bytes,
            FieldValue::Bytes(bytes) => log.push(Log::decode(bytes).ok()?),
            _ => return None,
        }
    }
    Some((origin, log))
}

/// Are these notes, or something that another dialect keeps with its tasks?
pub(super) fn are_notes(bytes: &[u8]) -> bool {
    let mut fields = Fields::of(bytes);
    let origin = fields.next();
    let mut only_logs = || {
        while let Some((field, value)) = fields.next().ok()? {
            match value {
                FieldValue::Bytes(log) if field == task::LOG => Log::decode(log).ok()?,
                _ => return None,
            };
        }
        Some(())
    };
    matches!(origin, Ok(Some((task::ORIGIN, FieldValue::Bytes(_))))) && only_logs().is_some()
}
