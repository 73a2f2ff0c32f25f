//! Text with placeholders, and how one element's values fill them. What stands in braces is a placeholder
//! only if this page says so; every other brace is left exactly as it is.
//!
//! | written | becomes |
//! |---|---|
//! | `{}` | the value; with several lists all of them, separated by a space (as arguments of their own where `{}` is a whole argument) |
//! | `{/}` `{//}` | the value's base name; its directory (`.` if it has none), also as `{+/}` |
//! | `{.}` `{/.}` | the value without its last extension; the base name without it |
//! | `{ext}` `{+.}` | the last extension, without the dot (a leading dot, as in `.profile`, begins no extension) |
//! | `{..}` `{...}` `{/..}` `{/...}` | the same without the last two or three extensions, where there are so many |
//! | `{+..}` `{+...}` | the last two or three extensions; nothing where there are fewer |
//! | `{1}` `{2}` … | the value of the first, second … list, with the same endings: `{1/}` `{1//}` `{1.}` `{1/.}` `{1:ext}`; `{-1}` is the last list |
//! | `{key}` | the value of that key of a matrix, with the same endings: `{key/}` … `{key:ext}` |
//! | `{#}` `{index}` | the number of the task in its array, from 1 |
//! | `{%}` | the slot that the task runs in, from 1: no two that run at once have the same |
//! | `{seq}` | the number the array gives it (`--array 5-9`: 5 to 9); where the values are no range, the index |
//! | `{name}` | the task's name |
//! | `{{}}`, `{{name}}`, `{{1}}` … | the placeholder itself as text: `{}`, `{name}`, `{1}` |
//!
//! Untouched: a brace right after `$` (`${HOME}`, `${1}`), a letter or a closing bracket (`[0-9]{3}`); spaces,
//! commas and words (`{a,b}`, `{print $1}`, `{{.Names}}`). What looks like a placeholder and is not one is found by
//! `misread`. A task without values has no placeholders in its command at all, and knows only `{name}` in its paths.
//!
//! In an argument list a value becomes part of its argument and never meets a shell. In a shell line it is
//! quoted for where it stands, see `shell`.

mod misread;
mod shape;
mod shell;
mod written;

use std::borrow::Cow;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use crate::values::{Items, Values};

pub use misread::Misread;
pub(crate) use misread::misread;
use shape::Shape;
pub use shell::ShellError;
pub(crate) use shell::{is_shell_syntax, quote};
pub(crate) use written::Reader;

/// Words that mean something in braces, and so cannot be the key of a matrix.
pub(crate) const RESERVED: [&str; 4] = ["ext", "index", "name", "seq"];

/// Which placeholders mean something here.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Vocabulary<'a> {
    NameOnly,
    /// The first ones: texts that were written before there were others mean what they meant.
    Early(&'a Values),
    Values(&'a Values),
}

impl<'a> Vocabulary<'a> {
    fn values(self) -> Option<&'a Values> {
        match self {
            Vocabulary::NameOnly => None,
            Vocabulary::Early(values) | Vocabulary::Values(values) => Some(values),
        }
    }
}

/// What fills the placeholders of one element.
#[derive(Debug)]
pub(crate) struct Filling<'a> {
    pub name: &'a str,
    /// From 1.
    pub index: u64,
    pub row: Vec<Cow<'a, [u8]>>,
    pub is_range: bool,
    /// From 1, where it runs.
    pub slot: Option<u32>,
}

/// Text with placeholders, taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(Vec<u8>),
    Hole(Hole),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Hole {
    of: Of,
    shape: Shape,
    quoting: Quoting,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    AllValues,
    Column(usize),
    Index,
    Seq,
    Name,
    Slot,
}

/// How a value must be written to mean itself at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quoting {
    Bare,
    /// Outside quotes; `alone` if blanks stand on both sides.
    Word {
        alone: bool,
    },
    InSingle,
    /// `after_variable`: a bare letter would lengthen the variable's name before it.
    InDouble {
        after_variable: bool,
    },
}

impl Template {
    /// Text in which nothing is a placeholder.
    pub fn literal(text: impl Into<Vec<u8>>) -> Template {
        Template { pieces: vec![Piece::Text(text.into())] }
    }

