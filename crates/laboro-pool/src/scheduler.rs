//! The commands of batch systems, and what they print. Each kind has three: one submits a script that it reads from its
//! standard input and prints an id, one lists all allocations of this user at once, one cancels. Runs nothing itself.

mod pbs;
mod sge;
mod slurm;
mod ssh;

use crate::call::Call;
use crate::demand::worker_time_ms;
use crate::worker_name;
use laboro_api::{PoolKind, PoolSpec};

/// An allocation that the batch system has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub id: String,
    pub state: ListedState,
    /// That it was submitted under, where the list says it.
    pub name: Option<String>,
    /// Such as why it waits.
    pub note: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListedState {
    Queued,
    Running,
    /// Still told of, but over.
    Over,
    /// It cannot be told now.
    Unknown,
}

/// Where files for the workers of a pool are.
#[derive(Clone, Debug)]
pub struct Place {
    /// On this machine, and on those that share its file system.
    pub dir: String,
    /// Part of names and paths, so that two hubs of one user do not meet.
    pub hub: String,
    /// The program of this hub.
    pub program: String,
    /// The access file's text, where it has to be taken along.
    pub access: String,
}

/// The commands of one pool.
#[derive(Clone, Debug)]
pub struct Scheduler<'a> {
    spec: &'a PoolSpec,
    place: &'a Place,
}

/// An id is printed by a program of others and becomes an argument.
const ID_BYTES_MAX: usize = 128;

