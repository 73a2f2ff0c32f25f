//! The settings a task and the defaults share.

use std::time::Duration;

use super::Decoder;
use crate::node::{Key, Node, Value};
use crate::quantity::{
    QuantityError, RequestedAmount, parse_amount, parse_duration, parse_size, seconds_to_duration,
};
use crate::settings::{Output, Settings, Stdin, Variant};
use crate::warning::Warning;

pub(super) const KEYS: [&str; 22] = [
    "dir",
    "env",
    "stdin",
    "output",
    "nice",
    "umask",
    "shell",
    "wrap",
    "signal",
    "slots",
    "memory",
    "resources",
    "variant",
    "nodes",
    "time_request",
    "tags",
    "priority",
    "attempts",
    "backoff",
    "retry_on",
    "timeout",
    "even_if_failed",
];

/// More attempts than this is a loop, not a retry.
const ATTEMPTS_MAX: u32 = 10_000;
const SLOTS_MAX: u32 = 1 << 20;
/// More workers are not one task's.
const NODES_MAX: u32 = 4096;

impl Decoder<'_> {
    /// Takes the setting in and says true, or false if the key is none.
    pub(super) fn setting(
        &mut self,
        key: &Key,
        node: &Node,
        settings: &mut Settings<String>,
    ) -> bool {
        match key.text.as_str() {
            "dir" => settings.dir = self.text(key, node),
            "env" => settings.env = self.env(key, node),
            "stdin" => settings.stdin = self.stdin(key, node),
            "output" => settings.output = self.output(key, node),
            "nice" => settings.nice = self.integer(key, node, -20..=19),
            "umask" => settings.umask = self.umask(key, node),
            "shell" => settings.shell = self.shell(key, node),
            "wrap" => settings.wrap = self.wrap(key, node),
            "signal" => settings.signal = self.signal(key, node),
            "slots" => settings.slots = self.integer(key, node, 1..=SLOTS_MAX),
            "memory" => settings.memory_bytes = self.size(key, node),
            "resources" => settings.resources = self.resources(key, node),
            "variant" => settings.variants = self.variants(key, node),
            "nodes" => settings.nodes = self.integer(key, node, 1..=NODES_MAX),
            "time_request" => settings.time_request = self.duration(key, node),
            "tags" => settings.tags = self.texts(key, node).unwrap_or_default(),
            "priority" => settings.priority = self.integer(key, node, i32::MIN..=i32::MAX),
            "attempts" => settings.attempts = self.integer(key, node, 1..=ATTEMPTS_MAX),
            "backoff" => settings.backoff = self.duration(key, node),
            "retry_on" => settings.retry_on = self.exit_codes(key, node),
            "timeout" => settings.timeout = self.timeout(key, node),
            "even_if_failed" => settings.even_if_failed = self.truth(key, node),
            _ => return false,
        }
        true
    }

    fn env(&mut self, key: &Key, node: &Node) -> Vec<(String, String)> {
        let mut variables = Vec::new();
        for (name, value) in self.table(&key.text, node) {
            if name.text.is_empty() || name.text.contains(['=', '\0']) {
                self.note(name.at, format!("`{}` cannot be the name of a variable", name.text));
            } else if let Some(value) = self.scalar(name, value) {
                variables.push((name.text.clone(), value));
            }
        }
        variables
    }

    fn stdin(&mut self, key: &Key, node: &Node) -> Option<Stdin<String>> {
        match &node.value {
            Value::Text(text) => Some(Stdin::Text(text.clone())),
            Value::Table(entries) => match entries.as_slice() {
                [(file, path)] if file.text == "file" => self.text(file, path).map(Stdin::File),
                _ => {
                    self.note(node.at, "`stdin` is a string, or a table with the one key `file`");
                    None
                }
            },
            _ => {
                self.wrong_type(key, node, "a string or { file = \"…\" }");
                None
            }
        }
    }

    fn shell(&mut self, key: &Key, node: &Node) -> Option<String> {
        let text = self.text(key, node)?;
        Settings::parse_shell(&text).map_err(|why| self.note(node.at, why)).ok()
    }

    fn wrap(&mut self, key: &Key, node: &Node) -> Vec<String> {
        let words = match &node.value {
            Value::Text(text) => Settings::parse_wrap(text).map_err(|why| self.note(node.at, why)),
            _ => self.texts(key, node).ok_or(()),
        };
        words.unwrap_or_default()
    }

    fn signal(&mut self, key: &Key, node: &Node) -> Option<Warning> {
        let text = self.text(key, node)?;
        Warning::parse(&text).map_err(|why| self.note(node.at, why)).ok()
    }

    fn umask(&mut self, key: &Key, node: &Node) -> Option<u32> {
        let Value::Text(text) = &node.value else {
            self.wrong_type(key, node, "a string of octal digits such as \"027\"");
            return None;
        };
        Settings::parse_umask(text).map_err(|why| self.note(node.at, why)).ok()
    }

    fn output(&mut self, key: &Key, node: &Node) -> Output<String> {
        let mut output = Output { stdout: None, stderr: None };
        if let Value::Table(entries) = &node.value {
            for (key, path) in entries {
                match key.text.as_str() {
                    "stdout" => output.stdout = self.text(key, path),
                    "stderr" => output.stderr = self.text(key, path),
                    _ => self.unknown_key(key, ["stdout", "stderr"]),
                }
            }
        } else {
            output.stdout = self.text(key, node);
            output.stderr.clone_from(&output.stdout);
        }
        output
    }

    fn resources(&mut self, key: &Key, node: &Node) -> Vec<(String, RequestedAmount)> {
        let mut resources = Vec::new();
        for (name, wanted) in self.table(&key.text, node) {
            let Some(text) = self.scalar(name, wanted) else { continue };
            match parse_amount(&text) {
                Ok(amount) => resources.push((name.text.clone(), amount)),
                Err(error) => self.note(wanted.at, format!("`{}`: {error}", name.text)),
            }
        }
        resources
    }

    /// A list of tables of needs.
    fn variants(&mut self, key: &Key, node: &Node) -> Vec<Variant> {
        let Value::List(items) = &node.value else {
            self.wrong_type(key, node, "a list of tables");
            return Vec::new();
        };
        let mut variants = Vec::new();
        for item in items {
            let mut variant = Variant::default();
            for (key, node) in self.table(&key.text, item) {
                match key.text.as_str() {
                    "slots" => variant.slots = self.integer(key, node, 1..=SLOTS_MAX),
                    "memory" => variant.memory_bytes = self.size(key, node),
                    "resources" => variant.resources = self.resources(key, node),
                    "tags" => variant.tags = self.texts(key, node).unwrap_or_default(),
                    _ => self.unknown_key(key, ["slots", "memory", "resources", "tags"]),
                }
            }
            variants.push(variant);
        }
        variants
    }

    fn exit_codes(&mut self, key: &Key, node: &Node) -> Vec<i32> {
        match &node.value {
            Value::List(items) => {
                items.iter().filter_map(|item| self.integer(key, item, 0..=255)).collect()
            }
            Value::Number(_) => self.integer(key, node, 0..=255).into_iter().collect(),
            _ => {
                self.wrong_type(key, node, "a list of exit codes");
                Vec::new()
            }
        }
    }

    fn timeout(&mut self, key: &Key, node: &Node) -> Option<Duration> {
        let timeout = self.duration(key, node)?;
        if timeout.is_zero() {
            self.note(node.at, "`timeout` is zero: the task could never run");
            return None;
        }
        Some(timeout)
    }

    fn duration(&mut self, key: &Key, node: &Node) -> Option<Duration> {
        let parsed = match &node.value {
            Value::Text(text) => parse_duration(text),
            Value::Number(text) => {
                let seconds = text.parse().ok().and_then(seconds_to_duration);
                seconds.ok_or_else(|| QuantityError::Duration(text.clone()))
            }
            _ => {
                self.wrong_type(key, node, "a duration such as \"90s\"");
                return None;
            }
        };
        self.quantity(key, node, parsed)
    }

    fn size(&mut self, key: &Key, node: &Node) -> Option<u64> {
        let parsed = match &node.value {
            Value::Text(text) | Value::Number(text) => parse_size(text),
            _ => {
                self.wrong_type(key, node, "a size such as \"2G\"");
                return None;
            }
        };
        self.quantity(key, node, parsed)
    }

    fn quantity<T>(
        &mut self,
        key: &Key,
        node: &Node,
        parsed: Result<T, QuantityError>,
    ) -> Option<T> {
        match parsed {
            Ok(value) => Some(value),
            Err(error) => {
                self.note(node.at, format!("`{}`: {error}", key.text));
                None
            }
        }
    }
}
