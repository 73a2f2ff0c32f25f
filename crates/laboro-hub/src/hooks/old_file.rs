//! `hooks.jsonl`, in which earlier versions kept deliveries: a JSON object per line, the later one of the same number holds. A last
//! line that was cut off by a crash is dropped: nothing was done about it. Read once, never written.

use super::store::{Delivery, Place};
use crate::security::SecurityError;
use laboro_core::{JobId, Time};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Deserialize)]
struct Line {
    cursor: Option<(u64, u32)>,
    /// New, or as they are now.
    #[serde(default)]
    deliveries: Vec<Delivery>,
    #[serde(default)]
    dropped: u64,
}

/// What it says.
pub(super) struct OldHooks {
    pub place: Option<Place>,
    pub deliveries: Vec<Delivery>,
}

/// What is in it, if it is there.
pub(super) fn read(path: &Path) -> Result<Option<OldHooks>, SecurityError> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(SecurityError::io(path, "read it")(error)),
    };
    let text = String::from_utf8_lossy(&bytes);
    let count = text.lines().count();
    let (mut cursor, mut dropped) = (None, 0);
    let mut all = BTreeMap::new();
    for (at, line) in text.lines().enumerate() {
        match serde_json::from_str::<Line>(line) {
            Ok(line) => {
                cursor = line.cursor.or(cursor);
                dropped = line.dropped.max(dropped);
                all.extend(line.deliveries.into_iter().map(|one| (one.number, one)));
            }
            Err(_) if at + 1 == count => {}
            Err(error) => {
                let at = at + 1;
                let why = format!(
                    "line {at}: {error}; move the file away to start without what it has to deliver"
                );
                return Err(SecurityError::malformed(path, why));
            }
        }
    }
    let place = cursor.map(|(time, job)| Place { cursor: (Time(time), JobId(job)), dropped });
    Ok(Some(OldHooks { place, deliveries: all.into_values().collect() }))
}
