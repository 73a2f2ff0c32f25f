//! Numbers attempts as a person counts them: every time a task was started, over all runs of a job. The hub
//! counts only what failed or was lost, so a task that was stopped, or retried by request, would get a number
//! whose output is already in the store.

use anyhow::Context;
use laboro_journal::outputs::Reader;
use std::collections::HashMap;
use std::path::Path;

pub(crate) struct Attempts {
    /// What earlier runs left, also one whose journal is lost.
    earlier: Reader,
    /// The latest attempt of each task that this run started and that has not ended for good.
    begun: HashMap<u32, u16>,
}

impl Attempts {
    /// Knows what is in the store now, and need not know what comes.
    pub(crate) fn open(outputs: &Path) -> anyhow::Result<Attempts> {
        let earlier = Reader::open(outputs).context("the outputs cannot be read")?;
        Ok(Attempts { earlier, begun: HashMap::new() })
    }

    /// The number of the attempt that begins now.
    pub(crate) fn begin(&mut self, index: u32, hub_says: u16) -> anyhow::Result<u16> {
        let before = match self.begun.get(&index) {
            Some(&begun) => begun,
            None => self.earlier.attempts(super::JOB.0, index)?.last().copied().unwrap_or(0),
        };
        let number = hub_says.max(before.saturating_add(1));
        self.begun.insert(index, number);
        Ok(number)
    }

    /// The attempt did not begin after all.
    pub(crate) fn take_back(&mut self, index: u32, number: u16) {
        self.begun.insert(index, number.saturating_sub(1));
    }

    pub(crate) fn ended_for_good(&mut self, index: u32) {
        self.begun.remove(&index);
    }
}
