//! Prints what tasks printed, in the order of the input: the next one as soon as it has ended. What comes
//! too early waits in the store, not in memory.

use super::kept::{Kept, Place, key};
use crate::output::{data, say};
use anyhow::Context;
use laboro_journal::outputs::{End, Stream, Streams};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::path::Path;

pub(crate) struct OrderedOutput {
    kept: Kept,
    /// Ranges of numbers that are still to come, the next one last.
    to_come: Vec<(u32, u32)>,
    /// Ended tasks whose turn has not come, with their last attempt.
    ended: BTreeMap<u32, u16>,
    has_no_reader: bool,
    /// Tasks of whose output a part is missing in what was printed.
    cut: u64,
}

impl OrderedOutput {
    pub(crate) fn new(outputs: &Path, mut order: Vec<(u32, u32)>) -> anyhow::Result<OrderedOutput> {
        order.reverse();
        Ok(OrderedOutput {
            kept: Kept::open(outputs)?,
            to_come: order,
            ended: BTreeMap::new(),
            has_no_reader: false,
            cut: 0,
        })
    }

    /// A task that ended in an earlier run.
    pub(crate) fn ended_before(&mut self, index: u32) -> anyhow::Result<()> {
        let attempt = self.kept.last_attempt(index)?;
        self.ended.insert(index, attempt.unwrap_or(1));
        Ok(())
    }

    /// A task has ended for good. Its output was flushed before.
    pub(crate) fn ended(&mut self, index: u32, attempt: u16) -> anyhow::Result<()> {
        self.ended.insert(index, attempt);
        self.print_ready()
    }

    pub(crate) fn print_ready(&mut self) -> anyhow::Result<()> {
        if self.to_come.last().is_some_and(|(next, _)| self.ended.contains_key(next)) {
            self.kept.refresh()?;
        }
        while let Some((next, last)) = self.to_come.last_mut() {
            let Some(attempt) = self.ended.remove(next) else { break };
            let index = *next;
            if next == last {
                self.to_come.pop();
            } else {
                *next += 1;
            }
            self.print(index, attempt)?;
        }
        Ok(())
    }

    /// The run is over: what has ended behind something that has not.
    pub(crate) fn print_rest(&mut self) -> anyhow::Result<()> {
        self.kept.refresh()?;
        let rest = std::mem::take(&mut self.ended);
        let order = std::mem::take(&mut self.to_come);
        for (first, last) in order.into_iter().rev() {
            for (&index, &attempt) in rest.range(first..=last) {
                self.print(index, attempt)?;
            }
        }
        Ok(())
    }

    /// How many tasks were printed only in part.
    pub(crate) fn cut(&self) -> u64 {
        self.cut
    }

    fn print(&mut self, index: u32, attempt: u16) -> anyhow::Result<()> {
        if self.has_no_reader {
            return Ok(());
        }
        let (reader, key) = match self.kept.place(index) {
            Place::Here(reader, there) => (reader, key(there, attempt)),
            Place::Gone(run) => {
                self.cut += 1;
                say(format_args!("laboro: task {index}: its output was removed with run {run}"));
                return Ok(());
            }
        };
        let (mut out, mut err) = (data(), std::io::stderr().lock());
        for chunk in reader.read(key, Streams::Both) {
            let (stream, bytes) = chunk?;
            let written = match stream {
                Stream::Stdout => out.write_all(&bytes).and_then(|()| out.flush()),
                Stream::Stderr => err.write_all(&bytes),
                // Not printed.
                Stream::Result => Ok(()),
            };
            match written {
                // A reader that has gone away is no reason to stop the work.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                    self.has_no_reader = true;
                    return Ok(());
                }
                other => other.context("the outputs cannot be printed")?,
            }
        }
        drop((out, err));
        if let Some(end) = reader.end(key)?.filter(End::truncated) {
            self.cut += 1;
            let dropped = end.stdout.dropped + end.stderr.dropped;
            say(format_args!(
                "laboro: task {index}: {dropped} more bytes were not kept, and are missing here"
            ));
        }
        Ok(())
    }
}
