//! One message, stored right after another or not at all. Asks for the stream's own last sequence, never a
//! subject's, and never names messages: both were seen to let the wrong ones through.

use super::Nats;
use crate::stream::{NotStored, Unclear};
use async_nats::connection::State;
use async_nats::header::NATS_EXPECTED_LAST_SEQUENCE;
use async_nats::{HeaderMap, Request};
use bytes::Bytes;
use std::time::Duration;

/// For an answer. Whoever asks looks after this, so it may be short; not shorter than a slow disk.
const PUBLISH: Duration = Duration::from_secs(4);

/// What NATS calls a publish that came too late.
const WRONG_LAST_SEQUENCE: [u64; 2] = [10071, 10164];

#[derive(serde::Deserialize)]
#[serde(untagged)]
enum PublishAnswer {
    Error { error: Problem },
    Stored { seq: u64 },
}

#[derive(serde::Deserialize)]
struct Problem {
    #[serde(default)]
    err_code: u64,
    #[serde(default)]
    description: String,
}

impl Nats {
    pub async fn publish_after(
        &self,
        after: u64,
        subject: String,
        mut headers: HeaderMap,
        message: Bytes,
    ) -> Result<u64, NotStored> {
        // What is sent without a connection waits for one, and nobody could say for how long.
        if self.client.connection_state() != State::Connected {
            return Err(Unclear("there is no connection to NATS".to_owned()).into());
        }
        headers.insert(NATS_EXPECTED_LAST_SEQUENCE, after.to_string());
        let request = Request::new().headers(headers).payload(message).timeout(Some(PUBLISH));
        let answer = self.client.send_request(subject, request).await;
        let answer = answer.map_err(|error| Unclear(error.to_string()))?;
        match serde_json::from_slice(&answer.payload) {
            Ok(PublishAnswer::Stored { seq }) => Ok(seq),
            Ok(PublishAnswer::Error { error }) if WRONG_LAST_SEQUENCE.contains(&error.err_code) => {
                Err(NotStored::Refused(error.description))
            }
            Ok(PublishAnswer::Error { error }) => {
                Err(Unclear(format!("{} ({})", error.description, error.err_code)).into())
            }
            Err(error) => Err(Unclear(format!("an answer cannot be understood: {error}")).into()),
        }
    }
}
