//! Reads the body of a submit: first all but its tasks, then the tasks one by one, each converted before the next
//! is read. So no task is in memory twice, and the first one too many ends it.

use super::answer::Refused;
use super::extract::{check_object, malformed};
use axum::http::StatusCode;
use laboro_api::{BadTask, Converter, IfTaken, SubmitJob, TaskSpec, Text, UnknownAfter};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// A submit without its tasks.
pub(super) trait Head: for<'de> Deserialize<'de> {
    fn defaults(&mut self) -> Option<Box<TaskSpec>>;
}

/// `SubmitJob`, with the tasks passed over.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JobHead {
    #[serde(default)]
    group: Option<Text>,
    #[serde(default)]
    name: Option<Text>,
    #[serde(default)]
    open: bool,
    #[serde(default)]
    held: bool,
    #[serde(default)]
    begin_ms: Option<u64>,
    #[serde(default)]
    max_running: Option<u32>,
    #[serde(default)]
    max_fails: Option<u32>,
    #[serde(default)]
    key: Option<Text>,
    #[serde(default)]
    on_end: Vec<String>,
    #[serde(default)]
    if_taken: IfTaken,
    #[serde(default)]
    unknown_after: UnknownAfter,
    #[serde(default)]
    defaults: Option<Box<TaskSpec>>,
    #[serde(default, rename = "tasks")]
    _tasks: PassedOver,
}

/// `AddTasks`, with the tasks passed over.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AddHead {
    #[serde(default)]
    if_taken: IfTaken,
    #[serde(default)]
    unknown_after: UnknownAfter,
    #[serde(default)]
    defaults: Option<Box<TaskSpec>>,
    #[serde(rename = "tasks")]
    _tasks: PassedOver,
}

impl Head for JobHead {
    fn defaults(&mut self) -> Option<Box<TaskSpec>> {
        self.defaults.take()
    }
}

impl Head for AddHead {
    fn defaults(&mut self) -> Option<Box<TaskSpec>> {
        self.defaults.take()
    }
}

impl From<JobHead> for SubmitJob {
    fn from(head: JobHead) -> SubmitJob {
        SubmitJob {
            group: head.group,
            name: head.name,
            open: head.open,
            held: head.held,
            begin_ms: head.begin_ms,
            max_running: head.max_running,
            max_fails: head.max_fails,
            key: head.key,
            on_end: head.on_end,
            if_taken: head.if_taken,
            unknown_after: head.unknown_after,
            defaults: head.defaults,
            tasks: Vec::new(),
        }
    }
}

impl From<AddHead> for SubmitJob {
    fn from(head: AddHead) -> SubmitJob {
        let AddHead { if_taken, unknown_after, .. } = head;
        SubmitJob { if_taken, unknown_after, ..SubmitJob::default() }
    }
}

/// How much one body may hold.
#[derive(Clone, Copy)]
pub(super) struct Most {
    /// Tasks and arrays.
    pub(super) tasks: usize,
    /// What they all come after, counted for each of them.
    pub(super) preds: usize,
    /// Different settings.
    pub(super) profiles: usize,
}

/// The submit that a body holds, with its tasks in the converter.
pub(super) fn read<H: Head>(
    json: &[u8],
    most: Most,
    converter: impl FnOnce(Option<Box<TaskSpec>>) -> Result<Converter, BadTask>,
) -> Result<(H, Converter), Refused> {
    check_object(json)?;
    let mut head: H = serde_json::from_slice(json).map_err(|error| malformed(&error))?;
    let mut converter = converter(head.defaults())?;
    let mut reading =
        SubmitReading { converter: &mut converter, most, preds_max: most.preds, refused: None };
    let mut from = serde_json::Deserializer::from_slice(json);
    match (&mut reading).deserialize(&mut from) {
        Ok(()) => Ok((head, converter)),
        Err(error) => Err(reading.refused.unwrap_or_else(|| malformed(&error))),
    }
}

struct SubmitReading<'a> {
    converter: &'a mut Converter,
    most: Most,
    preds_max: usize,
    /// Why it was broken off, if not for its JSON.
    refused: Option<Refused>,
}

impl SubmitReading<'_> {
    fn take(&mut self, task: TaskSpec) -> Result<(), Refused> {
        let too_many = |what: &str, most: usize| {
            let detail = format!("more than {most} {what} in one request");
            Refused::new(StatusCode::UNPROCESSABLE_ENTITY, "limit", detail)
                .hint("send it to POST jobs/stream, one task per line")
        };
        if self.converter.batch().len() == self.most.tasks {
            return Err(too_many("tasks and arrays", self.most.tasks));
        }
        let preds = task.after.len() + task.each.len();
        self.most.preds = match self.most.preds.checked_sub(preds) {
            Some(left) => left,
            None => return Err(too_many("predecessors", self.preds_max)),
        };
        self.converter.push(task)?;
        if self.converter.batch().profiles.len() > self.most.profiles {
            return Err(too_many("different settings of tasks", self.most.profiles));
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for &mut SubmitReading<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut SubmitReading<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with tasks")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(key) = map.next_key::<Cow<'_, str>>()? {
            if key == "tasks" {
                map.next_value_seed(Tasks(self))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

struct Tasks<'a, 'b>(&'a mut SubmitReading<'b>);

impl<'de> DeserializeSeed<'de> for Tasks<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Tasks<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(task) = list.next_element()? {
            if let Err(refused) = self.0.take(task) {
                self.0.refused = Some(refused);
                return Err(A::Error::custom("refused"));
            }
        }
        Ok(())
    }
}

/// A list whatever is in it.
#[derive(Default)]
struct PassedOver;

impl<'de> Deserialize<'de> for PassedOver {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PassedOver, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = PassedOver;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a sequence")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<PassedOver, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(PassedOver)
            }
        }

        deserializer.deserialize_seq(Any)
    }
}
