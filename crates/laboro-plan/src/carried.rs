//! How an array travels to workers elsewhere without being expanded: its work and settings as text with
//! placeholders, and for each element one value. `Filler` is the other end, where one element is run. A hub in
//! between looks at none of it.

use std::borrow::Cow;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use crate::plan::{Array, Task};
use crate::settings::Settings;
use crate::template::{Filling, Reader, ShellError, Template, Vocabulary};
use crate::values::{Column, Items, List, Numbers, Pairing, Values, ValuesError};
use crate::work::{Script, Work};

/// Stands between the values of an element that has several: ASCII's unit separator.
const BETWEEN: u8 = 0x1f;

/// Stands before one of these two bytes where it is part of a value: ASCII's record separator.
const ESCAPE: u8 = 0x1e;

fn is_special(byte: &u8) -> bool {
    matches!(*byte, BETWEEN | ESCAPE)
}

/// The words of a job file's line: the value itself is what the shell reads, unquoted. Whoever knows nothing of it runs
/// it as it stands.
pub const VALUE_AS_LINE: [&[u8]; 3] = [b"/bin/sh", b"-c", b"{}"];

impl Array {
    /// The work, with the placeholders that a `Filler` knows. A line of a job file is its own shell line, so
    /// that one becomes an argument of a shell: it must not be quoted.
    pub fn carried_work(&self) -> Work<Vec<u8>> {
        let columns = self.columns_without_keys();
        let reader = self.reader(&columns);
        let text = |template: &Template| template.write_for(reader);
        match &self.template {
            Work::Shell { line } if *line == Template::value_itself() => {
                Work::Argv(VALUE_AS_LINE.map(<[u8]>::to_vec).into())
            }
            Work::Shell { line } => Work::Shell { line: text(line) },
            Work::Argv(words) => Work::Argv(words.iter().map(text).collect()),
            Work::Script(script) => Work::Script(Script {
                kind: script.kind.clone(),
                body: Arc::clone(&script.body),
                arguments: script.arguments.iter().map(text).collect(),
            }),
        }
    }

    /// The settings, with the same placeholders.
    pub fn carried_settings(&self) -> Settings<Vec<u8>> {
        let columns = self.columns_without_keys();
        let reader = self.reader(&columns);
        self.settings.map(|template, _| template.write_for(reader))
    }

    /// Text that is to reach an element as it stands here, whatever braces are in it.
    pub fn carried_text(&self, text: &[u8]) -> Vec<u8> {
        let columns = self.columns_without_keys();
        Template::literal(text).write_for(self.reader(&columns))
    }

    /// Whether an element's number is in its work or its settings.
    pub fn says_index(&self) -> bool {
        self.has_text(Template::says_index)
    }

    /// Whether the slot that it runs in is.
    pub fn says_slot(&self) -> bool {
        self.has_text(Template::says_slot)
    }

    /// Which placeholders a worker must know to fill an element, where the first ones do not suffice.
    pub fn carried_placeholders(&self) -> Option<u32> {
        self.has_text(Template::needs_later).then_some(Filler::VERSION)
    }

    fn has_text(&self, is_so: impl Fn(&Template) -> bool) -> bool {
        let words = match &self.template {
            Work::Shell { line } => std::slice::from_ref(line),
            Work::Argv(words) => words,
            Work::Script(script) => &script.arguments,
        };
        let mut found = words.iter().any(&is_so);
        self.settings.map(|text, _| found |= is_so(text));
        found
    }

    /// The numbers that the elements stand for, if it is that simple.
    pub fn range(&self) -> Option<Numbers> {
        match self.values.columns() {
            [Column { items: Items::Numbers(numbers), .. }] => Some(*numbers),
            _ => None,
        }
    }

    /// What element `i` stands for, counted from 0, all in one piece; `Filler` takes it apart.
    pub fn carried_value(&self, i: u64) -> Option<Cow<'_, [u8]>> {
        (i < self.count()).then(|| {
            let mut items = self.values.items(i);
            match (items.next(), items.next()) {
                (Some(Cow::Borrowed(only)), None) if !only.iter().any(is_special) => {
                    Cow::Borrowed(only)
                }
                (first, second) => {
                    let mut joined = Vec::new();
                    for (number, value) in first.into_iter().chain(second).chain(items).enumerate()
                    {
                        if number > 0 {
                            joined.push(BETWEEN);
                        }
                        for byte in value.iter() {
                            joined.extend(is_special(byte).then_some(ESCAPE));
                            joined.push(*byte);
                        }
                    }
                    Cow::Owned(joined)
                }
            }
        })
    }

    /// The same lists to a reader who has no keys. One item each: only their number and their kind count.
    fn columns_without_keys(&self) -> Values {
        let columns = self.values.columns().iter().map(|column| match &column.items {
            Items::Numbers(_) => Column::numbers(Numbers::new(1, 1, 1).expect("one is a range")),
            Items::List(_) => {
                let mut list = List::default();
                list.push(b"").expect("nothing has no zero byte and takes no room");
                Column::list(list)
            }
        });
        Values::new(columns.collect(), Pairing::Zip)
            .expect("an array has columns, here of one item")
    }

    fn reader<'a>(&self, values: &'a Values) -> Reader<'a> {
        let is_early = self.carried_placeholders().is_none();
        Reader { values, is_early, is_named: !self.name.is_empty() }
    }
}

