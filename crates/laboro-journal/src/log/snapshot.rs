//! Snapshot files: history up to one record, condensed, in chunks. A snapshot has its name only
//! once all of it is on the disk, and ends with a record that says how much there should be.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crc32c::crc32c_append;

use super::LogError;
use super::directory::{NumberedFile, create_file, numbered, remove, rename, sync_dir};
use super::format::{
    FileHead, FileKind, HEAD_BYTES, RECORD_BYTES_CEILING, RecordKind, encode_record, u32_at, u64_at,
};
use super::scan::{Expected, Next, Source, next, payload};
use super::steps::Steps;

const BUFFER_BYTES: usize = 256 << 10;

/// A snapshot that was read to its end and found sound.
#[derive(Debug, Clone)]
pub(super) struct Snapshot {
    pub file: NumberedFile,
    pub head: FileHead,
    pub bytes: u64,
    pub chunks: u64,
}

impl Snapshot {
    /// Streams the chunks; an error of `visit` ends it.
    pub fn read(
        file: &NumberedFile,
        visit: &mut dyn FnMut(&[u8]) -> Result<(), String>,
    ) -> Result<Snapshot, LogError> {
        let (path, number) = (&file.path, file.number);
        let mut source = Source::open(file)?;
        let head = source.head(FileKind::Snapshot)?;
        if head.number != number {
            return Err(LogError::corrupt(path, 0, "the file's name and its head disagree"));
        }
        let (mut at, mut total) = (HEAD_BYTES as u64, Total::default());
        let mut expected = Expected { salt: head.salt, number: 1, chain: head.chain };
        loop {
            let record = match next(&mut source, at, expected)? {
                Next::Record(record) => record,
                Next::Nothing => {
                    return Err(LogError::corrupt(path, at, "the snapshot ends without its end"));
                }
                Next::Broken(reason) => return Err(LogError::corrupt(path, at, reason)),
            };
            let bytes = payload(&mut source, at, &record)?.unwrap_or_default();
            match record.kind {
                RecordKind::Chunk => {
                    total.add(bytes);
                    visit(bytes).map_err(|reason| LogError::Replay {
                        file: path.clone(),
                        number,
                        reason,
                    })?;
                }
                RecordKind::End if Total::decode(bytes) == Some(total) => {
                    let bytes = at + record.stride();
                    return Ok(Snapshot { file: file.clone(), head, bytes, chunks: total.count });
                }
                RecordKind::End | RecordKind::Batch => {
                    return Err(LogError::corrupt(path, at, "the snapshot's sums do not match"));
                }
            }
            at += record.stride();
            expected.number += 1;
            expected.chain = record.check;
        }
    }
}

#[derive(Debug)]
pub(super) struct SnapshotWriter {
    dir: PathBuf,
    temporary: PathBuf,
    file: File,
    head: FileHead,
    buffer: Vec<u8>,
    total: Total,
    chain: u32,
    bytes: u64,
}

impl SnapshotWriter {
    pub fn create(dir: &Path, head: FileHead) -> Result<SnapshotWriter, LogError> {
        let temporary = dir.join(format!("{:020}.snapshot.tmp", head.number));
        // One that was left behind is not written over: what a failed sync was about may be lost for good, whatever
        // a later one says.
        remove(&temporary)?;
        let file = create_file(&temporary)?;
        let buffer = head.encode().to_vec();
        let (total, chain, bytes) = (Total::default(), head.chain, buffer.len() as u64);
        Ok(SnapshotWriter {
            dir: dir.to_owned(),
            temporary,
            file,
            head,
            buffer,
            total,
            chain,
            bytes,
        })
    }

    pub fn push(&mut self, chunk: &[u8]) -> io::Result<()> {
        if chunk.len() > RECORD_BYTES_CEILING {
            let text = format!("a snapshot chunk of {} bytes is too large", chunk.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        self.total.add(chunk);
        self.record(RecordKind::Chunk, self.total.count, chunk)
    }

    /// The only way to the final name. After this a power cut cannot take the snapshot away.
    pub fn finish(mut self, steps: &Steps) -> Result<u64, LogError> {
        self.complete(steps).inspect_err(|_| {
            // On a full disk somebody needs the room. What cannot be removed now is when the log is next opened.
            let _ = remove(&self.temporary);
        })
    }

    fn complete(&mut self, steps: &Steps) -> Result<u64, LogError> {
        let end = self.total.encode();
        let doing = "write the snapshot";
        self.record(RecordKind::End, self.total.count + 1, &end)
            .and_then(|()| self.flush())
            .map_err(LogError::io(&self.temporary, doing))?;
        self.file.sync_all().map_err(LogError::io(&self.temporary, "sync the snapshot"))?;
        steps.reached("snapshot synced");
        rename(&self.temporary, &numbered(&self.dir, FileKind::Snapshot, self.head.number))?;
        steps.reached("snapshot renamed");
        sync_dir(&self.dir)?;
        steps.reached("snapshot durable");
        Ok(self.bytes)
    }

    pub fn discard(self) -> Result<(), LogError> {
        remove(&self.temporary)
    }

    fn record(&mut self, kind: RecordKind, number: u64, payload: &[u8]) -> io::Result<()> {
        let before = self.buffer.len();
        self.chain =
            encode_record(&mut self.buffer, self.head.salt, kind, number, self.chain, payload);
        self.bytes += (self.buffer.len() - before) as u64;
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

/// What the end record says about all chunks before it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Total {
    count: u64,
    bytes: u64,
    crc: u32,
}

impl Total {
    fn add(&mut self, chunk: &[u8]) {
        self.count += 1;
        self.bytes += chunk.len() as u64;
        self.crc = crc32c_append(self.crc, chunk);
    }

    fn encode(self) -> [u8; 20] {
        let mut bytes = [0; 20];
        bytes[..8].copy_from_slice(&self.count.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[16..].copy_from_slice(&self.crc.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Total> {
        (bytes.len() == 20).then(|| Total {
            count: u64_at(bytes, 0),
            bytes: u64_at(bytes, 8),
            crc: u32_at(bytes, 16),
        })
    }
}
