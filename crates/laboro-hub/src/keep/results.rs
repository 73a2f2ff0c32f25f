//! Reading what tasks gave back, many at once, with how those ended that failed.

use super::{KeepError, Outputs};
use laboro_core::Outcome;
use laboro_journal::outputs::{KeptResult, Key, Reader, Stream, Wanted};

/// What the store knows of a task that has ended.
#[derive(Debug)]
pub(crate) struct TaskEnd {
    pub(crate) result: KeptResult,
    /// Of one that did not succeed, how its last attempt ended, where that is known.
    pub(crate) outcome: Option<Outcome>,
    /// Of one that failed without a result: the end of its standard error.
    pub(crate) words: Vec<u8>,
}

/// What a failure without a result is told with.
const WORDS_BYTES_MAX: usize = 4096;

impl Outputs {
    /// Tasks of one job, ascending. At least one of them, and no more than make up about so many bytes.
    pub(crate) async fn task_ends(
        &self,
        job: u32,
        mut wanted: Vec<Wanted>,
        bytes_max: usize,
    ) -> Result<Vec<TaskEnd>, KeepError> {
        let Some(first) = wanted.first().map(|wanted| wanted.index) else { return Ok(Vec::new()) };
        let (store, there) = self.of(first);
        let together = self.together_from(first);
        wanted.retain(|wanted| wanted.index - first < together);
        wanted.iter_mut().for_each(|wanted| wanted.index = there + (wanted.index - first));
        store.task_ends_here(job, wanted, bytes_max).await
    }

    async fn task_ends_here(
        &self,
        job: u32,
        wanted: Vec<Wanted>,
        bytes_max: usize,
    ) -> Result<Vec<TaskEnd>, KeepError> {
        // What a task gave back is written before it counts as done; how an attempt ended comes a little later.
        if wanted.iter().any(|wanted| !wanted.succeeded) {
            self.flush_all().await?;
        }
        self.with_reader(move |reader| {
            reader.refresh()?;
            let found = reader.results(job, &wanted, bytes_max)?;
            let both = found.into_iter().zip(wanted);
            both.map(|(result, wanted)| end(reader, job, wanted, result)).collect()
        })
        .await
    }
}

fn end(
    reader: &Reader,
    job: u32,
    wanted: Wanted,
    result: KeptResult,
) -> Result<TaskEnd, KeepError> {
    let mut end = TaskEnd { result, outcome: None, words: Vec::new() };
    if wanted.succeeded {
        return Ok(end);
    }
    let key = |attempt| Key { job, index: wanted.index, attempt };
    if let Some(ended) = reader.ends(key(0), key(u16::MAX))?.last() {
        end.outcome = Some(ended.end.ending.outcome());
        if end.result == KeptResult::Nothing {
            end.words = reader.tail(ended.key, Stream::Stderr, WORDS_BYTES_MAX).unwrap_or_default();
        }
    }
    Ok(end)
}
