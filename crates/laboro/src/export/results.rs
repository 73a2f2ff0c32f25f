//! What the tasks of a job gave back, in the order of their numbers, as a stream that is read along with the tasks.

use super::row::TaskResult;
use crate::hub_client::Hub;
use anyhow::Context;
use laboro_api::client::Download;
use std::collections::VecDeque;

/// Ended by itself where a hub keeps no results.
pub(super) struct ResultStream {
    stream: Option<Download>,
    /// What came and is not yet a line.
    bytes: VecDeque<u8>,
    /// How many of them are known to hold no end of a line.
    searched: usize,
    /// The next one, if its turn has not come.
    ahead: Option<(u32, TaskResult)>,
}

impl ResultStream {
    pub(super) async fn of(
        hub: &Hub,
        job: u32,
        first: u32,
        last: u32,
    ) -> anyhow::Result<ResultStream> {
        let stream = hub.results(job, first, last).await?;
        Ok(ResultStream { stream, bytes: VecDeque::new(), searched: 0, ahead: None })
    }

    /// The result of this task; tasks are asked for in the order of their numbers.
    pub(super) async fn of_task(&mut self, task: u32) -> anyhow::Result<Option<TaskResult>> {
        loop {
            let next = match self.ahead.take() {
                Some(next) => Some(next),
                None => self.next().await?,
            };
            match next {
                Some((number, _)) if number < task => {}
                Some((number, result)) if number == task => return Ok(Some(result)),
                later => {
                    self.ahead = later;
                    return Ok(None);
                }
            }
        }
    }

    /// The next task that gave something back.
    pub(super) async fn next(&mut self) -> anyhow::Result<Option<(u32, TaskResult)>> {
        while let Some(line) = self.line().await? {
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let one: laboro_api::TaskResult =
                serde_json::from_slice(&line).context("the hub sent a result that is not JSON")?;
            if let Some(text) = &one.result {
                return Ok(Some((one.task, TaskResult::new(text))));
            }
        }
        Ok(None)
    }

    async fn line(&mut self) -> anyhow::Result<Option<Vec<u8>>> {
        loop {
            let end = self.bytes.iter().skip(self.searched).position(|&byte| byte == b'\n');
            if let Some(end) = end {
                let line = self.bytes.drain(..=self.searched + end).collect();
                self.searched = 0;
                return Ok(Some(line));
            }
            self.searched = self.bytes.len();
            let Some(stream) = &mut self.stream else { return Ok(None) };
            match stream.next().await? {
                Some(piece) => self.bytes.extend(&piece),
                None => {
                    self.stream = None;
                    self.searched = 0;
                    let rest: Vec<u8> = self.bytes.drain(..).collect();
                    return Ok((!rest.is_empty()).then_some(rest));
                }
            }
        }
    }
}
