//! The page about dependencies names all of them and no others. It does not judge the reasons.

use crate::{folders_in, repository};
use std::collections::BTreeSet;
use std::fs;

#[test]
fn every_dependency_has_its_reason() {
    let manifests = folders_in("crates").into_iter().map(|folder| format!("{folder}/Cargo.toml"));
    let named: BTreeSet<String> = manifests
        .flat_map(|path| dependencies(&fs::read_to_string(repository().join(path)).unwrap()))
        .collect();
    assert!(named.contains("tokio") && named.contains("proptest"), "{named:?}");
    let page = fs::read_to_string(repository().join("docs/dependencies.md")).unwrap();
    let explained: BTreeSet<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(" | ").next())
        .filter(|cell| *cell != "library")
        .flat_map(|cell| cell.split(", ").map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let missing: Vec<_> = named.difference(&explained).collect();
    let gone: Vec<_> = explained.difference(&named).collect();
    assert!(missing.is_empty() && gone.is_empty(), "without a reason: {missing:?}; gone: {gone:?}");
}

/// What a manifest names, but for our own crates.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut is_list = false;
    let mut found = Vec::new();
    for line in manifest.lines() {
        if let Some(section) = line.strip_prefix('[') {
            is_list = section.trim_end_matches(']').ends_with("dependencies");
        } else if let Some((name, _)) = line.split_once(['=', '.']).filter(|_| is_list) {
            found.push(name.trim().to_owned());
        }
    }
    found.retain(|name| !name.starts_with("laboro") && !name.starts_with('#'));
    found
}
