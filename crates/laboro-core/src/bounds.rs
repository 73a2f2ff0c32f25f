//! What a reader of a task takes at most: a worker on the wire, exec on its machine. The readers use these numbers,
//! and whatever is submitted is checked against them here, so that no task is accepted that no worker could take.

use crate::task::{
    CallWork, CommandWork, IndexedWork, Needs, Program, ScriptWork, Setting, Values, Work,
};
use std::sync::Arc;

/// Words of a command.
pub const WORDS_MAX: usize = 131_072;
/// Variables of an environment.
pub const VARIABLES_MAX: usize = 131_072;
/// Words and variables together, in bytes: beyond this exec fails on every machine, since the kernel's own limit is 6 MiB.
pub const EXEC_BYTES_MAX: usize = 8 << 20;
/// A message to a worker.
pub const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// A task's description in such a message, with room for what stands around it.
pub const WORK_BYTES_MAX: usize = MESSAGE_BYTES_MAX - MESSAGE_BYTES_BESIDE;
/// The name of a task, its resources and the head of its message.
pub const MESSAGE_BYTES_BESIDE: usize = 64 << 10;
/// What a call takes to its runner, and what it brings back: more belongs into a file.
pub const CALL_BYTES_MAX: usize = 1 << 20;
/// Tags of a worker or a task, and kinds of resources.
pub const FEATURES_MAX: usize = 1024;

/// Too much of something, so that no worker could take it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Excess {
    /// With its unit, in the plural.
    pub what: &'static str,
    pub has: usize,
    pub most: usize,
}

fn at_most(what: &'static str, has: usize, most: usize) -> Result<(), Excess> {
    if has > most { Err(Excess { what, has, most }) } else { Ok(()) }
}

/// Looks at one task after the other. Those of a submit mostly share their setting, which is looked at once.
pub(crate) struct WorkCheck {
    bytes_max: usize,
    last: Option<(Arc<Setting>, Sizes)>,
}

#[derive(Clone, Copy)]
struct Sizes {
    /// Of the variables, for exec.
    variables: usize,
    /// Of all of it in a message.
    message: usize,
}

impl WorkCheck {
    pub(crate) fn new(bytes_max: usize) -> WorkCheck {
        WorkCheck { bytes_max, last: None }
    }

    /// Whether a worker can take the work, with the largest of the values that it is run with.
    pub(crate) fn check(&mut self, work: &Work, values: Option<&Values>) -> Result<(), Excess> {
        let value = match values {
            Some(Values::List(list)) => list.longest(),
            Some(Values::Numbers { .. }) | None => 0,
        };
        let own = match work {
            Work::Named => 0,
            Work::Command(CommandWork { program, setting }) => {
                let bytes = match program {
                    Program::Argv(words) => {
                        let count = words.len();
                        at_most("words", count, WORDS_MAX)?;
                        on_the_wire(count, words.weight())
                    }
                    Program::Shell(line) => line.len(),
                };
                let around = self.check_setting(setting)?;
                let exec = bytes + around.variables;
                at_most("bytes of words and variables", exec, EXEC_BYTES_MAX)?;
                bytes + around.message
            }
            Work::Script(script) => {
                let ScriptWork { kind, body, setting } = &**script;
                let around = self.check_setting(setting)?;
                at_most("bytes of variables", around.variables, EXEC_BYTES_MAX)?;
                kind.len() + body.len() + around.message
            }
            Work::Indexed(indexed) => {
                let IndexedWork { program, dir, log_dir } = &**indexed;
                program.len() + dir.len() + log_dir.len()
            }
            Work::Call(CallWork { payload, setting }) => {
                let around = self.check_setting(setting)?;
                at_most("bytes of variables", around.variables, EXEC_BYTES_MAX)?;
                at_most("bytes for a call", payload.len() + value, CALL_BYTES_MAX)?;
                payload.len() + around.message
            }
        };
        at_most("bytes", own + value, self.bytes_max)
    }

    fn check_setting(&mut self, setting: &Arc<Setting>) -> Result<Sizes, Excess> {
        if let Some((last, sizes)) = &self.last
            && Arc::ptr_eq(last, setting)
        {
            return Ok(*sizes);
        }
        at_most("variables", setting.env.len(), VARIABLES_MAX)?;
        let variables = setting.env.iter().map(|(name, value)| name.len() + value.len()).sum();
        let message = on_the_wire(3 * setting.env.len(), variables) + setting.text_bytes();
        let sizes = Sizes { variables, message };
        self.last = Some((Arc::clone(setting), sizes));
        Ok(sizes)
    }
}

pub(crate) fn check_needs(needs: &Needs) -> Result<(), Excess> {
    for (_, way) in needs.ways() {
        at_most("different resources for a task", way.resources.len(), FEATURES_MAX)?;
        at_most("tags for a task", way.tags.len(), FEATURES_MAX)?;
    }
    Ok(())
}

/// Each piece has a head of up to five bytes.
fn on_the_wire(pieces: usize, bytes: usize) -> usize {
    5 * pieces + bytes
}
