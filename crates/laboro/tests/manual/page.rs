//! The fenced blocks of a page, and what their marks say is to be done with them.

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
    for (at, line) in text.lines().enumerate() {
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
