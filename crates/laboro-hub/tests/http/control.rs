//! What people do to jobs, tasks, groups and workers, and the log of it.

use crate::rig::{Rig, json_of};
use laboro_api::client::Client;
use laboro_api::{self as api, JobState, Standing, TaskState};
use laboro_core::Outcome;

async fn change(client: &Client, path: &str, body: &str) -> Result<u64, String> {
    match client.post::<_, api::Changed>(path, &json_of(body)).await {
        Ok(changed) => Ok(changed.tasks),
        Err(error) => Err(error.reason().unwrap_or("broken").to_owned()),
    }
}

#[tokio::test]
async fn selections_are_held_released_cancelled_and_retried() {
    let rig = Rig::start().await;
    rig.submit(r#"{"tasks":[{"name":"a","command":"true","count":10}]}"#).await;
    let client = rig.client("submit");
    assert_eq!(change(&client, "jobs/1/hold", r#"{"tasks":"1-3,9"}"#).await, Ok(4));
    assert_eq!(change(&client, "jobs/1/release", r#"{"tasks":"1"}"#).await, Ok(1));
    assert_eq!(change(&client, "jobs/1/cancel", r#"{"state":"held"}"#).await, Ok(3));
    assert_eq!(change(&client, "jobs/1/retry", r#"{"tasks":"2"}"#).await, Ok(1));
    assert_eq!(change(&client, "jobs/1/priority", r#"{"tasks":"5","priority":9}"#).await, Ok(1));
    let task: api::Task = client.get("jobs/1/tasks/5").await.unwrap();
    assert_eq!(task.priority, 9);
    assert_eq!(change(&client, "jobs/1/hold", "{}").await, Ok(8));
    let job: api::Job = client.get("jobs/1").await.unwrap();
    assert_eq!(job.state, JobState::Held);
    assert_eq!(change(&client, "jobs/1/release", "{}").await, Ok(8));

    let refused = |reason: &str| Err(reason.to_owned());
    assert_eq!(
        change(&client, "jobs/1/cancel", r#"{"tasks":"3"}"#).await,
        refused("nothing_selected")
    );
    assert_eq!(
        change(&client, "jobs/1/cancel", r#"{"tasks":"x"}"#).await,
        refused("bad_selection")
    );
    assert_eq!(change(&client, "jobs/1/cancel", r#"{"task":"1"}"#).await, refused("unknown_field"));
    assert_eq!(change(&client, "jobs/7/cancel", "{}").await, refused("no_such_job"));
    assert_eq!(change(&client, "jobs/1/priority", "{}").await, refused("bad_value"));

    let limited: api::Job = client
        .post("jobs/1/limit", &json_of(r#"{"max_running":2,"max_fails":null}"#))
        .await
        .unwrap();
    assert_eq!((limited.max_running, limited.max_fails), (Some(2), None));
}

#[tokio::test]
async fn many_jobs_are_changed_by_one_request() {
    let rig = Rig::start().await;
    let (ann, bob) = (rig.client("submit:ann"), rig.client("submit:bob"));
    for (client, name) in [(&ann, "night-1"), (&ann, "night-2"), (&bob, "night-3"), (&ann, "day")] {
        let job = format!(r#"{{"name":"{name}","tasks":[{{"command":"true","count":3}}]}}"#);
        client.post::<_, api::Submitted>("jobs", &json_of(&job)).await.unwrap();
    }
    let bulk =
        async |body: &str| match ann.post::<_, api::BulkChanged>("bulk", &json_of(body)).await {
            Ok(changed) => {
                let told = |one: &api::BulkJob| match &one.reason {
                    Some(reason) => format!("{} {reason}", one.job),
                    None => format!("{} {}", one.job, one.tasks),
                };
                changed.jobs.iter().map(told).collect::<Vec<_>>().join(", ")
            }
            Err(error) => error.reason().unwrap_or("broken").to_owned(),
        };
    for (body, said) in [
        (r#"{"action":"hold","select":["night*"],"dry_run":true}"#, "1 3, 2 3"),
        (r#"{"action":"hold","select":["night*"]}"#, "1 3, 2 3"),
        (r#"{"action":"release","select":["held"]}"#, "1 3, 2 3"),
        (r#"{"action":"hold","select":["4/1-2"]}"#, "4 2"),
        // Others' jobs are meant only where everybody's are, or by their numbers; and are not ann's to change.
        (r#"{"action":"hold","select":["night*"],"everybody":true}"#, "1 3, 2 3, 3 not_owner"),
        (r#"{"action":"cancel","select":["1-3","day"]}"#, "1 3, 2 3, 3 not_owner, 4 3"),
        (r#"{"action":"cancel","select":["1","3"]}"#, "1 nothing_selected, 3 not_owner"),
        (r#"{"action":"cancel","select":["all"]}"#, ""),
        (r#"{"action":"retry","select":["last"]}"#, "4 nothing_selected"),
        (r#"{"action":"forget","select":["mine"]}"#, "1 3, 2 3, 4 3"),
        (r#"{"action":"forget","select":["3/1"]}"#, "3 bad_selection"),
        (r#"{"action":"cancel","select":["7"]}"#, "no_such_job"),
        (r#"{"action":"cancel","select":["nobody"]}"#, "no_such_job"),
        (r#"{"action":"cancel","select":["8-4"]}"#, "bad_selection"),
        (r#"{"action":"cancel","select":["3","3/1"]}"#, "bad_selection"),
        (r#"{"action":"eat","select":["all"]}"#, "bad_value"),
    ] {
        assert_eq!(bulk(body).await, said, "{body}");
    }
}

#[tokio::test]
async fn a_job_is_changed_by_its_owner_and_by_admins() {
    let rig = Rig::start().await;
    let (ann, bob) = (rig.client("submit:ann"), rig.client("submit:bob"));
    let job = json_of(r#"{"open":true,"key":"night","tasks":[{"name":"a","command":"true"}]}"#);
    let made: api::Submitted = ann.post("jobs", &job).await.unwrap();
    let own: api::Job = bob.get("jobs/1").await.unwrap();
    assert_eq!((made.job, own.owner), (1, Some("ann".into())), "everybody sees whose it is");

    let refused = || Err("not_owner".to_owned());
    for verb in ["hold", "release", "cancel", "retry"] {
        assert_eq!(change(&bob, &format!("jobs/1/{verb}"), "{}").await, refused(), "{verb}");
    }
    assert_eq!(change(&bob, "jobs/1/priority", r#"{"priority":9}"#).await, refused());
    assert_eq!(change(&bob, "groups/default/tasks/a/cancel", "{}").await, refused());
    for (path, body) in [
        ("jobs/1/limit", r#"{"max_running":1}"#),
        ("jobs/1/close", "{}"),
        ("jobs/1/tasks", r#"{"tasks":[{"name":"b","command":"true"}]}"#),
    ] {
        let answer = bob.post::<_, serde_json::Value>(path, &json_of(body)).await;
        assert_eq!(answer.unwrap_err().reason(), Some("not_owner"), "{path}");
    }
    let gone = bob.delete::<api::Changed>("jobs/1").await;
    assert_eq!(gone.unwrap_err().reason(), Some("not_owner"));

    assert_eq!(change(&ann, "jobs/1/hold", "{}").await, Ok(1));
    assert_eq!(change(&rig.client("admin:eve"), "jobs/1/release", "{}").await, Ok(1));

    // A key is its owner's, and so is a list.
    let again: api::Submitted = ann.post("jobs", &job).await.unwrap();
    let job = json_of(r#"{"key":"night","tasks":[{"name":"b","command":"true"}]}"#);
    let other: api::Submitted = bob.post("jobs", &job).await.unwrap();
    assert_eq!(((again.job, again.again), (other.job, other.again)), ((1, true), (2, false)));
    for (query, found) in [("mine=true", vec![2]), ("owner=ann", vec![1]), ("", vec![1, 2])] {
        let page: api::Jobs = bob.get(&format!("jobs?{query}")).await.unwrap();
        let jobs: Vec<u32> = page.jobs.into_iter().map(|job| job.job).collect();
        assert_eq!(jobs, found, "{query}");
    }
    let log: api::AuditPage = rig.client("admin:eve").get("audit?limit=1").await.unwrap();
    let [entry] = &log.entries[..] else { panic!("{log:?}") };
    assert_eq!((&*entry.token, entry.owner.as_deref()), ("submit:bob", Some("bob")));
}

#[tokio::test]
async fn a_task_is_controlled_by_its_name() {
    let rig = Rig::start().await;
    rig.submit(r#"{"tasks":[{"name":"a b/c","command":"true"},{"name":"s","count":3}]}"#).await;
    let client = rig.client("submit");
    let name = laboro_api::client::segment("a b/c");
    let path = format!("groups/default/tasks/{name}");
    assert_eq!(change(&client, &format!("{path}/hold"), "{}").await, Ok(1));
    let task: api::Task = client.get(&path).await.unwrap();
    assert_eq!(task.state, TaskState::Held);
    assert_eq!(change(&client, &format!("{path}/release"), "{}").await, Ok(1));
    let priority = format!("{path}/priority");
    assert_eq!(change(&client, &priority, r#"{"priority":-4}"#).await, Ok(1));
    assert_eq!(change(&client, "groups/default/tasks/s.2/cancel", "{}").await, Ok(1));
    assert_eq!(change(&client, "groups/default/tasks/s.2/retry", "{}").await, Ok(1));
    let bad = change(&client, "groups/default/tasks/s.2/dance", "{}").await;
    assert_eq!(bad, Err("bad_path".to_owned()));
    let none = change(&client, "groups/default/tasks/nobody/cancel", "{}").await;
    assert_eq!(none, Err("no_such_task".to_owned()));
}

#[tokio::test]
async fn a_finished_job_can_be_forgotten_and_a_running_one_not() {
    let rig = Rig::start().await;
    rig.submit(r#"{"tasks":[{"command":"true"}]}"#).await;
    let client = rig.client("submit");
    let refused = client.delete::<api::Changed>("jobs/1").await.unwrap_err();
    assert_eq!(refused.reason(), Some("job_not_finished"));
    assert_eq!(change(&client, "jobs/1/cancel", "{}").await, Ok(1));
    let gone: api::Changed = client.delete("jobs/1").await.unwrap();
    assert_eq!(gone.tasks, 1);
    let refused = client.get::<api::Job>("jobs/1").await.unwrap_err();
    assert_eq!(refused.reason(), Some("no_such_job"));
}

#[tokio::test]
async fn a_group_can_be_paused_and_resumed() {
    let rig = Rig::start().await;
    rig.submit(r#"{"tasks":[{"command":"true","count":2}]}"#).await;
    let worker = rig.join("w", "default", 2).await;
    let client = rig.client("admin");
    let group: api::Group = client.post("groups/default/pause", &()).await.unwrap();
    assert!(group.paused);
    assert!(rig.take(&worker, 1).await.is_empty());
    let group: api::Group = client.post("groups/default/resume", &()).await.unwrap();
    assert!(!group.paused);
    assert_eq!(rig.take(&worker, 1).await.len(), 1);
    let groups: api::Groups = client.get("groups").await.unwrap();
    assert_eq!((groups.groups.len(), groups.groups[0].counts.running), (1, 1));
}

#[tokio::test]
async fn workers_are_shown_drained_stopped_ejected_and_pardoned() {
    let rig = Rig::start().await;
    rig.submit(r#"{"tasks":[{"command":"true","count":9}]}"#).await;
    let worker = rig.join("w", "default", 4).await;
    rig.join("v", "default", 1).await;
    let grants = rig.take(&worker, 3).await;
    rig.report(&worker, &grants[..1], Outcome::Success).await;
    let client = rig.client("admin");
    let page: api::Workers = client.get("workers?limit=1").await.unwrap();
    assert_eq!((page.workers.len(), page.next.is_some()), (1, true));
    let next = page.next.unwrap();
    let rest: api::Workers = client.get(&format!("workers?limit=1&from={next}")).await.unwrap();
    assert_eq!((rest.workers.len(), rest.next), (1, None));
    let other = rest.workers[0].worker;
    let some: api::Workers = client.get(&format!("workers?numbers=77,{other}")).await.unwrap();
    assert_eq!((some.workers.len(), some.workers[0].worker), (1, other));
    let many = vec!["1"; 101].join(",");
    for wrong in ["x", "1,,2", &many] {
        let refused = client.get::<api::Workers>(&format!("workers?numbers={wrong}")).await;
        assert_eq!(refused.unwrap_err().reason(), Some("bad_query"), "{wrong}");
    }

    let shown: api::Worker = client.get("workers/w?group=default").await.unwrap();
    assert_eq!((shown.slots_used, shown.leases.len(), shown.succeeded), (2, 2, 1));
    let path = format!("workers/{}", shown.worker);
    let act = async |action: &str, body: &str| -> api::Worker {
        client.post(&format!("{path}/{action}"), &json_of(body)).await.unwrap()
    };
    assert!(act("drain", "{}").await.draining);
    assert!(!act("lift", "{}").await.draining);
    assert_eq!(act("stop", r#"{"slots":1}"#).await.slots, 3);
    assert_eq!(act("stop", "{}").await.lease_count, 0);
    let ejected = act("eject", r#"{"reason":"it smokes"}"#).await;
    assert_eq!(ejected.conduct.standing, Standing::Ejected);
    assert_eq!(ejected.conduct.reason.as_deref(), Some("it smokes"));
    assert_eq!(act("pardon", "{}").await.conduct.standing, Standing::Good);
    let refused = client.get::<api::Worker>("workers/w").await.unwrap_err();
    assert_eq!(refused.reason(), Some("bad_path"));
    let refused = client.get::<api::Worker>("workers/99").await.unwrap_err();
    assert_eq!(refused.reason(), Some("no_such_worker"));
}

#[tokio::test]
async fn who_did_what_is_written_down_and_survives_a_restart() {
    let rig = Rig::start().await;
    rig.submit(r#"{"tasks":[{"command":"true","count":5}]}"#).await;
    let submitter = rig.client("submit@default");
    change(&submitter, "jobs/1/cancel", r#"{"tasks":"2-3"}"#).await.unwrap();
    change(&submitter, "jobs/9/cancel", "{}").await.unwrap_err();
    submitter.get::<api::Job>("jobs/1").await.unwrap();
    let client = rig.client("admin");
    let page: api::AuditPage = client.get("audit?limit=2").await.unwrap();
    let told: Vec<_> = page
        .entries
        .iter()
        .map(|entry| (entry.token.as_str(), entry.action.as_str(), entry.status))
        .collect();
    assert_eq!(
        told,
        [
            ("submit@default", "POST /jobs/9/cancel", 404),
            ("submit@default", "POST /jobs/1/cancel", 200),
        ]
    );
    assert_eq!(page.entries[1].detail.as_deref(), Some("tasks 2-3"));
    assert_eq!(page.entries[1].peer.as_deref(), Some("127.0.0.1"));
    let next = page.next.unwrap();
    let rest: api::AuditPage = client.get(&format!("audit?before={next}")).await.unwrap();
    assert_eq!((rest.entries.len(), rest.next), (1, None));
    assert_eq!(rest.entries[0].detail.as_deref(), Some("job 1, 5 tasks"));

    let again = laboro_hub::http::Audit::open(rig.dir.path(), Default::default()).unwrap();
    again.write(api::AuditEntry::default());
    assert_eq!(again.read(None, 1).unwrap().entries[0].number, 4);
}

#[test]
fn the_audit_log_begins_new_files_and_forgets_the_oldest() {
    let dir = tempfile::tempdir().unwrap();
    let options = laboro_hub::http::AuditOptions { file_bytes: 300, files: 2 };
    let audit = laboro_hub::http::Audit::open(dir.path(), options).unwrap();
    for _ in 0..20 {
        let action = "POST /api/v1/jobs/1/cancel".to_owned();
        audit.write(api::AuditEntry { action, ..api::AuditEntry::default() });
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3);
    let page = audit.read(None, 1000).unwrap();
    let numbers: Vec<u64> = page.entries.iter().map(|entry| entry.number).collect();
    assert!(numbers.len() < 20 && numbers.is_sorted_by(|a, b| *a == b + 1), "{numbers:?}");
    assert_eq!(numbers[0], 20);
}
