//! What the log promises, tried on real files. Each file under `tests/` is about one promise.

mod backups;
mod condensing;
mod damage;
mod ends;
mod failures;
mod formats;
mod opening;
mod random;
mod repairs;
mod reserve;

use std::collections::BTreeMap;
use std::fs;
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::steps::Steps;
use super::*;

/// What a replay gave: the pieces of the snapshot, then numbered records.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Told {
    snapshot: Vec<Vec<u8>>,
    records: Vec<(u64, Vec<u8>)>,
}

impl Told {
    fn hear(&mut self, piece: Piece, number: u64, payload: &[u8]) {
        match piece {
            Piece::Snapshot => self.snapshot.push(payload.to_vec()),
            Piece::Batch => self.records.push((number, payload.to_vec())),
        }
    }

    fn texts(&self) -> Vec<String> {
        self.records.iter().map(|(_, bytes)| String::from_utf8_lossy(bytes).into_owned()).collect()
    }
}

fn small() -> Options {
    Options { segment_bytes_min: 4096, segment_bytes_max: 16384, ..Options::default() }
}

fn open(dir: &Path) -> Result<(Log, Recovery, Told), LogError> {
    open_with(dir, small(), None)
}

fn open_with(
    dir: &Path,
    options: Options,
    fold: Option<FoldMaker>,
) -> Result<(Log, Recovery, Told), LogError> {
    let mut told = Told::default();
    let (log, recovery) = Log::open(dir, options, fold, &mut |piece, number, payload| {
        told.hear(piece, number, payload);
        Ok(())
    })?;
    Ok((log, recovery, told))
}

/// A closed log that holds these texts as records 1, 2, ...
fn written(dir: &Path, texts: &[&str]) {
    let (mut log, ..) = open(dir).unwrap();
    for text in texts {
        log.commit(text.as_bytes()).unwrap();
    }
    log.close().unwrap();
}

/// A closed log of several segments: records 1 to `count`, each of 1000 bytes of its own.
fn written_long(dir: &Path, count: u64) {
    let (mut log, ..) = open(dir).unwrap();
    commit_all(&mut log, 1..=count, long);
    log.close().unwrap();
}

fn commit_all(log: &mut Log, numbers: RangeInclusive<u64>, payload: fn(u64) -> Vec<u8>) {
    for number in numbers {
        assert_eq!(log.commit(&payload(number)).unwrap(), number);
    }
}

fn long(number: u64) -> Vec<u8> {
    format!("{number:0>1000}").into_bytes()
}

fn files(dir: &Path, suffix: &str) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.to_string_lossy().ends_with(suffix));
    paths.sort();
    paths
}

/// What a log that was closed in order knows of its end, a crash does not.
fn as_after_a_crash(dir: &Path) {
    fs::remove_file(dir.join(mark::NAME)).unwrap();
}

/// Record `number` of a history that changes five keys over and over.
fn entry(number: u64) -> Vec<u8> {
    format!("key{}={number:0>60}", number % 5).into_bytes()
}

fn state_after(last: u64) -> Ledger {
    let mut ledger = Ledger::default();
    (1..=last).for_each(|number| ledger.post(&entry(number)).unwrap());
    ledger
}

fn flip(path: &Path, at: u64) {
    let file = fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 0x10], at).unwrap();
}

/// Where in the file the text stands.
fn place(path: &Path, text: &[u8]) -> u64 {
    let bytes = fs::read(path).unwrap();
    bytes.windows(text.len()).position(|window| window == text).unwrap() as u64
}

fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

/// Condenses `key=value` records to the last value of each key: a state smaller than its history.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Ledger(BTreeMap<String, String>);

impl Ledger {
    fn post(&mut self, payload: &[u8]) -> Result<(), String> {
        let text = String::from_utf8(payload.to_vec()).map_err(|error| error.to_string())?;
        let (key, value) = text.split_once('=').ok_or(format!("no key in {text}"))?;
        self.0.insert(key.to_owned(), value.to_owned());
        Ok(())
    }

    fn of(told: &Told) -> Ledger {
        let mut ledger = Ledger::default();
        let records = told.records.iter().map(|(_, payload)| payload);
        for payload in told.snapshot.iter().chain(records) {
            ledger.post(payload).unwrap();
        }
        ledger
    }

    fn maker() -> Option<FoldMaker> {
        Some(Arc::new(|| Box::new(Ledger::default())))
    }
}

impl Fold for Ledger {
    fn absorb(&mut self, _: Piece, _: u64, payload: &[u8]) -> Result<(), String> {
        self.post(payload)
    }

    fn emit(
        self: Box<Self>,
        sink: &mut dyn FnMut(&[u8]) -> std::io::Result<()>,
    ) -> Result<(), String> {
        for (key, value) in &self.0 {
            sink(format!("{key}={value}").as_bytes()).map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}