    /// The value itself, unquoted: a line of a job file is its own shell line.
    pub(crate) fn value_itself() -> Template {
        let hole = Hole { of: Of::AllValues, shape: Shape::Whole, quoting: Quoting::Bare };
        Template { pieces: vec![Piece::Hole(hole)] }
    }

    /// Text whose values are put in as they are: an argument, a path, a variable.
    pub(crate) fn plain(text: &[u8], vocabulary: Vocabulary<'_>) -> Template {
        let mut template = Template::default();
        let mut at = 0;
        while at < text.len() {
            at += match token(text, at, vocabulary) {
                Some(token) => template.push_token(token, Quoting::Bare),
                None => template.push_byte(text[at]),
            };
        }
        template
    }

    /// A shell line whose values are quoted for where they stand.
    pub(crate) fn shell(line: &[u8], vocabulary: Vocabulary<'_>) -> Result<Template, ShellError> {
        shell::parse(line, vocabulary)
    }

    /// Whether it is filled by the number of an element.
    pub(crate) fn says_index(&self) -> bool {
        let says = |of| matches!(of, Of::Index | Of::Seq | Of::Name);
        self.pieces.iter().any(|piece| matches!(piece, Piece::Hole(hole) if says(hole.of)))
    }

    /// Whether only somebody who knows the later placeholders can fill it.
    pub(crate) fn needs_later(&self) -> bool {
        let is_later = |hole: &Hole| {
            let shape = matches!(
                hole.shape,
                Shape::Stem(2..) | Shape::BaseStem(2..) | Shape::Extension(2..)
            );
            hole.of == Of::Slot || shape
        };
        self.pieces.iter().any(|piece| matches!(piece, Piece::Hole(hole) if is_later(hole)))
    }

    /// Whether it is filled by the slot that a task runs in.
    pub(crate) fn says_slot(&self) -> bool {
        let says = |hole: &Hole| hole.of == Of::Slot;
        self.pieces.iter().any(|piece| matches!(piece, Piece::Hole(hole) if says(hole)))
    }

    /// Whether anything is filled in.
    pub fn has_placeholder(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Hole(_)))
    }

    /// One that only values can fill.
    pub(crate) fn takes_values(&self) -> bool {
        let takes = |hole: &Hole| matches!(hole.of, Of::AllValues | Of::Column(_));
        self.pieces.iter().any(|piece| matches!(piece, Piece::Hole(hole) if takes(hole)))
    }

    /// All values within a word that has other text too.
    fn is_part_of_a_word(&self) -> bool {
        let is_alone = |hole: &Hole| match hole.quoting {
            Quoting::Bare => self.pieces.len() == 1,
            Quoting::Word { alone } => alone,
            Quoting::InSingle | Quoting::InDouble { .. } => false,
        };
        let is_part = |hole: &Hole| hole.of == Of::AllValues && !is_alone(hole);
        self.pieces.iter().any(|piece| matches!(piece, Piece::Hole(hole) if is_part(hole)))
    }

    /// One that stands for the value of a certain list.
    pub(crate) fn names_columns(&self) -> bool {
        let names = |hole: &Hole| matches!(hole.of, Of::Column(_));
        self.pieces.iter().any(|piece| matches!(piece, Piece::Hole(hole) if names(hole)))
    }

    pub(crate) fn fill(&self, filling: &Filling<'_>) -> OsString {
        let mut filled = Vec::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => filled.extend_from_slice(text),
                Piece::Hole(hole) => hole.write(filling, &mut filled),
            }
        }
        OsString::from_vec(filled)
    }

    /// As an argument of its own, `{}` of several lists is several arguments.
    pub(crate) fn fill_arguments(&self, filling: &Filling<'_>, arguments: &mut Vec<OsString>) {
        match self.pieces.as_slice() {
            [Piece::Hole(hole)] if hole.of == Of::AllValues => {
                let shaped = filling.row.iter().map(|value| hole.shape.of(value).into_owned());
                arguments.extend(shaped.map(OsString::from_vec));
            }
            _ => arguments.push(self.fill(filling)),
        }
    }

    /// The template as bytes no other template shares, for a fingerprint.
    pub(crate) fn canonical(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => {
                    bytes.push(b'=');
                    bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
                    bytes.extend_from_slice(text);
                }
                Piece::Hole(hole) => bytes.extend_from_slice(&hole.canonical()),
            }
        }
        bytes
    }

    /// A path below this one, unless it begins at the root.
    pub(crate) fn join(&self, path: &Template) -> Template {
        if matches!(path.pieces.first(), Some(Piece::Text(text)) if text.starts_with(b"/")) {
            return path.clone();
        }
        let mut joined = self.clone();
        joined.push_byte(b'/');
        for piece in &path.pieces {
            match piece {
                Piece::Text(text) => text.iter().for_each(|byte| {
                    joined.push_byte(*byte);
                }),
                Piece::Hole(_) => joined.pieces.push(piece.clone()),
            }
        }
        joined
    }

    fn push_token(&mut self, token: Token<'_>, quoting: Quoting) -> usize {
        match token.meaning {
            Meaning::Hole(of, shape) => {
                self.pieces.push(Piece::Hole(Hole { of, shape, quoting }));
            }
            Meaning::Text(text) => text.iter().for_each(|byte| {
                self.push_byte(*byte);
            }),
        }
        token.length
    }

    fn push_byte(&mut self, byte: u8) -> usize {
        match self.pieces.last_mut() {
            Some(Piece::Text(text)) => text.push(byte),
            _ => self.pieces.push(Piece::Text(vec![byte])),
        }
        1
    }
}

