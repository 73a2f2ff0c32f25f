//! Frames and bodies for fuzzing, with bytes of any kind: what was read is written and read again, and must be the
//! same. Conversations are not held here.

use super::header::Numbering;
use super::pack::PackReader;
use super::payload::{
    JobStatusUpdate, PlainHello, read_pairs, read_tasks, write_pairs, write_tasks,
};
use super::{frame, native};
use bytes::{Bytes, BytesMut};
use laboro_core::{LeaseRef, Time};

const BODY_BYTES_MAX: usize = 1 << 20;

/// Reads these bytes as messages, in every numbering. Panics where writing and reading do not agree.
pub fn probe_frames(bytes: &[u8]) {
    for numbering in [Numbering::Current, Numbering::Older, Numbering::Oldest] {
        let mut input = BytesMut::from(bytes);
        while let Ok(Some(message)) = frame::take(&mut input, numbering, BODY_BYTES_MAX) {
            let mut written = BytesMut::new();
            message.header.write(numbering, &mut written);
            written.extend_from_slice(&message.body);
            let again = frame::take(&mut written, numbering, BODY_BYTES_MAX);
            assert_eq!(again, Ok(Some(message)), "what is written is read as it was");
        }
    }
}

/// Reads these bytes as each of the bodies that originals know.
pub fn probe_bodies(bytes: &[u8]) {
    let body = Bytes::copy_from_slice(bytes);
    if let Ok(hello) = PlainHello::read(&body) {
        let again = written(|to| hello.write(to));
        assert_eq!(PlainHello::read(&again), Ok(hello));
    }
    if let Ok(tasks) = read_tasks(&body) {
        let again = written(|to| write_tasks(to, &tasks));
        assert_eq!(read_tasks(&again), Ok(tasks));
    }
    if let Ok(pairs) = read_pairs(&body) {
        let again = written(|to| write_pairs(to, &pairs));
        assert_eq!(read_pairs(&again), Ok(pairs));
    }
    if let Ok(update) = JobStatusUpdate::read(&mut PackReader::new(&body)) {
        let again = written(|to| update.write(to));
        assert_eq!(JobStatusUpdate::read(&mut PackReader::new(&again)), Ok(update));
    }
}

/// Reads these bytes as each of the bodies that only Laboro's own programs say.
pub fn probe_native(bytes: &[u8]) {
    let body = Bytes::copy_from_slice(bytes);
    if let Ok(Some(hello)) = native::NativeHello::read(&body) {
        let again = written(|to| hello.write(to));
        assert!(native::NativeHello::read(&again) == Ok(Some(hello)), "a HELLO is read as it was");
    }
    if let Ok(Some(work)) = native::read_work(&mut PackReader::new(&body)) {
        let again = written(|to| native::write_work(to, Some(&work)));
        assert_eq!(native::read_work(&mut PackReader::new(&again)), Ok(Some(work)));
    }
    if let Ok(batches) = native::Batch::read_all(&body) {
        for (batch, given) in batches.iter().flat_map(|b| b.tasks.iter().map(move |t| (b, t))) {
            let _ = (batch.position(given), batch.task(given));
        }
    }
    if let Ok(update) = native::Update::read(&body) {
        probe_update(&update);
    }
}

fn probe_update(update: &native::Update) {
    // What ended long ago is told by how long ago it was, so the clock must have run for as long.
    let now = Time::NEVER;
    let chunks = update.chunks.iter().cloned().map(native::Item::Chunk);
    let ends = update.results.iter().zip(&update.facts).filter_map(|(result, facts)| {
        let LeaseRef::Number { task, lease } = result.lease else { return None };
        let message = result.message.as_deref().map(str::to_owned);
        let how = crate::worker::TaskEnd { outcome: result.outcome, message, used: facts.used };
        let at = Time(now.0 - facts.ago_ms);
        Some(native::Item::Ended { task, lease, attempt: facts.attempt, at, how })
    });
    let back = update.back.iter().map(|back| {
        let native::Back { task, lease, reason } = back;
        native::Item::Back { task: *task, lease: *lease, reason: reason.clone() }
    });
    let items: Vec<native::Item> = chunks.chain(ends).chain(back).collect();
    let wishes =
        native::Wishes { ahead: update.ahead, drains: update.drains, leaves: update.leaves };
    let again = written(|to| native::write_update(to, now, &items, wishes));
    let again = native::Update::read(&again).expect("our own words are understood");
    assert_eq!(again.chunks, update.chunks);
    assert_eq!(again.facts, update.facts);
    assert_eq!(again.back, update.back);
    assert_eq!(
        (again.ahead, again.drains, again.leaves),
        (update.ahead, update.drains, update.leaves)
    );
    assert_eq!(again.results.len(), update.results.len());
    for (one, other) in again.results.iter().zip(&update.results) {
        assert_eq!((&one.lease, one.outcome), (&other.lease, other.outcome));
        assert_eq!(one.message, other.message);
    }
}

fn written(write: impl FnOnce(&mut BytesMut)) -> Bytes {
    let mut to = BytesMut::new();
    write(&mut to);
    to.freeze()
}
