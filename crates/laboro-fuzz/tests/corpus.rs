//! Every kept input is fed to its target: what was found once is never found again.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use laboro_fuzz::TARGETS;
use std::collections::BTreeSet;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus")
}

fn inputs(target: &str) -> Vec<PathBuf> {
    let Ok(dir) = std::fs::read_dir(corpus().join(target)) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = dir.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn every_target_stands_every_input_that_is_kept() {
    for target in TARGETS {
        let inputs = inputs(target.name);
        assert!(!inputs.is_empty(), "fuzz/corpus/{} is missing or empty", target.name);
        for path in inputs {
            let bytes = std::fs::read(&path).unwrap();
            let stood = catch_unwind(|| target.run(&bytes));
            assert!(stood.is_ok(), "{} does not stand {}", target.name, path.display());
        }
    }
}

#[test]
fn every_corpus_has_a_target() {
    let known: BTreeSet<&str> = TARGETS.iter().map(|target| target.name).collect();
    for entry in std::fs::read_dir(corpus()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(known.contains(&*name), "fuzz/corpus/{name} belongs to no target");
    }
}

#[test]
fn every_target_stands_nothing_and_a_row_of_the_same_byte() {
    for target in TARGETS {
        target.run(&[]);
        for byte in [0, 1, 0x7f, 0x80, 0xff] {
            for length in [1, 2, 16, 1000] {
                target.run(&vec![byte; length]);
            }
        }
    }
}

/// msgpack arrays and maps, groups of protocol buffers, JSON and TOML, each deeper than a stack has room for.
#[test]
fn what_is_nested_deeper_than_any_stack_harms_no_reader() {
    let nests: [&[u8]; 8] =
        [b"\x91", b"\x81\xa1a", b"\x81\x91", b"\x0b", b"\x13\x0b", b"[", b"{\"a\":", b"a.[["];
    // Behind these a reader is in the middle of something.
    let heads: [&[u8]; 5] =
        [b"", b"\x08\x00", b"\x81\xa6Laboro\x81\xa5Hello", b"{\"tasks\":[", b"a = "];
    for target in TARGETS {
        for (head, nest) in heads.iter().flat_map(|head| nests.map(|nest| (head, nest))) {
            target.run(&[head, &nest.repeat(100_000 / nest.len())[..]].concat());
        }
    }
}
