//! The one that reads, beside a writer or long after it. It sees what was flushed when it last
//! looked, and searches: of sealed segments it holds a few words each, of the newest its entries.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::index::{Entry, Index};
use super::record::{self, Kind};
use super::scan::{Damage, Scan};
use super::segment::{self, Broken};
use super::table::Table;
use super::walk::{Chunks, Follow, Walk};
use super::{End, EndedAttempt, Error, Key, Stream, Streams};

/// Finds what tasks printed.
#[derive(Debug)]
pub struct Reader {
    pub(super) dir: PathBuf,
    /// Ascending by number. The last one may still grow.
    pub(super) segments: Vec<StoredSegment>,
}

#[derive(Debug)]
pub(super) enum StoredSegment {
    Indexed(Index),
    Scanned {
        scan: Scan,
        table: Table,
    },
    /// Its head is damaged, and without the salt in it no record can be told from noise.
    Unreadable {
        number: u32,
    },
}

impl Reader {
    /// Opens a store and takes in all that was flushed to it so far.
    pub fn open(dir: impl AsRef<Path>) -> Result<Reader, Error> {
        let dir = dir.as_ref();
        let mut reader = Reader { dir: dir.to_owned(), segments: Vec::new() };
        for number in segment::numbers(dir, "out")? {
            reader.push(number)?;
        }
        reader.refresh()?;
        Ok(reader)
    }

    /// Takes in what was flushed since. Costs a few calls to the system when there is nothing.
    pub fn refresh(&mut self) -> Result<(), Error> {
        loop {
            // First this: when a segment has a successor, nothing is added to it any more, so the
            // look at its end that follows is the last one needed.
            let successor = self.successor()?;
            if let Some(last) = self.segments.last_mut() {
                last.catch_up()?;
            }
            let Some(number) = successor else { return Ok(()) };
            self.use_indexes()?;
            self.push(number)?;
        }
    }

