//! What is wrong with something a person wrote, where it is, and what to do about it. Several mistakes
//! are collected and shown together, each with its line and a caret. Knows nothing of plans.

use std::cell::Cell;
use std::fmt;
use std::ops::Range;

/// A place in a source: 1-based line and column (in characters) and how many characters the caret covers.
/// Line 0 means "no place": an argument, or a plan built by a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct Position {
    pub line: u32,
    pub column: u32,
    pub width: u32,
}

impl Position {
    /// A whole line, where a column would say nothing.
    pub fn line(line: u32) -> Position {
        Position { line, column: 0, width: 0 }
    }
}

/// Something that is wrong with a source, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Mistake {
    pub at: Position,
    pub message: String,
    pub hint: Option<String>,
}

impl Mistake {
    /// One without advice.
    pub fn new(at: Position, message: impl Into<String>) -> Mistake {
        Mistake { at, message: message.into(), hint: None }
    }

    /// With advice.
    pub fn hint(mut self, hint: impl Into<String>) -> Mistake {
        self.hint = Some(hint.into());
        self
    }
}

/// All that is wrong with one source, ready to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistakes {
    source: String,
    shown: Vec<(Mistake, Option<String>)>,
    more: usize,
}

/// A file with one systematic mistake has it a thousand times; the first few are enough to mend it.
pub const MISTAKES_SHOWN_MAX: usize = 20;

impl Mistakes {
    /// `line_text` gives the text of a line for the caret, where the source still has it.
    pub fn new(
        source: impl Into<String>,
        mut list: Vec<Mistake>,
        line_text: impl Fn(u32) -> Option<String>,
    ) -> Mistakes {
        list.sort_by_key(|mistake| (mistake.at.line, mistake.at.column));
        list.dedup();
        let more = list.len().saturating_sub(MISTAKES_SHOWN_MAX);
        list.truncate(MISTAKES_SHOWN_MAX);
        let with_text = |mistake: Mistake| {
            let text = if mistake.at.column > 0 { line_text(mistake.at.line) } else { None };
            (mistake, text)
        };
        Mistakes { source: source.into(), shown: list.into_iter().map(with_text).collect(), more }
    }

    /// A list of this one.
    pub fn one(source: impl Into<String>, mistake: Mistake) -> Mistakes {
        Mistakes::new(source, vec![mistake], |_| None)
    }

    /// In the order of the source.
    pub fn iter(&self) -> impl Iterator<Item = &Mistake> {
        self.shown.iter().map(|(mistake, _)| mistake)
    }
}

impl std::error::Error for Mistakes {}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (mistake, text)) in self.shown.iter().enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            write!(f, "{}", self.source)?;
            if mistake.at.line > 0 {
                write!(f, ":{}", mistake.at.line)?;
            }
            if mistake.at.column > 0 {
                write!(f, ":{}", mistake.at.column)?;
            }
            write!(f, ": {}", visible(&mistake.message))?;
            match (text, &mistake.hint) {
                (Some(text), hint) => write_caret(f, mistake.at, text, hint.as_deref())?,
                (None, Some(hint)) => write!(f, " ({})", visible(hint))?,
                (None, None) => {}
            }
        }
        match self.more {
            0 => Ok(()),
            1 => write!(f, "\nand 1 more mistake"),
            more => write!(f, "\nand {more} more mistakes"),
        }
    }
}

/// Wider than this and a terminal wraps, which tears the caret from its word.
const EXCERPT_WIDTH_MAX: usize = 90;

fn write_caret(
    f: &mut fmt::Formatter<'_>,
    at: Position,
    text: &str,
    hint: Option<&str>,
) -> fmt::Result {
    let column = at.column as usize - 1;
    let all: Vec<char> = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let start = if column > EXCERPT_WIDTH_MAX * 2 / 3 { column - EXCERPT_WIDTH_MAX / 3 } else { 0 };
    let end = all.len().min(start + EXCERPT_WIDTH_MAX);
    let cut: String = all.get(start..end).unwrap_or_default().iter().collect();
    let width = (at.width as usize).clamp(1, end.saturating_sub(column).max(1));
    let number = at.line.to_string();
    let margin = " ".repeat(number.len());
    write!(f, "\n  {number} | {cut}\n  {margin} | ")?;
    write!(f, "{}{}", " ".repeat(column - start), "^".repeat(width))?;
    hint.map_or(Ok(()), |hint| write!(f, " {}", visible(hint)))
}

/// What came from outside may hold escape sequences that move a terminal's cursor; a message must not.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}

/// A text with a name, to find positions and lines in.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    pub name: &'a str,
    pub text: &'a str,
    starts: Vec<usize>,
    /// The last place asked for, and its column from 0.
    last: Cell<(usize, usize)>,
}

impl<'a> Source<'a> {
    pub fn new(name: &'a str, text: &'a str) -> Source<'a> {
        let breaks =
            text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(i, _)| i + 1);
        Source {
            name,
            text,
            starts: std::iter::once(0).chain(breaks).collect(),
            last: Cell::default(),
        }
    }

    pub fn position(&self, span: Range<usize>) -> Position {
        let line = self.starts.partition_point(|start| *start <= span.start).max(1) - 1;
        let line_end = self.starts.get(line + 1).map_or(self.text.len(), |next| next - 1);
        Position {
            line: line as u32 + 1,
            column: self.column(self.starts[line], span.start) as u32 + 1,
            width: self.count(span.start, span.end.min(line_end)) as u32,
        }
    }

    /// Characters before `at` in its line. A list may be one line of millions of values, asked for in
    /// order, so the count goes on from the last place and not from the beginning each time.
    fn column(&self, line_start: usize, at: usize) -> usize {
        let (known, column) = self.last.get();
        let column = match (line_start..=at).contains(&known) {
            true => column + self.count(known, at),
            false => self.count(line_start, at),
        };
        self.last.set((at, column));
        column
    }

    fn count(&self, from: usize, to: usize) -> usize {
        self.text.get(from..to.max(from)).map_or(0, |text| text.chars().count())
    }

    pub fn line(&self, number: u32) -> Option<String> {
        let start = *self.starts.get((number as usize).checked_sub(1)?)?;
        let line = self.text[start..].split('\n').next().unwrap_or_default();
        Some(line.trim_end_matches('\r').to_owned())
    }

    pub fn mistakes(&self, list: Vec<Mistake>) -> Mistakes {
        Mistakes::new(self.name, list, |line| self.line(line))
    }
}

/// The known word nearest to what was written, if it is near enough to be what was meant.
pub(crate) fn did_you_mean<'a>(
    written: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    // A quadratic distance over long names and many of them would take seconds on a hostile file.
    let length = written.chars().count();
    if length > 64 {
        return None;
    }
    let tolerance = (length / 3).clamp(1, 3);
    known
        .into_iter()
        .take(10_000)
        .filter(|word| word.len().abs_diff(written.len()) <= 8 && word.len() <= 128)
        .map(|word| (distance(written, word), word))
        // At least one letter must agree: `b` is no misspelt `a`.
        .filter(|(distance, _)| *distance <= tolerance && *distance < length)
        .min()
        .map(|(_, word)| format!("did you mean `{word}`?"))
}

/// Edit distance where swapping two neighbours counts once, as fingers do it.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let change = usize::from(a[i - 1] != b[j - 1]);
            row[j] = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + change);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}
