//! The one that writes: limits, rolling from segment to segment, forgetting. It remembers running
//! attempts and the segment it fills; what has ended is on disk only.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::ops::RangeInclusive;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use laboro_core::CALL_BYTES_MAX;

use super::active::Active;
use super::index::{ENTRY_BYTES, Index};
use super::jobs::Jobs;
use super::record::{self, BODY_BYTES_MAX, HEADER_BYTES, Kind};
use super::scan::Scan;
use super::{Amount, Amounts, End, Ending, Error, Key, Stream};
use super::{forgotten, recover, segment};

/// How much to keep, and in what pieces.
#[derive(Clone, Debug)]
pub struct Config {
    /// Kept of each stream of an attempt; what follows is counted and dropped. Each stream has its
    /// own, so that a flood on stdout does not cost the words on stderr that explain it.
    pub stream_bytes_max: u64,
    /// Once the store has this size on disk, new output is counted and dropped. Closing records
    /// are kept all the same.
    pub total_bytes_max: Option<u64>,
    /// A segment is sealed at this size. Values outside 4 KiB to 2 GiB are moved to the nearer end.
    pub segment_bytes: u64,
    /// A segment is sealed at this many records, which bounds the writer's memory: 16 bytes each.
    pub segment_records_max: usize,
    /// A flush waits until results are on the disk: whoever counts a task as done then has its result too, also
    /// after a power cut.
    pub sync_results: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            stream_bytes_max: 64 << 20,
            total_bytes_max: None,
            segment_bytes: 256 << 20,
            segment_records_max: 1 << 20,
            sync_results: false,
        }
    }
}

/// Writes what tasks print.
#[derive(Debug)]
pub struct Writer {
    dir: PathBuf,
    config: Config,
    pub(super) active: Active,
    /// Attempts with output and without an end.
    running: HashMap<Key, Amounts>,
    sealed: Vec<SealedSegment>,
    sealed_bytes: u64,
    forgotten: Jobs,
    has_lost: bool,
    /// Results that may not be on the disk yet.
    has_unsynced_result: bool,
    /// Segments from this number on may have bytes that are not on the disk yet.
    unsynced_from: u32,
    body: Vec<u8>,
    // Released when the writer is dropped or its process dies.
    _lock: File,
}

/// An error that came in the middle: so many bytes are dealt with, the others were not looked at.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct NotTaken {
    pub taken: usize,
    pub error: Error,
}

/// What becomes of the next bytes of a stream: so many are kept, so many after them lost, and the rest dropped.
struct StreamRoom {
    kept: u64,
    lost: u64,
}

#[derive(Debug)]
struct SealedSegment {
    number: u32,
    bytes: u64,
    jobs: Jobs,
}

impl Writer {
    /// Opens a store, or makes one, and repairs what a crash left: cuts a torn tail, rebuilds
    /// missing indexes. At most one writer at a time.
    pub fn open(dir: impl AsRef<Path>, config: Config) -> Result<Writer, Error> {
        let dir = dir.as_ref();
        make_private(dir).map_err(Error::at(dir))?;
        let lock = recover::lock(dir)?;
        let config = Config {
            segment_bytes: config.segment_bytes.clamp(4 << 10, 2 << 30),
            segment_records_max: config.segment_records_max.clamp(1, 1 << 24),
            ..config
        };
        recover::remove_leftovers(dir)?;

        let mut numbers = segment::numbers(dir, "out")?;
        let mut running = HashMap::new();
        let active = match numbers.last() {
            None => Active::create(dir, 1, running.iter())?,
            Some(&newest) => match Scan::open(dir, newest) {
                Ok(scan) => {
                    numbers.pop();
                    recover::resume(dir, scan, &mut running)?
                }
                // Nothing in it can be trusted; it stays for whoever wants to look.
                Err(Error::Damaged { .. }) => Active::create(dir, newest + 1, running.iter())?,
                Err(error) => return Err(error),
            },
        };
        let mut writer = Writer {
            dir: dir.to_owned(),
            config,
            unsynced_from: numbers.first().copied().unwrap_or(active.number),
            active,
            has_lost: running.values().any(Amounts::has_lost),
            running,
            has_unsynced_result: false,
            sealed: Vec::with_capacity(numbers.len()),
            sealed_bytes: 0,
            forgotten: forgotten::load(dir)?,
            body: Vec::new(),
            _lock: lock,
        };
        writer.running.retain(|key, _| !writer.forgotten.contains(key.job));
        for number in numbers {
            writer.adopt(number)?;
        }
        writer.sweep()?;
        Ok(writer)
    }

