//! How and where a task runs. Every setting may be left open; what a task leaves open, the defaults of its
//! file decide, and what those leave open, the hub. `Settings<Template>` still has placeholders in its texts.

use std::ffi::OsString;
use std::time::Duration;

use crate::preview::counted;
use crate::quantity::{RequestedAmount, show_duration, show_size};
use crate::warning::Warning;

/// How a task runs and what it needs, as far as it says so.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Settings<T = OsString> {
    pub dir: Option<T>,
    /// In the order written; a later one of the same name wins.
    pub env: Vec<(String, T)>,
    pub stdin: Option<Stdin<T>>,
    pub output: Output<T>,
    pub nice: Option<i32>,
    pub umask: Option<u32>,
    /// What reads lines of commands: a program such as `bash`.
    pub shell: Option<String>,
    /// A command before that of the task, which gets it as its arguments.
    pub wrap: Vec<T>,
    /// What it hears before its time is over.
    pub signal: Option<Warning>,
    pub slots: Option<u32>,
    pub memory_bytes: Option<u64>,
    /// Countable things such as `gpu`, by name.
    pub resources: Vec<(String, RequestedAmount)>,
    /// Other ways to run it: the first that fits is taken.
    pub variants: Vec<Variant>,
    /// How many whole workers it takes at once.
    pub nodes: Option<u32>,
    /// How long a worker must still be there for it to start.
    pub time_request: Option<Duration>,
    /// What a worker must be to get this task.
    pub tags: Vec<String>,
    pub priority: Option<i32>,
    pub attempts: Option<u32>,
    pub backoff: Option<Duration>,
    /// Exit codes worth another attempt; empty means all but success.
    pub retry_on: Vec<i32>,
    pub timeout: Option<Duration>,
    /// Runs once its predecessors have ended, however they ended.
    pub even_if_failed: Option<bool>,
}

/// Another way to run a task, with needs of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Variant {
    pub slots: Option<u32>,
    pub memory_bytes: Option<u64>,
    pub resources: Vec<(String, RequestedAmount)>,
    pub tags: Vec<String>,
}

impl Variant {
    fn shown(&self) -> String {
        let mut needs = vec![counted(self.slots.unwrap_or(1).into(), "slot")];
        needs.extend(self.memory_bytes.map(|bytes| format!("{} of memory", show_size(bytes))));
        needs.extend(self.resources.iter().map(|(name, wanted)| format!("{wanted} {name}")));
        needs.extend(self.tags.iter().map(|tag| format!("tag {tag}")));
        needs.join(", ")
    }
}

/// What a task reads.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Stdin<T = OsString> {
    Text(T),
    File(T),
}

/// Files to keep the output in; the same path twice means both go into one file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Output<T = OsString> {
    pub stdout: Option<T>,
    pub stderr: Option<T>,
}

// Derived `Default` would ask for `T: Default`, which nothing here needs.
impl<T> Default for Settings<T> {
    fn default() -> Settings<T> {
        Settings {
            dir: None,
            env: Vec::new(),
            stdin: None,
            output: Output { stdout: None, stderr: None },
            nice: None,
            umask: None,
            shell: None,
            wrap: Vec::new(),
            signal: None,
            slots: None,
            memory_bytes: None,
            resources: Vec::new(),
            variants: Vec::new(),
            nodes: None,
            time_request: None,
            tags: Vec::new(),
            priority: None,
            attempts: None,
            backoff: None,
            retry_on: Vec::new(),
            timeout: None,
            even_if_failed: None,
        }
    }
}

/// A path may say `{name}` even where there are no values; other texts may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextKind {
    Path,
    Free,
}

impl<T> Settings<T> {
    /// Fills in from `defaults` what is left open. Variables and resources are merged name by name.
    pub fn or(mut self, defaults: &Settings<T>) -> Settings<T>
    where
        T: Clone,
    {
        self.env = merged(&defaults.env, self.env);
        self.resources = merged(&defaults.resources, self.resources);
        if self.variants.is_empty() {
            self.variants.clone_from(&defaults.variants);
        }
        self.nodes = self.nodes.or(defaults.nodes);
        self.time_request = self.time_request.or(defaults.time_request);
        if self.tags.is_empty() {
            self.tags.clone_from(&defaults.tags);
        }
        if self.retry_on.is_empty() {
            self.retry_on.clone_from(&defaults.retry_on);
        }
        if self.output.stdout.is_none() && self.output.stderr.is_none() {
            self.output.clone_from(&defaults.output);
        }
        self.dir = self.dir.or_else(|| defaults.dir.clone());
        self.stdin = self.stdin.or_else(|| defaults.stdin.clone());
        self.nice = self.nice.or(defaults.nice);
        self.umask = self.umask.or(defaults.umask);
        self.shell = self.shell.or_else(|| defaults.shell.clone());
        if self.wrap.is_empty() {
            self.wrap.clone_from(&defaults.wrap);
        }
        self.signal = self.signal.or(defaults.signal);
        self.slots = self.slots.or(defaults.slots);
        self.memory_bytes = self.memory_bytes.or(defaults.memory_bytes);
        self.priority = self.priority.or(defaults.priority);
        self.attempts = self.attempts.or(defaults.attempts);
        self.backoff = self.backoff.or(defaults.backoff);
        self.timeout = self.timeout.or(defaults.timeout);
        self.even_if_failed = self.even_if_failed.or(defaults.even_if_failed);
        self
    }

