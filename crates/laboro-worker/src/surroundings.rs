//! The environment of a task: what the program itself has, what the task asks for, and what it is told about
//! itself. The same for every way of running tasks.

use crate::gpus::{GpuVendor, Gpus};
use laboro_core::Role;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;

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
    /// What the items of a resource are called here, by their places; those without names are numbered.
    pub(crate) items: &'a [(String, Vec<String>)],
    pub(crate) role: &'a Role,
}

impl Facts<'_> {
    /// Sets the variables by which a task knows itself. `given` are those that a person chose: which GPUs a program sees
    /// is their business then.
    pub(crate) fn tell(&self, env: &mut Vec<Variable>, given: impl Fn(&str) -> bool) {
        set(env, "LABORO_TASK", self.task);
        set(env, "LABORO_JOB", self.job.to_string());
        set(env, "LABORO_INDEX", self.index.to_string());
        set(env, "LABORO_ATTEMPT", self.attempt.to_string());
        if let Role::First(nodes) = self.role {
            set(env, "LABORO_NODES", nodes.len().to_string());
            let hosts: Vec<&[u8]> = nodes.iter().map(|node| node.host.bytes()).collect();
            set(env, "LABORO_NODELIST", OsString::from_vec(hosts.join(&b',')));
        }
        let Facts { slots, resources, items, .. } = *self;
        Shares { slots, resources, items }.tell(env, given);
    }
}

/// What a task may use of the machine.
#[derive(Debug)]
pub(crate) struct Shares<'a> {
    pub(crate) slots: u32,
    /// Which ones of each countable resource.
    pub(crate) resources: &'a [(String, Vec<u32>)],
    /// What the items of a resource are called here, by their places; those without names are numbered.
    pub(crate) items: &'a [(String, Vec<String>)],
}

impl Shares<'_> {
    /// `given` are variables that a person chose: which GPUs a program sees is their business then.
    pub(crate) fn tell(&self, env: &mut Vec<Variable>, given: impl Fn(&str) -> bool) {
        set(env, "LABORO_SLOTS", self.slots.to_string());
        for (name, which) in self.resources {
            let known = self.items.iter().find(|(known, _)| known == name).map(|(_, items)| items);
            let called = |&at: &u32| match known.and_then(|items| items.get(at as usize)) {
                Some(item) => item.clone(),
                None => at.to_string(),
            };
            let which: Vec<String> = which.iter().map(called).collect();
            let which = which.join(",");
            // Programs that know nothing of us should keep to their own cards too.
            if name == "gpu" {
                let variable = gpu_variable(|name| std::env::var_os(name).is_some());
                if !given(variable) {
                    set(env, variable, which.as_str());
                }
            }
            set(env, format!("LABORO_{}", name.to_uppercase().replace('-', "_")), which);
        }
    }
}

/// What programs of one vendor or the other read to know which GPUs are theirs.
pub const GPU_VARIABLES: [&str; 3] =
    ["CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"];

/// The one that counts on this machine. Only one is set: programs for AMD read both, the second among what the first
/// leaves.
fn gpu_variable(is_set: impl Fn(&str) -> bool) -> &'static str {
    let said = GPU_VARIABLES.into_iter().find(|name| is_set(name));
    let found = || Gpus::here().map_or(GpuVendor::Nvidia, |gpus| gpus.vendor).variable();
    said.unwrap_or_else(found)
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
