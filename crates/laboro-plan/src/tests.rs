//! What the crate promises, form by form.

mod arguments;
mod carried;
mod examples;
mod files;
mod flow;
mod mistakes;
mod plan;
mod quoting;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::{Element, Part, Plan, Work, parse_flow};

fn words(text: &str) -> Vec<OsString> {
    text.split(' ').map(OsString::from).collect()
}

fn flow(text: &str) -> Plan {
    parse_flow("flow.toml", text, Path::new("")).unwrap_or_else(|error| panic!("{error}"))
}

/// Every task as `name: command`, the way a naive expansion would list them.
fn expanded(plan: &Plan) -> Vec<String> {
    let mut lines = Vec::new();
    for part in &plan.parts {
        match part {
            Part::Task(task) => lines.push(format!("{}: {}", task.name, shown(&task.work))),
            Part::Array(array) => lines.extend(
                array
                    .elements()
                    .map(|Element { name, work, .. }| format!("{name}: {}", shown(&work))),
            ),
        }
    }
    lines
}

/// `$ line` for a shell line, `[a][b]` for arguments.
fn shown(work: &Work) -> String {
    let argv = |words: &[OsString]| -> String {
        words.iter().map(|word| format!("[{}]", String::from_utf8_lossy(word.as_bytes()))).collect()
    };
    match work {
        Work::Shell { line } => format!("$ {}", line.to_string_lossy()),
        Work::Argv(words) => argv(words),
        Work::Script(script) => {
            format!("{} script {}", script.kind.label(), argv(&script.arguments))
        }
    }
}
