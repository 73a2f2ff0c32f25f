//! What looks like a placeholder and is not one here. A text that a person typed is refused for it: otherwise the
//! command would run with the braces in it. What shells, awk and other templates use is left alone. Not asked where
//! an element is filled in: what comes there was looked at before.

use std::fmt;

use super::{Vocabulary, token};
use crate::mistake::did_you_mean;
use crate::values::Values;

/// Something in braces, and why it means nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misread {
    written: String,
    why: String,
}

impl fmt::Display for Misread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a placeholder here: {}", self.written, self.why)
    }
}

/// GNU parallel's own, without what we have too, and what to type instead.
const PARALLEL: [(&str, &str); 10] = [
    ("##", "say how many there are yourself: --env TOTAL=12 and $TOTAL in the command"),
    ("0#", "use {#} or {%}, and printf %05d in the command for zeros before it"),
    ("0%", "use {#} or {%}, and printf %05d in the command for zeros before it"),
    ("choose_k", "leave out such combinations before the values come here"),
    ("uniq", "leave out such combinations before the values come here"),
    ("slot", "use {%}"),
    ("host", "use $(hostname) in the command"),
    ("sshlogin", "use $(hostname) in the command"),
    ("hgrp", "groups of hosts are not known here; --tag says what a machine must have"),
    ("agrp", "groups of hosts are not known here; --tag says what a machine must have"),
];

/// The first in the text.
pub(crate) fn misread(text: &[u8], vocabulary: Vocabulary<'_>) -> Option<Misread> {
    let Vocabulary::Values(values) = vocabulary else { return None };
    let mut at = 0;
    while at < text.len() {
        if let Some(token) = token(text, at, vocabulary) {
            at += token.length;
            continue;
        }
        if text[at] == b'{' && !is_glued(&text[..at]) {
            if let Some(found) = misread_here(&text[at..], values) {
                return Some(found);
            }
            // The inner brace of two is not looked at again.
            at += usize::from(text.get(at + 1) == Some(&b'{'));
        }
        at += 1;
    }
    None
}

/// Behind these a brace belongs to something else: `${x}`, `[0-9]{3}`, `%{http_code}`, `HEAD@{1}`.
fn is_glued(before: &[u8]) -> bool {
    let glue = |byte: &u8| byte.is_ascii_alphanumeric() || b"$%@^#\\])}".contains(byte);
    before.last().is_some_and(glue)
}

fn misread_here(text: &[u8], values: &Values) -> Option<Misread> {
    // An expression over several words of a command: this is its first one.
    if text == b"{=" {
        return Some(Misread { written: "{=".to_owned(), why: PERL.to_owned() });
    }
    let is_perl = text.starts_with(b"{=");
    let end = match is_perl {
        true => text.windows(2).position(|two| two == b"=}")? + 1,
        false => 1 + text[1..].iter().position(|byte| matches!(byte, b'{' | b'}'))?,
    };
    let inside = &text[1..end];
    if text[end] != b'}' {
        return None;
    }
    let is_key = |key: Option<&str>| key.is_some_and(|key| key.as_bytes() == inside);
    let is_known = values.columns().iter().any(|column| is_key(column.key.as_deref()));
    let parallel = PARALLEL.iter().find(|(form, _)| form.as_bytes() == inside);
    let why = if is_perl {
        PERL.to_owned()
    } else if let Some((_, instead)) = parallel.filter(|_| !is_known) {
        (*instead).to_owned()
    } else if let Some((column, form)) = bash_form(inside) {
        let (column, form) = (String::from_utf8_lossy(column), String::from_utf8_lossy(form));
        format!("use what bash has, as in 'x={{{column}}}; echo ${{x{form}}}'")
    } else if is_number(inside.strip_prefix(b"-").unwrap_or(inside)) {
        match values.columns().len() {
            1 => "there is one list of values".to_owned(),
            lists => format!("there are {lists} lists of values"),
        }
    } else {
        let keys = values.columns().iter().filter_map(|column| column.key.as_deref());
        let word = word(inside).filter(|_| keys.clone().next().is_some())?;
        match did_you_mean(word, keys) {
            Some(hint) => format!("{hint} Known here: {}", available(values)),
            None => format!("known here: {}", available(values)),
        }
    };
    Some(Misread { written: String::from_utf8_lossy(&text[..=end]).into_owned(), why })
}

const PERL: &str = "expressions of perl are not known here: use what bash has, as in \
                    'x={}; echo ${x%.gz}', or prepare the values before they come here";

/// GNU parallel's forms that are like those of bash: `{%.gz}`, `{2:-none}`, `{/old/new}`. Gives the number of the list and
/// the form. What has blanks, commas or quotes is left alone, and so are blocks of sed (`{/x/d}`) and of templates (`{% x %}`).
fn bash_form(inside: &[u8]) -> Option<(&[u8], &[u8])> {
    let of_digits = |bytes: &[u8]| bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let minus = usize::from(inside.first() == Some(&b'-'));
    let number = match of_digits(&inside[minus..]) {
        0 => 0,
        digits => minus + digits,
    };
    let (column, form) = inside.split_at(number);
    let is_plain = |byte: &u8| !byte.is_ascii_whitespace() && !b",;\"'`".contains(byte);
    let (sign, rest) = form.split_first()?;
    if !form.iter().all(is_plain) || rest.is_empty() || form.ends_with(b":ext") {
        return None;
    }
    let is_form = match sign {
        b':' if rest[0] == b'-' => rest.len() > 1,
        b':' => {
            rest.split(|byte| *byte == b':').count() <= 2
                && rest.iter().all(|byte| byte.is_ascii_digit() || *byte == b':')
                && of_digits(rest) > 0
        }
        b'#' | b'%' => rest != [*sign] && !rest.ends_with(&[*sign]),
        b'^' => rest != b"^",
        b'/' => {
            let rest = rest.strip_prefix(b"/").unwrap_or(rest);
            let slash = rest.iter().position(|byte| *byte == b'/').filter(|&slash| slash > 0);
            slash.is_some_and(|slash| {
                !matches!(&rest[slash + 1..], [b'p' | b'd' | b'q' | b'='] | [b's' | b'y', b'/', ..])
            })
        }
        _ => false,
    };
    is_form.then_some((column, form))
}

fn available(values: &Values) -> String {
    let numbered = |(number, column): (usize, &crate::values::Column)| match &column.key {
        Some(key) => format!("{{{key}}}"),
        None => format!("{{{}}}", number + 1),
    };
    let columns = values.columns();
    let columns: Vec<String> = match columns {
        [column] if column.key.is_none() => Vec::new(),
        columns => columns.iter().enumerate().map(numbered).collect(),
    };
    let always =
        ["{}", "{/}", "{//}", "{.}", "{..}", "{/.}", "{ext}", "{#}", "{%}", "{seq}", "{name}"];
    let all = columns.iter().map(String::as_str).chain(always);
    all.collect::<Vec<_>>().join(" ")
}

/// A number that does not begin with a zero, perhaps with an ending.
fn is_number(inside: &[u8]) -> bool {
    let digits = inside.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let ending = &inside[digits..];
    digits > 0
        && inside[0] != b'0'
        && (ending == b":ext" || ending.iter().all(|byte| matches!(byte, b'.' | b'/')))
}

/// What could be the key of a matrix, without its ending.
fn word(inside: &[u8]) -> Option<&str> {
    let inside = inside.strip_suffix(b":ext").unwrap_or(inside);
    let inside = std::str::from_utf8(inside).ok()?.trim_end_matches(['/', '.']);
    let is_word = inside.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && inside.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    is_word.then_some(inside)
}