    /// What an attempt wrote, in order of arrival. If attempts were counted anew and the same one ran again
    /// after its end, only what it wrote since. A damaged or missing piece is an error in its
    /// place, and what follows it still comes.
    #[must_use]
    pub fn read(&self, key: Key, streams: Streams) -> Chunks<'_> {
        Chunks::new(self, Walk::new(self, key, streams))
    }

    /// A place in an attempt's output from which to ask for more, again and again.
    #[must_use]
    pub fn follow(&self, key: Key, streams: Streams) -> Follow {
        Follow::new(Walk::new(self, key, streams))
    }

    /// How an attempt ended, or `None` if it has not.
    pub fn end(&self, key: Key) -> Result<Option<End>, Error> {
        for segment in self.segments.iter().rev() {
            let entries = segment.find(&self.dir, key, key, 0)?;
            if let Some(entry) = entries.iter().rfind(|entry| entry.kind == Kind::End)
                && let Some((header, body)) = self.record(segment, entry)?
            {
                let end = record::end(&header, &body);
                return end.map(Some).ok_or_else(|| self.damaged(segment, entry));
            }
        }
        Ok(None)
    }

    /// How the attempts with keys from `first` to `last` ended, by key. Of one that ended twice, the last
    /// end counts. Damaged ones are left out.
    pub fn ends(&self, first: Key, last: Key) -> Result<Vec<EndedAttempt>, Error> {
        let mut ends = BTreeMap::new();
        for segment in &self.segments {
            let mut entries = segment.find(&self.dir, first, last, 0)?;
            entries.retain(|entry| entry.kind == Kind::End);
            if entries.is_empty() {
                continue;
            }
            let (file, salt) = match segment::open(&self.dir, segment.number()) {
                // Forgotten since.
                Err(error) if error.is_gone() => continue,
                opened => opened?,
            };
            for entry in &entries {
                let read = segment::read_record(&file, salt, &self.dir, segment.number(), entry);
                let (header, body) = match read {
                    Err(Broken { error: Error::Damaged { .. }, .. }) => continue,
                    read => read.map_err(|broken| broken.error)?,
                };
                if let Some((end, worker)) = record::end_by(&header, &body) {
                    ends.insert(entry.key(), EndedAttempt { key: entry.key(), end, worker });
                }
            }
        }
        Ok(ends.into_values().collect())
    }

    /// The last bytes of one stream, at most `bytes_max`.
    pub fn tail(&self, key: Key, stream: Stream, bytes_max: usize) -> Result<Vec<u8>, Error> {
        let mut bodies = Vec::new();
        let mut wanted = bytes_max;
        let mut follower = None;
        'segments: for segment in self.segments.iter().rev() {
            let mut entries = segment.find(&self.dir, key, key, 0)?;
            entries.retain(|entry| entry.kind == Kind::Chunk(stream));
            for entry in entries.iter().rev() {
                if wanted == 0 {
                    break 'segments;
                }
                let Some((header, mut body)) = self.record(segment, entry)? else { continue };
                let to = header.mark.saturating_add(body.len() as u64);
                if let Some(follower) = follower.replace(header.mark)
                    && follower > to
                {
                    return Err(Error::Missing { key, stream, from: to, to: follower });
                }
                body.drain(..body.len().saturating_sub(wanted));
                wanted -= body.len();
                bodies.push(body);
            }
        }
        bodies.reverse();
        Ok(bodies.concat())
    }

    /// The attempts of a task that have output or an end, ascending.
    pub fn attempts(&self, job: u32, index: u32) -> Result<Vec<u16>, Error> {
        let (first, last) = (Key { job, index, attempt: 0 }, Key { job, index, attempt: u16::MAX });
        let mut attempts = Vec::new();
        for segment in &self.segments {
            let entries = segment.find(&self.dir, first, last, 0)?;
            attempts.extend(entries.iter().map(|entry| entry.key().attempt));
            attempts.sort_unstable();
            attempts.dedup();
        }
        Ok(attempts)
    }

    /// Stretches without records that were met while scanning. What lay there and was part of an
    /// attempt's output is reported by `read` too, as missing.
    pub fn damage(&self) -> impl Iterator<Item = Damage> {
        self.segments.iter().flat_map(|segment| match segment {
            StoredSegment::Indexed(_) => Vec::new(),
            StoredSegment::Scanned { scan, .. } => scan.damage.clone(),
            StoredSegment::Unreadable { number } => {
                vec![Damage { file: segment::path(&self.dir, *number), from: 0, to: 0 }]
            }
        })
    }

    /// The segment after the last one we know. `forget` leaves holes in the numbers, which only a
    /// look at the directory shows; it is needed only when the one we know is sealed or gone.
    fn successor(&self) -> Result<Option<u32>, Error> {
        let Some(last) = self.segments.last().map(StoredSegment::number) else {
            return Ok(segment::numbers(&self.dir, "out")?.first().copied());
        };
        let exists = |path: PathBuf| path.try_exists().map_err(Error::at(&path));
        if exists(segment::path(&self.dir, last + 1))? {
            return Ok(Some(last + 1));
        }
        if exists(segment::index_path(&self.dir, last))? || !exists(segment::path(&self.dir, last))?
        {
            return Ok(segment::numbers(&self.dir, "out")?.into_iter().find(|n| *n > last));
        }
        Ok(None)
    }

    fn push(&mut self, number: u32) -> Result<(), Error> {
        match StoredSegment::open(&self.dir, number) {
            Ok(segment) => self.segments.push(segment),
            Err(Error::Damaged { .. }) => self.segments.push(StoredSegment::Unreadable { number }),
            // Forgotten between our look at the directory and now.
            Err(error) if error.is_gone() => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// An index is written after the next segment has begun, so it may not have been there before.
    fn use_indexes(&mut self) -> Result<(), Error> {
        for segment in &mut self.segments {
            if let StoredSegment::Scanned { scan, .. } = segment
                && let Some(index) = Index::load(&self.dir, scan.number, scan.salt)?
            {
                *segment = StoredSegment::Indexed(index);
            }
        }
        Ok(())
    }

    /// `None` when the segment was forgotten since.
    fn record(
        &self,
        segment: &StoredSegment,
        entry: &Entry,
    ) -> Result<Option<(record::Header, Vec<u8>)>, Error> {
        match segment::open(&self.dir, segment.number()) {
            Err(error) if error.is_gone() => Ok(None),
            Err(error) => Err(error),
            Ok((file, salt)) => {
                segment::read_record(&file, salt, &self.dir, segment.number(), entry)
                    .map(Some)
                    .map_err(|broken| broken.error)
            }
        }
    }

    fn damaged(&self, segment: &StoredSegment, entry: &Entry) -> Error {
        Error::Damaged {
            file: segment::path(&self.dir, segment.number()),
            offset: u64::from(entry.offset),
            what: "closing record is invalid",
        }
    }
}

impl StoredSegment {
    fn open(dir: &Path, number: u32) -> Result<StoredSegment, Error> {
        let scan = Scan::open(dir, number)?;
        if let Some(index) = Index::load(dir, number, scan.salt)? {
            return Ok(StoredSegment::Indexed(index));
        }
        let mut segment = StoredSegment::Scanned { scan, table: Table::default() };
        segment.catch_up()?;
        Ok(segment)
    }

    fn catch_up(&mut self) -> Result<(), Error> {
        if let StoredSegment::Scanned { scan, table } = self {
            scan.look_again();
            let end = scan.file_end()?;
            while let Some((entry, _)) = scan.next(end)? {
                if entry.kind != Kind::Carry {
                    table.push(entry);
                }
            }
            table.sort_if_due();
        }
        Ok(())
    }

    pub fn number(&self) -> u32 {
        match self {
            StoredSegment::Indexed(index) => index.number,
            StoredSegment::Scanned { scan, .. } => scan.number,
            StoredSegment::Unreadable { number } => *number,
        }
    }

    /// The offset up to which `find` finds everything there will ever be.
    pub fn known_to(&self) -> u64 {
        match self {
            StoredSegment::Scanned { scan, .. } => scan.at,
            StoredSegment::Indexed(_) | StoredSegment::Unreadable { .. } => u64::MAX,
        }
    }

    /// The entries of some keys from an offset on. In order of arrival within a key.
    pub fn find(&self, dir: &Path, first: Key, last: Key, from: u64) -> Result<Vec<Entry>, Error> {
        match self {
            StoredSegment::Scanned { table, .. } => {
                let late = |entry: &&Entry| u64::from(entry.offset) >= from;
                Ok(table.find(first, last).filter(late).copied().collect())
            }
            StoredSegment::Indexed(index) => match index.find(dir, first, last) {
                // Forgotten since.
                Err(error) if error.is_gone() => Ok(Vec::new()),
                Err(error) => Err(error),
                Ok(mut entries) => {
                    entries.retain(|entry| u64::from(entry.offset) >= from);
                    Ok(entries)
                }
            },
            StoredSegment::Unreadable { .. } => Ok(Vec::new()),
        }
    }
}