impl<'a> Scheduler<'a> {
    pub fn new(spec: &'a PoolSpec, place: &'a Place) -> Scheduler<'a> {
        Scheduler { spec, place }
    }

    /// The name that an allocation is submitted under; found again by it.
    pub fn job_name(&self, number: u64) -> String {
        match self.spec.kind {
            // Some versions take 15 letters.
            PoolKind::Pbs | PoolKind::Sge => format!("lb{}-{number}", self.place.hub),
            _ => format!("laboro-{}-{}-{number}", self.spec.name, self.place.hub),
        }
    }

    /// What has to be done once before allocations are submitted elsewhere: the access file goes there.
    pub fn prepare(&self) -> Option<Call> {
        self.spec.via.as_ref()?;
        let dir = quoted(&self.remote_dir());
        let line = format!("umask 077 && mkdir -p {dir} && cat > {dir}/access.toml");
        let call = shell(line, self.place.access.clone());
        Some(self.at_login(call))
    }

    /// `free_host` is one that has no worker, for a pool of machines.
    pub fn submit(&self, number: u64, free_host: Option<&str>) -> Call {
        let script = self.script(number);
        let call = match self.spec.kind {
            PoolKind::Slurm => slurm::submit(self, number, script),
            PoolKind::Pbs => pbs::submit(self, number, script),
            PoolKind::Sge => sge::submit(self, number, script),
            PoolKind::Ssh => ssh::submit(self, number, free_host.unwrap_or_default()),
            PoolKind::Command => Call {
                words: self.spec.arguments.clone(),
                stdin: script,
                env: vec![
                    ("LABORO_POOL".into(), self.spec.name.clone()),
                    ("LABORO_ALLOCATION".into(), self.job_name(number)),
                ],
            },
        };
        self.at_login(call)
    }

    /// The same without anything being submitted, where the batch system has that.
    pub fn try_submit(&self) -> Option<Call> {
        if self.spec.kind != PoolKind::Slurm {
            return None;
        }
        let mut call = slurm::submit(self, 0, self.script(0));
        call.words.insert(1, "--test-only".to_owned());
        Some(self.at_login(call))
    }

    /// The id in what the command printed.
    pub fn submitted(&self, printed: &str) -> Result<String, String> {
        let last = printed.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("");
        let id = match self.spec.kind {
            PoolKind::Slurm => last.split(';').next().unwrap_or(""),
            _ => last,
        };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-_@[]:".contains(c);
        let is_id = !id.is_empty()
            && id.len() <= ID_BYTES_MAX
            && !id.starts_with('-')
            && id.chars().all(is_plain);
        match is_id {
            true => Ok(id.to_owned()),
            false => Err(format!("what it printed has no id: {:?}", one_line(printed, 200))),
        }
    }

    /// `ids` are those that are known, for kinds that can list nothing else.
    pub fn list(&self, ids: &[String]) -> Call {
        let call = match self.spec.kind {
            PoolKind::Slurm => slurm::list(),
            PoolKind::Pbs => pbs::list(),
            PoolKind::Sge => sge::list(),
            PoolKind::Ssh => ssh::list(ids),
            PoolKind::Command => {
                shell(self.spec.list_command.clone().unwrap_or_default(), String::new())
            }
        };
        self.at_login(call)
    }

    pub fn listed(&self, printed: &str) -> Vec<Listed> {
        match self.spec.kind {
            PoolKind::Slurm => slurm::listed(printed),
            PoolKind::Pbs => pbs::listed(printed),
            PoolKind::Sge => sge::listed(printed),
            PoolKind::Ssh | PoolKind::Command => plain_list(printed),
        }
    }

    pub fn cancel(&self, ids: &[String]) -> Call {
        let words = |program: &str| {
            let words = std::iter::once(program.to_owned()).chain(ids.iter().cloned());
            Call { words: words.collect(), ..Call::default() }
        };
        let call = match self.spec.kind {
            PoolKind::Slurm => words("scancel"),
            PoolKind::Pbs | PoolKind::Sge => words("qdel"),
            PoolKind::Ssh => ssh::cancel(ids),
            PoolKind::Command => {
                let line = self.spec.cancel_command.clone().unwrap_or_default();
                let mut call = shell(format!("{line} \"$@\""), String::new());
                call.words.push("cancel".into());
                call.words.extend(ids.iter().cloned());
                call
            }
        };
        self.at_login(call)
    }

    /// What an allocation printed, where this machine can see it.
    pub fn log_file(&self, number: u64) -> Option<String> {
        let is_here = self.spec.via.is_none() && self.spec.kind != PoolKind::Ssh;
        is_here.then(|| self.log(number))
    }

    fn log(&self, number: u64) -> String {
        match self.spec.via {
            // Relative to the home directory, where commands by ssh begin.
            Some(_) => format!("{}/{number}.log", self.remote_dir()),
            None => format!("{}/{number}.log", self.place.dir),
        }
    }

    fn remote_dir(&self) -> String {
        format!(".laboro/pools/{}-{}", self.place.hub, self.spec.name)
    }

    /// What an allocation runs: a worker, and nothing else. No secret is in it.
    fn script(&self, number: u64) -> String {
        let access = match self.spec.via {
            Some(_) => {
                format!("\"$HOME\"/{}", quoted(&format!("{}/access.toml", self.remote_dir())))
            }
            None => quoted(&format!("{}/access.toml", self.place.dir)),
        };
        format!(
            "#!/bin/sh\n# A worker of the pool {} of a Laboro hub.\nexec {}\n",
            self.spec.name,
            self.worker(number, &access)
        )
    }

    /// As a shell reads it; `access` is quoted already.
    fn worker(&self, number: u64, access: &str) -> String {
        let spec = self.spec;
        let program = match (&spec.laboro, spec.kind) {
            (Some(program), _) => program.as_str(),
            (None, PoolKind::Ssh) => "laboro",
            (None, _) if spec.via.is_some() => "laboro",
            (None, _) => &self.place.program,
        };
        let mut words = vec![quoted(program), "worker --access".into(), access.to_owned()];
        let mut add = |option: &str, value: &str| {
            words.push(option.to_owned());
            words.push(quoted(value));
        };
        add("--name", &worker_name(&self.spec.name, number));
        add("--group", &spec.group);
        add("-j", &spec.slots.to_string());
        if let Some(bytes) = spec.memory_bytes {
            add("--with", &format!("memory={bytes}"));
        }
        for (name, count) in &spec.resources {
            add("--with", &format!("{name}={count}"));
        }
        for tag in &spec.tags {
            add("--with-tag", tag);
        }
        add("--idle-timeout", &format!("{}s", spec.idle_ms.div_ceil(1000)));
        if let Some(time) = worker_time_ms(spec) {
            add("--time-limit", &format!("{}s", time / 1000));
        }
        words.join(" ")
    }

    fn at_login(&self, call: Call) -> Call {
        let Some(host) = self.spec.via.as_deref().and_then(|via| via.strip_prefix("ssh:")) else {
            return call;
        };
        let variables = call.env.iter().map(|(name, value)| format!("{name}={}", quoted(value)));
        let line = variables.chain(call.words.iter().map(|word| quoted(word)));
        let line = line.collect::<Vec<_>>().join(" ");
        Call { words: ssh_words(host, line), stdin: call.stdin, env: Vec::new() }
    }
}

fn ssh_words(host: &str, line: String) -> Vec<String> {
    let fixed = ["ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15", host];
    fixed.into_iter().map(str::to_owned).chain([line]).collect()
}

fn shell(line: String, stdin: String) -> Call {
    Call { words: vec!["sh".into(), "-c".into(), line], stdin, env: Vec::new() }
}

/// A line each: id, state and perhaps the name.
fn plain_list(printed: &str) -> Vec<Listed> {
    let line = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let (id, state) = (words.next()?, words.next()?);
        let state = match state.to_ascii_lowercase().as_str() {
            "r" | "running" => ListedState::Running,
            "q" | "pd" | "queued" | "pending" => ListedState::Queued,
            "c" | "done" | "over" | "finished" => ListedState::Over,
            _ => ListedState::Unknown,
        };
        let name = words.next().map(str::to_owned);
        Some(Listed { id: id.to_owned(), state, name, note: None })
    };
    printed.lines().filter_map(line).collect()
}

/// One word of a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,@%+".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Words for people from what a program printed: one line without control characters, not too long.
pub(crate) fn one_line(text: &str, chars_max: usize) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ").chars().take(chars_max).collect()
}

/// `[HOURS:]MM:SS`, rounded up to a minute.
fn clock(ms: u64) -> String {
    let minutes = ms.div_ceil(60_000);
    format!("{:02}:{:02}:00", minutes / 60, minutes % 60)
}
