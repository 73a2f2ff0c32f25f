//! Going through the output of one attempt, over all segments: once (`Chunks`) or for as long as
//! it grows (`Follow`). Waiting between two looks is the caller's business.

use std::fs::File;
use std::vec;

use super::index::Entry;
use super::reader::{Reader, StoredSegment};
use super::record::{self, Header, Kind};
use super::segment::{self, Broken};
use super::{End, Error, Key, Stream, Streams};

/// See [`Reader::read`].
#[derive(Debug)]
pub struct Chunks<'a> {
    reader: &'a Reader,
    walk: Walk,
}

impl<'a> Chunks<'a> {
    pub(super) fn new(reader: &'a Reader, walk: Walk) -> Chunks<'a> {
        Chunks { reader, walk }
    }
}

impl Iterator for Chunks<'_> {
    type Item = Result<(Stream, Vec<u8>), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.walk.step(self.reader)? {
                Ok(Step::Chunk(stream, bytes)) => return Some(Ok((stream, bytes))),
                Ok(Step::End(_)) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// See [`Reader::follow`].
#[derive(Debug)]
pub struct Follow {
    walk: Walk,
    end: Option<End>,
}

impl Follow {
    pub(super) fn new(walk: Walk) -> Follow {
        Follow { walk, end: None }
    }

    /// The next piece, looking for new ones when those known are used up. `None` means nothing
    /// more for now: over if there is an `end`, else wait before asking again.
    pub fn poll(&mut self, reader: &mut Reader) -> Option<Result<(Stream, Vec<u8>), Error>> {
        let mut looked = false;
        loop {
            match self.walk.step(reader) {
                Some(Ok(Step::Chunk(stream, bytes))) => return Some(Ok((stream, bytes))),
                Some(Ok(Step::End(end))) => self.end = Some(end),
                Some(Err(error)) => return Some(Err(error)),
                None if looked => return None,
                None => {
                    if let Err(error) = reader.refresh() {
                        return Some(Err(error));
                    }
                    looked = true;
                }
            }
        }
    }

    /// How the attempt ended, once `poll` has come to that.
    #[must_use]
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }
}

#[derive(Debug)]
pub(super) struct Walk {
    key: Key,
    streams: Streams,
    /// Everything before this place has been given out or is in `ahead`.
    number: u32,
    offset: u64,
    ahead: vec::IntoIter<Entry>,
    file: Option<(File, u64)>,
    /// Where the next chunk of each stream must begin; unknown after a record without a header.
    stdout_at: Option<u64>,
    stderr_at: Option<u64>,
    result_at: Option<u64>,
    /// Read already, to be given out after the error that came before it.
    held: Option<Step>,
}

#[derive(Debug)]
pub(super) enum Step {
    Chunk(Stream, Vec<u8>),
    End(End),
}

impl Walk {
    pub fn new(reader: &Reader, key: Key, streams: Streams) -> Walk {
        // What cannot be searched is told when the walk comes to it.
        let (number, offset) = last_run(reader, key).unwrap_or_default();
        Walk {
            key,
            streams,
            number,
            offset,
            ahead: Vec::new().into_iter(),
            file: None,
            stdout_at: Some(0),
            stderr_at: Some(0),
            result_at: Some(0),
            held: None,
        }
    }

    /// The next record of what the reader knows now.
    pub fn step(&mut self, reader: &Reader) -> Option<Result<Step, Error>> {
        if let Some(step) = self.held.take() {
            return Some(Ok(step));
        }
        loop {
            match self.ahead.next() {
                Some(entry) => return Some(self.read(reader, &entry)),
                None => match self.look_ahead(reader) {
                    Ok(true) => {}
                    Ok(false) => return None,
                    Err(error) => return Some(Err(error)),
                },
            }
        }
    }

