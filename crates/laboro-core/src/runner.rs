//! What keeps a program running between calls: the words that start it, and when the worker ends it. Carried in a
//! task's setting; the core does not look inside.

use crate::fields::{FieldError, Fields, Reader, Writer, put_string};

/// A program that takes calls one after the other. A worker keeps one per slot and setting.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Runner {
    /// The program and its arguments.
    pub words: Vec<Box<[u8]>>,
    /// Idle time after which the runner exits. `None`: the default of the worker.
    pub idle_ms: Option<u64>,
    /// A new process replaces it after this many calls.
    pub calls_max: Option<u32>,
    /// A new process takes its place when it has more than this after a call.
    pub memory_max: Option<u64>,
}

const WORDS: u32 = 1;
const IDLE: u32 = 2;
const CALLS: u32 = 3;
const MEMORY: u32 = 4;

impl Runner {
    pub(crate) fn encode(&self, to: &mut Vec<u8>) {
        let must_understand = Fields::NONE.with(WORDS);
        let mut to = Writer { to, must_understand };
        to.list(WORDS, |to| self.words.iter().for_each(|word| put_string(to, word)));
        let numbers = [
            (IDLE, self.idle_ms),
            (CALLS, self.calls_max.map(u64::from)),
            (MEMORY, self.memory_max),
        ];
        for (tag, number) in numbers {
            if let Some(number) = number {
                to.number(tag, number);
            }
        }
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Runner, FieldError> {
        let mut runner = Runner::default();
        Reader(bytes).each(|tag, value| {
            match tag {
                WORDS => runner.words = value.list(|from| Ok(from.string()?.into()))?,
                IDLE => runner.idle_ms = Some(value.number()?),
                CALLS => runner.calls_max = Some(value.small()?),
                MEMORY => runner.memory_max = Some(value.number()?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(runner)
    }
}
