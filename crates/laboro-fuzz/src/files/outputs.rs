//! The store of what tasks printed, with damaged files: readers show what is sound, and a writer goes on.

use super::damage::{Files, damage, load, scratch, store as put};
use laboro_core::Outcome;
use laboro_journal::outputs::{Config, Ending, Error, Key, Reader, Stream, Streams, Writer};
use std::path::Path;
use std::sync::LazyLock;

static SOUND: LazyLock<Files> = LazyLock::new(make);

const CONFIG: Config = Config {
    sync_results: false,
    stream_bytes_max: 1 << 20,
    total_bytes_max: None,
    segment_bytes: 4096,
    segment_records_max: 64,
};

fn make() -> Files {
    let dir = scratch();
    let mut writer = Writer::open(dir.path(), CONFIG).expect("a new store opens");
    for task in 0..24_u32 {
        let key = Key { job: 1 + task / 12, index: task, attempt: 1 };
        let text = vec![b'a' + (task % 26) as u8; 100 + task as usize * 31];
        writer.append(key, Stream::Stdout, &text).expect("it is taken");
        writer.append(key, Stream::Stderr, b"words\n").expect("it is taken");
        if task % 3 != 0 {
            writer.end(key, Ending::of(Outcome::Exit(task as i32))).expect("it is taken");
        }
    }
    writer.forget(2..=2).expect("it is forgotten");
    writer.flush().expect("it is written");
    drop(writer);
    let mut files = load(dir.path());
    files.retain(|(name, _)| name != "lock");
    files
}

pub(crate) fn store(bytes: &[u8]) {
    let mut files = SOUND.clone();
    damage(&mut files, bytes);
    let dir = scratch();
    put(&files, dir.path());
    look(dir.path());
    let Ok(mut writer) = Writer::open(dir.path(), CONFIG) else { return };
    let key = Key { job: 77, index: 1, attempt: 1 };
    // A forged list may say that this job is forgotten, and forged records that it is over.
    let forgotten = files.iter().any(|(name, _)| name == "forgotten");
    let before = text(dir.path(), key);
    let goes_on = writer
        .append(key, Stream::Stdout, b"goes on")
        .and_then(|()| writer.end(key, Ending::of(Outcome::Success)))
        .and_then(|_| writer.flush());
    match goes_on {
        Ok(()) => {}
        Err(Error::Forgotten { .. }) if forgotten => return,
        Err(error) => panic!("a store that opens takes output: {error}"),
    }
    if !forgotten && before.is_ok_and(|before| before.is_empty()) {
        assert_eq!(text(dir.path(), key).ok().as_deref(), Some(&b"goes on"[..]));
    }
    drop(writer);
    look(dir.path());
}

fn text(dir: &Path, key: Key) -> Result<Vec<u8>, Error> {
    let reader = Reader::open(dir)?;
    let mut text = Vec::new();
    for chunk in reader.read(key, Streams::Both) {
        text.extend_from_slice(&chunk?.1);
    }
    Ok(text)
}

fn look(dir: &Path) {
    let Ok(reader) = Reader::open(dir) else { return };
    let _ = reader.damage().count();
    let first = Key { job: 0, index: 0, attempt: 0 };
    let last = Key { job: u32::MAX, index: u32::MAX, attempt: u16::MAX };
    let _ = reader.ends(first, last);
    for task in 0..24_u32 {
        let key = Key { job: 1 + task / 12, index: task, attempt: 1 };
        let _ = (reader.end(key), reader.attempts(key.job, key.index));
        let _ = reader.tail(key, Stream::Stdout, 64);
        for chunk in reader.read(key, Streams::Both) {
            if chunk.is_err() {
                break;
            }
        }
    }
}
