//! Golden records: one file a kind in `spec/journal`, what it means and its bytes. Checked both ways, so
//! that a journal written today is read for ever. `LABORO_GOLDEN=write cargo test -p laboro-journal
//! golden` writes them anew, which is right for a new kind and wrong for one that was ever released.

use super::samples::{AT, samples};
use super::{decoded, encoded};
use crate::record::v1::{Form, VERSION, tag};
use laboro_core::{Event, Time};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

const BYTES_A_LINE: usize = 32;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../spec/journal/v{VERSION}"))
}

fn golden(at: Time, events: &[Event], bytes: &[u8]) -> String {
    let mut text = format!("at {}\n", at.0);
    for event in events {
        writeln!(text, "{event:?}").unwrap();
    }
    text.push('\n');
    for line in bytes.chunks(BYTES_A_LINE) {
        let line: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(text, "{}", line.join(" ")).unwrap();
    }
    text
}

fn is_writing() -> bool {
    std::env::var_os("LABORO_GOLDEN").is_some_and(|word| word == "write")
}

fn bytes_of(golden: &str) -> Vec<u8> {
    let (_, hex) = golden.split_once("\n\n").expect("an empty line parts meaning and bytes");
    hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

#[test]
fn every_golden_record_is_written_as_it_stands() {
    for (name, events) in samples() {
        let path = folder().join(name).with_extension("golden");
        let now = golden(AT, &events, &encoded(AT, &events));
        if is_writing() {
            std::fs::write(&path, now).unwrap();
        } else {
            let stands = std::fs::read_to_string(&path);
            let stands = stands.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert_eq!(now, stands, "{name} is written differently now");
        }
    }
}

#[test]
fn every_golden_record_still_means_what_it_says() {
    let mut count = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let stands = std::fs::read_to_string(&path).unwrap();
        let bytes = bytes_of(&stands);
        let (at, events) =
            decoded(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let now = golden(at, &events, &bytes);
        if is_writing() {
            // The same bytes; what they mean may be called otherwise now.
            std::fs::write(&path, now).unwrap();
        } else {
            assert_eq!(now, stands, "{} is read differently", path.display());
        }
        count += 1;
    }
    assert!(count >= samples().len());
}

#[test]
fn every_kind_of_event_has_a_golden_record() {
    let shown: BTreeSet<u8> = samples()
        .into_iter()
        .flat_map(|(_, events)| events)
        .map(|event| encoded(Time(0), &[event])[3])
        .collect();
    let later = [
        tag::HELD_BACK,
        tag::GROUP_FORGOTTEN,
        tag::ADDED_TAGGED,
        tag::JOB_MADE_BY,
        tag::MARKED_DONE,
        tag::JOB_MADE_NAMING,
        tag::RESTORED_JOB_NAMING,
        tag::JOB_MADE_TAGGED,
        tag::RESTORED_JOB_TAGGED,
        tag::JOB_DUE,
        tag::JOB_DEFERRED,
        tag::DOCUMENT_CHANGED,
        tag::RESTORED_JOB_BY,
        tag::RESTORED_LEASE_FULL,
        tag::RESTORED_LEASE_NODES,
    ];
    let all: BTreeSet<u8> = (tag::BEGAN..=tag::JUDGED)
        .chain(tag::RESTORED_COUNTERS..=tag::RESTORED_LEASE)
        .chain(tag::RESTORED_ARRAY_TAGGED..=tag::RESTORED_FAILED_BECAUSE)
        .chain(later)
        .filter(|&tag| Form::of(tag) == Form::Tagged)
        .collect();
    assert_eq!(shown, all);
}
