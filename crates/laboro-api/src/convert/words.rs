//! Single words of a request in the core's terms: a program, a signal, what to do about names that are taken.

use super::BadTask;
use super::check::check_zero;
use crate::reference::Line;
use crate::streams::{Output, Stdin};
use crate::submit::{IfTaken, TaskSpec, UnknownAfter};
use crate::text::Text;
use laboro_core::Program;
use laboro_plan::Warning;

/// `USR1@60s`, before a time limit.
pub(super) fn warning(text: &str, limit_ms: Option<u64>) -> Result<laboro_core::Warning, String> {
    let Warning { signal, before } = Warning::parse(text)?;
    let Some(limit_ms) = limit_ms else {
        return Err(format!(
            "signal {text} comes before the time limit, and there is none: give a timeout"
        ));
    };
    let before_ms = u64::try_from(before.as_millis()).unwrap_or(u64::MAX);
    if before_ms >= limit_ms {
        return Err(format!(
            "signal {text} would come before the task starts: its time limit is {limit_ms} ms"
        ));
    }
    Ok(laboro_core::Warning { signal, before_ms })
}

/// What a task with settings of its own copies of these.
pub(super) fn weight(defaults: &TaskSpec) -> usize {
    let files = defaults.output.as_ref().map_or([None, None], Output::files);
    let texts = defaults.dir.iter().chain(defaults.stdin.as_ref().map(Stdin::text));
    let texts = texts.chain(files.into_iter().flatten()).chain(&defaults.wrap);
    let variables = defaults.env.iter().map(|(name, value)| name.len() + value.bytes().len() + 64);
    texts.map(|text| text.bytes().len()).chain(variables).sum()
}

pub(super) fn program(line: Line, task: &Text) -> Result<Program, BadTask> {
    match line {
        Line::Shell(line) => {
            check_zero(line.bytes(), task, "command")?;
            Ok(Program::Shell(line.into_bytes().into_boxed_slice()))
        }
        Line::Argv(words) if words.is_empty() => Err(BadTask::NoProgram(task.clone())),
        Line::Argv(words) => {
            for word in words.words() {
                check_zero(word, task, "command")?;
            }
            Ok(Program::Argv(words.into_words()))
        }
    }
}

impl From<IfTaken> for laboro_core::IfTaken {
    fn from(if_taken: IfTaken) -> laboro_core::IfTaken {
        match if_taken {
            IfTaken::Refuse => laboro_core::IfTaken::Refuse,
            IfTaken::Same => laboro_core::IfTaken::Same,
            IfTaken::Merge => laboro_core::IfTaken::Merge,
        }
    }
}

impl From<UnknownAfter> for laboro_core::UnknownPred {
    fn from(unknown: UnknownAfter) -> laboro_core::UnknownPred {
        match unknown {
            UnknownAfter::Refuse => laboro_core::UnknownPred::Refuse,
            UnknownAfter::Ignore => laboro_core::UnknownPred::Ignore,
        }
    }
}
