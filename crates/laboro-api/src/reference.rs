//! Fields that can be written in more than one way: a command as a line or as words, a predecessor by name or
//! by number.

use super::packed::{List, collected};
use super::text::{Text, base64_value};
use laboro_core::{JobId, TaskId, TaskRef, Ties};
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// What to run: a string is a line for the shell, a list is a program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A line for a shell.
    Shell(Text),
    /// A program and its arguments.
    Argv(List<Text>),
}

impl Serialize for Line {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Line::Shell(line) => line.serialize(serializer),
            Line::Argv(words) => words.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Line {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Line, D::Error> {
        deserializer.deserialize_any(LineVisitor)
    }
}

struct LineVisitor;

impl<'de> Visitor<'de> for LineVisitor {
    type Value = Line;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a shell line or a list of words")
    }

    fn visit_str<E: de::Error>(self, line: &str) -> Result<Line, E> {
        Ok(Line::Shell(line.into()))
    }

    fn visit_string<E: de::Error>(self, line: String) -> Result<Line, E> {
        Ok(Line::Shell(line.into()))
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Line, M::Error> {
        let key: Option<String> = map.next_key()?;
        base64_value(key.as_deref().unwrap_or(""), &mut map).map(Line::Shell)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Line, A::Error> {
        collected(&mut list).map(Line::Argv)
    }
}

/// What must be done before: a task or array of the same job by its name (`sweep`, `sweep.7`), one of another job of the group
/// with its job (`12/sweep`), or by number
/// (`{"job": 3, "task": 7}`; `{"job": 3, "array": 1}` is the whole array that starts at task 1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum After {
    /// A task of this job by its name, or of another one as `JOB/NAME`.
    Name(Text),
    /// A task by its numbers.
    Task {
        /// The job.
        job: u32,
        /// The task.
        task: u32,
    },
    /// An array by the number of its first element.
    Array {
        /// The job.
        job: u32,
        /// The first element.
        first: u32,
    },
}

impl From<&str> for After {
    fn from(name: &str) -> After {
        After::Name(name.into())
    }
}

/// Whose tasks can be meant by a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Reach {
    #[default]
    Everywhere,
    OwnGroup,
}

impl After {
    pub(super) fn to_core(&self, reach: Reach) -> TaskRef {
        let id = match self {
            After::Name(name) => return TaskRef::Name(name.name()),
            After::Task { job, task } => TaskId::new(JobId(*job), *task),
            After::Array { job, first } => TaskId::whole(JobId(*job), *first),
        };
        match reach {
            Reach::Everywhere => TaskRef::Id(id),
            Reach::OwnGroup => TaskRef::Own(id),
        }
    }
}

impl After {
    pub(super) fn all(ties: Ties) -> Vec<After> {
        ties.own.into_iter().chain(ties.elsewhere).map(After::from).collect()
    }
}

impl From<TaskId> for After {
    fn from(id: TaskId) -> After {
        let (job, number) = (id.job.0, id.number());
        if id.is_whole() {
            After::Array { job, first: number }
        } else {
            After::Task { job, task: number }
        }
    }
}

impl Serialize for After {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (job, key, number) = match self {
            After::Name(name) => return name.serialize(serializer),
            After::Task { job, task } => (job, "task", task),
            After::Array { job, first } => (job, "array", first),
        };
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("job", job)?;
        map.serialize_entry(key, number)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for After {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<After, D::Error> {
        deserializer.deserialize_any(AfterVisitor)
    }
}

struct AfterVisitor;

impl<'de> Visitor<'de> for AfterVisitor {
    type Value = After;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name or {\"job\": 1, \"task\": 2}")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<After, E> {
        Ok(After::Name(name.into()))
    }

    fn visit_string<E: de::Error>(self, name: String) -> Result<After, E> {
        Ok(After::Name(name.into()))
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<After, M::Error> {
        let (mut job, mut task, mut array) = (None, None, None);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "base64" if job.is_none() && task.is_none() && array.is_none() => {
                    return base64_value(&key, &mut map).map(After::Name);
                }
                "job" => job = Some(map.next_value()?),
                "task" => task = Some(number(map.next_value()?)?),
                "array" => array = Some(number(map.next_value()?)?),
                other => {
                    return Err(de::Error::unknown_field(other, &["job", "task", "array"]));
                }
            }
        }
        match (job, task, array) {
            (Some(job), Some(task), None) => Ok(After::Task { job, task }),
            (Some(job), None, Some(first)) => Ok(After::Array { job, first }),
            _ => Err(de::Error::custom("give `job` and one of `task` and `array`")),
        }
    }
}

/// The upper bit of a task number is the core's mark of a whole array.
fn number<E: de::Error>(number: u32) -> Result<u32, E> {
    if (1..=TaskId::INDEX_MAX).contains(&number) {
        Ok(number)
    } else {
        Err(E::custom(format!("{number} is not the number of a task")))
    }
}

/// The OpenAPI document shows both forms.
impl utoipa::PartialSchema for Line {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        utoipa::openapi::OneOfBuilder::new()
            .item(String::schema())
            .item(<Vec<String>>::schema())
            .description(Some("a line for the shell, or a program and its arguments"))
            .into()
    }
}

impl utoipa::ToSchema for Line {}

impl utoipa::PartialSchema for After {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        use utoipa::openapi::{ObjectBuilder, OneOfBuilder};
        let numbers = ObjectBuilder::new()
            .property("job", u32::schema())
            .property("task", u32::schema())
            .property("array", u32::schema())
            .required("job");
        OneOfBuilder::new()
            .item(String::schema())
            .item(numbers)
            .description(Some("a task or array by name, or by number"))
            .into()
    }
}

impl utoipa::ToSchema for After {}