    pub(crate) fn map<U>(&self, mut text: impl FnMut(&T, TextKind) -> U) -> Settings<U> {
        use TextKind::{Free, Path};
        Settings {
            dir: self.dir.as_ref().map(|dir| text(dir, Path)),
            env: self.env.iter().map(|(name, value)| (name.clone(), text(value, Free))).collect(),
            stdin: self.stdin.as_ref().map(|stdin| match stdin {
                Stdin::Text(words) => Stdin::Text(text(words, Free)),
                Stdin::File(path) => Stdin::File(text(path, Path)),
            }),
            output: Output {
                stdout: self.output.stdout.as_ref().map(|path| text(path, Path)),
                stderr: self.output.stderr.as_ref().map(|path| text(path, Path)),
            },
            nice: self.nice,
            umask: self.umask,
            shell: self.shell.clone(),
            wrap: self.wrap.iter().map(|word| text(word, Path)).collect(),
            signal: self.signal,
            slots: self.slots,
            memory_bytes: self.memory_bytes,
            resources: self.resources.clone(),
            variants: self.variants.clone(),
            nodes: self.nodes,
            time_request: self.time_request,
            tags: self.tags.clone(),
            priority: self.priority,
            attempts: self.attempts,
            backoff: self.backoff,
            retry_on: self.retry_on.clone(),
            timeout: self.timeout,
            even_if_failed: self.even_if_failed,
        }
    }
}

impl Settings {
    /// Octal digits, as `umask` of a shell takes them.
    pub fn parse_umask(text: &str) -> Result<u32, String> {
        let is_octal = !text.is_empty() && text.bytes().all(|digit| matches!(digit, b'0'..=b'7'));
        let umask = u32::from_str_radix(text, 8).ok().filter(|&umask| is_octal && umask <= 0o777);
        umask.ok_or_else(|| format!("{text} is not a umask: write octal digits such as 027"))
    }

    /// A program that takes a line after `-c`, as shells do.
    pub fn parse_shell(text: &str) -> Result<String, String> {
        let is_program =
            !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c == '\0');
        match is_program {
            true => Ok(text.to_owned()),
            false => {
                Err(format!("{text:?} is not a shell: write a program such as bash or /bin/sh"))
            }
        }
    }

    /// The words of a command, which a shell would take as they are.
    pub fn parse_wrap(text: &str) -> Result<Vec<String>, String> {
        let is_plain = |c: char| !"'\"\\$`|&;<>()*?[]~#\0".contains(c);
        if text.trim().is_empty() || !text.chars().all(is_plain) {
            return Err(format!(
                "{text:?} is not a plain command: write words with spaces between them, or a list of words in a flow"
            ));
        }
        Ok(text.split_whitespace().map(str::to_owned).collect())
    }

    /// For people, a line each.
    pub(crate) fn shown(&self) -> Vec<String> {
        let mut shown = Vec::new();
        let mut say = |name: &str, value: Option<String>| {
            shown.extend(value.map(|value| format!("{name} {value}")));
        };
        let text = |text: &OsString| text.to_string_lossy().into_owned();
        say("in", self.dir.as_ref().map(text));
        for (name, value) in &self.env {
            say("with", Some(format!("{name}={}", text(value))));
        }
        say(
            "input",
            self.stdin.as_ref().map(|stdin| match stdin {
                Stdin::Text(words) => format!("{} bytes of text", words.len()),
                Stdin::File(path) => format!("from {}", text(path)),
            }),
        );
        let output = &self.output;
        if output.stdout == output.stderr {
            say("output to", output.stdout.as_ref().map(text));
        } else {
            say("stdout to", output.stdout.as_ref().map(text));
            say("stderr to", output.stderr.as_ref().map(text));
        }
        say("nice", self.nice.map(|nice| nice.to_string()));
        say("umask", self.umask.map(|umask| format!("{umask:03o}")));
        let wrap: Vec<String> = self.wrap.iter().map(text).collect();
        say("wrapped in", (!wrap.is_empty()).then(|| wrap.join(" ")));
        say("signal", self.signal.map(|signal| signal.to_string()));
        say("slots", self.slots.map(|slots| slots.to_string()));
        say("memory", self.memory_bytes.map(show_size));
        for (name, count) in &self.resources {
            say("needs", Some(format!("{count} {name}")));
        }
        for variant in &self.variants {
            say("or", Some(variant.shown()));
        }
        say("nodes", self.nodes.map(|nodes| nodes.to_string()));
        say("time request", self.time_request.map(show_duration));
        say("tags", (!self.tags.is_empty()).then(|| self.tags.join(", ")));
        say("priority", self.priority.map(|priority| priority.to_string()));
        say("attempts", self.attempts.map(|attempts| attempts.to_string()));
        say("backoff", self.backoff.map(show_duration));
        let codes: Vec<String> = self.retry_on.iter().map(i32::to_string).collect();
        say("retried on exit", (!codes.is_empty()).then(|| codes.join(", ")));
        say("timeout", self.timeout.map(show_duration));
        if self.even_if_failed == Some(true) {
            say("runs", Some("even if a predecessor failed".to_owned()));
        }
        shown
    }
}

fn merged<V: Clone>(defaults: &[(String, V)], own: Vec<(String, V)>) -> Vec<(String, V)> {
    let mut all: Vec<(String, V)> = defaults.to_vec();
    for (name, value) in own {
        match all.iter_mut().find(|(known, _)| *known == name) {
            Some(entry) => entry.1 = value,
            None => all.push((name, value)),
        }
    }
    all
}
