//! What calls gave back, as the hub keeps it, and whether it was all there when their ends were reported. A call of this
//! world says in the words of its end how much it gave.

use crate::promise::{Broken, Kept, Promise};
use laboro_core::{Command, LeaseNo, LeaseRef};
use laboro_dialects::session::{Chunk, Stream};
use std::collections::HashMap;

#[derive(Default)]
pub(crate) struct Results {
    kept: HashMap<LeaseNo, u64>,
    /// Ends that were looked at.
    pub seen: u64,
}

/// The words with which a call ends that gave so much.
pub(crate) fn gave(bytes: u64) -> String {
    format!("gave {bytes} bytes")
}

impl Results {
    pub fn keep(&mut self, chunks: &[Chunk]) {
        for chunk in chunks.iter().filter(|chunk| chunk.stream == Stream::Result) {
            let kept = self.kept.entry(chunk.lease).or_default();
            let offset = chunk.offset.unwrap_or(*kept);
            // A piece behind a hole is not kept as part of the result.
            if offset <= *kept {
                *kept = (*kept).max(offset + chunk.bytes.len() as u64);
            }
        }
    }

    pub fn check(&mut self, command: &Command) -> Kept {
        let Command::Report(report) = command else { return Ok(()) };
        for result in &report.results {
            let words = result.message.as_deref().unwrap_or_default();
            let LeaseRef::Number { task, lease } = result.lease else { continue };
            let Some(given) = words.strip_prefix("gave ") else { continue };
            let kept = self.kept.get(&lease).copied().unwrap_or(0);
            self.seen += 1;
            if gave(kept) != words {
                let what = format!("{task} gave {given} and {kept} are kept");
                return Err(Broken::new(Promise::ResultsFirst, what));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use laboro_core::{JobId, Outcome, Report, TaskId, TaskResult, WorkerId, WorkerRef};

    fn told(results: &mut Results, bytes: u64) -> Kept {
        let lease = LeaseRef::Number { task: TaskId::new(JobId(1), 1), lease: LeaseNo(1) };
        let message = Some(gave(bytes).into());
        let result = TaskResult { lease, outcome: Outcome::Success, message, memo: None };
        let worker = WorkerRef::Id(WorkerId(1));
        results.check(&Command::Report(Report { worker, results: vec![result] }))
    }

    #[test]
    fn an_end_before_its_result_is_seen() {
        let mut results = Results::default();
        let chunk = |offset, length: usize| Chunk {
            task: TaskId::new(JobId(1), 1),
            lease: LeaseNo(1),
            attempt: 1,
            stream: Stream::Result,
            offset: Some(offset),
            bytes: Bytes::from(vec![0; length]),
        };
        assert!(told(&mut results, 5).is_err());
        results.keep(&[chunk(0, 3), chunk(0, 3)]);
        assert!(told(&mut results, 5).is_err());
        results.keep(&[chunk(4, 1)]);
        assert!(told(&mut results, 5).is_err(), "a hole is not a result");
        results.keep(&[chunk(3, 2)]);
        assert_eq!(told(&mut results, 5), Ok(()));
    }
}
