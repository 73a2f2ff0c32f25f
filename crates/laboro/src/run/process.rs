//! From an element of a plan to the process that runs it.

use crate::args::DEFAULT_SHELL;
use crate::output::shell_word;
use crate::run::Options;
use anyhow::Context;
use laboro_plan::{Element, ScriptKind, Stdin as PlanStdin, Work};
use laboro_worker::{Capture, Launch, Limits, Stdin, WriteMode};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Makes launches, with what all of them have in common worked out once.
pub(crate) struct Launcher {
    base_env: Vec<(OsString, OsString)>,
    shell: PathBuf,
    scripts: PathBuf,
}

/// Which attempt of which task.
pub(crate) struct Attempt<'a> {
    pub(crate) id: u64,
    /// The element's place in its array, from 1.
    pub(crate) place: u32,
    pub(crate) number: u16,
    pub(crate) slots: u32,
    /// Names and indices of the resources it got.
    pub(crate) share: &'a [(String, Vec<u32>)],
}

/// A launch and what belongs to it.
pub(crate) struct Prepared {
    pub(crate) launch: Launch,
    /// As a person would type it.
    pub(crate) command: String,
    /// A file that is to be removed afterwards.
    pub(crate) script: Option<PathBuf>,
}

impl Launcher {
    pub(crate) fn new(shell: &Path, state: &Path) -> Launcher {
        Launcher {
            base_env: std::env::vars_os().collect(),
            shell: shell.to_owned(),
            scripts: state.join("scripts"),
        }
    }

    /// A script is written to a file first.
    pub(crate) fn prepare(
        &self,
        element: Element,
        attempt: &Attempt<'_>,
        options: &Options,
    ) -> anyhow::Result<Prepared> {
        let mut script = None;
        let argv: Vec<OsString> = match element.work {
            Work::Argv(argv) => argv,
            Work::Shell { line } => self.shell_words(line),
            Work::Script(body) => {
                let path = self.write_script(attempt.id, &body.kind, &body.body)?;
                let mut argv = interpreter(&body.kind, &path);
                argv.extend(body.arguments);
                script = Some(path);
                argv
            }
        };
        let command = typed(&argv);
        let settings = element.settings;
        let mut env = self.base_env.clone();
        let own = settings.env.into_iter().map(|(name, value)| (OsString::from(name), value));
        for (name, value) in own {
            set(&mut env, name, value);
        }
        set(&mut env, "LABORO_TASK".into(), element.name.into());
        set(&mut env, "LABORO_JOB".into(), "1".into());
        set(&mut env, "LABORO_INDEX".into(), attempt.place.to_string().into());
        set(&mut env, "LABORO_ATTEMPT".into(), attempt.number.to_string().into());
        set(&mut env, "LABORO_SLOTS".into(), attempt.slots.to_string().into());
        for (name, indices) in attempt.share {
            let list: Vec<String> = indices.iter().map(ToString::to_string).collect();
            let variable = format!("LABORO_{}", name.to_uppercase().replace('-', "_"));
            set(&mut env, variable.into(), list.join(",").into());
        }
        let capture = |path: Option<OsString>| match path {
            Some(path) => Capture::File(path.into(), WriteMode::Truncate),
            None => Capture::Pipe,
        };
        let launch = Launch {
            id: attempt.id,
            argv,
            env,
            dir: settings.dir.map(PathBuf::from),
            stdin: match settings.stdin {
                None => Stdin::Null,
                Some(PlanStdin::Text(text)) => Stdin::Bytes(text.as_bytes().to_vec()),
                Some(PlanStdin::File(path)) => Stdin::File(path.into()),
            },
            stdout: capture(settings.output.stdout),
            stderr: capture(settings.output.stderr),
            timeout: settings.timeout.or(options.timeout),
            grace: options.grace,
            nice: options.nice,
            limits: Limits::default(),
        };
        Ok(Prepared { launch, command, script })
    }

    fn shell_words(&self, line: OsString) -> Vec<OsString> {
        // Whoever names a shell wants it to see every line.
        let plain = (self.shell == Path::new(DEFAULT_SHELL)).then(|| plain_words(&line)).flatten();
        plain.unwrap_or_else(|| vec![self.shell.clone().into(), "-c".into(), line])
    }

    fn write_script(&self, id: u64, kind: &ScriptKind, body: &[u8]) -> anyhow::Result<PathBuf> {
        let extension = if *kind == ScriptKind::Matlab { "m" } else { "sh" };
        // Octave wants a name that could be a function's.
        let path = self.scripts.join(format!("script_{id}.{extension}"));
        std::fs::create_dir_all(&self.scripts)
            .and_then(|()| std::fs::write(&path, body))
            .with_context(|| format!("{} cannot be written", path.display()))?;
        Ok(path)
    }
}

/// A command line as a person would type it.
fn typed(argv: &[OsString]) -> String {
    let words: Vec<String> = argv.iter().map(|word| shell_word(&word.to_string_lossy())).collect();
    words.join(" ")
}

fn interpreter(kind: &ScriptKind, script: &Path) -> Vec<OsString> {
    match kind {
        ScriptKind::Bash => vec!["bash".into(), script.into()],
        ScriptKind::Program(words) => {
            let mut argv: Vec<OsString> = words.iter().map(OsString::from).collect();
            argv.push(script.into());
            argv
        }
        ScriptKind::Matlab if on_path("matlab") => {
            let call = format!("run('{}')", script.display());
            vec!["matlab".into(), "-batch".into(), call.into()]
        }
        ScriptKind::Matlab => vec!["octave".into(), "-qf".into(), script.into()],
    }
}

fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// A later value of the same name wins.
fn set(env: &mut Vec<(OsString, OsString)>, name: OsString, value: OsString) {
    match env.iter_mut().find(|(known, _)| *known == name) {
        Some(entry) => entry.1 = value,
        None => env.push((name, value)),
    }
}

/// The words of a line that a shell would run as they are: a program given by its path and words without
/// any character that means something to a shell. Spares the shell, which costs as much as the program.
fn plain_words(line: &OsStr) -> Option<Vec<OsString>> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b" _./:,@%+-=".contains(&byte);
    let bytes = line.as_bytes();
    if !bytes.iter().all(|&byte| plain(byte)) {
        return None;
    }
    let words: Vec<OsString> = (bytes.split(|&byte| byte == b' '))
        .filter(|word| !word.is_empty())
        .map(|word| OsStr::from_bytes(word).to_owned())
        .collect();
    let program = words.first()?.as_bytes();
    (program.contains(&b'/') && !program.contains(&b'=')).then_some(words)
}

#[cfg(test)]
mod tests;
