//! What pools, hooks and schedules keep: documents of the journal, and the files of an earlier version.

use laboro_core::{DocumentChange, Event, Ledger, Name, Time};
use laboro_hub::process::read_kept;
use std::sync::Arc;

const FILES: [&str; 3] = ["hooks.jsonl", "schedules.json", "pools.json"];
const KINDS: [&str; 6] = ["hooks", "delivery", "schedule", "pools", "pool", "allocation"];

/// The first byte says which file it is, or that each line is a document: its kind as a digit, a name and a text.
/// What was taken over once is not taken over again.
pub(crate) fn kept(bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first() else { return };
    let dir = tempfile::tempdir().expect("a directory for the files");
    let mut ledger = Ledger::default();
    match FILES.get(usize::from(first % 4)) {
        Some(file) => {
            let path = dir.path().join(file);
            std::fs::write(&path, rest).expect("the file is written");
            set_private(&path);
        }
        None => {
            for line in rest.split(|&byte| byte == b'\n') {
                let Some((kind, line)) = line.split_first() else { continue };
                let mut words = line.splitn(2, |&byte| byte == b' ');
                let (Some(name), Some(body)) = (words.next(), words.next()) else { continue };
                let kind = KINDS[usize::from(*kind) % KINDS.len()];
                let name = String::from_utf8_lossy(name);
                apply(&mut ledger, &[DocumentChange::set(kind, &name, body)]);
            }
        }
    }
    let Ok(changes) = read_kept(&ledger, dir.path()) else { return };
    apply(&mut ledger, &changes);
    let before = all(&ledger);
    let again = read_kept(&ledger, dir.path()).expect("what was written is read");
    apply(&mut ledger, &again);
    assert_eq!(all(&ledger), before, "the same files are taken over once");
}

fn apply(ledger: &mut Ledger, changes: &[DocumentChange]) {
    for change in changes {
        ledger.apply(Time(0), &Event::DocumentChanged(Box::new(change.clone())));
    }
}

fn all(ledger: &Ledger) -> Vec<(Name, Arc<[u8]>)> {
    let kinds = KINDS.map(Name::from);
    let all = kinds.iter().flat_map(|kind| ledger.documents_of(kind));
    all.map(|(name, body)| (name.clone(), body.clone())).collect()
}

fn set_private(path: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(path, mode).expect("its mode is set");
}
