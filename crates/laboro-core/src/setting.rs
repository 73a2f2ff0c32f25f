//! How the process of a task runs: its directory, variables and streams. Shared by the tasks of a job. The core carries
//! it; all it asks of it is which fields a worker must understand.

use std::fmt;
use std::sync::Arc;

use crate::fields::{FieldError, Fields, Reader, Writer, put_number, put_string};
use crate::runner::Runner;

/// Name and value.
pub type Variable = (Box<[u8]>, Box<[u8]>);

/// Paths are relative to the directory. In an array, texts and paths may hold placeholders, which the worker that runs
/// an element fills in.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct Setting {
    pub dir: Option<Box<[u8]>>,
    pub env: Vec<Variable>,
    pub stdin: Stdin,
    /// A file at the worker. `None`: what is printed goes to the store, for `laboro logs`.
    pub stdout: Option<Box<[u8]>>,
    /// The same; with the path of stdout, both go into one file in the order in which they are printed.
    pub stderr: Option<Box<[u8]>>,
    pub nice: Option<i32>,
    pub umask: Option<u32>,
    /// The program that takes the task, where it is a call.
    pub runner: Option<Arc<Runner>>,
    /// What reads lines of commands. `None`: the worker's, which is `/bin/sh`.
    pub shell: Option<Box<[u8]>>,
    /// Which placeholders its texts may hold, where they are more than the first ones: 2.
    pub placeholders: Option<u32>,
    /// A command before that of the task.
    pub wrap: Vec<Box<[u8]>>,
    pub warning: Option<Warning>,
    /// In an array whose values have names: what they are called, in their order; empty for one without. For people only.
    pub value_names: Vec<Box<[u8]>>,
}

/// A signal that a task gets before its time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct Warning {
    pub signal: u8,
    pub before_ms: u64,
}

/// What a task reads from its standard input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Stdin {
    #[default]
    Null,
    Text(Box<[u8]>),
    /// A file at the worker.
    File(Box<[u8]>),
}

// The first four have places of their own in the tuples of the native wire, which every worker reads.
const DIR: u32 = 1;
const ENV: u32 = 2;
const STDIN_TEXT: u32 = 3;
const BOTH_STREAMS: u32 = 4;
const STDIN_FILE: u32 = 5;
const STDOUT: u32 = 6;
const STDERR: u32 = 7;
const NICE: u32 = 8;
const UMASK: u32 = 9;
const RUNNER: u32 = 10;
const SHELL: u32 = 11;
const PLACEHOLDERS: u32 = 12;
const WRAP: u32 = 13;
const WARNING: u32 = 14;
/// No field of a setting: what a worker understands that can be one of several for a task.
pub(crate) const NODES: u32 = 15;
const VALUE_NAMES: u32 = 16;

/// By their tags, from 1: what they are called, and whether a worker that ignored one would not do what was asked.
const FIELDS: [(&str, bool); 16] = [
    ("dir", false),
    ("env", false),
    ("stdin", false),
    ("output", false),
    ("stdin file", true),
    ("stdout file", true),
    ("stderr file", true),
    ("nice", false),
    ("umask", true),
    ("runner", true),
    ("shell", true),
    ("placeholder of version 2", true),
    ("wrap", true),
    ("signal", true),
    ("number of nodes", true),
    ("names of values", false),
];

