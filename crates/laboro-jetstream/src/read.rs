//! Reads a stream back: checks that nothing is missing or foreign between two messages, puts records together
//! from their parts, and adds them up.

use crate::message::{Head, Kind, Message};
use crate::options::About;
use crate::pen::Mark;
use crate::snapshot;
use crate::stream::{Bounds, Stream, Unclear};
use bytes::Bytes;
use laboro_journal::Replay;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// What was trimmed while it was read is covered by a newer snapshot, so that reading anew helps.
const TRIES: usize = 10;
const BEHIND: Duration = Duration::from_millis(10);
/// As for records in files.
const RECORD_BYTES_MAX: usize = 1 << 30;

#[derive(Debug, Clone, thiserror::Error)]
pub enum ReadError {
    #[error("message {wanted} of stream {stream} is missing, the next one there is {found}")]
    Gap { stream: &'static str, wanted: u64, found: u64 },

    #[error("message {sequence} of stream {stream}: {reason}")]
    Damaged { stream: &'static str, sequence: u64, reason: String },

    #[error("cannot read from NATS: {0}")]
    Unclear(String),
}

impl From<Unclear> for ReadError {
    fn from(unclear: Unclear) -> ReadError {
        ReadError::Unclear(unclear.0)
    }
}

/// Puts messages together again.
#[derive(Debug)]
pub(crate) struct Assembler {
    stream: &'static str,
    mark: Mark,
    last: Option<Head>,
    /// What the hub that writes told of itself.
    leader: Option<Arc<About>>,
    /// Of a record that is not whole yet.
    parts: Vec<u8>,
    of: Option<Head>,
}

impl Assembler {
    pub fn after(stream: &'static str, mark: Mark) -> Assembler {
        Assembler { stream, mark, last: None, leader: None, parts: Vec::new(), of: None }
    }

    pub fn mark(&self) -> Mark {
        self.mark
    }

    /// The head of the newest message; `None` if none was read yet.
    pub fn last(&self) -> Option<Head> {
        self.last
    }

    /// The next message, and the record that it completes, if it does.
    pub fn take(
        &mut self,
        sequence: u64,
        bytes: Bytes,
    ) -> Result<(Head, Option<Bytes>), ReadError> {
        let stream = self.stream;
        let damaged =
            |reason: &str| Err(ReadError::Damaged { stream, sequence, reason: reason.to_owned() });
        let wanted = self.mark.sequence + 1;
        if sequence != wanted {
            return Err(ReadError::Gap { stream, wanted, found: sequence });
        }
        let message = match Message::open(bytes) {
            Ok(message) => message,
            Err(reason) => return damaged(reason),
        };
        let head = message.head;
        if head.chain != self.mark.chain {
            return damaged("it does not follow the message before it");
        }
        let record = match head.kind {
            Kind::Part | Kind::Record if head.number != self.mark.number + 1 => {
                return damaged("its record has not the next number");
            }
            Kind::Part | Kind::Record => {
                if head.part == 0 {
                    // What is here already was left unfinished by a hub that is gone.
                    self.parts.clear();
                } else if !self.goes_on_with(&head) {
                    return damaged("a part of its record is missing");
                }
                match head.kind {
                    Kind::Record if head.part == 0 => Some(message.body),
                    _ => self.add(&head, &message.body),
                }
            }
            Kind::Alive => {
                self.leader = serde_json::from_slice(&message.body).ok().map(Arc::new);
                None
            }
            Kind::Bye => {
                self.leader = None;
                None
            }
            Kind::End => None,
        };
        if record.is_some() {
            self.of = None;
            self.mark.number = head.number;
        }
        if self.parts.len() > RECORD_BYTES_MAX {
            return damaged("its record is too large");
        }
        self.mark.sequence = sequence;
        self.mark.chain = message.check;
        self.last = Some(head);
        Ok((head, record))
    }

    /// Messages to take, as they come.
    pub async fn next<S: Stream>(&self, stream: &mut S) -> Result<Vec<(u64, Bytes)>, ReadError> {
        let wanted = self.mark.sequence + 1;
        let some = stream.read(wanted).await?;
        if some.is_empty() {
            let Bounds { first, .. } = stream.bounds().await?;
            if first > wanted {
                return Err(ReadError::Gap { stream: self.stream, wanted, found: first });
            }
            // The server that reads for us is behind the others.
            sleep(BEHIND).await;
        }
        Ok(some)
    }

    fn goes_on_with(&self, head: &Head) -> bool {
        self.of.is_some_and(|of| {
            (of.writer, of.number, of.part + 1) == (head.writer, head.number, head.part)
        })
    }

    fn add(&mut self, head: &Head, body: &[u8]) -> Option<Bytes> {
        self.parts.extend_from_slice(body);
        self.of = Some(*head);
        (head.kind == Kind::Record).then(|| std::mem::take(&mut self.parts).into())
    }
}

/// The ledger of a stream, as far as it was read.
#[derive(Debug)]
pub(crate) struct Reader {
    pub replay: Replay,
    assembler: Assembler,
    pub snapshot_bytes: u64,
    /// Read after the snapshot.
    pub messages: u64,
    pub bytes: u64,
}

impl Reader {
    /// As if nothing had ever been written.
    pub fn empty() -> Reader {
        let assembler = Assembler::after("journal", Mark::default());
        Reader { replay: Replay::default(), assembler, snapshot_bytes: 0, messages: 0, bytes: 0 }
    }

    /// The newest snapshot, and all after it up to the message `upto`, or to the end.
    pub async fn load<S: Stream>(
        journal: &mut S,
        snapshots: &mut S,
        upto: Option<u64>,
    ) -> Result<Reader, ReadError> {
        let mut tries = 1;
        loop {
            match Reader::try_load(journal, snapshots, upto).await {
                Err(ReadError::Gap { .. }) if tries < TRIES => tries += 1,
                loaded => return loaded,
            }
        }
    }

    async fn try_load<S: Stream>(
        journal: &mut S,
        snapshots: &mut S,
        upto: Option<u64>,
    ) -> Result<Reader, ReadError> {
        let (replay, mark, snapshot_bytes) = match snapshot::read(snapshots).await? {
            Some(found) => (found.replay, found.covers, found.bytes),
            None => (Replay::default(), Mark::default(), 0),
        };
        let assembler = Assembler::after("journal", mark);
        let mut reader = Reader { replay, assembler, snapshot_bytes, ..Reader::empty() };
        let upto = match upto {
            Some(upto) => upto,
            None => journal.bounds().await?.last,
        };
        if upto < mark.sequence {
            let (stream, wanted, found) = ("journal", mark.sequence, upto);
            return Err(ReadError::Gap { stream, wanted, found });
        }
        while reader.mark().sequence < upto {
            reader.read_some(journal, upto).await?;
        }
        Ok(reader)
    }

    pub fn mark(&self) -> Mark {
        self.assembler.mark()
    }

    /// Whose the newest message is; `None` if that is covered by the snapshot.
    pub fn last(&self) -> Option<Head> {
        self.assembler.last()
    }

    /// Where the hub that leads is. Told in the first message after every snapshot, so hardly ever unknown.
    pub fn leader(&self) -> Option<Arc<About>> {
        self.assembler.leader.clone()
    }

    /// Reads what has come, up to `upto`, and says how many messages that were.
    pub async fn read_some<S: Stream>(
        &mut self,
        journal: &mut S,
        upto: u64,
    ) -> Result<usize, ReadError> {
        let some = self.assembler.next(journal).await?;
        let mut count = 0;
        for (sequence, bytes) in some.into_iter().take_while(|(sequence, _)| *sequence <= upto) {
            self.messages += 1;
            self.bytes += bytes.len() as u64;
            count += 1;
            let (_, record) = self.assembler.take(sequence, bytes)?;
            if let Some(record) = record {
                self.replay.absorb(&record).map_err(|reason| ReadError::Damaged {
                    stream: "journal",
                    sequence,
                    reason,
                })?;
            }
        }
        Ok(count)
    }
}