    /// Takes what an attempt wrote. It is on its way to the file when the buffer is full or
    /// `flush` is called. Nothing may follow the attempt's end: that is not remembered. After an
    /// error, what could not be taken counts as lost.
    pub fn append(&mut self, key: Key, stream: Stream, bytes: &[u8]) -> Result<(), Error> {
        self.offer(key, stream, bytes).map_err(|NotTaken { taken, error }| {
            if !matches!(error, Error::Forgotten { .. }) {
                self.lose(key, stream, (bytes.len() - taken) as u64);
            }
            error
        })
    }

    /// The same for one who can offer the rest again.
    pub fn offer(&mut self, key: Key, stream: Stream, bytes: &[u8]) -> Result<(), NotTaken> {
        if bytes.is_empty() {
            return Ok(());
        }
        let mut amount = match self.running.get(&key) {
            Some(amounts) => amounts.of(stream),
            None => {
                self.refuse_forgotten(key).map_err(|error| NotTaken { taken: 0, error })?;
                self.running.entry(key).or_default().of(stream)
            }
        };
        let room = self.room(stream, &amount);
        let mut taken = 0;
        let mut result = Ok(());
        let kept = room.kept.min(bytes.len() as u64) as usize;
        while taken < kept {
            match self.put_chunk(key, stream, amount.kept, &bytes[taken..kept]) {
                Ok(put) => {
                    amount.kept += put as u64;
                    taken += put;
                }
                Err(error) => {
                    result = Err(NotTaken { taken, error });
                    break;
                }
            }
        }
        if result.is_ok() {
            let rest = (bytes.len() - kept) as u64;
            let lost = room.lost.min(rest);
            amount.lost += lost;
            amount.dropped += rest - lost;
            self.has_lost |= lost > 0;
        }
        *self.running.entry(key).or_default().of_mut(stream) = amount;
        self.has_unsynced_result |= stream == Stream::Result;
        result
    }

    /// Something that an attempt wrote will never be here.
    pub fn lose(&mut self, key: Key, stream: Stream, bytes: u64) {
        if bytes > 0 && !self.forgotten.contains(key.job) {
            let amount = self.running.entry(key).or_default().of_mut(stream);
            amount.lost = amount.lost.saturating_add(bytes);
            self.has_lost = true;
        }
    }

    /// Gives up the output that is not in the file yet, and counts it as lost. Ends stay to be written. Says how many
    /// bytes that were.
    pub fn discard(&mut self) -> Result<u64, Error> {
        let mut bytes = 0;
        let mut gone: HashMap<Key, Amounts> = HashMap::new();
        let mut body = Vec::new();
        for (header, written) in self.active.take_unwritten()? {
            match header.kind {
                Kind::Chunk(stream) => {
                    bytes += u64::from(header.length);
                    gone.entry(header.key).or_default().of_mut(stream).lost +=
                        u64::from(header.length);
                }
                Kind::End => {
                    let Some((mut end, worker)) = record::end_by(&header, &written) else {
                        continue;
                    };
                    let gone = gone.remove(&header.key).unwrap_or_default();
                    end.stdout.lose(gone.stdout.lost);
                    end.stderr.lose(gone.stderr.lost);
                    end.result.lose(gone.result.lost);
                    let worker = worker.as_ref().map(|worker| (worker.number, &worker.name[..]));
                    let header = record::end_header(header.key, &end, worker, &mut body);
                    self.active.push_end(&header, &body);
                }
                Kind::Carry => {}
            }
        }
        for (key, gone) in gone {
            let amounts = self.running.entry(key).or_default();
            amounts.stdout.lose(gone.stdout.lost);
            amounts.stderr.lose(gone.stderr.lost);
            amounts.result.lose(gone.result.lost);
        }
        self.has_lost |= bytes > 0;
        Ok(bytes)
    }

    /// Whether something was lost since this was opened, or of an attempt that was running then.
    #[must_use]
    pub fn has_lost(&self) -> bool {
        self.has_lost
    }

    /// Closes an attempt, and says what was written down.
    pub fn end(&mut self, key: Key, ending: Ending) -> Result<End, Error> {
        self.put_end(key, ending, None)
    }

    /// The same with the number and the name of the worker that ran it.
    pub fn end_by(
        &mut self,
        key: Key,
        ending: Ending,
        (number, name): (u32, &[u8]),
    ) -> Result<End, Error> {
        self.put_end(key, ending, Some((number, name)))
    }

