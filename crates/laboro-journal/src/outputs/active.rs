//! The segment being written: its buffer, its entries, its end. It knows the file and nothing of
//! limits or of other segments.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::index::Entry;
use super::record::{BODY_BYTES_MAX, HEADER_BYTES, Header, Kind};
use super::scan::record_bytes;
use super::segment;
use super::{Amounts, Error, Key, Stream, record};

#[derive(Debug)]
pub(super) struct Active {
    pub number: u32,
    pub salt: u64,
    pub entries: Vec<Entry>,
    file: File,
    path: PathBuf,
    /// What is in the file; the buffer follows it.
    written: u64,
    buffer: Vec<u8>,
    open: Option<OpenChunk>,
}

/// The last record in the buffer while more of its stream may join it. Its header is left blank
/// until then: a task that prints a line at a time does not pay one for every line.
#[derive(Debug)]
struct OpenChunk {
    at: usize,
    key: Key,
    stream: Stream,
    mark: u64,
}

/// Written out when this is full, or when somebody asks.
const BUFFER_BYTES: usize = 256 * 1024;

impl Active {
    /// A new segment. It begins with where every running attempt stands, so that its successor
    /// after a crash need read no older one.
    pub fn create<'a>(
        dir: &Path,
        number: u32,
        running: impl Iterator<Item = (&'a Key, &'a Amounts)>,
    ) -> Result<Active, Error> {
        let salt = segment::new_salt();
        let mut bytes = segment::head(number, salt).to_vec();
        let mut body = Vec::new();
        for (key, amounts) in running {
            let header = record::carry_header(*key, amounts, &mut body);
            let offset = bytes.len() as u64;
            bytes.extend_from_slice(&header.encode(salt, offset));
            bytes.extend_from_slice(&body);
        }
        let path = segment::path(dir, number);
        let file = segment::place(dir, &path, &bytes)?;
        Ok(Active::new(number, salt, file, path, bytes.len() as u64, Vec::new()))
    }

    /// Goes on with one whose records were found by a scan and end at `end`; cuts off the rest.
    pub fn resume(
        dir: &Path,
        number: u32,
        salt: u64,
        end: u64,
        entries: Vec<Entry>,
    ) -> Result<Active, Error> {
        let path = segment::path(dir, number);
        let file = File::options().read(true).write(true).open(&path).map_err(Error::at(&path))?;
        file.set_len(end).map_err(Error::at(&path))?;
        Ok(Active::new(number, salt, file, path, end, entries))
    }

    fn new(
        number: u32,
        salt: u64,
        file: File,
        path: PathBuf,
        written: u64,
        entries: Vec<Entry>,
    ) -> Active {
        Active { number, salt, entries, file, path, written, buffer: Vec::new(), open: None }
    }

    /// The bytes of the segment, flushed or not.
    pub fn bytes(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Adds to the last record if that is of the same stream. Says how many bytes it took; none
    /// means that they need a record of their own.
    pub fn extend(&mut self, key: Key, stream: Stream, bytes: &[u8]) -> usize {
        let Some(open) = &self.open else { return 0 };
        if open.key != key || open.stream != stream || self.buffer.len() >= BUFFER_BYTES {
            return 0;
        }
        let length = self.buffer.len() - open.at - HEADER_BYTES;
        let taken = bytes.len().min(BODY_BYTES_MAX - length);
        self.buffer.extend_from_slice(&bytes[..taken]);
        taken
    }

    /// Begins a chunk with as much of `bytes` as a record holds, and says how much that was.
    pub fn begin(
        &mut self,
        key: Key,
        stream: Stream,
        mark: u64,
        bytes: &[u8],
    ) -> Result<usize, Error> {
        let taken = bytes.len().min(BODY_BYTES_MAX);
        self.make_room(HEADER_BYTES + taken)?;
        self.entries.push(Entry::new(key, Kind::Chunk(stream), self.offset()));
        self.open = Some(OpenChunk { at: self.buffer.len(), key, stream, mark });
        self.buffer.extend_from_slice(&[0; HEADER_BYTES]);
        self.buffer.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    pub fn put_end(&mut self, header: &Header, body: &[u8]) -> Result<(), Error> {
        self.make_room(HEADER_BYTES + body.len())?;
        self.push_end(header, body);
        Ok(())
    }

    /// The same, however full the buffer is.
    pub fn push_end(&mut self, header: &Header, body: &[u8]) {
        self.close_chunk();
        self.entries.push(Entry::new(header.key, Kind::End, self.offset()));
        let header = header.encode(self.salt, self.bytes());
        self.buffer.extend_from_slice(&header);
        self.buffer.extend_from_slice(body);
    }

    /// Hands everything to the operating system. After an error the buffer has what was not written,
    /// and the next call writes it to the same place.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.close_chunk();
        let mut done = 0;
        while done < self.buffer.len() {
            match self.file.write_at(&self.buffer[done..], self.written + done as u64) {
                Ok(0) => return Err(self.stopped(done, io::ErrorKind::WriteZero.into())),
                Ok(more) => done += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.stopped(done, error)),
            }
        }
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// So much of the buffer was written. Whole records of it stay: readers may have seen them.
    fn stopped(&mut self, done: usize, error: io::Error) -> Error {
        let mut whole = 0;
        while let Some(header) = self.header(whole)
            && whole + record_bytes(&header) as usize <= done
        {
            whole += record_bytes(&header) as usize;
        }
        self.written += whole as u64;
        self.buffer.drain(..whole);
        Error::at(&self.path)(error)
    }

    /// Takes back all that is not written, record by record, and cuts off what there is of the first.
    pub fn take_unwritten(&mut self) -> Result<Vec<(Header, Vec<u8>)>, Error> {
        self.close_chunk();
        self.file.set_len(self.written).map_err(Error::at(&self.path))?;
        let mut records = Vec::new();
        let mut at = 0;
        while let Some(header) = self.header(at) {
            let next = at + record_bytes(&header) as usize;
            records.push((header, self.buffer[at + HEADER_BYTES..next].to_vec()));
            at = next;
        }
        self.buffer.clear();
        let written = self.written;
        let kept = self.entries.partition_point(|entry| u64::from(entry.offset) < written);
        self.entries.truncate(kept);
        Ok(records)
    }

    /// Of the record that begins there in the buffer.
    fn header(&self, at: usize) -> Option<Header> {
        let bytes = self.buffer.get(at..)?.first_chunk()?;
        Header::decode(bytes, self.salt, self.written + at as u64)
    }

    fn make_room(&mut self, bytes: usize) -> Result<(), Error> {
        self.close_chunk();
        if self.buffer.len() + bytes > BUFFER_BYTES && !self.buffer.is_empty() {
            self.flush()?;
        }
        Ok(())
    }

    fn offset(&self) -> u32 {
        u32::try_from(self.bytes()).expect("segments are sealed long before 4 GiB")
    }

    fn close_chunk(&mut self) {
        if let Some(open) = self.open.take() {
            let body = &self.buffer[open.at + HEADER_BYTES..];
            let header = Header::new(Kind::Chunk(open.stream), open.key, open.mark, body);
            let header = header.encode(self.salt, self.written + open.at as u64);
            self.buffer[open.at..open.at + HEADER_BYTES].copy_from_slice(&header);
        }
    }
}
