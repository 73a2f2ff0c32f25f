//! Server-sent events as they come, one by one.

use super::ClientError;
use super::body::Download;
use crate::Event;

/// One event, and the id to resume after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerEvent {
    /// Its id, to resume after.
    pub id: Option<String>,
    /// What happened.
    pub event: Event,
}

/// Changes as they happen.
#[derive(Debug)]
pub struct EventStream {
    download: Download,
    buffer: Vec<u8>,
    id: Option<String>,
    data: String,
}

/// No event of ours is near this; whatever sends more is no hub.
const LINE_BYTES_MAX: usize = 1 << 20;

impl EventStream {
    pub(super) fn new(download: Download) -> EventStream {
        EventStream { download, buffer: Vec::new(), id: None, data: String::new() }
    }

    /// `None`: the hub has ended the stream.
    pub async fn next(&mut self) -> Result<Option<ServerEvent>, ClientError> {
        loop {
            while let Some(end) = self.buffer.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                let line = String::from_utf8_lossy(&line);
                if let Some(told) = self.take(line.trim_end_matches(['\r', '\n'])) {
                    return Ok(Some(told));
                }
            }
            match self.download.next().await? {
                None => return Ok(None),
                Some(bytes) if self.buffer.len() + bytes.len() > LINE_BYTES_MAX => {
                    return Err(self.download.malformed("an event without end"));
                }
                Some(bytes) => self.buffer.extend_from_slice(&bytes),
            }
        }
    }

    fn take(&mut self, line: &str) -> Option<ServerEvent> {
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            // What this program cannot read comes from a newer hub and is no event for it.
            let event = serde_json::from_str(&data).ok()?;
            return Some(ServerEvent { id: self.id.clone(), event });
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => self.id = Some(value.to_owned()),
            "data" if self.data.len() + value.len() <= LINE_BYTES_MAX => {
                if !self.data.is_empty() {
                    self.data.push('\n');
                }
                self.data.push_str(value);
            }
            _ => {}
        }
        None
    }
}