impl Task {
    /// The same of a task that stands alone: there are no placeholders in it.
    pub fn carried_work(&self) -> Work<Vec<u8>> {
        let bytes = |text: &OsString| text.as_bytes().to_vec();
        match &self.work {
            Work::Shell { line } => Work::Shell { line: bytes(line) },
            Work::Argv(words) => Work::Argv(words.iter().map(bytes).collect()),
            Work::Script(script) => Work::Script(Script {
                kind: script.kind.clone(),
                body: Arc::clone(&script.body),
                arguments: script.arguments.iter().map(bytes).collect(),
            }),
        }
    }

    /// The settings, of which nothing is filled in either.
    pub fn carried_settings(&self) -> Settings<Vec<u8>> {
        self.settings.map(|text, _| text.as_bytes().to_vec())
    }
}

/// Fills the placeholders of one element.
#[derive(Debug)]
pub struct Filler<'a> {
    name: &'a str,
    index: u64,
    values: Values,
    is_early: bool,
    slot: Option<u32>,
}

impl<'a> Filler<'a> {
    /// Of the placeholders that are known beside the first ones.
    pub const VERSION: u32 = 2;

    /// `position` is counted from 0, `value` is as `carried_value` gave it.
    pub fn new(name: &'a str, position: u64, value: &[u8]) -> Result<Filler<'a>, ValuesError> {
        let mut columns = Vec::new();
        for value in apart(value) {
            let mut list = List::default();
            list.push(&value)?;
            columns.push(match number(&value) {
                // Digits are safe in every corner of a shell line, wherever they come from.
                Some(numbers) => Column::numbers(numbers),
                None => Column::list(list),
            });
        }
        let values = Values::new(columns, Pairing::Zip)?;
        Ok(Filler { name, index: position + 1, values, is_early: true, slot: None })
    }

    /// With the later placeholders, one of which is the slot that the task runs in.
    #[must_use]
    pub fn in_slot(mut self, slot: u32) -> Filler<'a> {
        (self.is_early, self.slot) = (false, Some(slot));
        self
    }

    fn vocabulary(&self) -> Vocabulary<'_> {
        match self.is_early {
            true => Vocabulary::Early(&self.values),
            false => Vocabulary::Values(&self.values),
        }
    }

    /// An argument, which becomes several if it is `{}` and there are several values.
    pub fn argument(&self, text: &[u8], arguments: &mut Vec<OsString>) {
        let template = Template::plain(text, self.vocabulary());
        template.fill_arguments(&self.filling(), arguments);
    }

    /// A line for a shell.
    pub fn line(&self, line: &[u8]) -> Result<OsString, ShellError> {
        let template = Template::shell(line, self.vocabulary())?;
        Ok(template.fill(&self.filling()))
    }

    /// A path, a variable or an input.
    pub fn text(&self, text: &[u8]) -> OsString {
        Template::plain(text, self.vocabulary()).fill(&self.filling())
    }

    fn filling(&self) -> Filling<'_> {
        let row = self.values.row(0).expect("every column has one item");
        let is_range = matches!(self.values.columns(), [Column { items: Items::Numbers(_), .. }]);
        Filling { name: self.name, index: self.index, row, is_range, slot: self.slot }
    }
}

fn apart(joined: &[u8]) -> Vec<Vec<u8>> {
    let mut values = vec![Vec::new()];
    let mut bytes = joined.iter().copied();
    while let Some(byte) = bytes.next() {
        let last = values.last_mut().expect("there is always one");
        match byte {
            BETWEEN => values.push(Vec::new()),
            ESCAPE => last.extend(bytes.next()),
            byte => last.push(byte),
        }
    }
    values
}

/// The one number that is written like this, and no other way.
fn number(value: &[u8]) -> Option<Numbers> {
    let text = std::str::from_utf8(value).ok()?;
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then(|| Numbers::new(number, number, 1).ok()).flatten()
}
