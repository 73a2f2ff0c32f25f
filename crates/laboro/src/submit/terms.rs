//! What the command line says of all tasks of a submit besides how they run: what they need, what comes before their
//! names. It travels once, as the defaults of the job, and so does where they run.

use super::specs::{millis, requests};
use crate::args::hub::Submit;
use crate::input::quantity;
use anyhow::Context;
use laboro_api::{After, TaskSpec, Text};
use laboro_plan::{Part, parse_duration};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

#[derive(Debug)]
pub(crate) struct Terms {
    defaults: TaskSpec,
    /// The directory that relative ones begin at.
    here: Vec<u8>,
    prefix: String,
    /// What tasks wait for that wait for nothing in their own job.
    after: Vec<After>,
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
        let here = std::env::current_dir().context("the current directory no longer exists")?;
        let timeout = quantity("--timeout", args.timeout.as_deref(), parse_duration)?;
        let dir = args.task.workdir.as_ref().map_or_else(|| here.clone(), |dir| here.join(dir));
        let needs = args.needs.settings()?;
        let defaults = TaskSpec {
            dir: Some(dir.into_os_string().into_vec().into()),
            env: (args.task.settings()?.env.into_iter())
                .map(|(name, value)| (name, value.into_vec().into()))
                .collect(),
            slots: needs.slots,
            memory_bytes: needs.memory_bytes,
            resources: requests(needs.resources),
            tags: needs.tags.into_iter().map(Text::from).collect(),
            nodes: needs.nodes,
            time_request_ms: needs.time_request.map(millis),
            priority: args.priority,
            attempts: args.attempts,
            timeout_ms: timeout.map(millis),
            ..TaskSpec::default()
        };
        let is_command = args.input.file.is_none() && args.input.runs.is_none();
        Ok(Terms {
            defaults,
            here: here.into_os_string().into_vec(),
            prefix: args.prefix.clone().unwrap_or_default(),
            after: Vec::new(),
            names: if is_command { Names::Dropped } else { Names::Kept },
        })
    }

    /// All of it comes after these.
    pub(crate) fn come_after(&mut self, tasks: Vec<After>) {
        self.after = tasks;
    }

    /// For tasks that leave them open.
    pub(crate) fn defaults(&self) -> TaskSpec {
        self.defaults.clone()
    }

    /// Makes names and paths whole, and leaves out what the defaults say already.
    pub(crate) fn complete(&self, spec: &mut TaskSpec, part: &Part) {
        let prefixed = |name: &Text| Text::from([self.prefix.as_bytes(), name.bytes()].concat());
        spec.name =
            spec.name.take().filter(|_| self.names == Names::Kept).map(|name| prefixed(&name));
        if !self.prefix.is_empty() {
            for list in [&mut spec.after, &mut spec.each] {
                let whole = list.iter().map(|after| match after {
                    After::Name(name) => After::Name(prefixed(&name)),
                    other => other,
                });
                *list = whole.collect();
            }
        }
        if spec.after.is_empty() && spec.each.is_empty() {
            spec.after = self.after.iter().cloned().collect();
        }
        // A directory may have braces in its name, which are not placeholders.
        let here = match part {
            Part::Array(array) => array.carried_text(&self.here),
            Part::Task(_) => self.here.clone(),
        };
        let dir = match spec.dir.take() {
            None => here,
            Some(dir) if dir.bytes().starts_with(b"/") => dir.into_bytes(),
            Some(dir) => [&here, b"/".as_slice(), dir.bytes()].concat(),
        };
        spec.dir = Some(dir.into()).filter(|dir| self.defaults.dir.as_ref() != Some(dir));
        spec.env.retain(|name, value| self.defaults.env.get(name) != Some(value));
    }
}

/// What a job is called that was given no name: its file.
pub(crate) fn name_of(file: Option<&Path>) -> Option<String> {
    let name = file?.file_name()?.to_str()?;
    Some(name.to_owned())
}