#[derive(Debug)]
enum Value<'a> {
    Bytes(&'a [u8]),
    Number(u32),
    Signed(i32),
    Variables(&'a [Variable]),
    Runner(&'a Runner),
    Words(&'a [Box<[u8]>]),
    Warning(Warning),
}

/// What is as usual is not told: records of old stay what they are called when a field is added.
impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut told = f.debug_map();
        self.each(|tag, value| {
            told.entry(&format_args!("{}", FIELDS[tag as usize - 1].0), &value);
        });
        told.finish()
    }
}

impl Setting {
    /// What its paths and its input weigh, without the variables.
    pub fn text_bytes(&self) -> usize {
        let stdin = match &self.stdin {
            Stdin::Null => 0,
            Stdin::Text(text) => text.len(),
            Stdin::File(path) => path.len(),
        };
        let paths = [&self.dir, &self.stdout, &self.stderr, &self.shell].into_iter().flatten();
        let runner = self.runner.iter().flat_map(|runner| &runner.words);
        let words = runner
            .chain(&self.wrap)
            .chain(&self.value_names)
            .map(|word| word.len() + 5)
            .sum::<usize>();
        stdin + paths.map(|path| path.len()).sum::<usize>() + words
    }

    /// Each field that is not as usual.
    fn each<'a>(&'a self, mut see: impl FnMut(u32, Value<'a>)) {
        use Value::{Bytes, Number, Signed, Variables};
        let Setting { dir, env, stdin, stdout, stderr, nice, umask, runner, shell, .. } = self;
        if let Some(dir) = dir {
            see(DIR, Bytes(dir));
        }
        if !env.is_empty() {
            see(ENV, Variables(env));
        }
        match stdin {
            Stdin::Null => {}
            Stdin::Text(text) => see(STDIN_TEXT, Bytes(text)),
            Stdin::File(path) => see(STDIN_FILE, Bytes(path)),
        }
        if self.both_streams().is_some() {
            stdout.iter().for_each(|path| see(BOTH_STREAMS, Bytes(path)));
        } else {
            stdout.iter().for_each(|path| see(STDOUT, Bytes(path)));
            stderr.iter().for_each(|path| see(STDERR, Bytes(path)));
        }
        if let Some(nice) = nice {
            see(NICE, Signed(*nice));
        }
        if let Some(umask) = umask {
            see(UMASK, Number(*umask));
        }
        if let Some(runner) = runner {
            see(RUNNER, Value::Runner(runner));
        }
        if let Some(shell) = shell {
            see(SHELL, Bytes(shell));
        }
        if let Some(placeholders) = self.placeholders {
            see(PLACEHOLDERS, Number(placeholders));
        }
        if !self.wrap.is_empty() {
            see(WRAP, Value::Words(&self.wrap));
        }
        if let Some(warning) = self.warning {
            see(WARNING, Value::Warning(warning));
        }
        if !self.value_names.is_empty() {
            see(VALUE_NAMES, Value::Words(&self.value_names));
        }
    }

    fn read_field(&mut self, tag: u32, value: &mut Reader<'_>) -> Result<bool, FieldError> {
        match tag {
            DIR => self.dir = Some(value.rest().into()),
            ENV => {
                self.env = value.list(|from| Ok((from.string()?.into(), from.string()?.into())))?;
            }
            STDIN_TEXT => self.stdin = Stdin::Text(value.rest().into()),
            BOTH_STREAMS => self.set_both_streams(Some(value.rest().into())),
            STDIN_FILE => self.stdin = Stdin::File(value.rest().into()),
            STDOUT => self.stdout = Some(value.rest().into()),
            STDERR => self.stderr = Some(value.rest().into()),
            NICE => self.nice = Some(value.signed()?),
            UMASK => self.umask = Some(value.small()?),
            RUNNER => self.runner = Some(Arc::new(Runner::decode(value.rest())?)),
            SHELL => self.shell = Some(value.rest().into()),
            PLACEHOLDERS => self.placeholders = Some(value.small()?),
            WRAP => self.wrap = value.list(|from| Ok(from.string()?.into()))?,
            WARNING => {
                let (signal, before_ms) = (value.small()?, value.number()?);
                if !(1..=64).contains(&signal) {
                    return Err(FieldError::Malformed("no such signal"));
                }
                self.warning = Some(Warning { signal, before_ms });
            }
            VALUE_NAMES => self.value_names = value.list(|from| Ok(from.string()?.into()))?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The same with every text and path changed, as where the placeholders of an element are filled.
    #[must_use]
    pub fn map(&self, text: impl Fn(&[u8]) -> Box<[u8]>) -> Setting {
        Setting {
            dir: self.dir.as_deref().map(&text),
            env: self.env.iter().map(|(name, value)| (name.clone(), text(value))).collect(),
            stdin: match &self.stdin {
                Stdin::Null => Stdin::Null,
                Stdin::Text(words) => Stdin::Text(text(words)),
                Stdin::File(path) => Stdin::File(text(path)),
            },
            stdout: self.stdout.as_deref().map(&text),
            stderr: self.stderr.as_deref().map(&text),
            nice: self.nice,
            umask: self.umask,
            runner: self.runner.clone(),
            shell: self.shell.clone(),
            placeholders: self.placeholders,
            wrap: self.wrap.iter().map(|word| text(word)).collect(),
            warning: self.warning,
            value_names: self.value_names.clone(),
        }
    }

    /// The one file that both streams go to.
    pub fn both_streams(&self) -> Option<&[u8]> {
        self.stdout.as_deref().filter(|_| self.stdout == self.stderr)
    }

    /// Sends both streams to one file.
    pub fn set_both_streams(&mut self, path: Option<Box<[u8]>>) {
        self.stdout.clone_from(&path);
        self.stderr = path;
    }

    /// What a worker has to understand to run its task.
    pub fn must_understand(&self) -> Fields {
        const KNOWN: Fields = Fields::known();
        let mut fields = Fields::NONE;
        self.each(|tag, _| {
            if KNOWN.has_all(Fields::NONE.with(tag)) {
                fields = fields.with(tag);
            }
        });
        fields
    }

    /// Appends the fields that are not as usual.
    pub fn encode(&self, to: &mut Vec<u8>) {
        self.encode_after(0, to);
    }

    /// The same without those that have a place of their own on the native wire: directory, variables, a text as input,
    /// one file for both streams.
    pub fn encode_tail(&self, to: &mut Vec<u8>) {
        self.encode_after(BOTH_STREAMS, to);
    }

    fn encode_after(&self, last: u32, to: &mut Vec<u8>) {
        let mut to = Writer { to, must_understand: Fields::known() };
        self.each(|tag, value| match value {
            _ if tag <= last => {}
            Value::Bytes(bytes) => to.bytes(tag, bytes),
            Value::Number(number) => to.number(tag, number.into()),
            Value::Signed(number) => to.signed(tag, number),
            Value::Runner(runner) => to.list(tag, |to| runner.encode(to)),
            Value::Words(words) => {
                to.list(tag, |to| words.iter().for_each(|word| put_string(to, word)));
            }
            Value::Warning(Warning { signal, before_ms }) => to.list(tag, |to| {
                put_number(to, signal.into());
                put_number(to, before_ms);
            }),
            Value::Variables(variables) => to.list(tag, |to| {
                for (name, value) in variables {
                    put_string(to, name);
                    put_string(to, value);
                }
            }),
        });
    }

    /// Adds fields to what is there.
    pub fn decode(&mut self, bytes: &[u8]) -> Result<(), FieldError> {
        Reader(bytes).each(|tag, value| self.read_field(tag, value))
    }
}

impl Fields {
    /// What a worker understands that can be one of several for a task.
    pub const NODES: Fields = Fields::NONE.with(NODES);

    /// Those that this version understands.
    pub const fn known() -> Fields {
        let (mut fields, mut at) = (Fields::NONE, 0);
        while at < FIELDS.len() {
            if FIELDS[at].1 {
                fields = fields.with(at as u32 + 1);
            }
            at += 1;
        }
        fields
    }

    /// What a worker understands that has not the shell which most lines are for.
    #[must_use]
    pub fn without_shell(self) -> Fields {
        self.tags().filter(|&tag| tag != SHELL).fold(Fields::NONE, Fields::with)
    }

    /// What people call them.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        self.tags().map(|tag| {
            let known = FIELDS.get((tag as usize).wrapping_sub(1));
            known.map_or("field of a newer laboro", |(word, _)| *word)
        })
    }
}
