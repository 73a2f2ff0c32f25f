//! What the command line says of all tasks of a submit: where they run, what they see and need, what comes
//! before their names. Most of it travels once, as the defaults of the job.

use crate::args::hub::Submit;
use crate::exit::usage;
use crate::input::{self, quantity};
use anyhow::Context;
use laboro_hub::api::{TaskSpec, Text};
use laboro_plan::{parse_duration, parse_size};
use std::collections::BTreeMap;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

#[derive(Debug)]
pub(crate) struct Terms {
    defaults: TaskSpec,
    dir: Vec<u8>,
    prefix: String,
    /// Tasks of a command with values have no names: the next such submit would find them taken.
    names: Names,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    Kept,
    Dropped,
}

impl Terms {
    pub(crate) fn new(args: &Submit) -> anyhow::Result<Terms> {
        let here = std::env::current_dir().context("the current directory is gone")?;
        let dir = args.workdir.as_ref().map_or_else(|| here.clone(), |dir| here.join(dir));
        let dir = dir.into_os_string().into_vec();
        let timeout = quantity("--timeout", args.timeout.as_deref(), parse_duration)?;
        let defaults = TaskSpec {
            dir: Some(dir.clone().into()),
            env: variables(&args.env)?,
            slots: args.slots,
            memory_bytes: quantity("--memory", args.memory.as_deref(), parse_size)?,
            resources: input::resources(&args.resources)?.into_iter().collect(),
            tags: args.tags.iter().map(|tag| Text::from(tag.as_str())).collect(),
            priority: args.priority,
            attempts: args.attempts,
            timeout_ms: timeout.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            ..TaskSpec::default()
        };
        let is_command = args.input.file.is_none() && args.input.runs.is_none();
        Ok(Terms {
            defaults,
            dir,
            prefix: args.prefix.clone().unwrap_or_default(),
            names: if is_command { Names::Dropped } else { Names::Kept },
        })
    }

    /// For tasks that leave them open.
    pub(crate) fn defaults(&self) -> TaskSpec {
        self.defaults.clone()
    }

    pub(crate) fn name(&self, name: &str) -> Option<Text> {
        (!name.is_empty() && self.names == Names::Kept).then(|| self.prefixed(name))
    }

    pub(crate) fn prefixed(&self, name: &str) -> Text {
        format!("{}{name}", self.prefix).into()
    }

    /// Makes paths whole, and repeats those defaults that would be read wrongly where the placeholders of
    /// an array are filled; `literal` writes them so that they are not.
    pub(crate) fn complete(&self, spec: &mut TaskSpec, literal: impl Fn(&[u8]) -> Vec<u8>) {
        let differs = |text: &[u8]| text.contains(&b'{') && literal(text) != text;
        match &spec.dir {
            Some(dir) if !dir.bytes().starts_with(b"/") => {
                let dir = [&literal(&self.dir), b"/".as_slice(), dir.bytes()].concat();
                spec.dir = Some(dir.into());
            }
            None if differs(&self.dir) => spec.dir = Some(literal(&self.dir).into()),
            _ => {}
        }
        for (name, value) in &self.defaults.env {
            if differs(value.bytes()) && !spec.env.contains_key(name) {
                spec.env.insert(name.clone(), literal(value.bytes()).into());
            }
        }
    }
}

/// `NAME=VALUE`, or `NAME` with the value it has here.
fn variables(given: &[String]) -> anyhow::Result<BTreeMap<String, Text>> {
    let mut variables = BTreeMap::new();
    for given in given {
        let (name, value) = match given.split_once('=') {
            Some((name, value)) => (name, value.as_bytes().to_vec()),
            None => {
                let unset =
                    || usage(format!("--env {given}: it has no value here: write {given}=VALUE"));
                let value = std::env::var_os(given).ok_or_else(unset)?;
                (given.as_str(), value.as_bytes().to_vec())
            }
        };
        if name.is_empty() {
            return Err(usage(format!("--env {given}: a variable needs a name")));
        }
        variables.insert(name.to_owned(), value.into());
    }
    Ok(variables)
}

/// What a job is called that was given no name: its file.
pub(crate) fn name_of(file: Option<&Path>) -> Option<String> {
    let name = file?.file_name()?.to_str()?;
    Some(name.to_owned())
}
