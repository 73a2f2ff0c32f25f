//! Bytes that nobody wrote: cut, changed, made up. Reading them ends in an error or in some other batch,
//! never in a panic, and never takes more memory than such bytes can be worth.

use super::strategies::batch;
use super::{decoded, encoded};
use crate::record::{Decoder, RecordError};
use laboro_core::Time;
use proptest::prelude::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Room for entries before they are seen, and what a byte may stand for at most: the largest entry
/// is some hundred bytes and a list grows by doubling.
const MEMORY_AHEAD: usize = 2 << 20;
const MEMORY_A_BYTE: usize = 600;

/// Counts what the thread that asks for it has in use, and the most it had.
struct Counting;

thread_local! {
    static IN_USE: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    // While a thread ends, its counts may be gone already.
    let _ = IN_USE.try_with(|in_use| {
        in_use.set(in_use.get() + bytes);
        let _ = MOST.try_with(|most| most.set(most.get().max(in_use.get())));
    });
}

// SAFETY: all is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Reads to the end or the first error and checks what that took.
fn endure(bytes: &[u8]) -> Result<usize, RecordError> {
    let before = IN_USE.get();
    MOST.set(before);
    let read = decoded(bytes).map(|(_, events)| events.len());
    let most = (MOST.get() - before).cast_unsigned();
    assert!(most < MEMORY_AHEAD + bytes.len() * MEMORY_A_BYTE, "{most} for {}", bytes.len());
    read
}

proptest! {
    #[test]
    fn a_cut_record_is_an_error_or_a_shorter_batch((at, events) in batch()) {
        let bytes = encoded(at, &events);
        for end in 0..bytes.len() {
            if let Ok(count) = endure(&bytes[..end]) {
                prop_assert!(count < events.len() || events.is_empty());
            }
        }
    }

    #[test]
    fn a_changed_byte_never_does_harm((at, events) in batch(), place: prop::sample::Index, to: u8) {
        let mut bytes = encoded(at, &events);
        let place = place.index(bytes.len());
        bytes[place] = to;
        let _ = endure(&bytes);
    }

    #[test]
    fn changed_bits_never_do_harm((at, events) in batch(), flips: Vec<(prop::sample::Index, u8)>) {
        let mut bytes = encoded(at, &events);
        for (place, bit) in flips {
            let place = place.index(bytes.len());
            bytes[place] ^= 1 << (bit % 8);
        }
        let _ = endure(&bytes);
    }

    #[test]
    fn made_up_bytes_never_do_harm(tag in 1_u8..80, rest: Vec<u8>) {
        let _ = endure(&[&[1, 0, 0, tag], &rest[..]].concat());
    }
}

#[test]
fn an_empty_record_and_a_newer_one_are_told_apart() {
    assert_eq!(decoded(&[]), Err(RecordError::Empty));
    let newer = decoded(&[2, 0, 0]).unwrap_err();
    assert_eq!(newer, RecordError::Version { version: 2 });
    assert_eq!(newer.to_string(), "record format 2 is not known, only up to 1; use a newer laboro");
}

#[test]
fn an_unknown_event_is_named_with_its_place() {
    let error = decoded(&[1, 0, 0, 5, 2, 99]).unwrap_err();
    assert_eq!(error.to_string(), "byte 5: event kind 99 is not known; use a newer laboro");
}

#[test]
fn a_batch_without_events_is_a_batch() {
    assert_eq!(decoded(&encoded(Time(7), &[])), Ok((Time(7), Vec::new())));
}

#[test]
fn reading_ends_after_an_error() {
    let mut decoder = Decoder::default();
    let mut events = decoder.record(&[1, 0, 0, 99, 5, 2]).unwrap();
    assert!(events.next().unwrap().is_err());
    assert_eq!(events.next(), None);
}

#[test]
fn a_list_cannot_claim_more_entries_than_there_are_bytes() {
    // Edges, and 2^35 of them.
    let error = endure(&[1, 0, 0, 73, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01]).unwrap_err();
    assert!(error.to_string().contains("more entries than its record has bytes"), "{error}");
}

#[test]
fn short_names_cannot_stand_for_long_ones_without_end() {
    let long = [b'n'; 100_000];
    let mut bytes = vec![1, 0, 0, 2, 0, 0];
    bytes.extend([0xa0, 0x8d, 0x06]);
    bytes.extend(long);
    assert_eq!(decoded(&bytes).map(|(_, events)| events.len()), Ok(1));
    bytes.extend([2, 0, 64, 0]);
    assert!(decoded(&bytes).is_err());
}
