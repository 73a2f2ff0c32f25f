//! From an element of a plan to the process that runs it.

use crate::output::shell_word;
use crate::run::Options;
use anyhow::Context;
use laboro_plan::{Element, Stdin as PlanStdin, Work};
use laboro_worker::{
    Capture, Facts, Launch, Limits, Script, Scripts, Stdin, Until, WriteMode, inherited,
    script_words, set, shell_words,
};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Makes launches, with what all of them have in common worked out once.
pub(crate) struct Launcher {
    base_env: Vec<(OsString, OsString)>,
    shell: PathBuf,
    scripts: Scripts,
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
    /// In use until the task is over.
    pub(crate) script: Option<Script>,
}

impl Launcher {
    pub(crate) fn new(shell: &Path, state: &Path) -> Launcher {
        Launcher {
            base_env: inherited(),
            shell: shell.to_owned(),
            scripts: Scripts::in_dir(&state.join("scripts")),
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
            Work::Shell { line } => shell_words(&self.shell, line),
            Work::Script(body) => {
                let written = self.scripts.write(&body.kind, &body.body);
                let written = written.context("a script cannot be written")?;
                let mut argv = script_words(&body.kind, written.path());
                argv.extend(body.arguments);
                script = Some(written);
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
        let facts = Facts {
            task: &element.name,
            job: 1,
            index: attempt.place,
            attempt: attempt.number,
            slots: attempt.slots,
            resources: attempt.share,
        };
        facts.tell(&mut env);
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
            until: Until::default(),
        };
        Ok(Prepared { launch, command, script })
    }
}

/// A command line as a person would type it.
fn typed(argv: &[OsString]) -> String {
    let words: Vec<String> = argv.iter().map(|word| shell_word(&word.to_string_lossy())).collect();
    words.join(" ")
}