impl crate::work::Work<Template> {
    /// Whether somewhere all values are put into a word with other text.
    pub(crate) fn has_part_of_a_word(&self) -> bool {
        match self {
            crate::work::Work::Shell { line } => line.is_part_of_a_word(),
            crate::work::Work::Argv(words) => words.iter().any(Template::is_part_of_a_word),
            crate::work::Work::Script(_) => false,
        }
    }
}

impl Hole {
    fn write(self, filling: &Filling<'_>, filled: &mut Vec<u8>) {
        match self.of {
            Of::Index => self.quoting.write(filling.index.to_string().as_bytes(), filled),
            Of::Seq if filling.is_range => self.quoting.write(&filling.row[0], filled),
            Of::Seq => self.quoting.write(filling.index.to_string().as_bytes(), filled),
            Of::Name => self.quoting.write(filling.name.as_bytes(), filled),
            Of::Slot => match filling.slot {
                Some(slot) => self.quoting.write(slot.to_string().as_bytes(), filled),
                // Shown before it runs.
                None => filled.extend_from_slice(b"{%}"),
            },
            Of::Column(column) => {
                self.quoting.write(&self.shape.of(&filling.row[column]), filled);
            }
            Of::AllValues => {
                for (number, value) in filling.row.iter().enumerate() {
                    if number > 0 {
                        filled.push(b' ');
                    }
                    self.quoting.write(&self.shape.of(value), filled);
                }
            }
        }
    }

    // Numbers are spelled out: the order of the enums may change, old fingerprints must not.
    fn canonical(self) -> [u8; 12] {
        let (of, column) = match self.of {
            Of::AllValues => (b'*', 0),
            Of::Column(column) => (b'c', column as u64),
            Of::Index => (b'#', 0),
            Of::Seq => (b's', 0),
            Of::Name => (b'n', 0),
            Of::Slot => (b'%', 0),
        };
        let shape = match self.shape {
            Shape::Whole => b'w',
            Shape::Base => b'b',
            Shape::Directory => b'd',
            Shape::Stem(1) => b's',
            Shape::Stem(2) => b'S',
            Shape::Stem(_) => b'Z',
            Shape::BaseStem(1) => b't',
            Shape::BaseStem(2) => b'T',
            Shape::BaseStem(_) => b'V',
            Shape::Extension(1) => b'e',
            Shape::Extension(2) => b'E',
            Shape::Extension(_) => b'X',
        };
        let quoting = match self.quoting {
            Quoting::Bare => b'b',
            Quoting::Word { .. } => b'w',
            Quoting::InSingle => b's',
            Quoting::InDouble { .. } => b'd',
        };
        let mut bytes = [0; 12];
        (bytes[0], bytes[1], bytes[2], bytes[3]) = (b'?', of, shape, quoting);
        bytes[4..].copy_from_slice(&column.to_le_bytes());
        bytes
    }
}

struct Token<'a> {
    meaning: Meaning<'a>,
    length: usize,
}

enum Meaning<'a> {
    Hole(Of, Shape),
    Text(&'a [u8]),
}

/// No key is longer, so the search for a closing brace stays short.
pub(crate) const KEY_BYTES_MAX: usize = 64;

