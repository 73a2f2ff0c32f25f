//! From an assignment to the process that runs it: words, environment, directory, streams. The same for a worker of a
//! hub and for a run on one machine; placeholders of an array's element are filled in here. Launches nothing.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use laboro_core::{Argv, CommandWork, Program, ScriptWork, Setting, Work};
use laboro_dialects::worker::Assignment;
use laboro_net::trace::{self, TraceParent};
use laboro_plan::{Filler, ScriptKind, VALUE_AS_LINE};

use crate::launch::{Capture, Launch, Limits, Stdin, Until, Warning, WriteMode};
use crate::scripts::{Script, Scripts};
use crate::surroundings::{Facts, Shares, Variable, inherited, set};
use crate::sys::is_shortage;
use crate::words::{DEFAULT_SHELL, Shell, script_words};

/// Makes launches, with what all of them have in common worked out once.
#[derive(Debug)]
pub struct Maker {
    base_env: Vec<Variable>,
    common: Common,
}

/// What all tasks of a worker have in common.
#[derive(Clone, Debug)]
pub struct Common {
    /// For lines of commands.
    pub shell: PathBuf,
    /// What directories of tasks are relative to. `None`: where the program was started.
    pub dir: Option<PathBuf>,
    /// What a task that is only a name means.
    pub command: Vec<OsString>,
    /// The worker's name, where tasks are told one.
    pub worker: Option<String>,
    pub grace: Duration,
    /// Of tasks that ask for none.
    pub nice: Option<i32>,
    pub until: Until,
    /// What the items of resources are called here, by their places.
    pub items: Vec<(String, Vec<String>)>,
}

/// A launch and what belongs to it.
#[derive(Debug)]
pub struct Made {
    pub launch: Launch,
    /// A file that gets what the task prints, besides whoever else does: with `-1`, `-2`, … before `.log` if there is
    /// one already.
    pub(crate) log: Option<PathBuf>,
    /// In use until the task is over.
    pub script: Option<Script>,
}

/// Why a task cannot be launched.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub message: String,
    /// The machine has no room now, which is not the task's fault and passes.
    pub is_shortage: bool,
}

impl Refusal {
    pub(crate) fn of(what: &str, error: &io::Error) -> Refusal {
        Refusal { message: format!("{what}: {error}"), is_shortage: is_shortage(error) }
    }
}

impl From<String> for Refusal {
    fn from(message: String) -> Refusal {
        Refusal { message, is_shortage: false }
    }
}

impl Maker {
    pub fn new(common: Common) -> Maker {
        Maker { base_env: inherited(), common }
    }

    /// The hub's name for this worker, where it is not the one it gave itself.
    pub(crate) fn rename(&mut self, worker: &str) {
        self.common.worker = Some(worker.to_owned());
    }

    /// `scratch` is the directory of the task's own, where it has one; `slot` is a number that no other running task has.
    pub fn make(
        &self,
        assignment: &Assignment,
        scripts: &Scripts,
        scratch: Option<&Path>,
        slot: u32,
    ) -> Result<Made, Refusal> {
        let none = Setting::default();
        let setting = assignment.work.setting().map_or(&none, |setting| &**setting);
        let filling = Filling::of(assignment, setting, slot)?;
        let number = number(assignment);
        let (mut script, mut log) = (None, None);
        let mut dir = setting.dir.as_deref().map(|dir| filling.text(dir));
        let argv = match &*assignment.work {
            Work::Named => self.named(&assignment.name)?,
            Work::Command(CommandWork { program, .. }) => {
                self.program(program, setting, &filling)?
            }
            Work::Script(work) => {
                let ScriptWork { kind, body, .. } = &**work;
                let kind = ScriptKind::from_kind(kind);
                if let Some(extension) = kind.unknown_extension() {
                    return Err(Refusal::from(format!(
                        "no interpreter is known for scripts of type {extension}: use .sh or .m"
                    )));
                }
                let written = scripts.write(&kind, body);
                let written =
                    written.map_err(|error| Refusal::of("the script cannot be written", &error))?;
                let mut argv = script_words(&kind, written.path());
                argv.extend(filling.values());
                script = Some(written);
                argv
            }
            Work::Call(_) => return Err(Refusal::from("a call goes to a runner".to_owned())),
            Work::Indexed(indexed) => {
                log = log_file(assignment, number, &indexed.log_dir);
                dir = (!indexed.dir.is_empty()).then(|| OsString::from_vec(indexed.dir.to_vec()));
                vec![OsString::from_vec(indexed.program.to_vec()), number.to_string().into()]
            }
        };
        let wrap = setting.wrap.iter().map(|word| filling.text(word));
        let argv: Vec<OsString> = wrap.chain(argv).collect();
        // A path of its own stays what it is.
        let dir = match (&self.common.dir, dir) {
            (Some(base), Some(dir)) => Some(base.join(dir)),
            (base, dir) => dir.map(PathBuf::from).or_else(|| base.clone()),
        };
        let launch = Launch {
            env: self.env(assignment, setting, &filling, number, scratch),
            dir,
            stdin: match &setting.stdin {
                laboro_core::Stdin::Null => Stdin::Null,
                laboro_core::Stdin::Text(text) => Stdin::Bytes(filling.text(text).into_vec()),
                laboro_core::Stdin::File(path) => Stdin::File(filling.text(path).into()),
            },
            stdout: filling.capture(setting.stdout.as_deref()),
            stderr: filling.capture(setting.stderr.as_deref()),
            timeout: assignment.time_limit_ms.map(Duration::from_millis),
            warning: setting.warning.map(|warning| Warning {
                signal: warning.signal.into(),
                before: Duration::from_millis(warning.before_ms),
            }),
            grace: self.common.grace,
            nice: setting.nice.or(self.common.nice),
            umask: setting.umask,
            limits: Limits::default(),
            until: self.common.until,
            ..Launch::new(assignment.key.0, argv)
        };
        Ok(Made { launch, log, script })
    }

