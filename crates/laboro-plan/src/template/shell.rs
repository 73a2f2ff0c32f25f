//! Puts values into shell lines so that each means itself: the shell sees the value's bytes as plain text at
//! the placeholder's place, inside or outside quotes, and never runs any part of it. Where that cannot be
//! promised (here-documents, backquotes, arithmetic) a placeholder is refused, unless it is always a number.
//! In a comment it is left as written. Not a shell parser: it follows quotes, substitutions and comments.
//!
//! A line that hands the text to another shell (`sh -c "… {}"`, `eval`) has it read twice; that is the line's affair.

use thiserror::Error;

use super::{Meaning, Quoting, Template, Vocabulary, is_number, token};

/// Why a value cannot be put into a shell line.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ShellError {
    #[error(
        "`{placeholder}` {place} cannot be quoted safely: set a variable first, as in `v={placeholder}; … \"$v\"`"
    )]
    Unquotable { placeholder: String, place: &'static str },
    #[error("the shell line ends inside {0}")]
    Unfinished(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Context {
    /// Where commands and words stand; `depth` counts open parentheses inside `$( )`.
    Command {
        depth: u32,
    },
    Single,
    Double,
}

struct Scanner<'a> {
    line: &'a [u8],
    at: usize,
    contexts: Vec<Context>,
    /// Where a new word may begin: a `#` there begins a comment, elsewhere it is a letter.
    word_at: usize,
    /// Why quoting can no longer be followed from here on.
    lost: Option<&'static str>,
    template: Template,
}

pub(super) fn parse(line: &[u8], vocabulary: Vocabulary<'_>) -> Result<Template, ShellError> {
    let mut scanner = Scanner {
        line,
        at: 0,
        contexts: vec![Context::Command { depth: 0 }],
        word_at: 0,
        lost: None,
        template: Template::default(),
    };
    while scanner.at < line.len() {
        match token(line, scanner.at, vocabulary) {
            Some(token) => {
                let quoting = match token.meaning {
                    Meaning::Text(_) => Quoting::Bare,
                    Meaning::Hole(of, shape) => {
                        let values = vocabulary.values();
                        let number = values.is_some_and(|values| is_number(of, shape, values));
                        scanner.quoting(token.length, number)?
                    }
                };
                scanner.at += scanner.template.push_token(token, quoting);
            }
            None => scanner.step()?,
        }
    }
    scanner.finish()
}

impl Scanner<'_> {
    fn context(&self) -> Context {
        *self.contexts.last().expect("the outermost context is never left")
    }

    fn rest(&self) -> &[u8] {
        &self.line[self.at..]
    }

    fn take(&mut self, count: usize) {
        for _ in 0..count.min(self.line.len() - self.at) {
            self.at += self.template.push_byte(self.line[self.at]);
        }
    }

    /// How a placeholder of `length` bytes must be filled here.
    fn quoting(&self, length: usize, number: bool) -> Result<Quoting, ShellError> {
        let next = self.line.get(self.at + length).copied();
        let after_variable = self.after_variable();
        // Digits before a redirection would name a file descriptor, and after `$x` lengthen a name.
        if number && !after_variable && !matches!(next, Some(b'<' | b'>')) {
            return Ok(Quoting::Bare);
        }
        if let Some(place) = self.lost {
            return Err(self.unquotable(self.at, length, place));
        }
        Ok(match self.context() {
            Context::Single => Quoting::InSingle,
            Context::Double => Quoting::InDouble { after_variable },
            Context::Command { .. } => {
                let blank = |byte: Option<u8>| byte.is_none_or(|byte| byte.is_ascii_whitespace());
                let ends = blank(next) || matches!(next, Some(b';' | b'|' | b'&' | b')'));
                let before = self.at.checked_sub(1).map(|before| self.line[before]);
                Quoting::Word { alone: blank(before) && ends }
            }
        })
    }

    fn unquotable(&self, at: usize, length: usize, place: &'static str) -> ShellError {
        let placeholder = String::from_utf8_lossy(&self.line[at..at + length]).into_owned();
        ShellError::Unquotable { placeholder, place }
    }

    fn after_variable(&self) -> bool {
        let before = &self.line[..self.at];
        let word =
            before.iter().rev().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_');
        let start = before.len() - word.count();
        start > 0 && before[start - 1] == b'$'
    }

    /// Moves over what is no placeholder, following quotes.
    fn step(&mut self) -> Result<(), ShellError> {
        match (self.context(), self.line[self.at]) {
            (Context::Single, b'\'') => self.leave(),
            (Context::Single, _) => self.take(1),
            (Context::Double, b'"') => self.leave(),
            (_, b'\\') => self.backslash(),
            (_, b'$') => return self.dollar(),
            (_, b'`') => return self.opaque(1, b"`", "in or after backquotes"),
            (Context::Double, _) => self.take(1),
            (Context::Command { .. }, b'\'') => self.enter(Context::Single, 1),
            (Context::Command { .. }, b'"') => self.enter(Context::Double, 1),
            (Context::Command { .. }, b'#') if self.at_word_start() => self.comment(),
            (Context::Command { .. }, b'<') => self.less_than(),
            (Context::Command { depth }, b'(') => self.open(depth),
            (Context::Command { depth }, b')') => self.close(depth),
            (Context::Command { .. }, b'c') => self.case(),
            (Context::Command { .. }, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|') => {
                self.separator();
            }
            (Context::Command { .. }, _) => self.take(1),
        }
        Ok(())
    }

    fn separator(&mut self) {
        self.take(1);
        self.word_at = self.at;
    }

    fn backslash(&mut self) {
        // A continued line is as if it were never broken, so a word that may begin here still may.
        let continued = self.rest().starts_with(b"\\\n") && self.at_word_start();
        self.take(2);
        if continued {
            self.word_at = self.at;
        }
    }

    fn enter(&mut self, context: Context, length: usize) {
        self.contexts.push(context);
        self.take(length);
    }

    fn leave(&mut self) {
        self.contexts.pop();
        self.take(1);
    }

    fn dollar(&mut self) -> Result<(), ShellError> {
        let in_command = matches!(self.context(), Context::Command { .. });
        if self.rest().starts_with(b"$((") {
            return self.opaque(3, b"))", "in or after arithmetic");
        }
        match self.rest().get(1) {
            Some(b'(') => {
                self.enter(Context::Command { depth: 1 }, 2);
                self.word_at = self.at;
            }
            Some(b'{') => return self.opaque(2, b"}", "in or after `${…}` with quotes in it"),
            Some(b'[') => {
                self.lost.get_or_insert("in or after arithmetic");
                self.take(2);
            }
            Some(b'\'') if in_command => {
                // bash reads escapes in it, other shells do not: its end is a matter of opinion.
                self.lost.get_or_insert("in or after `$'…'`");
                self.take(1);
            }
            // `$$`, `$#` and the like are two bytes of one word.
            Some(b'$' | b'#' | b'?' | b'!' | b'@' | b'*' | b'-') => self.take(2),
            _ => self.take(1),
        }
        Ok(())
    }

    /// A stretch with rules of its own up to `end`: only numbers go into it, and if it holds
    /// quotes or substitutions, only numbers go after it either.
    fn opaque(&mut self, open: usize, end: &[u8], place: &'static str) -> Result<(), ShellError> {
        let inside = &self.line[(self.at + open).min(self.line.len())..];
        let Some(length) = inside.windows(end.len()).position(|window| window == end) else {
            self.lost.get_or_insert(place);
            self.take(open);
            return Ok(());
        };
        let simple = !inside[..length].iter().any(|byte| b"'\"\\`$({".contains(byte));
        if !simple {
            self.lost.get_or_insert(place);
        }
        // Placeholders inside still count; a `{` made it not simple, so others are refused there.
        self.take(if simple { open + length + end.len() } else { open });
        Ok(())
    }

    fn at_word_start(&self) -> bool {
        self.at == self.word_at
    }

    fn comment(&mut self) {
        let length = self.rest().iter().position(|byte| *byte == b'\n');
        self.take(length.unwrap_or(usize::MAX));
    }

    fn less_than(&mut self) {
        if self.rest().starts_with(b"<<<") {
            self.take(3);
        } else {
            if self.rest().starts_with(b"<<") {
                self.lost.get_or_insert("in or after a here-document");
            }
            self.take(2.min(1 + usize::from(self.rest().starts_with(b"<<"))));
        }
    }

    fn open(&mut self, depth: u32) {
        if self.rest().starts_with(b"((") {
            self.lost.get_or_insert("in or after arithmetic");
        }
        if depth > 0 {
            self.set_depth(depth + 1);
        }
        self.separator();
    }

    fn close(&mut self, depth: u32) {
        match depth {
            0 => self.separator(),
            1 => self.leave(),
            _ => {
                self.set_depth(depth - 1);
                self.separator();
            }
        }
    }

    fn set_depth(&mut self, depth: u32) {
        if let Some(context) = self.contexts.last_mut() {
            *context = Context::Command { depth };
        }
    }

    /// The patterns of `case` close parentheses nobody opened, which only matters inside `$( )`.
    fn case(&mut self) {
        let is_case = self.at_word_start()
            && self.rest().starts_with(b"case")
            && self.rest().get(4).is_none_or(u8::is_ascii_whitespace);
        if is_case && self.contexts.len() > 1 {
            self.lost.get_or_insert("after `case` inside `$(…)`");
        }
        self.take(1);
    }

    fn finish(self) -> Result<Template, ShellError> {
        match (self.lost, self.context()) {
            (None, Context::Single) => Err(ShellError::Unfinished("single quotes")),
            (None, Context::Double) => Err(ShellError::Unfinished("double quotes")),
            (None, Context::Command { depth: 1.. }) => Err(ShellError::Unfinished("`$(`")),
            _ => Ok(self.template),
        }
    }
}