    /// Moves on to the next segment in which there may be more. False when there is none.
    fn look_ahead(&mut self, reader: &Reader) -> Result<bool, Error> {
        let at = reader.segments.partition_point(|segment| segment.number() < self.number);
        for segment in &reader.segments[at..] {
            if segment.number() > self.number {
                (self.number, self.offset) = (segment.number(), 0);
            }
            if self.offset >= segment.known_to() {
                continue;
            }
            // Set before searching: after an error the walk goes on with the next segment.
            let from = std::mem::replace(&mut self.offset, segment.known_to());
            let entries = self.find(reader, segment, from)?;
            if !entries.is_empty() {
                self.ahead = entries.into_iter();
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn find(
        &mut self,
        reader: &Reader,
        segment: &StoredSegment,
        from: u64,
    ) -> Result<Vec<Entry>, Error> {
        let mut entries = segment.find(&reader.dir, self.key, self.key, from)?;
        entries.retain(|entry| match entry.kind {
            Kind::Chunk(stream) => self.streams.include(stream),
            Kind::End => true,
            Kind::Carry => false,
        });
        if !entries.is_empty() {
            match segment::open(&reader.dir, segment.number()) {
                Ok(opened) => self.file = Some(opened),
                // Forgotten since.
                Err(error) if error.is_gone() => entries.clear(),
                Err(error) => return Err(error),
            }
        }
        Ok(entries)
    }

    fn read(&mut self, reader: &Reader, entry: &Entry) -> Result<Step, Error> {
        let (file, salt) = self.file.as_ref().expect("opened with the entries ahead");
        match segment::read_record(file, *salt, &reader.dir, self.number, entry) {
            Err(Broken { error, header: Some(header) }) => {
                if let Kind::Chunk(stream) = header.kind {
                    *self.place(stream) = Some(after(&header));
                }
                Err(error)
            }
            Err(Broken { error, header: None }) => {
                (self.stdout_at, self.stderr_at, self.result_at) = (None, None, None);
                Err(error)
            }
            Ok((header, body)) => self.accept(reader, entry, &header, body),
        }
    }

    /// Checks that a record follows the one before it, and says so once if it does not.
    fn accept(
        &mut self,
        reader: &Reader,
        entry: &Entry,
        header: &Header,
        body: Vec<u8>,
    ) -> Result<Step, Error> {
        let (gap, step) = match header.kind {
            Kind::Chunk(stream) => {
                let gap = self.gap(stream, header.mark);
                *self.place(stream) = Some(after(header));
                (gap, Step::Chunk(stream, body))
            }
            Kind::End | Kind::Carry => {
                let end = record::end(header, &body).ok_or_else(|| Error::Damaged {
                    file: segment::path(&reader.dir, self.number),
                    offset: u64::from(entry.offset),
                    what: "closing record is invalid",
                })?;
                let gap = self.gap(Stream::Stdout, end.stdout.kept);
                let gap = gap.or_else(|| self.gap(Stream::Stderr, end.stderr.kept));
                (gap.or_else(|| self.gap(Stream::Result, end.result.kept)), Step::End(end))
            }
        };
        match gap {
            None => Ok(step),
            Some(error) => {
                self.held = Some(step);
                Err(error)
            }
        }
    }

    fn gap(&mut self, stream: Stream, to: u64) -> Option<Error> {
        let from = (*self.place(stream))?;
        let missing = self.streams.include(stream) && from < to;
        missing.then_some(Error::Missing { key: self.key, stream, from, to })
    }

    fn place(&mut self, stream: Stream) -> &mut Option<u64> {
        match stream {
            Stream::Stdout => &mut self.stdout_at,
            Stream::Stderr => &mut self.stderr_at,
            Stream::Result => &mut self.result_at,
        }
    }
}

/// The place behind the last end of this attempt that output follows.
fn last_run(reader: &Reader, key: Key) -> Result<(u32, u64), Error> {
    let (mut from, mut end) = ((0, 0), None);
    for segment in &reader.segments {
        for entry in segment.find(&reader.dir, key, key, 0)? {
            match entry.kind {
                Kind::End => end = Some((segment.number(), u64::from(entry.offset) + 1)),
                Kind::Chunk(_) => from = end.take().unwrap_or(from),
                Kind::Carry => {}
            }
        }
    }
    Ok(from)
}

fn after(header: &Header) -> u64 {
    header.mark.saturating_add(u64::from(header.length))
}