fn token<'a>(text: &'a [u8], at: usize, vocabulary: Vocabulary<'_>) -> Option<Token<'a>> {
    if text[at] != b'{' || (at > 0 && text[at - 1] == b'$') {
        return None;
    }
    let doubled = text.get(at + 1) == Some(&b'{');
    let start = at + 1 + usize::from(doubled);
    let window = &text[start..text.len().min(start + KEY_BYTES_MAX + 8)];
    let end = start + window.iter().position(|byte| matches!(byte, b'{' | b'}'))?;
    if text[end] != b'}' {
        return None;
    }
    let (of, shape) = hole(&text[start..end], vocabulary)?;
    match doubled {
        false => Some(Token { meaning: Meaning::Hole(of, shape), length: end + 1 - at }),
        true if text.get(end + 1) == Some(&b'}') => {
            Some(Token { meaning: Meaning::Text(&text[at + 1..=end]), length: end + 2 - at })
        }
        true => None,
    }
}

fn hole(inside: &[u8], vocabulary: Vocabulary<'_>) -> Option<(Of, Shape)> {
    let Some(values) = vocabulary.values() else {
        return (inside == b"name").then_some((Of::Name, Shape::Whole));
    };
    let is_early = matches!(vocabulary, Vocabulary::Early(_));
    match inside {
        b"#" | b"index" => return Some((Of::Index, Shape::Whole)),
        b"seq" => return Some((Of::Seq, Shape::Whole)),
        b"name" => return Some((Of::Name, Shape::Whole)),
        b"ext" => return Some((Of::AllValues, Shape::Extension(1))),
        b"%" if !is_early => return Some((Of::Slot, Shape::Whole)),
        _ => {}
    }
    const LATER: [(&[u8], Shape); 6] = [
        (b"+...", Shape::Extension(3)),
        (b"+..", Shape::Extension(2)),
        (b"/...", Shape::BaseStem(3)),
        (b"/..", Shape::BaseStem(2)),
        (b"...", Shape::Stem(3)),
        (b"..", Shape::Stem(2)),
    ];
    const EARLY: [(&[u8], Shape); 7] = [
        (b":ext", Shape::Extension(1)),
        (b"+.", Shape::Extension(1)),
        (b"+/", Shape::Directory),
        (b"//", Shape::Directory),
        (b"/.", Shape::BaseStem(1)),
        (b"/", Shape::Base),
        (b".", Shape::Stem(1)),
    ];
    let later = if is_early { &[][..] } else { &LATER };
    let ending = later.iter().chain(&EARLY).find(|(ending, _)| inside.ends_with(ending));
    let (which, shape) = match ending {
        Some((ending, shape)) => (&inside[..inside.len() - ending.len()], *shape),
        None => (inside, Shape::Whole),
    };
    if which.is_empty() {
        // `{:ext}` is nobody's spelling of anything.
        return (inside != b":ext").then_some((Of::AllValues, shape));
    }
    let columns = values.columns();
    let keyed = columns
        .iter()
        .position(|column| column.key.as_deref().is_some_and(|key| key.as_bytes() == which));
    let from_the_end = || {
        let number: usize = std::str::from_utf8(which.strip_prefix(b"-")?).ok()?.parse().ok()?;
        let is_plain = !is_early && which[1] != b'0' && which[1] != b'+';
        columns.len().checked_sub(number).filter(|_| is_plain)
    };
    let numbered = || {
        let number: usize = std::str::from_utf8(which).ok()?.parse().ok()?;
        let plain = which[0] != b'0' && which[0] != b'+';
        (plain && number <= columns.len()).then(|| number - 1)
    };
    keyed.or_else(numbered).or_else(from_the_end).map(|column| (Of::Column(column), shape))
}

/// Digits only, whatever the element: safe in every corner of a shell line.
fn is_number(of: Of, shape: Shape, values: &Values) -> bool {
    let is_range = |column: usize| {
        matches!(values.columns().get(column).map(|column| &column.items), Some(Items::Numbers(_)))
    };
    match of {
        Of::Index | Of::Seq | Of::Slot => true,
        Of::Name => false,
        Of::Column(column) => shape == Shape::Whole && is_range(column),
        Of::AllValues => shape == Shape::Whole && values.columns().len() == 1 && is_range(0),
    }
}
