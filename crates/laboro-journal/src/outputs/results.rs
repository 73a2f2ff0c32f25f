//! What tasks gave back, many at once. Of a task that ran several times, the result that belongs to how it ended: the
//! last one of an attempt that succeeded, or of one that did not.

use std::collections::HashMap;
use std::fs::File;

use super::index::Entry;
use super::reader::Reader;
use super::record::{self, Kind};
use super::segment;
use super::{Error, Key, Stream};

/// A task whose result is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its number in the job.
    pub index: u32,
    /// How it ended.
    pub succeeded: bool,
}

/// What one task gave back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeptResult {
    /// It gave nothing back.
    Nothing,
    /// All of it.
    Bytes(Vec<u8>),
    /// There was more of it than is here: the disk was full, or a file is damaged.
    Incomplete,
}

/// Tasks that stand closer than this are looked up together.
const GAP_MAX: u32 = 64;

impl Reader {
    /// Of tasks of one job, ascending: one for each in their order, up to the first with which there are `bytes_max`
    /// or more.
    pub fn results(
        &self,
        job: u32,
        wanted: &[Wanted],
        bytes_max: usize,
    ) -> Result<Vec<KeptResult>, Error> {
        let mut found = Vec::with_capacity(wanted.len());
        let mut bytes = 0;
        for near in wanted.chunk_by(|a, b| b.index - a.index <= GAP_MAX) {
            let runs = self.runs(job, near[0].index, near[near.len() - 1].index)?;
            let mut files = Files { reader: self, open: HashMap::new() };
            for task in near {
                let runs = runs.get(&task.index).map_or(&[][..], Vec::as_slice);
                let result = files.result(runs, task.succeeded)?;
                bytes += if let KeptResult::Bytes(bytes) = &result { bytes.len() } else { 0 };
                found.push(result);
                if bytes >= bytes_max {
                    return Ok(found);
                }
            }
        }
        Ok(found)
    }

    /// Attempts that gave something back, by task, in the order in which they began to.
    fn runs(&self, job: u32, first: u32, last: u32) -> Result<HashMap<u32, Vec<Run>>, Error> {
        let key = |index, attempt| Key { job, index, attempt };
        let mut tasks: HashMap<u32, Vec<Run>> = HashMap::new();
        for (at, segment) in self.segments.iter().enumerate() {
            let mut entries = segment.find(&self.dir, key(first, 0), key(last, u16::MAX), 0)?;
            entries.sort_unstable_by_key(|entry| entry.offset);
            for entry in entries {
                let runs = tasks.entry(entry.key().index).or_default();
                let same = |run: &&mut Run| run.attempt == entry.key().attempt && run.end.is_none();
                let open = runs.iter_mut().rfind(same);
                match (entry.kind, open) {
                    (Kind::Chunk(Stream::Result), Some(run)) => run.chunks.push((at, entry)),
                    (Kind::Chunk(Stream::Result), None) => runs.push(Run {
                        attempt: entry.key().attempt,
                        chunks: vec![(at, entry)],
                        end: None,
                    }),
                    (Kind::End, Some(run)) => run.end = Some((at, entry)),
                    (Kind::End | Kind::Chunk(_) | Kind::Carry, _) => {}
                }
            }
        }
        Ok(tasks)
    }
}

/// One attempt's result: in which segments, counted in the reader, its records are.
struct Run {
    attempt: u16,
    chunks: Vec<(usize, Entry)>,
    end: Option<(usize, Entry)>,
}

struct Files<'a> {
    reader: &'a Reader,
    open: HashMap<usize, Option<(File, u64)>>,
}

impl Files<'_> {
    fn result(&mut self, runs: &[Run], succeeded: bool) -> Result<KeptResult, Error> {
        let run = match runs {
            [] => return Ok(KeptResult::Nothing),
            // Nearly always: no need to look how it ended.
            [run] => run,
            runs => {
                let mut chosen = None;
                for run in runs {
                    if run.end.is_none() || self.ended_well(run)? == Some(succeeded) {
                        chosen = Some(run);
                    }
                }
                match chosen {
                    Some(run) => run,
                    None => return Ok(KeptResult::Nothing),
                }
            }
        };
        let mut bytes = Vec::new();
        for (at, entry) in &run.chunks {
            match self.record(*at, entry)? {
                Some((header, body)) if header.mark == bytes.len() as u64 => bytes.extend(body),
                _ => return Ok(KeptResult::Incomplete),
            }
        }
        let is_whole = match &run.end {
            None => true,
            Some((at, entry)) => match self.record(*at, entry)? {
                None => true,
                Some((header, body)) => record::end(&header, &body).is_none_or(|end| {
                    end.result.kept == bytes.len() as u64
                        && end.result.lost + end.result.dropped == 0
                }),
            },
        };
        Ok(if is_whole { KeptResult::Bytes(bytes) } else { KeptResult::Incomplete })
    }

    fn ended_well(&mut self, run: &Run) -> Result<Option<bool>, Error> {
        let Some((at, entry)) = &run.end else { return Ok(None) };
        let Some((header, body)) = self.record(*at, entry)? else { return Ok(None) };
        Ok(record::end(&header, &body).map(|end| end.ending.outcome().is_success()))
    }

    /// `None`: it is gone or damaged.
    fn record(
        &mut self,
        at: usize,
        entry: &Entry,
    ) -> Result<Option<(record::Header, Vec<u8>)>, Error> {
        let dir = &self.reader.dir;
        let number = self.reader.segments[at].number();
        let opened = match self.open.get(&at) {
            Some(opened) => opened,
            None => {
                let opened = match segment::open(dir, number) {
                    Err(error) if error.is_gone() => None,
                    opened => Some(opened?),
                };
                self.open.entry(at).or_insert(opened)
            }
        };
        let Some((file, salt)) = opened else { return Ok(None) };
        match segment::read_record(file, *salt, dir, number, entry) {
            Ok(read) => Ok(Some(read)),
            Err(broken) if matches!(broken.error, Error::Damaged { .. }) => Ok(None),
            Err(broken) => Err(broken.error),
        }
    }
}
