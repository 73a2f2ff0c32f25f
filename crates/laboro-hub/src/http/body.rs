//! Bodies as they arrive: within their own limit, their time and the budget of all.

use super::Api;
use super::answer::Refused;
use super::budget::Room;
use super::entry::Visitor;
use super::extract::{drain, too_slow};
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use http_body_util::BodyExt;
use std::sync::Arc;

/// A whole body. Its room is given back with it.
pub(super) struct Sent {
    pub(super) bytes: Vec<u8>,
    pub(super) room: Room,
}

/// A body that must be there: nobody submits nothing on purpose.
impl FromRequest<Arc<Api>> for Sent {
    type Rejection = Refused;

    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Sent, Refused> {
        let sent = Sent::receive(request, api, api.services.limits.body_bytes).await;
        let sent = sent.map_err(|refused| match refused.reason() {
            "too_large" => refused.hint("send it to POST jobs/stream, one task per line"),
            _ => refused,
        })?;
        if sent.bytes.iter().all(u8::is_ascii_whitespace) {
            let detail = "the body is empty; a JSON object is expected: {...}";
            return Err(Refused::bad_request("no_body", detail));
        }
        Ok(sent)
    }
}

impl Sent {
    pub(super) async fn receive(
        request: Request,
        api: &Arc<Api>,
        bytes_max: usize,
    ) -> Result<Sent, Refused> {
        let visitor = request.extensions().get::<Visitor>();
        let room = api.budget.room(visitor.map_or("", |visitor| &visitor.who.id));
        let patience = api.services.limits.body;
        let mut body = request.into_body();
        let mut blocks = Blocks::default();
        let arrival = async {
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|error| broken(&error))?;
                let Ok(data) = frame.into_data() else { continue };
                if blocks.len + data.len() > bytes_max {
                    return Err(too_large(bytes_max));
                }
                room.grow(data.len()).await?;
                blocks.push(&data);
            }
            Ok(())
        };
        let arrived = tokio::select! {
            arrived = tokio::time::timeout(patience, arrival) => arrived,
            refused = room.must_go() => Ok(Err(refused)),
        };
        match arrived {
            Err(_) => return Err(too_slow(patience)),
            Ok(Ok(())) => {}
            Ok(Err(refused)) => {
                // What is thrown away takes no room.
                drop((room, blocks));
                drain(body, bytes_max).await;
                return Err(refused);
            }
        }
        room.complete()?;
        Ok(Sent { bytes: blocks.join(), room })
    }
}

fn broken(error: &axum::Error) -> Refused {
    Refused::bad_request("broken_body", error.to_string())
}

fn too_large(most: usize) -> Refused {
    let detail = format!("the body is larger than {most} bytes");
    Refused::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail)
}

/// Bytes in blocks of their own: pieces of a connection's buffer would keep all of it.
#[derive(Default)]
struct Blocks {
    blocks: Vec<Vec<u8>>,
    len: usize,
}

const BLOCK_BYTES: usize = 64 << 10;

impl Blocks {
    fn push(&mut self, mut data: &[u8]) {
        self.len += data.len();
        while !data.is_empty() {
            if self.blocks.last().is_none_or(|last| last.len() == BLOCK_BYTES) {
                self.blocks.push(Vec::new());
            }
            let last = self.blocks.last_mut().expect("just pushed");
            let (here, rest) = data.split_at(data.len().min(BLOCK_BYTES - last.len()));
            last.extend_from_slice(here);
            data = rest;
        }
    }

    /// In one piece. Each block is given back as it is copied.
    fn join(mut self) -> Vec<u8> {
        if self.blocks.len() == 1 {
            return self.blocks.remove(0);
        }
        let mut joined = Vec::with_capacity(self.len);
        for block in self.blocks {
            joined.extend_from_slice(&block);
        }
        joined
    }
}
