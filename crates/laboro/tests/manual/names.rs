//! Pages for those who work on the program name tests and files as what holds a promise: each of them is there.

use crate::repository;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const PAGES: [&str; 3] = ["ARCHITECTURE.md", "docs/security.md", "docs/reliability.md"];
/// A name with as many words is a sentence, as tests have it.
const WORDS_OF_TEST: usize = 4;

#[test]
fn tests_and_files_that_pages_name_are_there() {
    let root = repository();
    let mut files = Vec::new();
    for folder in ["crates", "docs", "spec", "fuzz"] {
        collect(&root.join(folder), &mut files);
    }
    let mut words = BTreeSet::new();
    for path in files.iter().filter(|path| path.extension().is_some_and(|end| end == "rs")) {
        let text = fs::read_to_string(path).unwrap();
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        words.extend(
            text.split(|c| !is_part(c)).filter(|word| is_sentence(word)).map(str::to_owned),
        );
    }
    let (mut wrong, mut count) = (Vec::new(), 0);
    for page in PAGES {
        let text = fs::read_to_string(root.join(page)).unwrap();
        for name in text.split('`').skip(1).step_by(2) {
            let is_there = if is_sentence(name) {
                words.contains(name)
            } else if is_file(name) {
                files.iter().any(|path| path.ends_with(name)) || root.join(name).exists()
            } else {
                continue;
            };
            count += 1;
            if !is_there {
                wrong.push(format!("{page}: {name} is not there"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 150, "{count}");
}

fn is_sentence(word: &str) -> bool {
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    word.chars().all(is_name) && word.split('_').count() >= WORDS_OF_TEST
}

fn is_file(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let end = Path::new(name).extension().and_then(|end| end.to_str());
    name.chars().all(is_part) && matches!(end, Some("rs" | "md" | "txt" | "js"))
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { collect(&path, found) } else { found.push(path) }
    }
}
