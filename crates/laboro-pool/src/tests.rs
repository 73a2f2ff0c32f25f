//! Pools as scenarios: what is ready and what the batch system says goes in, what is started and why comes out.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod commands;
mod demand;
mod lives;

use super::*;
use laboro_core::{Backlog, Needs};

fn spec(kind: PoolKind) -> PoolSpec {
    let json = format!(
        r#"{{"name":"long","kind":"{}","slots":4,"backlog":2,"max_allocations":3}}"#,
        kind.word()
    );
    serde_json::from_str(&json).unwrap()
}

fn tasks(tasks: u64) -> Backlog {
    Backlog { needs: Needs::default().into(), limit_ms: None, tasks }
}

#[test]
fn a_pool_that_could_not_work_is_refused_with_the_reason() {
    let good = spec(PoolKind::Slurm);
    assert_eq!(check(&good), Ok(()));
    let cases: Vec<(PoolSpec, &str)> = vec![
        (PoolSpec { name: "a/b".into(), ..good.clone() }, "not the name"),
        (PoolSpec { name: "..".into(), ..good.clone() }, "not the name"),
        (PoolSpec { slots: 0, ..good.clone() }, "slot"),
        (PoolSpec { backlog: 0, ..good.clone() }, "backlog"),
        (PoolSpec { max_allocations: 100_000, ..good.clone() }, "at most"),
        (PoolSpec { time_limit_ms: Some(1), ..good.clone() }, "minute"),
        (PoolSpec { via: Some("login".into()), ..good.clone() }, "ssh:HOST"),
        (PoolSpec { via: Some("ssh:-oProxyCommand=x".into()), ..good.clone() }, "ssh:HOST"),
        (PoolSpec { tags: vec!["a\nb".into()], ..good.clone() }, "control"),
        (spec(PoolKind::Ssh), "machines"),
        (PoolSpec { arguments: vec!["-x".into()], ..spec(PoolKind::Ssh) }, "machine"),
        (spec(PoolKind::Command), "submits"),
        (PoolSpec { arguments: vec!["x".into()], ..spec(PoolKind::Command) }, "list"),
    ];
    for (wrong, words) in cases {
        let told = check(&wrong).unwrap_err();
        assert!(told.contains(words), "{told}");
    }
}
