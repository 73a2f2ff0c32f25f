//! Events as they happen, resumed and with gaps, and waiting for jobs.

use crate::rig::{Rig, json_of};
use laboro_api::client::{EventStream, ServerEvent};
use laboro_api::{self as api, EventKind, TaskState};
use laboro_core::Outcome;
use std::time::Duration;

/// The next event that is wanted.
async fn next(events: &mut EventStream, wanted: impl Fn(&api::Event) -> bool) -> api::Event {
    next_told(events, wanted).await.event
}

/// The same with its id.
async fn next_told(events: &mut EventStream, wanted: impl Fn(&api::Event) -> bool) -> ServerEvent {
    let found = async {
        loop {
            let told = events.next().await.unwrap().expect("the stream goes on");
            if wanted(&told.event) {
                return told;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), found).await.expect("it is told in time")
}

fn is(kind: EventKind) -> impl Fn(&api::Event) -> bool {
    move |event| event.kind == kind
}

#[tokio::test]
async fn changes_are_told_as_they_happen() {
    let rig = Rig::start().await;
    let client = rig.client("watch");
    let mut events = client.events("events", None).await.unwrap();
    rig.submit(r#"{"tasks":[{"command":"true","count":1000}]}"#).await;
    let event = next(&mut events, is(EventKind::Tasks)).await;
    assert_eq!((event.job, event.first, event.last), (Some(1), Some(1), Some(1000)));
    assert_eq!(event.state, Some(TaskState::Ready));
    assert!(event.at_ms > 0);
    let worker = rig.join("w", "default", 2).await;
    next(&mut events, is(EventKind::Worker)).await;
    let grants = rig.take(&worker, 1).await;
    rig.report(&worker, &grants, Outcome::Exit(4)).await;
    let failed = next(&mut events, |event| event.state == Some(TaskState::Failed)).await;
    assert_eq!(failed.outcome.unwrap().to_string(), "exit code 4");
    rig.client("admin").post::<_, api::Group>("groups/default/pause", &()).await.unwrap();
    next(&mut events, is(EventKind::Group)).await;
}

#[tokio::test]
async fn a_viewer_that_comes_back_misses_nothing() {
    let rig = Rig::start().await;
    let client = rig.client("watch");
    let mut events = client.events("events", None).await.unwrap();
    rig.submit(r#"{"name":"a","tasks":[{"command":"true"}]}"#).await;
    let last = next_told(&mut events, |event| event.job == Some(1)).await.id.unwrap();
    drop(events);
    rig.submit(r#"{"name":"b","tasks":[{"command":"true"}]}"#).await;
    let mut events = client.events("events", Some(&last)).await.unwrap();
    let event = next(&mut events, |event| event.job == Some(2) || event.kind == EventKind::Gap);
    assert_eq!(event.await.job, Some(2));
}

#[tokio::test]
async fn who_comes_back_too_late_is_told_of_the_gap() {
    let rig = Rig::start().await;
    let client = rig.client("watch");
    for old in ["1-5", "nonsense", "1"] {
        let mut events = client.events("events", Some(old)).await.unwrap();
        let first = events.next().await.unwrap().unwrap();
        assert_eq!(first.event.kind, EventKind::Gap, "{old}");
        assert!(first.id.is_some());
    }
}

#[tokio::test]
async fn a_viewer_that_does_not_keep_up_is_told_of_the_gap() {
    let rig = Rig::start().await;
    let client = rig.client("watch");
    let mut events = client.events("events", None).await.unwrap();
    // Each is an event or more, and they come in several windows: more than the ring, which
    // keeps 20 000, and the buffers of a connection hold.
    let mut submits = Vec::new();
    for _ in 0..24 {
        for _ in 0..4000 {
            let client = &rig.handle;
            let submit = laboro_core::Submit {
                group: "default".into(),
                job: laboro_core::SubmitTo::New(Default::default()),
                profiles: vec![laboro_core::Profile::default()],
                tasks: Vec::new(),
                arrays: vec![laboro_core::ArraySpec::numbered("", 1, laboro_core::Work::Named)],
                unknown_pred: laboro_core::UnknownPred::Refuse,
                if_taken: laboro_core::IfTaken::Refuse,
            };
            submits.push(client.ask(laboro_core::Command::Submit(submit)));
        }
        for submit in submits.drain(..) {
            submit.await.unwrap();
        }
    }
    next(&mut events, is(EventKind::Gap)).await;
}

#[tokio::test]
async fn a_viewer_of_one_job_is_told_of_that_job_only() {
    let rig = Rig::start().await;
    let client = rig.client("watch");
    rig.submit(r#"{"open":true,"tasks":[{"command":"true"}]}"#).await;
    rig.submit(r#"{"open":true,"tasks":[{"command":"true"}]}"#).await;
    let mut events = client.events("events?job=2", None).await.unwrap();
    let more = json_of(r#"{"tasks":[{"command":"true"}]}"#);
    for job in [1, 2] {
        let path = format!("jobs/{job}/tasks");
        rig.client("submit").post::<_, api::Submitted>(&path, &more).await.unwrap();
    }
    let event = events.next().await.unwrap().unwrap().event;
    assert_eq!(event.job, Some(2));
}

#[tokio::test]
async fn a_viewer_bound_to_a_group_is_told_of_that_group_only() {
    let rig = Rig::start().await;
    let mut events = rig.client("watch@b").events("events", None).await.unwrap();
    rig.submit(r#"{"group":"a","tasks":[{"command":"true"}]}"#).await;
    rig.join("wa", "a", 1).await;
    rig.submit(r#"{"group":"b","tasks":[{"command":"true"}]}"#).await;
    let worker = rig.join("wb", "b", 1).await;
    let mut seen = Vec::new();
    while seen.last().is_none_or(|event: &api::Event| event.kind != EventKind::Worker) {
        seen.push(next(&mut events, |_| true).await);
    }
    assert!(seen.iter().all(|event| event.job.is_none_or(|job| job == 2)), "{seen:?}");
    let laboro_core::WorkerRef::Id(worker) = worker else { panic!("a worker has an id") };
    assert!(seen.iter().all(|event| event.worker.is_none_or(|id| id == worker.0)), "{seen:?}");
}

#[tokio::test]
async fn a_wait_ends_when_the_job_does() {
    let rig = Rig::start().await;
    rig.submit(r#"{"tasks":[{"command":"true"}]}"#).await;
    rig.submit(r#"{"tasks":[{"command":"true"}]}"#).await;
    let worker = rig.join("w", "default", 2).await;
    let client = rig.client("watch");
    let waiting = tokio::spawn(async move {
        client.get::<api::Waited>("wait?jobs=1,2&timeout_ms=30000").await.unwrap()
    });
    for _ in 0..2 {
        let grants = rig.take(&worker, 1).await;
        rig.report(&worker, &grants, Outcome::Success).await;
    }
    let waited = waiting.await.unwrap();
    assert!(waited.finished);
    assert!(waited.jobs.iter().all(|job| job.ended_ms.is_some()));
}

#[tokio::test]
async fn a_wait_that_takes_too_long_says_so() {
    let rig = Rig::start().await;
    rig.submit(r#"{"tasks":[{"command":"true"}]}"#).await;
    let client = rig.client("watch");
    let waited: api::Waited = client.get("wait?jobs=1&timeout_ms=50").await.unwrap();
    assert!(!waited.finished);
    for (path, reason) in
        [("wait?jobs=1,9", "no_such_job"), ("wait?jobs=x", "bad_query"), ("wait", "bad_query")]
    {
        let refused = client.get::<api::Waited>(path).await.unwrap_err();
        assert_eq!(refused.reason(), Some(reason), "{path}");
    }
}

#[tokio::test]
async fn a_wait_until_idle_ends_when_only_a_person_can_go_on() {
    let rig = Rig::start().await;
    rig.submit(r#"{"tasks":[{"name":"a"},{"name":"b","after":["a"]},{"name":"c","after":["b"]}]}"#)
        .await;
    let worker = rig.join("w", "default", 1).await;
    let grants = rig.take(&worker, 1).await;
    rig.report(&worker, &grants, Outcome::Exit(1)).await;
    let client = rig.client("watch");
    let waited: api::Waited = client.get("wait?jobs=1&until=idle&timeout_ms=20000").await.unwrap();
    assert!(waited.finished, "{waited:?}");
    assert_eq!(waited.jobs[0].counts.failed, 1);
}
