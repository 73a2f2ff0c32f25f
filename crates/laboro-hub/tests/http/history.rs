//! What the hub remembers of the last while, and what it says at a glance.

use crate::rig::{Rig, eventually};
use laboro_api::{History, JobHistory, Me, Overview};
use laboro_core::Outcome;

const FOUR: &str = r#"{"name": "four", "tasks": [{"command": "true", "count": 4}]}"#;

async fn worked_off(rig: &Rig) -> u32 {
    let job = rig.submit(FOUR).await.job;
    let worker = rig.join("w", "default", 4).await;
    let grants = rig.take(&worker, 4).await;
    rig.report(&worker, &grants[..3], Outcome::Success).await;
    rig.report(&worker, &grants[3..], Outcome::Exit(3)).await;
    job
}

#[tokio::test]
async fn a_job_has_durations_spans_and_failures() {
    let rig = Rig::start().await;
    let job = worked_off(&rig).await;
    let client = rig.client("watch");
    let mut past = JobHistory::default();
    eventually(async || {
        past = client.get(&format!("jobs/{job}/history")).await.unwrap();
        past.failed == 1
    })
    .await;
    assert!(past.whole);
    assert_eq!((past.started, past.done, past.failed), (4, 3, 1));
    assert_eq!((past.spans.len(), past.slowest.len(), past.every), (4, 4, 1));
    assert_eq!(past.durations.count, 4);
    assert_eq!(past.failures.len(), 1);
    assert_eq!((past.workers[0].done, past.workers[0].failed), (3, 1));
}

#[tokio::test]
async fn throughput_is_sampled_while_nobody_looks() {
    let rig = Rig::start().await;
    worked_off(&rig).await;
    let client = rig.client("watch");
    eventually(async || {
        let past: History = client.get("history").await.unwrap();
        past.seconds.iter().map(|sample| sample.done).sum::<u64>() == 3
    })
    .await;
    let past: History = client.get("history").await.unwrap();
    let first = past.seconds[0].at_ms;
    let rest: History = client.get(&format!("history?after_ms={first}")).await.unwrap();
    assert!(rest.seconds.iter().all(|sample| sample.at_ms > first), "{rest:?}");
    let own: History = rig.client("watch@default").get("history").await.unwrap();
    assert_eq!(own.seconds.iter().map(|sample| sample.failed).sum::<u64>(), 1);
}

#[tokio::test]
async fn an_overview_tells_what_a_person_should_look_at() {
    let rig = Rig::start().await;
    rig.submit(FOUR).await;
    let seen: Overview = rig.client("watch").get("overview").await.unwrap();
    let kinds: Vec<&str> = seen.warnings.iter().map(|warning| warning.kind.as_str()).collect();
    assert!(kinds.contains(&"no_workers"), "{kinds:?}");
    assert!(seen.disk.is_some());
    let other: Overview = rig.client("watch@elsewhere").get("overview").await.unwrap();
    assert!(other.warnings.is_empty() && other.disk.is_none(), "{other:?}");
}

#[tokio::test]
async fn a_token_says_who_it_is() {
    let rig = Rig::start().await;
    let me: Me = rig.client("submit@lab").get("me").await.unwrap();
    assert_eq!((me.role.as_str(), me.group.as_deref()), ("submit", Some("lab")));
}
