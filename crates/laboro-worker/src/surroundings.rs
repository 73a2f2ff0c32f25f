//! The environment of a task: what the program itself has, what the task asks for, and what it is told about
//! itself. The same for every way of running tasks.

use std::ffi::{OsStr, OsString};

pub type Variable = (OsString, OsString);

/// What a task is told about itself.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) task: &'a str,
    pub(crate) job: u64,
    /// In its array or its job, from 1.
    pub(crate) index: u32,
    pub(crate) attempt: u16,
    pub(crate) slots: u32,
    /// Which ones of each countable resource it got.
    pub(crate) resources: &'a [(String, Vec<u32>)],
}

impl Facts<'_> {
    /// Sets the variables by which a task knows itself.
    pub(crate) fn tell(&self, env: &mut Vec<Variable>) {
        set(env, "LABORO_TASK", self.task);
        set(env, "LABORO_JOB", self.job.to_string());
        set(env, "LABORO_INDEX", self.index.to_string());
        set(env, "LABORO_ATTEMPT", self.attempt.to_string());
        Facts::tell_shares(env, self.slots, self.resources);
    }

    /// What it may use of the machine.
    pub(crate) fn tell_shares(
        env: &mut Vec<Variable>,
        slots: u32,
        resources: &[(String, Vec<u32>)],
    ) {
        set(env, "LABORO_SLOTS", slots.to_string());
        for (name, which) in resources {
            let which: Vec<String> = which.iter().map(ToString::to_string).collect();
            let which = which.join(",");
            // Programs that know nothing of us should keep to their own cards too.
            if name == "gpu" {
                set(env, "CUDA_VISIBLE_DEVICES", which.as_str());
            }
            set(env, format!("LABORO_{}", name.to_uppercase().replace('-', "_")), which);
        }
    }
}

/// The environment of this program without what gives access to a hub: whoever may submit tasks need not be allowed to
/// do what this program is, and a task that needs it can ask for it.
#[must_use]
pub fn inherited() -> Vec<Variable> {
    let is_ours = |name: &OsStr| SECRETS.iter().any(|secret| name == *secret);
    std::env::vars_os().filter(|(name, _)| !is_ours(name)).collect()
}

/// An access file, a token, and the directory of a hub, where both lie.
const SECRETS: [&str; 3] = ["LABORO_ACCESS", "LABORO_TOKEN", "LABORO_DIR"];

/// A later value of the same name wins.
pub(crate) fn set(env: &mut Vec<Variable>, name: impl Into<OsString>, value: impl Into<OsString>) {
    let (name, value) = (name.into(), value.into());
    match env.iter_mut().find(|(known, _)| *known == name) {
        Some(entry) => entry.1 = value,
        None => env.push((name, value)),
    }
}

#[cfg(test)]
mod tests;
