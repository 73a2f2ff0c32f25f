//! A body as lines, however it was cut into pieces. A line is bounded, and so is the wait for the next piece.

use super::answer::Refused;
use super::budget::Room;
use super::extract::too_slow;
use axum::body::Body;
use axum::http::StatusCode;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use std::time::Duration;

pub(super) struct Lines {
    body: Body,
    room: Room,
    buffer: BytesMut,
    /// No newline is before this place.
    searched: usize,
    line_bytes_max: usize,
    patience: Duration,
    /// Of the line given last, from 1.
    pub(super) number: u64,
    is_over: bool,
}

/// Why there is no next line.
pub(super) enum LineTrouble {
    /// The connection broke, or the client fell silent.
    BrokenOff(Refused),
    /// The client sent what it should not.
    Wrong(Refused),
}

impl Lines {
    pub(super) fn new(body: Body, room: Room, line_bytes_max: usize, patience: Duration) -> Lines {
        Lines {
            body,
            room,
            buffer: BytesMut::new(),
            searched: 0,
            line_bytes_max,
            patience,
            number: 0,
            is_over: false,
        }
    }

    /// The next line that is not blank. `None`: the body ended as it should.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, LineTrouble> {
        loop {
            let line = match self.cut() {
                Some(line) => line,
                None if self.is_over && self.buffer.is_empty() => return Ok(None),
                None if self.is_over => {
                    self.searched = 0;
                    self.buffer.split().freeze()
                }
                None => {
                    self.read().await?;
                    continue;
                }
            };
            self.number += 1;
            if !line.trim_ascii().is_empty() {
                return Ok(Some(line));
            }
        }
    }

    /// The lines that were given are done with.
    pub(super) fn release(&self) {
        self.room.shrink_to(self.buffer.len());
    }

    /// What is left of it, for whoever wants to throw it away.
    pub(super) fn into_body(self) -> Body {
        self.body
    }

    fn cut(&mut self) -> Option<Bytes> {
        let found = self.buffer[self.searched..].iter().position(|&byte| byte == b'\n');
        match found {
            Some(at) => {
                let line = self.buffer.split_to(self.searched + at + 1).freeze();
                self.searched = 0;
                Some(line)
            }
            None => {
                self.searched = self.buffer.len();
                None
            }
        }
    }

    async fn read(&mut self) -> Result<(), LineTrouble> {
        if self.buffer.len() > self.line_bytes_max {
            let (number, most) = (self.number + 1, self.line_bytes_max);
            let detail = format!("line {number} is longer than {most} bytes");
            let refused = Refused::new(StatusCode::PAYLOAD_TOO_LARGE, "line_too_long", detail);
            return Err(LineTrouble::Wrong(refused));
        }
        let frame = tokio::select! {
            frame = tokio::time::timeout(self.patience, self.body.frame()) => frame,
            refused = self.room.must_go() => return Err(LineTrouble::BrokenOff(refused)),
        };
        match frame {
            Err(_) => Err(LineTrouble::BrokenOff(too_slow(self.patience))),
            Ok(None) => {
                self.is_over = true;
                Ok(())
            }
            Ok(Some(Err(error))) => {
                let refused = Refused::bad_request("broken_body", error.to_string());
                Err(LineTrouble::BrokenOff(refused))
            }
            Ok(Some(Ok(frame))) => {
                if let Ok(data) = frame.into_data() {
                    let grown = tokio::time::timeout(self.patience, self.room.grow(data.len()));
                    let grown = grown.await.unwrap_or_else(|_| Err(too_slow(self.patience)));
                    grown.map_err(LineTrouble::BrokenOff)?;
                    self.buffer.extend_from_slice(&data);
                }
                Ok(())
            }
        }
    }
}
