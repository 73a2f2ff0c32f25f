//! Answers of the hub as a person or a script sees them, and the exit status that goes with each.

use super::args::What;
use crate::exit::Exit;
use crate::output::{print, print_bytes, say};
use anyhow::Context;
use laboro_core::Name;
use laboro_dialects::dwork::{Kind, Reply};
use serde_json::{Value, json};

/// An answer with its names as text.
#[derive(Debug)]
pub(super) struct Answer {
    kind: Kind,
    tasks: Vec<TaskLine>,
    name: Option<String>,
    n: Option<i32>,
    location: Option<String>,
}

#[derive(Debug)]
struct TaskLine {
    name: String,
    /// As it was created, which is how it has to be said again.
    bare: Vec<u8>,
    origin: String,
    /// States with their times in microseconds since the epoch.
    log: Vec<(&'static str, i64)>,
}

impl Answer {
    pub(super) fn of(reply: &Reply) -> anyhow::Result<Answer> {
        let query = reply.query().context("the hub's answer cannot be read")?;
        let text = |bytes: &[u8]| Name::new(bytes).to_string();
        let tasks = query.tasks.iter().map(|task| TaskLine {
            name: text(task.name),
            bare: task.name.to_vec(),
            origin: text(task.origin),
            log: task.log().map(|log| (log.note.word(), log.at_us)).collect(),
        });
        Ok(Answer {
            kind: query.kind,
            tasks: tasks.collect(),
            name: query.name.map(text),
            n: query.n,
            location: query.location.map(text),
        })
    }

    pub(super) fn is_ok(&self) -> bool {
        matches!(self.kind, Kind::Ok | Kind::Transfer | Kind::Lookup)
    }

    fn json(&self) -> Value {
        let mut object = json!({ "answer": word(self.kind) });
        if !self.tasks.is_empty() {
            let task = |task: &TaskLine| {
                let log =
                    task.log.iter().map(|(state, us)| json!({ "state": state, "time_us": us }));
                json!({
                    "name": task.name,
                    "origin": task.origin,
                    "log": log.collect::<Vec<_>>(),
                })
            };
            object["tasks"] = self.tasks.iter().map(task).collect();
        }
        if let Some(location) = &self.location {
            object["location"] = json!(location);
        }
        match (&self.name, self.n) {
            (Some(words), Some(ready)) => {
                object["status"] = json!(words);
                object["ready"] = json!(ready);
                let active = words.strip_prefix("dhub: ").and_then(|rest| rest.split(' ').next());
                if let Some(active) = active.and_then(|active| active.parse::<u64>().ok()) {
                    object["active"] = json!(active);
                }
            }
            (Some(name), None) => object["name"] = json!(name),
            _ => {}
        }
        object
    }
}

pub(super) fn answer(what: &What, answer: &Answer, as_json: bool) -> anyhow::Result<Exit> {
    let exit = if answer.is_ok() { Exit::Done } else { Exit::SomeFailed };
    if as_json {
        print(answer.json())?;
        return Ok(exit);
    }
    let quiet = matches!(what, What::Steal { quiet: true, .. });
    match answer.kind {
        Kind::Ok if matches!(what, What::Status) => {
            print(answer.name.as_deref().unwrap_or_default())?;
        }
        Kind::Transfer => {
            for task in &answer.tasks {
                match quiet {
                    true => print_bytes(&task.bare)?,
                    false => print(format_args!("{}\t{}", task.name, task.origin))?,
                }
            }
        }
        Kind::Lookup => print(answer.location.as_deref().unwrap_or_default())?,
        _ if quiet => print("No task")?,
        kind => {
            if let Some(words) = words(what, kind) {
                say(words);
            }
            for task in &answer.tasks {
                say(&task.name);
            }
        }
    }
    Ok(exit)
}

/// What a person is told when there is nothing to print.
fn words(what: &What, kind: Kind) -> Option<&'static str> {
    match (kind, what) {
        (Kind::Ok, _) => None,
        (Kind::NotFound, What::Steal { .. }) => Some("nothing is ready"),
        (Kind::NotFound, What::Complete { .. }) => {
            Some("not completed, because this host does not have them:")
        }
        (Kind::NotFound, What::Transfer { .. }) => {
            Some("this host does not have the task; nothing is changed")
        }
        (Kind::NotFound, What::Lookup { .. }) => Some("nobody has it"),
        (Kind::NotFound, What::Exit { .. }) => Some("the hub does not know this worker"),
        (Kind::Exit, What::Steal { .. }) => Some("everything is done, or the hub stops"),
        (Kind::Exit, _) => Some("the hub stops; ask again when it is back"),
        _ => Some(
            "the hub refused it: is a name empty or too long, or would a task wait for itself?",
        ),
    }
}

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Ok => "ok",
        Kind::NotFound => "not found",
        Kind::Exit => "exit",
        Kind::Transfer => "tasks",
        Kind::Lookup => "found",
        _ => "error",
    }
}