impl Quoting {
    pub(super) fn write(self, value: &[u8], filled: &mut Vec<u8>) {
        match self {
            Quoting::Bare => filled.extend_from_slice(value),
            Quoting::Word { alone } if alone && is_plain_word(value) => {
                filled.extend_from_slice(value);
            }
            Quoting::Word { .. } => quote(value, filled),
            Quoting::InSingle => escape_single(value, filled),
            Quoting::InDouble { after_variable } => {
                let special = value.iter().any(|byte| b"$`\"\\".contains(byte));
                if special || after_variable {
                    filled.push(b'"');
                    quote(value, filled);
                    filled.push(b'"');
                } else {
                    filled.extend_from_slice(value);
                }
            }
        }
    }
}

/// A path or file name no shell reads as anything else: no keyword, no number, no assignment.
fn is_plain_word(value: &[u8]) -> bool {
    value.iter().any(|byte| matches!(byte, b'.' | b'/'))
        && value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_./,:@%+-".contains(byte))
}

pub(crate) fn quote(value: &[u8], quoted: &mut Vec<u8>) {
    quoted.push(b'\'');
    escape_single(value, quoted);
    quoted.push(b'\'');
}

fn escape_single(value: &[u8], escaped: &mut Vec<u8>) {
    for byte in value {
        match byte {
            b'\'' => escaped.extend_from_slice(b"'\\''"),
            byte => escaped.push(*byte),
        }
    }
}

/// Whether one word is meant as a line for a shell and not as the name of a program.
pub(crate) fn is_shell_syntax(word: &[u8]) -> bool {
    word.iter().any(|byte| byte.is_ascii_whitespace() || b"|&;<>()$`\\\"'*?[".contains(byte))
}
