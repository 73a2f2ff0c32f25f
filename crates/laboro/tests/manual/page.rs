//! The fenced blocks of a page and what their marks say is to be done with them, and the tables that say what to type
//! instead of something else: their last column is headed "Laboro", and what is in it is run too.

use crate::repository;
use std::fs;

pub struct Block {
    pub line: usize,
    pub mark: Mark,
    pub text: String,
}

pub enum Mark {
    Run {
        status: i32,
    },
    /// A hub, a worker: goes on until the page is over.
    Stays,
    Prints(Numbers),
    File(String),
    Shown,
}

/// Which numbers must be as shown.
#[derive(Clone, Copy, PartialEq)]
pub enum Numbers {
    Counts,
    /// Each may be another one.
    Any,
}

pub fn blocks(page: &str) -> Vec<Block> {
    let text = fs::read_to_string(repository().join(page)).unwrap();
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_inside = false;
    let mut is_typed = false;
    for (at, line) in text.lines().enumerate() {
        match last_cell(line).filter(|_| !is_inside) {
            None => is_typed = false,
            Some("Laboro") => is_typed = true,
            Some(cell) if is_typed => {
                let command = cell.strip_prefix('`').and_then(|cell| cell.strip_suffix('`'));
                // Otherwise it is words.
                if let Some(command) = command.filter(|command| !command.contains('`')) {
                    let text = command.replace("\\|", "|");
                    blocks.push(Block { line: at + 1, mark: Mark::Run { status: 0 }, text });
                }
            }
            Some(_) => {}
        }
        match line.strip_prefix("```") {
            Some(_) if is_inside => is_inside = false,
            Some(info) => {
                is_inside = true;
                let mark = mark(info).unwrap_or_else(|| panic!("{page}:{}: ```{info}", at + 1));
                blocks.push(Block { line: at + 1, mark, text: String::new() });
            }
            None if is_inside => {
                let block = blocks.last_mut().expect("pushed when its fence was read");
                block.text.push_str(line);
                block.text.push('\n');
            }
            None => {}
        }
    }
    assert!(!is_inside, "{page}: the last block has no end");
    blocks
}

/// Of a row of a table, without the blanks around it.
fn last_cell(line: &str) -> Option<&str> {
    let row = line.strip_prefix('|')?.strip_suffix('|')?;
    let from = row.rmatch_indices('|').find(|(at, _)| !row[..*at].ends_with('\\'));
    Some(row[from.map_or(0, |(at, _)| at + 1)..].trim())
}

/// The words after the language; `None` if they mean nothing, so that a slip is not a block left out.
fn mark(info: &str) -> Option<Mark> {
    let words: Vec<&str> = info.split_whitespace().skip(1).collect();
    match words.as_slice() {
        [] => Some(Mark::Shown),
        ["run"] => Some(Mark::Run { status: 0 }),
        ["run", status] => {
            let status = status.strip_prefix("status=")?.parse().ok()?;
            Some(Mark::Run { status })
        }
        ["stays"] => Some(Mark::Stays),
        ["prints"] => Some(Mark::Prints(Numbers::Counts)),
        ["like"] => Some(Mark::Prints(Numbers::Any)),
        [file] => Some(Mark::File(file.strip_prefix("file=")?.to_owned())),
        _ => None,
    }
}
