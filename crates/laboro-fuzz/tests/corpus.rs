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
