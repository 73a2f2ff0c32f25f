//! Submitting in one piece, and looking at what is there.

use crate::rig::{Rig, json_of};
use laboro_api::client::ClientError;
use laboro_api::{self as api, JobState, TaskState};

#[tokio::test]
async fn a_job_can_be_submitted_and_looked_at() {
    let rig = Rig::start().await;
    let submitted = rig
        .submit(
            r#"{"name":"fit","max_fails":2,"defaults":{"dir":"/data","env":{"A":"1"}},"tasks":[
                {"name":"prep","command":"mkdir out","timeout_ms":5000},
                {"name":"fit","command":["fit","{}"],"values":["a","b"],"after":["prep"],"slots":2},
                {"name":"plot","script":{"kind":".sh","body":"plot"},"each":["fit"],"count":2,
                 "resources":{"gpu":1},"tags":["fast"],"priority":3}]}"#,
        )
        .await;
    assert_eq!(submitted, api::Submitted { job: 1, first: 1, count: 5, again: false });

    let client = rig.client("watch");
    let job: api::Job = client.get("jobs/1").await.unwrap();
    assert_eq!((job.tasks, job.counts.ready, job.counts.waiting), (5, 1, 4));
    assert_eq!((job.name, job.max_fails), ("fit".into(), Some(2)));

    // Arrays have the first numbers, then come the single tasks.
    let task: api::Task = client.get("jobs/1/tasks/2").await.unwrap();
    assert_eq!((task.name, task.state), ("fit.2".into(), TaskState::Waiting));
    let work = task.work.unwrap();
    assert_eq!(work.command, Some(api::Line::Argv(vec!["fit".into(), "{}".into()].into())));
    assert_eq!((work.value, work.element, work.slots), (Some("b".into()), Some(2), 2));
    assert_eq!((work.dir, work.env["A"].clone()), (Some("/data".into()), "1".into()));
    let task: api::Task = client.get("groups/default/tasks/plot.1").await.unwrap();
    let work = task.work.unwrap();
    let one = api::ResourceRequest(laboro_core::Request::whole(1));
    assert_eq!((work.script_kind.as_deref(), work.resources["gpu"]), (Some(".sh"), one));
    let task: api::Task = client.get("groups/default/tasks/prep").await.unwrap();
    assert_eq!((task.task, task.work.unwrap().timeout_ms), (5, Some(5000)));
    let why: api::Explained = client.get("groups/default/tasks/fit.1/explain").await.unwrap();
    assert!(why.explanation.contains("prep"), "{}", why.explanation);
    let why: api::Explained = client.get("jobs/1/tasks/1/explain").await.unwrap();
    assert_eq!((why.job, why.task), (1, 1));
}

#[tokio::test]
async fn a_second_submit_with_the_same_key_is_the_first() {
    let rig = Rig::start().await;
    let json = r#"{"key":"k","tasks":[{"command":"true"},{"command":"true"}]}"#;
    assert!(!rig.submit(json).await.again);
    let second = rig.submit(json).await;
    assert_eq!(second, api::Submitted { job: 1, first: 1, count: 2, again: true });
}