    fn put_end(
        &mut self,
        key: Key,
        ending: Ending,
        worker: Option<(u32, &[u8])>,
    ) -> Result<End, Error> {
        let amounts = match self.running.get(&key) {
            Some(amounts) => *amounts,
            None => {
                self.refuse_forgotten(key)?;
                Amounts::default()
            }
        };
        let Amounts { stdout, stderr, result } = amounts;
        let end = End { ending, stdout, stderr, result };
        let mut body = std::mem::take(&mut self.body);
        let header = record::end_header(key, &end, worker, &mut body);
        let result = self
            .make_room(HEADER_BYTES + body.len())
            .and_then(|()| self.active.put_end(&header, &body));
        self.body = body;
        result?;
        self.running.remove(&key);
        Ok(end)
    }

    /// Hands everything to the operating system: readers see it, and a crash of this process does
    /// not lose it.
    pub fn flush(&mut self) -> Result<(), Error> {
        if self.config.sync_results && self.has_unsynced_result {
            return self.sync();
        }
        self.active.flush()
    }

    /// Waits until everything is on the disk: a power cut does not lose it either.
    pub fn sync(&mut self) -> Result<(), Error> {
        self.active.flush()?;
        for number in self.unsynced_from..=self.active.number {
            let path = segment::path(&self.dir, number);
            match File::open(&path).and_then(|file| file.sync_data()).map_err(Error::at(&path)) {
                Err(error) if !error.is_gone() => return Err(error),
                _ => self.unsynced_from = number,
            }
        }
        self.has_unsynced_result = false;
        Ok(())
    }

    /// Begins a new segment, so that readers need not scan the old one. Worth it when a job is
    /// over; otherwise segments are sealed when they are full.
    pub fn seal(&mut self) -> Result<(), Error> {
        if self.active.entries.is_empty() {
            return self.flush();
        }
        self.active.flush()?;
        let next = Active::create(&self.dir, self.active.number + 1, self.running.iter())?;
        let old = std::mem::replace(&mut self.active, next);
        let bytes = old.bytes();
        // If this fails the segment stays without an index: readers scan it, and the next writer
        // makes one.
        let jobs = Index::write(&self.dir, old.number, old.salt, old.entries)?;
        self.add_sealed(old.number, bytes, jobs);
        self.sweep()
    }

    /// Says that nobody needs these jobs any more; they take no more output, now or later. A
    /// segment goes when all of its jobs are forgotten, so forgotten output beside output that is
    /// needed stays, and can still be read. Says how many bytes this freed.
    pub fn forget(&mut self, jobs: RangeInclusive<u32>) -> Result<u64, Error> {
        self.forget_all([jobs])
    }

    /// The same for several ranges at once. Costs nothing when all of them are forgotten already.
    pub fn forget_all(
        &mut self,
        jobs: impl IntoIterator<Item = RangeInclusive<u32>>,
    ) -> Result<u64, Error> {
        let mut forgotten = self.forgotten.clone();
        jobs.into_iter().for_each(|jobs| forgotten.insert(jobs));
        if forgotten == self.forgotten {
            return Ok(0);
        }
        forgotten::save(&self.dir, &forgotten)?;
        self.forgotten = forgotten;
        self.running.retain(|key, _| !self.forgotten.contains(key.job));
        let before = self.bytes();
        let mut entries = self.active.entries.iter();
        if entries.all(|entry| self.forgotten.contains(entry.key().job)) {
            self.seal()?;
        }
        self.sweep()?;
        Ok(before.saturating_sub(self.bytes()))
    }

    /// How much an attempt without an end has written.
    #[must_use]
    pub fn amount(&self, key: Key, stream: Stream) -> Amount {
        self.running.get(&key).map_or(Amount::default(), |amounts| amounts.of(stream))
    }

