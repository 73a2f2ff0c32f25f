//! Events that go on over lost connections: whoever follows them sees each once, or is told of a gap.

use super::told;
use laboro_api::Event;
use laboro_api::client::{Client, ClientError, EventStream};
use std::time::Duration;

pub(crate) struct Follow<'a> {
    client: &'a Client,
    path: String,
    stream: Option<EventStream>,
    last: Option<String>,
    /// A hub comes back, a run does not.
    comes_back: bool,
}

/// A hub that starts anew is back within this; whoever waits longer wants to be told.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(500);

impl<'a> Follow<'a> {
    pub(super) async fn start(
        client: &'a Client,
        job: Option<u32>,
        comes_back: bool,
    ) -> anyhow::Result<Follow<'a>> {
        let path = job.map_or("events".to_owned(), |job| format!("events?job={job}"));
        let stream = client.events(&path, None).await.map_err(told)?;
        Ok(Follow { client, path, stream: Some(stream), last: None, comes_back })
    }

    pub(crate) async fn next(&mut self) -> anyhow::Result<Event> {
        loop {
            if let Some(stream) = &mut self.stream {
                match stream.next().await {
                    Ok(Some(event)) => {
                        self.last = event.id.or(self.last.take());
                        return Ok(event.event);
                    }
                    Ok(None) | Err(ClientError::Broken { .. }) => self.stream = None,
                    Err(error) => return Err(told(error)),
                }
            }
            self.stream = Some(self.again().await?);
        }
    }

    async fn again(&self) -> anyhow::Result<EventStream> {
        let mut tries = 0;
        loop {
            match self.client.events(&self.path, self.last.as_deref()).await {
                Ok(stream) => return Ok(stream),
                Err(ClientError::Unreachable { .. } | ClientError::Broken { .. })
                    if self.comes_back && tries < TRIES =>
                {
                    tries += 1;
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(told(error)),
            }
        }
    }
}
