//! `--pipe`: standard input cut into blocks of whole records, each the input of one task. Blocks are files beside the
//! run's state, named by their place and what is in them, so that the same input typed again finds what is done.
//! One block is in memory at a time; all are cut before the first task starts.

use anyhow::{Context, bail};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Where blocks are cut.
#[derive(Debug, Clone)]
pub(crate) struct Cut {
    /// The largest block, unless one record is larger.
    pub(crate) bytes: usize,
    /// So many records for each block, whatever they weigh.
    pub(crate) records: Option<usize>,
    /// What a record ends with.
    pub(crate) end: Vec<u8>,
    /// What the next one begins with.
    pub(crate) start: Vec<u8>,
}

/// No record and no block is larger: one is held in memory.
pub(crate) const BLOCK_BYTES_MAX: usize = 1 << 30;

const READ_BYTES: usize = 256 << 10;

/// Cuts all of `input`. Gives the names of the blocks; without a directory they are only named.
pub(crate) fn spool(
    input: &mut dyn Read,
    cut: &Cut,
    dir: Option<&Path>,
) -> anyhow::Result<Vec<String>> {
    if let Some(dir) = dir {
        crate::files::make_dir(dir)?;
    }
    let mut blocks = Blocks { input, cut, read: Vec::new(), given: 0, is_over: false };
    let mut names = Vec::new();
    while let Some(block) = blocks.next()? {
        let hash = blake3::hash(&block).to_hex();
        let name = format!("block-{}-{}", names.len() + 1, &hash[..24]);
        if let Some(dir) = dir {
            put(&dir.join(&name), &block)?;
        }
        names.push(name);
    }
    Ok(names)
}

/// They are whole or not there.
fn put(path: &Path, block: &[u8]) -> anyhow::Result<()> {
    let is_there = path.metadata().is_ok_and(|known| known.len() == block.len() as u64);
    if is_there {
        return Ok(());
    }
    let draft = PathBuf::from(format!("{}.new-{}", path.display(), std::process::id()));
    std::fs::write(&draft, block)
        .and_then(|()| std::fs::rename(&draft, path))
        .with_context(|| format!("{} cannot be written", path.display()))
}

struct Blocks<'a> {
    input: &'a mut dyn Read,
    cut: &'a Cut,
    /// What was read, of which so much was given.
    read: Vec<u8>,
    given: usize,
    is_over: bool,
}

impl Blocks<'_> {
    fn next(&mut self) -> anyhow::Result<Option<Vec<u8>>> {
        let end = match self.cut.records {
            Some(records) => self.after_records(records)?,
            None => self.within_bytes()?,
        };
        let block = self.ahead()[..end].to_vec();
        self.given += end;
        // Not for each of many small blocks.
        if self.given >= READ_BYTES {
            self.read.drain(..self.given);
            self.given = 0;
        }
        Ok((!block.is_empty()).then_some(block))
    }

    fn ahead(&self) -> &[u8] {
        &self.read[self.given..]
    }

    /// The last boundary that is not too far away, else the next one.
    fn within_bytes(&mut self) -> anyhow::Result<usize> {
        let bytes = self.cut.bytes;
        // What follows a boundary has to be seen too.
        while self.ahead().len() < bytes + self.cut.start.len().max(1) && self.more()? {}
        let near = bytes.min(self.ahead().len());
        if self.is_over && self.ahead().len() <= bytes {
            return Ok(self.ahead().len());
        }
        match (1..=near).rev().find(|&at| self.is_boundary(at)) {
            Some(at) => Ok(at),
            None => self.first_boundary(near + 1),
        }
    }

    fn after_records(&mut self, records: usize) -> anyhow::Result<usize> {
        let mut at = 0;
        for _ in 0..records {
            at = self.first_boundary(at + 1)?;
        }
        Ok(at)
    }

    /// At `from` or behind it; the end of the input is one.
    fn first_boundary(&mut self, mut from: usize) -> anyhow::Result<usize> {
        loop {
            // A boundary at the end of what was read is one only if nothing has to follow it.
            let last = self.ahead().len().saturating_sub(self.cut.start.len());
            if let Some(at) = (from..=last).find(|&at| self.is_boundary(at)) {
                return Ok(at);
            }
            from = from.max(last + 1);
            if !self.more()? {
                return Ok(self.ahead().len());
            }
            if self.ahead().len() > BLOCK_BYTES_MAX + READ_BYTES {
                bail!("a record is larger than 1 GiB: is --recend what records end with?");
            }
        }
    }

    fn is_boundary(&self, at: usize) -> bool {
        let Cut { end, start, .. } = self.cut;
        at <= self.ahead().len()
            && self.ahead()[..at].ends_with(end)
            && self.ahead()[at..].starts_with(start)
    }

    /// False at the end of the input.
    fn more(&mut self) -> anyhow::Result<bool> {
        if self.is_over {
            return Ok(false);
        }
        let input = &mut *self.input;
        let read = input.take(READ_BYTES as u64).read_to_end(&mut self.read);
        self.is_over = read.context("standard input cannot be read")? == 0;
        Ok(!self.is_over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, cut: &Cut) -> Vec<String> {
        let mut input = text.as_bytes();
        let mut blocks =
            Blocks { input: &mut input, cut, read: Vec::new(), given: 0, is_over: false };
        let mut all = Vec::new();
        while let Some(block) = blocks.next().unwrap() {
            all.push(String::from_utf8(block).unwrap());
        }
        all
    }

    fn by(bytes: usize, records: Option<usize>, end: &str, start: &str) -> Cut {
        Cut { bytes, records, end: end.into(), start: start.into() }
    }

    #[test]
    fn blocks_are_whole_records_and_no_larger_than_they_may_be() {
        assert_eq!(cut("a\nbb\ncc\nd\n", &by(5, None, "\n", "")), ["a\nbb\n", "cc\nd\n"]);
        assert_eq!(cut("a\nlonger\nb", &by(3, None, "\n", "")), ["a\n", "longer\n", "b"]);
        assert_eq!(cut("", &by(3, None, "\n", "")), [""; 0]);
        assert_eq!(cut("abc", &by(3, None, "\n", "")), ["abc"]);
    }

    #[test]
    fn records_are_counted_where_that_is_asked_for() {
        assert_eq!(cut("a\nb\nc\n", &by(1, Some(2), "\n", "")), ["a\nb\n", "c\n"]);
        assert_eq!(cut(">a\nx\n>b\n>c\n", &by(9, Some(1), "", ">")), [">a\nx\n", ">b\n", ">c\n"]);
        assert_eq!(cut("a;;b;;c", &by(9, Some(1), ";;", "")), ["a;;", "b;;", "c"]);
        assert_eq!(cut("E\nx\nS\nE\nS", &by(99, Some(1), "E\n", "S")), ["E\nx\nS\nE\n", "S"]);
    }

    #[test]
    fn nothing_is_lost_wherever_it_is_cut() {
        let text: String = (0..3000).map(|n| format!("{}\n", "x".repeat(n * 7 % 97))).collect();
        for bytes in [1, 7, 96, 97, 1000, 1 << 20] {
            let blocks = cut(&text, &by(bytes, None, "\n", ""));
            assert_eq!(blocks.concat(), text);
            assert!(blocks.iter().all(|block| block.ends_with('\n')));
            assert!(blocks.iter().all(|block| block.len() <= bytes.max(97)));
        }
    }
}