    /// The store has the size that it may have: output is dropped.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.config.total_bytes_max.is_some_and(|most| self.bytes() >= most)
    }

    /// Attempts with output and without an end. After a crash, those nobody runs any more should
    /// be ended, for they take a little memory and disk as long as they are not.
    pub fn running(&self) -> impl Iterator<Item = Key> {
        self.running.keys().copied()
    }

    /// The size of the store on disk, indexes included.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let entries = self.active.entries.len() * ENTRY_BYTES;
        self.sealed_bytes + self.active.bytes() + entries as u64
    }

    fn put_chunk(
        &mut self,
        key: Key,
        stream: Stream,
        mark: u64,
        bytes: &[u8],
    ) -> Result<usize, Error> {
        if self.active.bytes() < self.config.segment_bytes {
            let taken = self.active.extend(key, stream, bytes);
            if taken > 0 {
                return Ok(taken);
            }
        }
        self.make_room(HEADER_BYTES + bytes.len().min(BODY_BYTES_MAX))?;
        self.active.begin(key, stream, mark, bytes)
    }

    fn make_room(&mut self, bytes: usize) -> Result<(), Error> {
        let full = self.active.bytes() + bytes as u64 > self.config.segment_bytes
            || self.active.entries.len() >= self.config.segment_records_max;
        // One without entries is as empty as a new one would be.
        if full && !self.active.entries.is_empty() { self.seal() } else { Ok(()) }
    }

    /// Once something was dropped or lost, all that follows is, so that what is kept is the head.
    fn room(&self, stream: Stream, amount: &Amount) -> StreamRoom {
        // Half a result is none, and its worker has looked at its size.
        let most = match stream {
            Stream::Stdout | Stream::Stderr => self.config.stream_bytes_max,
            Stream::Result => CALL_BYTES_MAX as u64,
        };
        let within = most.saturating_sub(amount.kept + amount.lost);
        let within = if amount.dropped == 0 { within } else { 0 };
        let in_store = match self.config.total_bytes_max {
            _ if amount.lost > 0 => 0,
            None => within,
            Some(total) => total.saturating_sub(self.bytes() + (HEADER_BYTES + ENTRY_BYTES) as u64),
        };
        let kept = within.min(in_store);
        StreamRoom { kept, lost: within - kept }
    }

    fn refuse_forgotten(&self, key: Key) -> Result<(), Error> {
        match self.forgotten.contains(key.job) {
            true => Err(Error::Forgotten { job: key.job }),
            false => Ok(()),
        }
    }

    /// Takes in a sealed segment found on disk, with a new index if it needs one.
    fn adopt(&mut self, number: u32) -> Result<(), Error> {
        let mut scan = match Scan::open(&self.dir, number) {
            Ok(scan) => scan,
            Err(Error::Damaged { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        let bytes = scan.file_end()?;
        let known = match Index::load(&self.dir, number, scan.salt)? {
            Some(index) => index.jobs(&self.dir).ok(),
            None => None,
        };
        let jobs = match known {
            Some(jobs) => jobs,
            None => {
                let mut entries = Vec::new();
                while let Some((entry, _)) = scan.next(bytes)? {
                    if entry.kind != Kind::Carry {
                        entries.push(entry);
                    }
                }
                Index::write(&self.dir, number, scan.salt, entries)?
            }
        };
        self.add_sealed(number, u64::from(bytes), jobs);
        Ok(())
    }

    fn add_sealed(&mut self, number: u32, segment_bytes: u64, jobs: Jobs) {
        let index = fs::metadata(segment::index_path(&self.dir, number));
        let bytes = segment_bytes + index.map_or(0, |index| index.len());
        self.sealed_bytes += bytes;
        self.sealed.push(SealedSegment { number, bytes, jobs });
    }

    /// Removes the segments in which nothing is needed any more.
    fn sweep(&mut self) -> Result<(), Error> {
        if self.forgotten.ranges().is_empty() {
            return Ok(());
        }
        while let Some(at) = self.sealed.iter().position(|s| self.forgotten.covers(&s.jobs)) {
            let number = self.sealed[at].number;
            segment::remove(&segment::path(&self.dir, number))?;
            segment::remove(&segment::index_path(&self.dir, number))?;
            self.sealed_bytes -= self.sealed.remove(at).bytes;
        }
        Ok(())
    }
}

/// What tasks print is for the owner of the store, also where the directory around it is open to all, and where
/// an earlier version has left the store open too.
fn make_private(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIR_MODE).create(dir)?;
    if fs::metadata(dir)?.permissions().mode() & 0o077 != 0 {
        // Somebody else's directory that we may write to stays as its owner wants it.
        let _ = fs::set_permissions(dir, Permissions::from_mode(DIR_MODE));
    }
    Ok(())
}

const DIR_MODE: u32 = 0o700;

impl Drop for Writer {
    fn drop(&mut self) {
        // Whoever wants to know of an error has called `flush` before.
        let _ = self.active.flush();
    }
}
