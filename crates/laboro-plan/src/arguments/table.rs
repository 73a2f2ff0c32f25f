//! Values that have columns: lines split at a separator, sample sheets with names in their first line, and several
//! values of one list for each command. Makes columns of them that go side by side; what they are used for is not
//! known here.

use thiserror::Error;

use crate::template::RESERVED;
use crate::values::{Column, Items, List, ValuesError};

/// What stands between the columns of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Separator {
    /// With quotes around what holds it, as spreadsheets write it.
    Csv(u8),
    Text(String),
    /// Any number of blanks.
    Blanks,
}

/// Why values have no columns.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum TableError {
    #[error(
        "--colsep {0}: write the text itself, \\t for a tab, or \\s+ for any blanks; other patterns are not known"
    )]
    Pattern(String),
    #[error("line {line} has {found}, the first one {first}", found = columns(*.found), first = columns(*.first))]
    Ragged { line: usize, found: usize, first: usize },
    #[error("line {line}: {source}")]
    Csv { line: usize, source: csv::Error },
    #[error("line {0}: a quote is not closed; a value cannot continue on the next line")]
    OpenQuote(usize),
    #[error("there is nothing below the first line with the names of the columns")]
    OnlyNames,
    #[error("a column is called `{0}`, and {{{0}}} already has a meaning: rename it")]
    Reserved(String),
    #[error("two columns are called `{0}`: rename one of them")]
    Twice(String),
    #[error("{0} needs one list of values, and there are {1}")]
    Lists(&'static str, usize),
    #[error(transparent)]
    Values(#[from] ValuesError),
}

fn columns(count: usize) -> String {
    format!("{count} column{}", if count == 1 { "" } else { "s" })
}

impl Separator {
    /// As it is typed after `--colsep`.
    pub fn parse(text: &str) -> Result<Separator, TableError> {
        match text {
            "," => Ok(Separator::Csv(b',')),
            "\\t" | "\t" => Ok(Separator::Csv(b'\t')),
            "\\s+" | " +" | "[ \\t]+" => Ok(Separator::Blanks),
            "" => Err(TableError::Pattern(text.to_owned())),
            // Where these are not meant as themselves a wrong split would go unseen.
            _ if text.contains(['\\', '[', '(', '*', '+', '?', '^', '$']) => {
                Err(TableError::Pattern(text.to_owned()))
            }
            _ => Ok(Separator::Text(text.to_owned())),
        }
    }

    /// By the ending of a file's name.
    pub(super) fn of_file(path: &std::path::Path) -> Option<Separator> {
        let ending = path.extension()?.to_str()?.to_ascii_lowercase();
        match ending.as_str() {
            "csv" => Some(Separator::Csv(b',')),
            "tsv" | "tab" => Some(Separator::Csv(b'\t')),
            _ => None,
        }
    }

    fn split(&self, line: &[u8], number: usize) -> Result<Vec<Vec<u8>>, TableError> {
        match self {
            Separator::Csv(delimiter) => {
                if line.iter().filter(|byte| **byte == b'"').count() % 2 == 1 {
                    return Err(TableError::OpenQuote(number));
                }
                let mut reader = csv::ReaderBuilder::new();
                reader.delimiter(*delimiter).has_headers(false).flexible(true);
                let mut reader = reader.buffer_capacity(line.len().max(1)).from_reader(line);
                let mut record = csv::ByteRecord::new();
                let read = reader.read_byte_record(&mut record);
                read.map_err(|source| TableError::Csv { line: number, source })?;
                Ok(record.iter().map(<[u8]>::to_vec).collect())
            }
            Separator::Text(text) => {
                let text = text.as_bytes();
                let (mut parts, mut part, mut at) = (Vec::new(), Vec::new(), 0);
                while at < line.len() {
                    if line[at..].starts_with(text) {
                        parts.push(std::mem::take(&mut part));
                        at += text.len();
                    } else {
                        part.push(line[at]);
                        at += 1;
                    }
                }
                parts.push(part);
                Ok(parts)
            }
            Separator::Blanks => {
                let parts = line.split(u8::is_ascii_whitespace).filter(|part| !part.is_empty());
                Ok(parts.map(<[u8]>::to_vec).collect())
            }
        }
    }
}

/// The columns of a table, side by side. Without a separator a line is one column.
pub(super) fn columns_of(
    list: &List,
    separator: Option<&Separator>,
    has_header: bool,
) -> Result<Vec<Column>, TableError> {
    let split = |row: usize| match separator {
        Some(separator) => separator.split(list.item(row), row + 1),
        None => Ok(vec![list.item(row).to_vec()]),
    };
    let first = split(0)?;
    let mut lists = vec![List::default(); first.len()];
    for row in usize::from(has_header)..list.len() {
        let values = split(row)?;
        if values.len() != first.len() {
            let (found, first) = (values.len(), first.len());
            return Err(TableError::Ragged { line: row + 1, found, first });
        }
        for (list, value) in lists.iter_mut().zip(values) {
            list.push(&value)?;
        }
    }
    if lists.iter().any(List::is_empty) {
        return Err(TableError::OnlyNames);
    }
    let mut columns: Vec<Column> = lists.into_iter().map(Column::list).collect();
    columns.iter_mut().skip(1).for_each(|column| column.is_linked = true);
    if has_header {
        for (at, name) in first.iter().enumerate() {
            let key = key(name)?;
            if key.is_some() && columns[..at].iter().any(|column| column.key == key) {
                return Err(TableError::Twice(key.unwrap_or_default()));
            }
            columns[at].key = key;
        }
    }
    Ok(columns)
}

/// What stands in braces must be one word; other names are there as `{1}`, `{2}` only.
fn key(name: &[u8]) -> Result<Option<String>, TableError> {
    let Ok(name) = std::str::from_utf8(name) else { return Ok(None) };
    let name = name.trim_start_matches('\u{feff}').trim();
    if RESERVED.contains(&name) {
        return Err(TableError::Reserved(name.to_owned()));
    }
    let is_word = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    Ok(is_word.then(|| name.to_owned()))
}

/// So many values of one list for each command. The last command may get fewer; `fills` gives it empty ones instead.
pub(super) fn columns_by_turns(
    list: &List,
    width: usize,
    fills: bool,
) -> Result<Vec<Column>, TableError> {
    let mut lists = vec![List::default(); width.min(list.len()).max(1)];
    let width = lists.len();
    for at in 0..list.len() {
        lists[at % width].push(list.item(at))?;
    }
    if fills {
        let rows = lists[0].len();
        for list in lists.iter_mut().filter(|list| list.len() < rows) {
            list.push(b"")?;
        }
    }
    let mut columns: Vec<Column> = lists.into_iter().map(Column::list).collect();
    columns.iter_mut().skip(1).for_each(|column| column.is_linked = true);
    Ok(columns)
}

pub(super) fn only_list(columns: Vec<Column>, what: &'static str) -> Result<List, TableError> {
    let count = columns.len();
    let mut columns = columns.into_iter();
    match (columns.next().map(|column| column.items), count) {
        (Some(Items::List(list)), 1) => Ok(list),
        _ => Err(TableError::Lists(what, count)),
    }
}