    /// What starts a runner for calls such as this one. What differs from call to call is told with each.
    pub(crate) fn runner(&self, assignment: &Assignment, id: u64) -> Result<Launch, Refusal> {
        let setting = assignment.work.setting().filter(|setting| setting.runner.is_some());
        let Some(setting) = setting else {
            return Err(Refusal::from("the call has no runner".to_owned()));
        };
        let words = setting.runner.iter().flat_map(|runner| &runner.words);
        let words = setting.wrap.iter().chain(words);
        let argv = words.map(|word| OsString::from_vec(word.to_vec()));
        let mut env = self.base_env.clone();
        for (name, value) in &setting.env {
            set(&mut env, OsStr::from_bytes(name), OsStr::from_bytes(value));
        }
        let given = |name: &str| setting.env.iter().any(|(known, _)| **known == *name.as_bytes());
        let (slots, resources) = (assignment.slots, &assignment.resources[..]);
        Shares { slots, resources, items: &self.common.items }.tell(&mut env, given);
        if let Some(worker) = &self.common.worker {
            set(&mut env, "LABORO_WORKER", worker);
        }
        let own = setting.dir.as_deref().map(|dir| Path::new(OsStr::from_bytes(dir)));
        let dir = match (&self.common.dir, own) {
            (Some(base), Some(dir)) => Some(base.join(dir)),
            (base, dir) => dir.map(Path::to_owned).or_else(|| base.clone()),
        };
        Ok(Launch {
            env,
            dir,
            grace: self.common.grace,
            nice: setting.nice.or(self.common.nice),
            umask: setting.umask,
            ..Launch::new(id, argv)
        })
    }

    fn named(&self, name: &str) -> Result<Vec<OsString>, String> {
        if self.common.command.is_empty() {
            return Err("the task is only a name and this worker has no command for names: \
                        start it with `-- COMMAND {}`"
                .into());
        }
        // Some of these have a meaning between values.
        if name.contains(|c: char| c.is_control()) {
            return Err(format!("the name {name:?} has control characters in it"));
        }
        let filler = Filler::new(name, 0, name.as_bytes()).map_err(|error| error.to_string())?;
        let mut argv = Vec::with_capacity(self.common.command.len());
        self.common.command.iter().for_each(|word| filler.argument(word.as_bytes(), &mut argv));
        Ok(argv)
    }

    fn program(
        &self,
        program: &Program,
        setting: &Setting,
        filling: &Filling<'_>,
    ) -> Result<Vec<OsString>, String> {
        let own = setting.shell.as_deref().map(|shell| Path::new(OsStr::from_bytes(shell)));
        let shell = Shell {
            program: own.unwrap_or(&self.common.shell),
            has_our_path: setting.env.iter().all(|(name, _)| **name != *b"PATH"),
        };
        match program {
            Program::Shell(line) => Ok(shell.words(filling.line(line)?)),
            // So arrive the lines of a job file.
            Program::Argv(words) if filling.is_element() && words.iter().eq(VALUE_AS_LINE) => {
                Ok(shell.words(filling.text(b"{}")))
            }
            Program::Argv(words) => {
                let mut argv = filling.arguments(words);
                // Most such lines need no shell.
                let is_line =
                    matches!(&argv[..], [shell, c, _] if shell == DEFAULT_SHELL && c == "-c");
                match argv.pop() {
                    Some(line) if is_line => {
                        let program = own.unwrap_or(Path::new(DEFAULT_SHELL));
                        Ok(Shell { program, ..shell }.words(line))
                    }
                    Some(last) => {
                        argv.push(last);
                        Ok(argv)
                    }
                    None => Ok(argv),
                }
            }
        }
    }

