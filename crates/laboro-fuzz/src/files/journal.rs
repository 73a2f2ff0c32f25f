//! The journal: records as bytes, and a log whose files were damaged.

use super::damage::{Files, damage, load, scratch, store};
use laboro_core::Event;
use laboro_journal::log::{self, Durability, Fold, FoldMaker, Log, Options, Piece};
use laboro_journal::record::{Decoder, Encoder};
use std::io;
use std::path::Path;
use std::sync::{Arc, LazyLock};

/// What is read is written and read again.
pub(crate) fn record(bytes: &[u8]) {
    let mut decoder = Decoder::default();
    let Ok(events) = decoder.record(bytes) else { return };
    let at = events.at();
    let Ok(events) = events.collect::<Result<Vec<Event>, _>>() else { return };
    let mut encoder = Encoder::default();
    let written = encoder.batch(at, &events).to_vec();
    let mut decoder = Decoder::default();
    let again = decoder.record(&written).expect("our own record is read");
    assert_eq!(again.at(), at);
    let again: Vec<Event> = again.collect::<Result<_, _>>().expect("our own events are read");
    assert_eq!(again, events);
}

static LOG: LazyLock<Files> = LazyLock::new(|| make(false));
static SNAPSHOT: LazyLock<Files> = LazyLock::new(|| make(true));

/// Several segments, with the last one open.
pub(crate) fn log(bytes: &[u8]) {
    damaged(&LOG, bytes);
}

/// A snapshot and what came after it.
pub(crate) fn snapshot(bytes: &[u8]) {
    damaged(&SNAPSHOT, bytes);
}

fn options() -> Options {
    Options {
        durability: Durability::None,
        segment_bytes_min: 4096,
        segment_bytes_max: 8192,
        ..Options::default()
    }
}

fn make(condensed: bool) -> Files {
    let dir = scratch();
    let maker: FoldMaker = Arc::new(|| Box::new(Pile::default()));
    let (mut log, _) = Log::open(dir.path(), options(), Some(maker), &mut |_, _, _| Ok(()))
        .expect("a new log opens");
    for number in 0..40_u32 {
        let payload = vec![number as u8; 100 + 17 * number as usize % 300];
        log.commit(&payload).expect("it is taken");
        if condensed && number == 30 {
            log.condense().expect("it is condensed");
            log.wait_for_condensing();
        }
    }
    log.close().expect("it is written");
    let mut files = load(dir.path());
    files.retain(|(name, _)| name != "lock");
    files
}

/// All that was absorbed, as one piece.
#[derive(Default)]
struct Pile(Vec<u8>);

impl Fold for Pile {
    fn absorb(&mut self, _: Piece, _: u64, payload: &[u8]) -> Result<(), String> {
        self.0.extend_from_slice(payload);
        Ok(())
    }

    fn emit(self: Box<Self>, sink: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> Result<(), String> {
        self.0.chunks(1000).try_for_each(sink).map_err(|error| error.to_string())
    }
}

fn damaged(sound: &Files, bytes: &[u8]) {
    let mut files = sound.clone();
    damage(&mut files, bytes);
    let dir = scratch();
    store(&files, dir.path());
    let read = seen(dir.path());
    let _ = log::check(dir.path());
    // What can be read can be opened; then it goes on, and all of it is there.
    match Log::open(dir.path(), options(), None, &mut |_, _, _| Ok(())) {
        Ok((log, _)) => {
            let (last, count) = read.expect("what opens can be read");
            goes_on(log, dir.path(), last, count);
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            if log::repair(dir.path()).is_ok() {
                let opened = Log::open(dir.path(), options(), None, &mut |_, _, _| Ok(()));
                opened.expect("what was repaired opens");
            }
        }
    }
}

/// The last number, and how many records came after the snapshot.
fn seen(dir: &Path) -> Result<(u64, u64), log::LogError> {
    let (mut before, mut count) = (None, 0);
    let last = log::read(dir, &mut |piece, number, _| {
        if piece == Piece::Batch {
            assert!(before.is_none_or(|before| number == before + 1), "numbers have no gaps");
            (before, count) = (Some(number), count + 1);
        }
        Ok(())
    })?;
    assert!(before.is_none_or(|before| before == last));
    Ok((last, count))
}

fn goes_on(mut log: Log, dir: &Path, last: u64, count: u64) {
    // Numbers cannot go on for ever, and nobody gets there by counting.
    if last > u64::MAX / 2 {
        return;
    }
    assert_eq!(log.commit(b"goes on").expect("an open log takes a record"), last + 1);
    log.close().expect("it is written");
    assert_eq!(seen(dir).expect("it is still sound"), (last + 1, count + 1));
}