#[tokio::test]
async fn ten_million_elements_are_submitted_in_constant_size() {
    let rig = Rig::start().await;
    let submitted = rig.submit(r#"{"tasks":[{"command":"echo {}","count":10000000}]}"#).await;
    assert_eq!(submitted.count, 10_000_000);
    let task: api::Task = rig.client("watch").get("jobs/1/tasks/9999999").await.unwrap();
    assert_eq!(task.work.unwrap().value, Some("9999999".into()));
}

#[tokio::test]
async fn what_is_wrong_is_refused_with_a_stable_word_and_leaves_nothing() {
    let rig = Rig::start().await;
    let client = rig.client("submit");
    for (json, status, reason) in [
        (r#"{"taks":[]}"#, 400, "unknown_field"),
        (r#"{"tasks":[{"comand":"x"}]}"#, 400, "unknown_field"),
        (r#"{"tasks":[{"command":7}]}"#, 400, "bad_value"),
        (r#"{"tasks":[{"command":[]}]}"#, 422, "bad_task"),
        (r#"{"tasks":[{}]}"#, 422, "bad_task"),
        (r#"{"tasks":[{"count":3}]}"#, 422, "bad_task"),
        (r#"{"tasks":[{"command":"x","attempts":0}]}"#, 422, "bad_task"),
        (r#"{"tasks":[{"command":"x","slots":0}]}"#, 422, "bad_task"),
        (r#"{"tasks":[{"command":"x","timeout_ms":0}]}"#, 422, "bad_task"),
        (r#"{"tasks":[{"command":"x","retry_on":[1,300]}]}"#, 422, "bad_task"),
        (r#"{"tasks":[{"command":"x","resources":{"x y":1}}]}"#, 422, "bad_task"),
        (r#"{"tasks":[{"command":"x","tags":[""]}]}"#, 422, "bad_task"),
        (r#"{"defaults":{"slots":0},"tasks":[{"command":"x"}]}"#, 422, "bad_task"),
        (r#"{"max_running":0,"tasks":[{"command":"x"}]}"#, 400, "bad_value"),
        (r#"{"key":"","tasks":[{"command":"x"}]}"#, 400, "bad_value"),
        (r#"{"tasks":[{"name":"a","after":["b"]}]}"#, 422, "unknown_predecessor"),
        (r#"{"tasks":[{"name":"a","after":["a"]}]}"#, 422, "cycle"),
        (r#"{"tasks":[{"name":"a"},{"name":"a"}]}"#, 422, "name_twice"),
        (r#"{"group":"","tasks":[]}"#, 422, "bad_name"),
    ] {
        match client.post::<_, api::Submitted>("jobs", &json_of(json)).await {
            Err(ClientError::Refused(problem)) => {
                assert_eq!((problem.status, problem.reason.as_str()), (status, reason), "{json}");
                assert!(!problem.detail.is_empty() && !problem.title.is_empty(), "{problem:?}");
            }
            other => panic!("{json}: {other:?}"),
        }
    }
    for empty in ["", " \n"] {
        let (head, body) = rig.raw("POST /api/v1/jobs", "", empty).await;
        assert!(head.starts_with("HTTP/1.1 400"), "{head}");
        assert_eq!(json_of(&body)["reason"], "no_body");
    }
    let (head, body) = rig.raw("POST /api/v1/jobs", "", r#"{"tasks":["#).await;
    assert!(head.starts_with("HTTP/1.1 400"), "{head}");
    assert!(head.contains("content-type: application/problem+json"), "{head}");
    assert_eq!(json_of(&body)["reason"], "malformed");
    let jobs: api::Jobs = client.get("jobs").await.unwrap();
    assert!(jobs.jobs.is_empty());
}

#[tokio::test]
async fn an_open_job_takes_more_until_it_is_closed() {
    let rig = Rig::start().await;
    rig.submit(r#"{"open":true,"tasks":[{"command":"true"}]}"#).await;
    let client = rig.client("submit");
    let more = json_of(r#"{"tasks":[{"command":"a"},{"command":"b","count":3}]}"#);
    let added: api::Submitted = client.post("jobs/1/tasks", &more).await.unwrap();
    assert_eq!((added.first, added.count), (2, 4));
    let closed: api::Job = client.post("jobs/1/close", &()).await.unwrap();
    assert_eq!((closed.open, closed.tasks), (false, 5));
    let refused = client.post::<_, api::Submitted>("jobs/1/tasks", &more).await.unwrap_err();
    assert_eq!(refused.reason(), Some("job_closed"));
}

#[tokio::test]
async fn jobs_come_in_pages_in_both_orders_and_filtered() {
    let rig = Rig::start().await;
    for number in 0..25 {
        let (name, held) = (["even", "odd"][number % 2], number % 5 == 0);
        rig.submit(&format!(r#"{{"name":"{name}","held":{held},"tasks":[{{"command":"true"}}]}}"#))
            .await;
    }
    let client = rig.client("watch");
    for (order, first, last) in [("oldest", 1, 25), ("newest", 25, 1)] {
        let mut seen = Vec::new();
        let mut from = String::new();
        loop {
            let path = format!("jobs?limit=10&order={order}{from}");
            let page: api::Jobs = client.get(&path).await.unwrap();
            assert!(page.jobs.len() <= 10);
            seen.extend(page.jobs.iter().map(|job| job.job));
            match page.next {
                Some(next) => from = format!("&from={next}"),
                None => break,
            }
        }
        assert_eq!((seen.len(), seen[0], seen[24]), (25, first, last));
    }
    let odd: api::Jobs = client.get("jobs?name=odd&limit=100").await.unwrap();
    assert_eq!(odd.jobs.len(), 12);
    let held: api::Jobs = client.get("jobs?state=held").await.unwrap();
    assert_eq!(held.jobs.len(), 5);
    assert!(held.jobs.iter().all(|job| job.state == JobState::Held));
    let refused = client.get::<api::Jobs>("jobs?stat=held").await.unwrap_err();
    assert_eq!(refused.reason(), Some("unknown_field"));
    let refused = client.get::<api::Jobs>("jobs?group=nowhere").await.unwrap_err();
    assert_eq!(refused.reason(), Some("no_such_group"));
}

#[tokio::test]
async fn tasks_come_in_pages_by_state() {
    let rig = Rig::start().await;
    rig.submit(r#"{"tasks":[{"command":"true","count":30}]}"#).await;
    let worker = rig.join("w", "default", 5).await;
    let grants = rig.take(&worker, 5).await;
    rig.report(&worker, &grants[..2], laboro_core::Outcome::Exit(3)).await;
    let client = rig.client("watch");
    let page: api::Tasks = client.get("jobs/1/tasks?limit=12").await.unwrap();
    assert_eq!((page.tasks.len(), page.next), (12, Some(13)));
    let page: api::Tasks = client.get("jobs/1/tasks?from=25&limit=12").await.unwrap();
    assert_eq!((page.tasks.len(), page.next), (6, None));
    let page: api::Tasks = client.get("jobs/1/tasks?state=failed").await.unwrap();
    assert_eq!(page.tasks.len(), 2);
    let job: api::Job = client.get("jobs/1").await.unwrap();
    assert_eq!(job.state, JobState::Running);
    assert_eq!(job.failures[0].outcome.to_string(), "exit code 3");
    assert_eq!(job.failures[0].count, 2);
    for (path, reason) in [
        ("jobs/1/tasks?state=tired", "bad_query"),
        ("jobs/2/tasks", "no_such_job"),
        ("jobs/1/tasks/31", "no_such_task"),
        ("jobs/1/tasks/0", "no_such_task"),
        ("jobs/1/tasks/4294967295", "no_such_task"),
        ("jobs/x", "bad_path"),
    ] {
        let refused = client.get::<serde_json::Value>(path).await.unwrap_err();
        assert_eq!(refused.reason(), Some(reason), "{path}");
    }
}

#[tokio::test]
async fn names_that_are_no_text_go_in_and_come_out() {
    let rig = Rig::start().await;
    rig.submit(r#"{"tasks":[{"name":{"base64":"/w=="},"command":["a",{"base64":"/g=="}]}]}"#).await;
    let (_, body) = rig.raw("GET /api/v1/jobs/1/tasks/1", "", "").await;
    let task = json_of(&body);
    assert_eq!(task["name"], json_of(r#"{"base64":"/w=="}"#));
    assert_eq!(task["work"]["command"], json_of(r#"["a",{"base64":"/g=="}]"#));
}

#[tokio::test]
async fn what_a_route_does_not_take_is_refused_by_its_name_and_nothing_is_done() {
    let rig = Rig::start().await;
    rig.submit(r#"{"open":true,"tasks":[{"name":"nm","command":"true"}]}"#).await;
    for (request, body, reason) in [
        ("POST groups/default/tasks/nm/hold", r#"{"x":1}"#, "unknown_field"),
        ("POST groups/default/pause", r#"{"x":1}"#, "unknown_field"),
        ("POST jobs/1/close", r#"{"x":1}"#, "unknown_field"),
        ("POST jobs/1/close", "[]", "bad_value"),
        ("POST jobs?x=1", r#"{"tasks":[]}"#, "unknown_field"),
        ("POST jobs/1/hold?x=1", "{}", "unknown_field"),
        ("GET jobs/1?x=1", "", "unknown_field"),
        ("GET groups?x=1", "", "unknown_field"),
        ("GET jobs?state=bogus", "", "bad_query"),
        ("GET jobs/1/tasks?state=bogus", "", "bad_query"),
        ("POST jobs/1/limit", r#"{"max_running":0}"#, "bad_value"),
    ] {
        let (verb, path) = request.split_once(' ').unwrap();
        let (head, told) = rig.raw(&format!("{verb} /api/v1/{path}"), "", body).await;
        assert!(head.starts_with("HTTP/1.1 400"), "{request}: {head}");
        assert!(told.contains(reason), "{request}: {told}");
    }
    let job: api::Job = rig.client("watch").get("jobs/1").await.unwrap();
    assert_eq!((job.counts.ready, job.open, job.max_running), (1, true, None));
    let groups: api::Groups = rig.client("watch").get("groups").await.unwrap();
    assert!(!groups.groups[0].paused);
    let (head, _) = rig.raw("HEAD /api/v1/jobs?limit=1", "", "").await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    // What may be said is, with and without a body.
    for (path, body) in [("jobs/1/close", ""), ("groups/default/pause", "{}")] {
        let (head, told) = rig.raw(&format!("POST /api/v1/{path}"), "", body).await;
        assert!(head.starts_with("HTTP/1.1 200"), "{path}: {head} {told}");
    }
}

#[tokio::test]
async fn an_element_comes_after_what_its_array_comes_after() {
    let rig = Rig::start().await;
    rig.submit(
        r#"{"tasks":[{"name":"d0","command":"x"},
            {"name":"d1","command":"x","count":3,"after":["d0"]},
            {"name":"d2","command":"x","count":3,"each":["d1"]}]}"#,
    )
    .await;
    let client = rig.client("watch");
    let after = async |name: &str| {
        let task: api::Task = client.get(&format!("groups/default/tasks/{name}")).await.unwrap();
        task.after
    };
    assert_eq!(after("d1.2").await, [api::After::Task { job: 1, task: 7 }]);
    assert_eq!(after("d2.3").await, [api::After::Task { job: 1, task: 3 }]);
}