    fn env(
        &self,
        assignment: &Assignment,
        setting: &Setting,
        filling: &Filling<'_>,
        number: u32,
        scratch: Option<&Path>,
    ) -> Vec<Variable> {
        let mut env = self.base_env.clone();
        for (name, value) in &setting.env {
            set(&mut env, OsStr::from_bytes(name), filling.text(value));
        }
        if let Some(attempt) = attempt_span(setting, assignment) {
            set(&mut env, trace::PARENT, attempt.to_string());
        }
        let facts = Facts {
            task: &assignment.name,
            job: assignment.job,
            index: number,
            attempt: assignment.attempt,
            slots: assignment.slots,
            resources: &assignment.resources,
            items: &self.common.items,
            role: &assignment.role,
        };
        let given = |name: &str| setting.env.iter().any(|(known, _)| **known == *name.as_bytes());
        facts.tell(&mut env, given);
        if let Some(worker) = &self.common.worker {
            set(&mut env, "LABORO_WORKER", worker);
        }
        if let Some(scratch) = scratch {
            set(&mut env, "LABORO_SCRATCH", scratch);
        }
        env
    }
}

/// Where the hub records attempts as spans, what the task does is a part of its attempt's.
fn attempt_span(setting: &Setting, assignment: &Assignment) -> Option<TraceParent> {
    let text = |wanted: &str| {
        let found = setting.env.iter().find(|(name, _)| **name == *wanted.as_bytes());
        found.and_then(|(_, value)| std::str::from_utf8(value).ok())
    };
    let job = text(trace::PARENT).and_then(TraceParent::parse)?;
    trace::read_state(text(trace::STATE)?)?;
    Some(job.of_attempt(assignment.index, assignment.attempt))
}

/// In its array, or in its job, from 1.
fn number(assignment: &Assignment) -> u32 {
    assignment.value.as_ref().map_or(assignment.index, |value| value.position.saturating_add(1))
}

/// As the dialect of indexed work has it: the job's name and the task's number.
fn log_file(assignment: &Assignment, number: u32, log_dir: &[u8]) -> Option<PathBuf> {
    if log_dir.is_empty() {
        return None;
    }
    let name = assignment.name.strip_suffix(&format!(".{number}")).unwrap_or(&assignment.name);
    // The name is from a peer and becomes part of a path.
    let name = name.replace(['/', '\0'], "_");
    Some(Path::new(OsStr::from_bytes(log_dir)).join(format!("{name}_{number}.log")))
}

/// An element's texts have placeholders, those of a task that stands alone are what they are.
enum Filling<'a> {
    None,
    Element(Filler<'a>),
}

impl<'a> Filling<'a> {
    fn of(assignment: &'a Assignment, setting: &Setting, slot: u32) -> Result<Filling<'a>, String> {
        let Some(value) = &assignment.value else { return Ok(Filling::None) };
        let filler = Filler::new(&assignment.name, u64::from(value.position), &value.bytes);
        let filler = filler.map_err(|error| error.to_string())?;
        Ok(Filling::Element(match setting.placeholders {
            None => filler,
            Some(_) => filler.in_slot(slot),
        }))
    }

    fn is_element(&self) -> bool {
        matches!(self, Filling::Element(_))
    }

    /// What goes to a file is not kept elsewhere.
    fn capture(&self, path: Option<&[u8]>) -> Capture {
        match path {
            Some(path) => Capture::File(self.text(path).into(), WriteMode::Truncate),
            None => Capture::Pipe,
        }
    }

    fn text(&self, text: &[u8]) -> OsString {
        match self {
            Filling::None => OsString::from_vec(text.to_vec()),
            Filling::Element(filler) => filler.text(text),
        }
    }

    fn line(&self, line: &[u8]) -> Result<OsString, String> {
        match self {
            Filling::None => Ok(OsString::from_vec(line.to_vec())),
            Filling::Element(filler) => filler.line(line).map_err(|error| error.to_string()),
        }
    }

    fn arguments(&self, words: &Argv) -> Vec<OsString> {
        let mut argv = Vec::with_capacity(words.len());
        for word in words {
            match self {
                Filling::None => argv.push(OsString::from_vec(word.to_vec())),
                Filling::Element(filler) => filler.argument(word, &mut argv),
            }
        }
        argv
    }

    /// A script is never rewritten; its element's values are its arguments.
    fn values(&self) -> Vec<OsString> {
        let mut values = Vec::new();
        if let Filling::Element(filler) = self {
            filler.argument(b"{}", &mut values);
        }
        values
    }
}

#[cfg(test)]
mod tests;
