//! Pools as documents: what comes back is what was, and only what changed is written.

use super::kept::{changes, open};
use super::tokens::PoolTokens;
use crate::documents::Opening;
use laboro_api::PoolSpec;
use laboro_core::{Event, Ledger, Time};
use laboro_pool::{Pool, State};
use std::path::Path;

fn pool(name: &str) -> Pool {
    let json =
        format!(r#"{{"name":"{name}","kind":"slurm","slots":4,"backlog":2,"max_allocations":3}}"#);
    let spec: PoolSpec = serde_json::from_str(&json).unwrap();
    Pool::new(spec, 0)
}

fn apply(ledger: &mut Ledger, before: &State, after: &State) -> Vec<String> {
    let changes = changes(before, after);
    for change in &changes {
        ledger.apply(Time(0), &Event::DocumentChanged(Box::new(change.clone())));
    }
    changes.iter().map(|change| format!("{}/{}", change.id.kind, change.id.name)).collect()
}

fn back(ledger: &Ledger) -> State {
    open(&mut Opening::of(ledger), Path::new("/nowhere")).unwrap()
}

fn same(one: &State, other: &State) {
    assert_eq!((one.last_number, &one.pools), (other.last_number, &other.pools));
}

#[test]
fn only_what_changed_is_written_and_all_of_it_comes_back() {
    let (mut ledger, empty) = (Ledger::default(), State::default());
    let pools = vec![pool("night"), pool("a")];
    let state = State { last_number: 7, pools, ..State::default() };
    let written = apply(&mut ledger, &empty, &state);
    assert_eq!(written, ["pools/numbers", "pool/night", "pool/a"]);
    same(&back(&ledger), &state);

    let mut next = state.clone();
    next.last_number = 8;
    next.pools[0].submitting(8, 1000);
    let written = apply(&mut ledger, &state, &next);
    assert_eq!(written, ["pools/numbers", "pool/night", "allocation/night/8"]);
    same(&back(&ledger), &next);

    // What the batch system says of one allocation is one document.
    let state = next.clone();
    next.pools[0].allocations[0].note = Some("as it was".into());
    assert_eq!(apply(&mut ledger, &state, &next), ["allocation/night/8"]);
    same(&back(&ledger), &next);

    let state = next.clone();
    next.pools.remove(0);
    apply(&mut ledger, &state, &next);
    same(&back(&ledger), &next);
    assert_eq!(ledger.documents_of(&"allocation".into()).count(), 0);
}

#[test]
fn the_token_of_a_pool_is_known_to_the_hub_that_takes_over() {
    let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let spec = pool("night").spec;
    let give = |dir: &Path, own| PoolTokens::of(dir).give(&spec, own, Time(0)).unwrap();
    let token = give(a.path(), None);
    assert!(give(a.path(), None) == token && give(a.path(), Some(token.clone())) == token);
    let share = |from: &Path, to: &Path| {
        for file in ["tokens.toml", "pools.toml"] {
            std::fs::copy(from.join(file), to.join(file)).unwrap();
        }
    };
    share(a.path(), b.path());
    assert!(give(b.path(), None) == token);
    // It was revoked there: what this hub still has in its own file is of no use.
    PoolTokens::of(b.path()).take_back("night").unwrap();
    share(b.path(), a.path());
    assert!(give(a.path(), Some(token.clone())) != token);
}
