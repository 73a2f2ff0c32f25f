//! What a plan would run, for a person to read before it does: names, commands with every value in place, and
//! settings. Of a large array the first and last few. Runs nothing.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;

use crate::mistake::visible;
use crate::plan::{Array, On, Part, Plan};
use crate::settings::Settings;
use crate::template::{is_shell_syntax, quote};
use crate::work::Work;

/// An array of up to this many is shown whole.
const WHOLE_MAX: u64 = 12;
const HEAD: u64 = 5;
const TAIL: u64 = 3;

impl Plan {
    /// Writes what would run, for people.
    pub fn dry_run(&self, out: &mut dyn Write) -> io::Result<()> {
        let name = self.job.name.as_deref().unwrap_or(&self.source);
        let (parts, tasks) = (self.parts.len(), self.task_count());
        write!(out, "{}: {}", visible(name), counted(tasks, "task"))?;
        match parts as u64 {
            parts if parts == tasks || parts == 1 => writeln!(out)?,
            parts => writeln!(out, " in {}", counted(parts, "part"))?,
        }
        for part in &self.parts {
            write_part(part, out)?;
        }
        Ok(())
    }
}

fn write_part(part: &Part, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out)?;
    match part {
        Part::Task(task) => {
            writeln!(out, "{}", visible(&task.name))?;
            write_work(&task.work, "  ", out)?;
            write_shell(matches!(task.work, Work::Shell { .. }), &task.settings, out)?;
            write_list(&task.settings.shown(), out)?;
        }
        Part::Array(array) => {
            let name = if array.name.is_empty() { "array" } else { &array.name };
            writeln!(out, "{}: {}", visible(name), counted(array.count(), "task"))?;
            write_elements(array, out)?;
            write_shell(matches!(array.template, Work::Shell { .. }), &array.settings, out)?;
            if let Some(first) = array.element(0) {
                write_list(&first.settings.shown(), out)?;
            }
        }
    }
    let after: Vec<String> = part.after().iter().map(|after| after_shown(&after.on)).collect();
    if after.is_empty() { Ok(()) } else { writeln!(out, "  after {}", after.join(", ")) }
}

/// Who reads the lines.
fn write_shell<T>(is_line: bool, settings: &Settings<T>, out: &mut dyn Write) -> io::Result<()> {
    match &settings.shell {
        Some(shell) if is_line => writeln!(out, "  shell {}", visible(shell)),
        _ => Ok(()),
    }
}

fn write_elements(array: &Array, out: &mut dyn Write) -> io::Result<()> {
    let count = array.count();
    let hidden = if count <= WHOLE_MAX { count..count } else { HEAD..count - TAIL };
    for i in (0..hidden.start).chain(hidden.end..count) {
        if i == hidden.end && !hidden.is_empty() {
            writeln!(out, "  … {} more …", hidden.end - hidden.start)?;
        }
        let element = array.element(i).expect("the index is below the count");
        writeln!(out, "  {}", visible(&element.name))?;
        write_work(&element.work, "    ", out)?;
    }
    Ok(())
}

pub(crate) fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

fn after_shown(on: &On) -> String {
    match on {
        On::Task(name) => visible(name),
        On::All(name) => format!("all of {}", visible(name)),
        On::Each(name) => format!("each of {}", visible(name)),
    }
}

/// A script longer than this is known to its author; its head tells which one it is.
const SCRIPT_LINES_SHOWN: usize = 8;

fn write_work(work: &Work, indent: &str, out: &mut dyn Write) -> io::Result<()> {
    match work {
        Work::Shell { line } => {
            let line = line.to_string_lossy();
            line.lines().try_for_each(|line| writeln!(out, "{indent}{}", visible(line)))
        }
        Work::Argv(words) => writeln!(out, "{indent}{}", argv_shown(words)),
        Work::Script(script) => {
            write!(out, "{indent}{} script", script.kind.label())?;
            match script.arguments.as_slice() {
                [] => writeln!(out, ":")?,
                arguments => writeln!(out, " with {}:", argv_shown(arguments))?,
            }
            let body = String::from_utf8_lossy(&script.body);
            for line in body.lines().take(SCRIPT_LINES_SHOWN) {
                writeln!(out, "{indent}| {}", visible(line))?;
            }
            match body.lines().count().saturating_sub(SCRIPT_LINES_SHOWN) {
                0 => Ok(()),
                more => writeln!(out, "{indent}| … {more} more lines"),
            }
        }
    }
}

/// As it could be typed into a shell.
fn argv_shown(words: &[OsString]) -> String {
    let word = |word: &OsString| {
        let bytes = word.as_bytes();
        let plain = !bytes.is_empty() && !is_shell_syntax(bytes) && !b"~#{!=".contains(&bytes[0]);
        if plain {
            return visible(&word.to_string_lossy());
        }
        let mut quoted = Vec::new();
        quote(bytes, &mut quoted);
        visible(&OsStr::from_bytes(&quoted).to_string_lossy())
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn write_list(items: &[String], out: &mut dyn Write) -> io::Result<()> {
    items.iter().try_for_each(|item| writeln!(out, "  {}", visible(item)))
}
