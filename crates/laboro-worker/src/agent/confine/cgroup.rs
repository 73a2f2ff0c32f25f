//! One cgroup (version 2) a task, beside one for this worker itself: a group with limits for its children may
//! hold no processes of its own. Only where the group we are in is ours alone and may be written.

use super::Excess;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(in crate::agent) struct Cgroups {
    /// The group we were started in.
    base: PathBuf,
    /// Tells our tasks' groups from those of another worker.
    nonce: u32,
}

/// Where the one hierarchy is, by convention everywhere.
const ROOT: &str = "/sys/fs/cgroup";

const NO_VERSION_2: &str = "this machine has no cgroups of version 2";

/// The time in which a share of the processors is counted, in microseconds.
const PERIOD_US: u64 = 100_000;

impl Cgroups {
    pub(super) fn open() -> Result<Cgroups, String> {
        let own = fs::read_to_string("/proc/self/cgroup").map_err(|error| error.to_string())?;
        let path = own.lines().find_map(|line| line.strip_prefix("0::/"));
        let path = path.ok_or(NO_VERSION_2)?;
        let pid = std::process::id();
        // The keeper is our child, and the guardian is its.
        let is_below = |other| {
            let parent = parent_of(other);
            parent == Some(pid) || parent.and_then(parent_of) == Some(pid)
        };
        if !Path::new(ROOT).join("cgroup.controllers").exists() {
            return Err(NO_VERSION_2.to_owned());
        }
        Cgroups::in_base(&Path::new(ROOT).join(path), pid, is_below)
    }

    /// `is_ours` says which other processes in the group go with us.
    fn in_base(base: &Path, pid: u32, is_ours: impl Fn(u32) -> bool) -> Result<Cgroups, String> {
        let read = |name: &str| {
            let path = base.join(name);
            fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
        };
        let controllers = read("cgroup.controllers")?;
        let has = |wanted: &str| controllers.split_whitespace().any(|word| word == wanted);
        if !has("memory") || !has("cpu") {
            return Err(format!("{} has no memory and cpu controllers", base.display()));
        }
        let members: Vec<u32> =
            read("cgroup.procs")?.lines().filter_map(|line| line.parse().ok()).collect();
        if let Some(other) = members.iter().find(|&&member| member != pid && !is_ours(member)) {
            return Err(format!(
                "process {other} is in the same cgroup: start the worker in its own cgroup, as with \
                 `systemd-run --user -p Delegate=yes`"
            ));
        }
        let cgroups = Cgroups { base: base.to_owned(), nonce: pid };
        let leaf = base.join(format!("laboro-{pid}"));
        let write = |path: PathBuf, text: &str| {
            fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
        };
        make_dir(&leaf).map_err(|error| format!("{}: {error}", leaf.display()))?;
        for member in members {
            write(leaf.join("cgroup.procs"), &member.to_string())?;
        }
        write(base.join("cgroup.subtree_control"), "+memory +cpu")?;
        Ok(cgroups)
    }

    /// A group for a task. Memory 0 is no limit.
    pub(super) fn make(&self, key: u64, memory: u64, slots: u32) -> Result<(), String> {
        let group = self.of(key);
        let made = make_dir(&group).and_then(|()| {
            if memory > 0 {
                fs::write(group.join("memory.max"), memory.to_string())?;
                // Swapping instead of dying would make it slow for everybody. Not every machine has it.
                let _ = fs::write(group.join("memory.swap.max"), "0");
                fs::write(group.join("memory.oom.group"), "1")?;
            }
            let quota = u64::from(slots) * PERIOD_US;
            fs::write(group.join("cpu.max"), format!("{quota} {PERIOD_US}"))
        });
        made.map_err(|error| format!("cgroup {}: {error}", group.display()))
    }

    pub(super) fn enter(&self, key: u64, pid: u32) {
        // It may be over already.
        let _ = fs::write(self.of(key).join("cgroup.procs"), pid.to_string());
    }

    /// Removes a task's group, and says whether the kernel killed in it for want of memory.
    pub(super) fn leave(&self, key: u64) -> Option<Excess> {
        let group = self.of(key);
        let read = |name: &str| fs::read_to_string(group.join(name)).unwrap_or_default();
        let number = |name: &str| read(name).trim().parse::<u64>().ok();
        let events = read("memory.events");
        let kills = events.lines().find_map(|line| line.strip_prefix("oom_kill "));
        let excess = kills.filter(|count| count.trim() != "0").map(|_| {
            let limit = number("memory.max").unwrap_or(0);
            // Older kernels do not say how much it was.
            Excess::new(number("memory.peak").unwrap_or(limit).max(limit), limit)
        });
        let _ = fs::remove_dir(&group);
        excess
    }

    fn of(&self, key: u64) -> PathBuf {
        self.base.join(format!("laboro-{}-{key}", self.nonce))
    }
}

fn make_dir(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold anything, but ends with the last parenthesis.
    stat[stat.rfind(')')? + 1..].split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests;
