//! From an assignment to the process that runs it: words, environment, directories. Placeholders of an array's
//! element are filled in here, as for a run on one machine. Launches nothing.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use laboro_core::{Argv, CommandWork, Program, ScriptWork, Setting, Work};
use laboro_dialects::worker::Assignment;
use laboro_plan::{Filler, ScriptKind};

use super::AgentOptions;
use super::scratch::Scratch;
use crate::launch::{Capture, Launch, Limits, Stdin, Until};
use crate::scripts::Script;
use crate::surroundings::{Facts, Variable, inherited, set};
use crate::sys::is_shortage;
use crate::words::{DEFAULT_SHELL, script_words, shell_words};

/// Makes launches, with what all of them have in common worked out once.
#[derive(Debug)]
pub(super) struct Maker {
    base_env: Vec<Variable>,
    shell: PathBuf,
    dir: PathBuf,
    /// What a task that is only a name means.
    command: Vec<OsString>,
    worker: String,
    grace: Duration,
    nice: Option<i32>,
    task_dirs: bool,
    until: Until,
}

/// A launch and what belongs to it.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) launch: Launch,
    pub(super) copy: Option<Copy>,
    /// In use until the task is over.
    pub(super) script: Option<Script>,
}

/// Why a task cannot be launched.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) message: String,
    /// The machine has no room now, which is not the task's fault and passes.
    pub(super) is_shortage: bool,
}

impl Refusal {
    pub(super) fn of(what: &str, error: &io::Error) -> Refusal {
        Refusal { message: format!("{what}: {error}"), is_shortage: is_shortage(error) }
    }
}

impl From<String> for Refusal {
    fn from(message: String) -> Refusal {
        Refusal { message, is_shortage: false }
    }
}

/// A file that gets what the task prints, besides whoever else does.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Copy {
    /// Whatever was there is gone.
    Anew(PathBuf),
    /// With `-1`, `-2`, … before `.log` if there is one already.
    Beside(PathBuf),
}

impl Maker {
    pub(super) fn new(options: &AgentOptions) -> Maker {
        Maker {
            base_env: inherited(),
            shell: options.shell.clone(),
            dir: options.dir.clone(),
            command: options.command.clone(),
            worker: options.name.clone(),
            grace: options.grace,
            nice: options.nice,
            task_dirs: options.task_dirs,
            until: options.until,
        }
    }

    /// The hub's name for this worker, where it is not the one it gave itself.
    pub(super) fn rename(&mut self, worker: &str) {
        self.worker = worker.to_owned();
    }

    pub(super) fn make(&self, assignment: &Assignment, scratch: &Scratch) -> Result<Made, Refusal> {
        let filling = Filling::of(assignment)?;
        let none = Setting::default();
        let number = number(assignment);
        let mut script = None;
        let (argv, setting, copy) = match &*assignment.work {
            Work::Named => (self.named(&assignment.name)?, &none, None),
            Work::Command(CommandWork { program, setting }) => {
                (self.program(program, &filling)?, &**setting, None)
            }
            Work::Script(script_work) => {
                let ScriptWork { kind, body, setting } = &**script_work;
                let kind = ScriptKind::from_kind(kind);
                if let Some(extension) = kind.unknown_extension() {
                    return Err(Refusal::from(format!(
                        "what runs scripts of type {extension} is not known: there is .sh and .m"
                    )));
                }
                let written = scratch.scripts.write(&kind, body);
                let written =
                    written.map_err(|error| Refusal::of("the script cannot be written", &error))?;
                let mut argv = script_words(&kind, written.path());
                argv.extend(filling.values());
                script = Some(written);
                (argv, &**setting, None)
            }
            Work::Indexed(indexed) => {
                let program = OsString::from_vec(indexed.program.to_vec());
                let argv = vec![program, number.to_string().into()];
                (argv, &none, log_file(assignment, number, &indexed.log_dir))
            }
        };
        let dir = match &*assignment.work {
            Work::Indexed(indexed) if !indexed.dir.is_empty() => {
                Some(OsString::from_vec(indexed.dir.to_vec()))
            }
            _ => setting.dir.as_deref().map(|dir| filling.text(dir)),
        };
        // A path of its own stays what it is.
        let dir = dir.map_or_else(|| self.dir.clone(), |dir| self.dir.join(dir));
        let copy = match setting.output.as_deref() {
            Some(path) => Some(Copy::Anew(dir.join(filling.text(path)))),
            None => copy,
        };
        let env = self.env(assignment, setting, &filling, number, &scratch.of(assignment.key.0));
        let stdin = setting.stdin.as_deref().map(|text| filling.text(text).into_vec());
        let launch = Launch {
            env,
            dir: Some(dir),
            stdin: stdin.map_or(Stdin::Null, Stdin::Bytes),
            stdout: Capture::Pipe,
            stderr: Capture::Pipe,
            timeout: assignment.time_limit_ms.map(Duration::from_millis),
            grace: self.grace,
            nice: self.nice,
            limits: Limits::default(),
            until: self.until,
            ..Launch::new(assignment.key.0, argv)
        };
        Ok(Made { launch, copy, script })
    }

