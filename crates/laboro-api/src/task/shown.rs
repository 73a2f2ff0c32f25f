//! A task of the core as the API shows it: what it runs as it was typed, its label, and what dwork reported about it.

use super::{Attempt, LogEntry, Outcome, Task, TaskWork};
use crate::label::{label, words_of};
use crate::needs::{Variant, requests};
use crate::reference::{After, Line};
use crate::runner::Runner;
use crate::streams::Stdin;
use crate::text::Text;
use laboro_core::{AttemptView, Program, ScriptWork, Setting, TaskView, Values, Work};
use laboro_dialects::dwork;
use laboro_plan::{VALUE_AS_LINE, Warning};

impl From<TaskView> for Task {
    fn from(view: TaskView) -> Task {
        Task {
            job: view.task.job.0,
            task: view.task.number(),
            name: (&view.name).into(),
            label: label_of(&view),
            owner: view.owner.as_ref().map(Text::from),
            element: view.element.as_ref().map(|element| element.position.saturating_add(1)),
            value: view.element.as_ref().map(|one| value(&one.values, one.position)),
            state: view.state.into(),
            priority: view.priority,
            failed_attempts: view.failed_attempts,
            lost_attempts: view.lost_attempts,
            output_lost: false,
            attempts: view.attempts.into_iter().map(Attempt::from).collect(),
            lease: view.lease.map(|lease| lease.to_string()),
            kept_workers: view.nodes.iter().map(Text::from).collect(),
            delayed_until_ms: view.delayed_until.map(|time| time.0),
            message: view.message.map(String::from),
            after: After::all(view.preds),
            before: After::all(view.succs),
            origin: None,
            log: Vec::new(),
            work: None,
        }
    }
}

impl From<AttemptView> for Attempt {
    fn from(view: AttemptView) -> Attempt {
        Attempt {
            attempt: view.number,
            worker: view.worker.0,
            worker_name: (&view.name).into(),
            started_ms: view.started.0,
            ended_ms: view.ended.map(|time| time.0),
            outcome: view.outcome.map(Outcome::from),
            used: None,
            output_lost_bytes: 0,
            output_truncated_bytes: 0,
        }
    }
}

const SCRIPT_BYTES_SHOWN: usize = 64 << 10;

impl Task {
    /// With what it runs.
    pub fn in_full(view: TaskView) -> Task {
        let work = Some(Box::new(TaskWork::of(&view)));
        let notes = view.memo.as_deref().and_then(dwork::notes);
        let (origin, log) = match notes {
            Some((origin, log)) => (Some(origin.into()), log),
            None => (None, Vec::new()),
        };
        let entry =
            |log: dwork::Log| LogEntry { state: log.note.word().into(), time_us: log.at_us };
        let log = log.into_iter().map(entry).collect();
        Task { work, origin, log, ..Task::from(view) }
    }
}

impl TaskWork {
    fn of(view: &TaskView) -> TaskWork {
        let needs = &view.profile.needs;
        let mut shown = TaskWork {
            kind: "named".to_owned(),
            slots: needs.slots,
            memory_bytes: needs.memory,
            resources: requests(needs),
            variants: needs.variants.iter().map(Variant::from).collect(),
            nodes: (needs.nodes > 0).then_some(needs.nodes),
            time_request_ms: view.profile.time_request_ms,
            tags: needs.tags.iter().map(Text::from).collect(),
            attempts: view.profile.attempts,
            timeout_ms: view.profile.time_limit_ms,
            runs_anyway: view.profile.runs_anyway,
            ..TaskWork::default()
        };
        if let Some(element) = &view.element {
            shown.element = Some(element.position.saturating_add(1));
            shown.value = Some(value(&element.values, element.position));
        }
        if let Some(work) = &view.work {
            shown.add_work(work);
        }
        if let Some(Line::Argv(words)) = &shown.command
            && words.iter().map(Text::into_bytes).eq(VALUE_AS_LINE)
        {
            // A line of a job file: nobody typed the shell.
            shown.command = shown.value.clone().map(Line::Shell).or(shown.command);
        }
        shown
    }

    fn add_work(&mut self, work: &Work) {
        match work {
            Work::Named => {}
            Work::Command(command) => {
                "command".clone_into(&mut self.kind);
                self.command = Some(match &command.program {
                    Program::Shell(line) => Line::Shell(line.as_ref().into()),
                    Program::Argv(words) => Line::Argv(words.iter().map(Text::from).collect()),
                });
                self.add_setting(&command.setting);
            }
            Work::Script(script) => {
                let ScriptWork { kind, body, setting } = &**script;
                "script".clone_into(&mut self.kind);
                self.script_kind = Some(kind.to_string());
                self.script = Some(body[..body.len().min(SCRIPT_BYTES_SHOWN)].into());
                self.add_setting(setting);
            }
            Work::Indexed(indexed) => {
                "indexed".clone_into(&mut self.kind);
                self.command = Some(Line::Argv(vec![Text::from(&*indexed.program)].into()));
                self.dir = Some(indexed.dir.as_ref().into());
            }
            Work::Call(call) => {
                "call".clone_into(&mut self.kind);
                self.call_bytes = Some(call.payload.len() as u64);
                self.add_setting(&call.setting);
            }
        }
    }

    fn add_setting(&mut self, setting: &Setting) {
        self.dir = setting.dir.as_deref().map(Text::from);
        self.stdin = Stdin::of(setting);
        match setting.both_streams() {
            Some(path) => self.output = Some(path.into()),
            None => {
                self.stdout = setting.stdout.as_deref().map(Text::from);
                self.stderr = setting.stderr.as_deref().map(Text::from);
            }
        }
        self.nice = setting.nice;
        self.runner = setting.runner.as_deref().map(Runner::from);
        self.umask = setting.umask.map(|umask| format!("{umask:03o}"));
        let shell = setting.shell.as_deref();
        self.shell = shell.map(|shell| String::from_utf8_lossy(shell).into_owned());
        self.wrap = setting.wrap.iter().map(|word| Text::from(word.as_ref())).collect();
        self.signal = setting.warning.map(|warning| {
            let before = std::time::Duration::from_millis(warning.before_ms);
            Warning { signal: warning.signal, before }.to_string()
        });
        let variables = setting.env.iter();
        self.value_names =
            setting.value_names.iter().map(|name| Text::from(name.as_ref())).collect();
        self.env = variables
            .map(|(name, value)| (Text::from(name.as_ref()).to_string(), value.as_ref().into()))
            .collect();
    }
}

fn label_of(view: &TaskView) -> String {
    let names = view.work.as_ref().and_then(|work| work.setting());
    let names = names.map_or(&[][..], |setting| &setting.value_names);
    let words = view
        .element
        .as_ref()
        .map(|element| words_of(value(&element.values, element.position).bytes(), names));
    let number = view.element.as_ref().map_or(view.task.number(), |one| one.position + 1);
    // One without a name is called by its numbers.
    let id = format!("{}/{}", view.task.job.0, view.task.number());
    match view.name.to_string() {
        name if name == id && words.is_some() => label("", number, words.as_deref()),
        name => label(&name, number, words.as_deref()),
    }
}

fn value(values: &Values, position: u32) -> Text {
    match values {
        Values::Numbers { first, step } => {
            let number = i128::from(*first) + i128::from(*step) * i128::from(position);
            number.to_string().into()
        }
        Values::List(values) => values.get(position as usize).map(Text::from).unwrap_or_default(),
    }
}
