//! Answers of the hub as a person or a script sees them, and the exit status that goes with each.

use super::args::DworkCommand;
use crate::exit::Exit;
use crate::output::{counted, print, print_bytes, say};
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

    pub(super) fn is_not_found(&self) -> bool {
        self.kind == Kind::NotFound
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

/// `before` tasks were created before the request that this is the answer to.
pub(super) fn answer(
    what: &DworkCommand,
    answer: &Answer,
    before: usize,
    as_json: bool,
) -> anyhow::Result<Exit> {
    let exit = match (answer.kind, what) {
        _ if answer.is_ok() => Exit::Done,
        (Kind::Exit, DworkCommand::Steal { .. }) => Exit::AllDone,
        (Kind::Exit, _) => Exit::Trouble,
        _ => Exit::SomeFailed,
    };
    if as_json {
        print(answer.json())?;
        return Ok(exit);
    }
    let quiet = matches!(what, DworkCommand::Steal { quiet: true, .. });
    match answer.kind {
        Kind::Ok if matches!(what, DworkCommand::Status) => {
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
            if before > 0 && !answer.is_ok() {
                say(format_args!("{} before these are created", counted(before as u64, "task")));
            }
            for task in &answer.tasks {
                say(&task.name);
            }
        }
    }
    Ok(exit)
}

/// What a person is told when there is nothing to print.
fn words(what: &DworkCommand, kind: Kind) -> Option<&'static str> {
    match (kind, what) {
        (Kind::Ok, _) => None,
        (Kind::NotFound, DworkCommand::Steal { .. }) => Some("nothing is ready"),
        (Kind::NotFound, DworkCommand::Complete { .. }) => Some(
            "not completed: the hub has no such task, it waits for others, or another host has it:",
        ),
        (Kind::NotFound, DworkCommand::Transfer { .. }) => {
            Some("this host does not have the task; nothing is changed")
        }
        (Kind::NotFound, DworkCommand::Lookup { .. }) => Some("no worker has it"),
        (Kind::NotFound, DworkCommand::Exit { .. }) => Some("the hub does not know this worker"),
        (Kind::Exit, DworkCommand::Steal { .. }) => {
            Some("all tasks are done, or the hub is stopping")
        }
        (Kind::Exit, _) => Some("the hub is stopping; ask again when it is back"),
        (_, DworkCommand::Lookup { .. }) => {
            Some("this hub does not answer lookups, as original ones do not")
        }
        (_, DworkCommand::Create { task, .. }) if task.is_empty() => {
            Some("the hub refused it: a task needs a name")
        }
        (_, DworkCommand::Create { task, deps }) if deps.contains(task) => {
            Some("the hub refused it: the task would wait for itself")
        }
        (_, DworkCommand::Create { .. }) => Some(
            "the hub refused it: the task would wait for itself through others, its name is longer than 4096 bytes, \
             or the hub is at a limit of its own",
        ),
        (_, DworkCommand::Addfile { .. }) => Some(
            "the hub refused some of the tasks: a name is longer than 4096 bytes, a task would wait for itself through \
             tasks that the hub has, or the hub is at a limit of its own (tasks, predecessors of a task, or fewer than \
             1000 tasks in a message: max_tasks_per_message of its door)",
        ),
        (_, DworkCommand::Transfer { .. }) => Some(
            "the hub refused it: the task would wait for itself, or the location is the name of a worker of another kind",
        ),
        (
            _,
            DworkCommand::Steal { .. } | DworkCommand::Complete { .. } | DworkCommand::Exit { .. },
        ) => {
            Some("the hub refused it: is the location the name of a worker of another kind there?")
        }
        (_, DworkCommand::Status) => Some("the hub does not report its status"),
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