    fn named(&self, name: &str) -> Result<Vec<OsString>, String> {
        if self.command.is_empty() {
            return Err("the task is only a name and this worker has no command for names: \
                        start it with `-- COMMAND {}`"
                .into());
        }
        // Some of these have a meaning between values.
        if name.contains(|c: char| c.is_control()) {
            return Err(format!("the name {name:?} has control characters in it"));
        }
        let filler = Filler::new(name, 0, name.as_bytes()).map_err(|error| error.to_string())?;
        let mut argv = Vec::with_capacity(self.command.len());
        self.command.iter().for_each(|word| filler.argument(word.as_bytes(), &mut argv));
        Ok(argv)
    }

    fn program(&self, program: &Program, filling: &Filling<'_>) -> Result<Vec<OsString>, String> {
        match program {
            Program::Shell(line) => Ok(shell_words(&self.shell, filling.line(line)?)),
            Program::Argv(words) => {
                let mut argv = filling.arguments(words);
                // So arrive the lines of a job file; most need no shell.
                let is_line =
                    matches!(&argv[..], [shell, c, _] if shell == DEFAULT_SHELL && c == "-c");
                match argv.pop() {
                    Some(line) if is_line => Ok(shell_words(Path::new(DEFAULT_SHELL), line)),
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
        scratch: &Path,
    ) -> Vec<Variable> {
        let mut env = self.base_env.clone();
        for (name, value) in &setting.env {
            set(&mut env, OsStr::from_bytes(name), filling.text(value));
        }
        let facts = Facts {
            task: &assignment.name,
            job: assignment.job,
            index: number,
            attempt: assignment.attempt,
            slots: assignment.slots,
            resources: &assignment.resources,
        };
        facts.tell(&mut env);
        set(&mut env, "LABORO_WORKER", self.worker.as_str());
        if self.task_dirs {
            set(&mut env, "LABORO_SCRATCH", scratch);
        }
        env
    }
}

/// In its array, or in its job, from 1.
fn number(assignment: &Assignment) -> u32 {
    assignment.value.as_ref().map_or(assignment.index, |value| value.position.saturating_add(1))
}

/// As the dialect of indexed work has it: the job's name and the task's number.
fn log_file(assignment: &Assignment, number: u32, log_dir: &[u8]) -> Option<Copy> {
    if log_dir.is_empty() {
        return None;
    }
    let name = assignment.name.strip_suffix(&format!(".{number}")).unwrap_or(&assignment.name);
    // The name is from a peer and becomes part of a path.
    let name = name.replace(['/', '\0'], "_");
    Some(Copy::Beside(Path::new(OsStr::from_bytes(log_dir)).join(format!("{name}_{number}.log"))))
}

/// An element's texts have placeholders, those of a task that stands alone are what they are.
enum Filling<'a> {
    None,
    Element(Filler<'a>),
}

impl<'a> Filling<'a> {
    fn of(assignment: &'a Assignment) -> Result<Filling<'a>, String> {
        let Some(value) = &assignment.value else { return Ok(Filling::None) };
        let filler = Filler::new(&assignment.name, u64::from(value.position), &value.bytes);
        Ok(Filling::Element(filler.map_err(|error| error.to_string())?))
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
