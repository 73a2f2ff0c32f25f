//! The charts over a restart: a line a minute in a file beside the journal, and in the end the last minutes by the
//! second. It is for pictures only, so it is not synced, and read as far as it makes sense. What is known of single
//! jobs is not in it.

use super::recorder::Past;
use laboro_api::Sample;
use laboro_core::{GroupId, Time};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(super) struct HistoryFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    /// When it has grown to this it is written anew, without what is too old.
    bytes_most: u64,
}

/// What a sample is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Second,
    Minute,
}

#[derive(Serialize, Deserialize)]
struct HistoryLine {
    /// Missing: of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<u32>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    second: bool,
    #[serde(flatten)]
    sample: Sample,
}

/// Nobody has written more than this.
const READ_BYTES_MAX: u64 = 64 << 20;
/// Not worth being written anew.
const SPARE_BYTES: u64 = 1 << 20;

impl HistoryFile {
    /// Reads what is there into the past, and begins the file anew with it.
    pub fn open(path: PathBuf, past: &mut Past, now: Time) -> io::Result<HistoryFile> {
        match File::open(&path) {
            Ok(file) => read(file, past, now)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let (file, bytes) = write_anew(&path, past)?;
        Ok(HistoryFile { path, file, bytes, bytes_most: 2 * bytes + SPARE_BYTES })
    }

    /// Minutes that are over; they are in the past already. `anew`: the file has some that are not any more.
    pub fn add(
        &mut self,
        past: &Past,
        minutes: &[(Option<GroupId>, Sample)],
        anew: bool,
    ) -> io::Result<()> {
        let lines: Vec<u8> =
            minutes.iter().flat_map(|(group, one)| line(*group, false, one)).collect();
        self.file.write_all(&lines)?;
        self.bytes += lines.len() as u64;
        if self.bytes > self.bytes_most || anew {
            (self.file, self.bytes) = write_anew(&self.path, past)?;
            self.bytes_most = 2 * self.bytes + SPARE_BYTES;
        }
        Ok(())
    }

    /// The last minutes by the second: too much to be written all the time.
    pub fn finish(&mut self, past: &Past) -> io::Result<()> {
        let lines = past.samples(Step::Second).flat_map(|(group, one)| line(group, true, one));
        self.file.write_all(&lines.collect::<Vec<u8>>())
    }
}

fn read(file: File, past: &mut Past, now: Time) -> io::Result<()> {
    for line in BufReader::new(file.take(READ_BYTES_MAX)).split(b'\n') {
        // Half a line is what a hub leaves that was killed.
        let Ok(HistoryLine { group, second, sample }) = serde_json::from_slice(&line?) else {
            continue;
        };
        let step = if second { Step::Second } else { Step::Minute };
        past.restore(group.map(GroupId), step, sample, now);
    }
    Ok(())
}

fn write_anew(path: &Path, past: &Past) -> io::Result<(File, u64)> {
    let draft = path.with_extension("new");
    let mut options = File::options();
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    let mut out = BufWriter::new(file);
    let mut bytes = 0;
    for (group, sample) in past.samples(Step::Minute) {
        let line = line(group, false, sample);
        bytes += line.len() as u64;
        out.write_all(&line)?;
    }
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    std::fs::rename(&draft, path)?;
    Ok((file, bytes))
}

fn line(group: Option<GroupId>, second: bool, sample: &Sample) -> Vec<u8> {
    let line = HistoryLine { group: group.map(|group| group.0), second, sample: sample.clone() };
    let mut bytes = serde_json::to_vec(&line).expect("numbers can be written");
    bytes.push(b'\n');
    bytes
}
