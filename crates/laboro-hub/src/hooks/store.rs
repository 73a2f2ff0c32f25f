//! Deliveries and the place in the order of ended jobs, in a file of the hub's directory: a JSON object per line, each synced
//! before anything is done about it, and written anew when most lines say nothing any more. A line that was cut off by a
//! crash is dropped: nothing was done about it.

use crate::security::SecurityError;
use laboro_api::DeliveryState;
use laboro_core::{JobId, Time};
use laboro_net::secret_file;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// One thing that one receiver is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Delivery {
    pub number: u64,
    pub event: String,
    pub at_ms: u64,
    pub to: String,
    pub text: String,
    /// Empty when it was delivered: nobody needs it then.
    #[serde(default)]
    pub body: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// What signs it, if not what signs all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_file: Option<PathBuf>,
    #[serde(default)]
    pub state: DeliveryState,
    #[serde(default)]
    pub tries: u32,
    /// Not before.
    #[serde(default)]
    pub next_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Delivery {
    /// The same for every try.
    pub fn id(&self) -> String {
        format!("{}-{}", self.at_ms, self.number)
    }
}

/// The last job that was looked at, by when it ended.
pub(super) type Cursor = (Time, JobId);

#[derive(Serialize, Deserialize)]
struct Line {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cursor: Option<(u64, u32)>,
    /// New, or as they are now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    deliveries: Vec<Delivery>,
    #[serde(default, skip_serializing_if = "is_zero")]
    dropped: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[derive(Debug)]
pub(super) struct Store {
    path: PathBuf,
    file: Option<File>,
    lines: usize,
    pub cursor: Cursor,
    pub dropped: u64,
    all: BTreeMap<u64, Delivery>,
    /// How many of them wait.
    pending: usize,
    next: u64,
}

/// Deliveries that are over and can still be looked at.
const ENDED_KEPT: usize = 500;
const LINES_SPARE: usize = 500;

impl Store {
    /// `now` is where a hub begins that has no file yet: what ended before is not told.
    pub fn open(path: &Path, now: Time) -> Result<Store, SecurityError> {
        let mut store = Store {
            path: path.to_owned(),
            file: None,
            lines: 0,
            cursor: (now, JobId(u32::MAX)),
            dropped: 0,
            all: BTreeMap::new(),
            pending: 0,
            next: 1,
        };
        let text = match std::fs::read(path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(SecurityError::io(path, "read it")(error)),
        };
        let count = text.lines().count();
        for (at, line) in text.lines().enumerate() {
            match serde_json::from_str::<Line>(line) {
                Ok(line) => store.add(line),
                Err(_) if at + 1 == count => {}
                Err(error) => {
                    let why = format!(
                        "line {}: {error}; move the file away to start without what it has to deliver",
                        at + 1
                    );
                    return Err(SecurityError::malformed(path, why));
                }
            }
        }
        store.rewrite()?;
        Ok(store)
    }

    fn add(&mut self, line: Line) {
        if let Some((time, job)) = line.cursor {
            self.cursor = (Time(time), JobId(job));
        }
        self.dropped = self.dropped.max(line.dropped);
        for delivery in line.deliveries {
            self.next = self.next.max(delivery.number + 1);
            self.put(delivery);
        }
    }

    fn put(&mut self, delivery: Delivery) {
        self.pending += usize::from(delivery.state == DeliveryState::Pending);
        if let Some(before) = self.all.insert(delivery.number, delivery) {
            self.pending -= usize::from(before.state == DeliveryState::Pending);
        }
    }

    pub fn pending(&self) -> usize {
        self.pending
    }

    /// The newest first.
    pub fn all(&self) -> impl Iterator<Item = &Delivery> {
        self.all.values().rev()
    }

    pub fn get(&self, number: u64) -> Option<&Delivery> {
        self.all.get(&number)
    }

    /// Those that wait, the oldest first.
    pub fn waiting(&self) -> impl Iterator<Item = &Delivery> {
        self.all.values().filter(|one| one.state == DeliveryState::Pending)
    }

    /// New ones get their numbers here. All of it is on the disk when this returns.
    pub fn queue(
        &mut self,
        mut new: Vec<Delivery>,
        cursor: Option<Cursor>,
    ) -> Result<(), SecurityError> {
        for delivery in &mut new {
            delivery.number = self.next;
            self.next += 1;
        }
        self.write(Line {
            cursor: cursor.map(|(time, job)| (time.0, job.0)),
            deliveries: new,
            dropped: self.dropped,
        })
    }

    /// One as it is now.
    pub fn change(&mut self, delivery: Delivery) -> Result<(), SecurityError> {
        self.write(Line { cursor: None, deliveries: vec![delivery], dropped: 0 })
    }

    fn write(&mut self, line: Line) -> Result<(), SecurityError> {
        let mut text = serde_json::to_string(&line).expect("strings and numbers have a JSON form");
        text.push('\n');
        self.add(line);
        if self.lines > 2 * (self.pending + ENDED_KEPT) + LINES_SPARE || self.file.is_none() {
            return self.rewrite();
        }
        let file = self.file.as_mut().expect("there is one");
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_data());
        if let Err(error) = written {
            // What is in memory is written as a whole with the next change.
            self.file = None;
            return Err(SecurityError::io(&self.path, "write to it")(error));
        }
        self.lines += 1;
        Ok(())
    }

    fn rewrite(&mut self) -> Result<(), SecurityError> {
        let ended: Vec<u64> = (self.all.values())
            .filter(|one| one.state != DeliveryState::Pending)
            .map(|one| one.number)
            .collect();
        for number in &ended[..ended.len().saturating_sub(ENDED_KEPT)] {
            self.all.remove(number);
        }
        let (time, job) = self.cursor;
        let head =
            Line { cursor: Some((time.0, job.0)), deliveries: Vec::new(), dropped: self.dropped };
        let lines = std::iter::once(head).chain(self.all.values().map(|one| Line {
            cursor: None,
            deliveries: vec![one.clone()],
            dropped: 0,
        }));
        let mut text = String::new();
        self.lines = 0;
        for line in lines {
            text.push_str(
                &serde_json::to_string(&line).expect("strings and numbers have a JSON form"),
            );
            text.push('\n');
            self.lines += 1;
        }
        self.file = None;
        secret_file::replace(&self.path, &text)?;
        let open = File::options().append(true).open(&self.path);
        self.file = Some(open.map_err(SecurityError::io(&self.path, "open it"))?);
        Ok(())
    }
}
