//! What a task runs: a shell line, an argument list or a script. `Work<Template>` still has placeholders,
//! `Work` is ready to run. Nothing here runs anything.

use std::ffi::OsString;
use std::sync::Arc;

use crate::template::{Filling, Template};

/// What a task runs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Work<T = OsString> {
    /// One line for `sh -c`.
    Shell {
        line: T,
    },
    /// A program and its arguments, never seen by a shell.
    Argv(Vec<T>),
    Script(Script<T>),
}

/// A program text. It is never rewritten, since braces are everyday syntax in most languages: an element's
/// values are its arguments (`"$1"`, `sys.argv[1]`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Script<T = OsString> {
    pub kind: ScriptKind,
    /// Shared by all elements of an array.
    pub body: Arc<[u8]>,
    pub arguments: Vec<T>,
}

/// Who reads a script.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ScriptKind {
    Bash,
    /// Matlab or octave, whichever the worker finds.
    Matlab,
    /// This program with these arguments before the script.
    Program(Vec<String>),
}

impl ScriptKind {
    /// From an `interpreter` as a person writes it: a program and its options.
    pub(crate) fn from_words(words: Vec<String>) -> ScriptKind {
        match words.as_slice() {
            [word] if word == "bash" => ScriptKind::Bash,
            [word] if word == "matlab" || word == "octave" => ScriptKind::Matlab,
            _ => ScriptKind::Program(words),
        }
    }

    /// The word by which a hub and its workers know who reads a script: a file ending or an interpreter.
    pub fn kind(&self) -> String {
        match self {
            ScriptKind::Bash => ".sh".to_owned(),
            ScriptKind::Matlab => ".m".to_owned(),
            ScriptKind::Program(words) => words.join(" "),
        }
    }

    /// The other way round. Words of a program are told apart by blanks.
    pub fn from_kind(kind: &str) -> ScriptKind {
        match kind.trim() {
            "" | ".sh" => ScriptKind::Bash,
            ".m" => ScriptKind::Matlab,
            words => ScriptKind::from_words(words.split_whitespace().map(str::to_owned).collect()),
        }
    }

    /// An extension that stands for no program, such as `.py`; programs are named otherwise.
    pub fn unknown_extension(&self) -> Option<&str> {
        match self {
            ScriptKind::Program(words) => match &words[..] {
                [word] if word.starts_with('.') && !word.contains('/') => Some(word),
                _ => None,
            },
            ScriptKind::Bash | ScriptKind::Matlab => None,
        }
    }

    /// For messages and previews.
    pub fn label(&self) -> String {
        match self {
            ScriptKind::Bash => "bash".to_owned(),
            ScriptKind::Matlab => "matlab or octave".to_owned(),
            ScriptKind::Program(words) => words.join(" "),
        }
    }
}

impl Work<Template> {
    pub(crate) fn fill(&self, filling: &Filling<'_>) -> Work {
        let arguments = |templates: &[Template]| {
            let mut arguments = Vec::with_capacity(templates.len());
            for template in templates {
                template.fill_arguments(filling, &mut arguments);
            }
            arguments
        };
        match self {
            Work::Shell { line } => Work::Shell { line: line.fill(filling) },
            Work::Argv(templates) => Work::Argv(arguments(templates)),
            Work::Script(script) => Work::Script(Script {
                kind: script.kind.clone(),
                body: Arc::clone(&script.body),
                arguments: arguments(&script.arguments),
            }),
        }
    }
}
