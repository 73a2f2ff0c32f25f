//! Who may do what, and that a token bound to a group does not learn of others.

use crate::rig::{Rig, json_of};
use laboro_api as api;
use laboro_api::client::{Client, ClientError, Target, Upload};

async fn reason(client: &Client, method: &str, path: &str) -> String {
    let answer = match method {
        "GET" => client.get::<serde_json::Value>(path).await,
        "DELETE" => client.delete::<serde_json::Value>(path).await,
        _ => client.post::<_, serde_json::Value>(path, &json_of("{}")).await,
    };
    match answer {
        Ok(_) => "fine".to_owned(),
        Err(error) => error.reason().unwrap_or("broken").to_owned(),
    }
}

#[tokio::test]
async fn health_and_version_need_no_token_and_everything_else_does() {
    let rig = Rig::start().await;
    let client = Client::new(Target { token: None, ..rig.client("").target().clone() });
    let health: api::Health = client.get("health").await.unwrap();
    assert_eq!(health.status, "ok");
    let version: api::Version = client.get("version").await.unwrap();
    assert_eq!((version.version.as_str(), version.api.as_str()), (api::VERSION, api::API_VERSION));
    for path in ["jobs", "groups", "workers", "events", "metrics", "openapi.json", "audit"] {
        assert_eq!(reason(&client, "GET", path).await, "no_token", "{path}");
    }
    let (head, _) = rig.say("GET /api/v1/jobs HTTP/1.0\r\n\r\n").await;
    assert!(head.contains("401") && head.contains("www-authenticate: Bearer"), "{head}");
    let basic = "GET /api/v1/jobs HTTP/1.0\r\nauthorization: Basic YWRtaW4=\r\n\r\n";
    let (_, body) = rig.say(basic).await;
    assert_eq!(json_of(&body)["reason"], "bad_token");
    for (token, word) in
        [("?", "unknown_token"), ("old", "expired_token"), ("eager", "too_many_wrong_tokens")]
    {
        assert_eq!(reason(&rig.client(token), "GET", "jobs").await, word);
    }
}

#[tokio::test]
async fn every_role_may_do_its_part_and_no_more() {
    let rig = Rig::start().await;
    rig.submit(r#"{"tasks":[{"command":"true","count":5}]}"#).await;
    rig.join("w", "default", 1).await;
    let cases = [
        ("GET", "jobs/1", ["fine", "fine", "fine", "forbidden"]),
        ("GET", "workers", ["fine", "fine", "fine", "forbidden"]),
        ("GET", "version", ["fine", "fine", "fine", "fine"]),
        ("POST", "jobs", ["forbidden", "fine", "fine", "forbidden"]),
        ("POST", "jobs/1/hold", ["forbidden", "fine", "fine", "forbidden"]),
        ("POST", "jobs/1/close", ["forbidden", "fine", "fine", "forbidden"]),
        ("POST", "jobs/1/limit", ["forbidden", "fine", "fine", "forbidden"]),
        ("POST", "jobs/1/tasks", ["forbidden", "bad_value", "bad_value", "forbidden"]),
        ("POST", "jobs/stream", ["forbidden", "fine", "fine", "forbidden"]),
        ("DELETE", "jobs/99", ["forbidden", "no_such_job", "no_such_job", "forbidden"]),
        ("POST", "groups/default/pause", ["forbidden", "forbidden", "fine", "forbidden"]),
        ("POST", "workers/1/drain", ["forbidden", "forbidden", "fine", "forbidden"]),
        ("POST", "workers/1/stop", ["forbidden", "forbidden", "fine", "forbidden"]),
        ("POST", "workers/1/eject", ["forbidden", "forbidden", "fine", "forbidden"]),
        ("POST", "workers/1/pardon", ["forbidden", "forbidden", "fine", "forbidden"]),
        ("POST", "workers/1/lift", ["forbidden", "forbidden", "fine", "forbidden"]),
        ("GET", "brokers", ["fine", "fine", "fine", "forbidden"]),
        ("GET", "doors", ["forbidden", "forbidden", "fine", "forbidden"]),
        ("GET", "audit", ["forbidden", "forbidden", "fine", "forbidden"]),
    ];
    let workers: api::Workers = rig.client("admin").get("workers").await.unwrap();
    let id = workers.workers[0].worker;
    for (method, path, words) in cases {
        for (role, word) in ["watch", "submit", "admin", "work"].into_iter().zip(words) {
            let path = path.replace("workers/1", &format!("workers/{id}"));
            let said = reason(&rig.client(role), method, &path).await;
            assert_eq!(said, word, "{role}: {method} {path}");
        }
    }
    let downloaded = rig.client("work").download("metrics", None).await;
    assert_eq!(downloaded.unwrap_err().reason(), Some("forbidden"));
}

#[tokio::test]
async fn a_token_bound_to_a_group_sees_only_that() {
    let rig = Rig::start().await;
    rig.submit(r#"{"group":"a","tasks":[{"name":"x","command":"true"}]}"#).await;
    rig.submit(r#"{"group":"b","tasks":[{"name":"y","command":"true"}]}"#).await;
    rig.join("wa", "a", 1).await;
    rig.join("wb", "b", 1).await;
    let client = rig.client("submit@a");
    let groups: api::Groups = client.get("groups").await.unwrap();
    assert_eq!(groups.groups.iter().map(|g| g.name.to_string()).collect::<Vec<_>>(), ["a"]);
    let jobs: api::Jobs = client.get("jobs").await.unwrap();
    assert_eq!(jobs.jobs.iter().map(|job| job.job).collect::<Vec<_>>(), [1]);
    let workers: api::Workers = client.get("workers").await.unwrap();
    assert_eq!(workers.workers.len(), 1);
    for (method, path, word) in [
        ("GET", "jobs/1", "fine"),
        ("GET", "jobs/2", "no_such_job"),
        ("GET", "jobs/2/tasks", "no_such_job"),
        ("GET", "jobs/2/tasks/1", "no_such_job"),
        ("GET", "jobs/2/tasks/1/explain", "no_such_job"),
        ("GET", "jobs/2/tasks/1/output", "no_such_job"),
        ("GET", "wait?jobs=2", "no_such_job"),
        ("GET", "events?job=2", "no_such_job"),
        ("POST", "jobs/2/cancel", "no_such_job"),
        ("POST", "jobs/2/limit", "no_such_job"),
        ("DELETE", "jobs/2", "no_such_job"),
        ("GET", "jobs?group=b", "no_such_group"),
        ("GET", "groups/b/tasks/y", "no_such_group"),
        ("POST", "groups/b/tasks/y/cancel", "no_such_group"),
        ("GET", "workers/wb?group=b", "no_such_group"),
        ("GET", "brokers", "forbidden"),
    ] {
        assert_eq!(reason(&client, method, path).await, word, "{method} {path}");
    }
    // Without a group the token's own is meant.
    let body = json_of(r#"{"tasks":[{"command":"true"}]}"#);
    let submitted: api::Submitted = client.post("jobs", &body).await.unwrap();
    let job: api::Job = client.get(&format!("jobs/{}", submitted.job)).await.unwrap();
    assert_eq!(job.group, "a");
    let elsewhere = json_of(r#"{"group":"b","tasks":[]}"#);
    let refused = client.post::<_, api::Submitted>("jobs", &elsewhere).await.unwrap_err();
    assert_eq!(refused.reason(), Some("no_such_group"));
    // An admin of one group is none of the hub.
    let admin = rig.client("admin@a");
    assert_eq!(reason(&admin, "GET", "audit").await, "forbidden");
    assert_eq!(reason(&admin, "POST", "groups/b/pause").await, "no_such_group");
    assert_eq!(reason(&admin, "POST", "groups/a/pause").await, "fine");
}

#[tokio::test]
async fn a_token_bound_to_a_group_cannot_wait_for_tasks_of_others() {
    let rig = Rig::start().await;
    rig.submit(
        r#"{"group":"b","tasks":[{"name":"y","command":"true"},{"command":"x","count":2}]}"#,
    )
    .await;
    rig.submit(r#"{"group":"a","open":true,"tasks":[{"name":"x","command":"true"}]}"#).await;
    let client = rig.client("submit@a");
    let refused = async |path: &str, tasks: &str, job: u32| {
        let tasks = tasks.replace("JOB", &job.to_string());
        let answer = match path {
            "jobs/stream" => {
                let (pieces, upload) = Upload::new();
                pieces.send(format!("{{}}\n{tasks}\n").into()).await.unwrap();
                drop(pieces);
                client.upload::<api::Submitted>(path, upload).await
            }
            _ => client.post(path, &json_of(&format!(r#"{{"tasks":[{tasks}]}}"#))).await,
        };
        answer.map_err(|error| error.to_string().replace(&format!("{job}/"), "JOB/"))
    };
    for path in ["jobs", "jobs/2/tasks", "jobs/stream"] {
        for task in [
            r#"{"command":"true","after":[{"job":JOB,"task":3}]}"#,
            r#"{"command":"true","after":[{"job":JOB,"task":1}]}"#,
            r#"{"command":"true","after":[{"job":JOB,"array":1}]}"#,
            r#"{"command":"true","count":2,"each":[{"job":JOB,"array":1}]}"#,
        ] {
            let there = refused(path, task, 1).await.unwrap_err();
            assert!(there.contains("which does not exist"), "{there}");
            assert_eq!(there, refused(path, task, 9).await.unwrap_err(), "{path} {task}");
        }
        let named = refused(path, r#"{"command":"true","after":["y"]}"#, 1).await.unwrap_err();
        assert!(named.contains("does not exist"), "{named}");
        refused(path, r#"{"command":"true","after":[{"job":JOB,"task":1}]}"#, 2).await.unwrap();
    }
}

#[tokio::test]
async fn a_token_bound_to_a_group_is_not_told_of_tasks_that_are_tied_to_its_own() {
    let rig = Rig::start().await;
    rig.submit(r#"{"group":"b","tasks":[{"name":"secret","command":"true"}]}"#).await;
    let tied =
        r#"{"group":"a","tasks":[{"name":"x","command":"true","after":[{"job":1,"task":1}]}]}"#;
    rig.submit(tied).await;
    let paths = ["jobs/2/tasks/1", "jobs/2/tasks", "jobs/2/parts", "groups/a/tasks/x"];
    let reasons = ["jobs/2/tasks/1/explain", "groups/a/tasks/x/explain"];
    for path in paths.into_iter().chain(reasons) {
        let all: serde_json::Value = rig.client("watch").get(path).await.unwrap();
        let all = all.to_string();
        let is_told = all.contains(r#"{"job":1,"task":1}"#) || all.contains("secret");
        assert!(is_told, "{path}: {all}");
        let own: serde_json::Value = rig.client("watch@a").get(path).await.unwrap();
        let own = own.to_string();
        assert!(!own.contains(r#""job":1"#) && !own.contains("secret"), "{path}: {own}");
        assert_eq!(own.contains("a task of another group"), reasons.contains(&path), "{own}");
    }
    let task: api::Task = rig.client("watch@b").get("jobs/1/tasks/1").await.unwrap();
    assert_eq!(task.before, []);
}

#[tokio::test]
async fn where_no_hub_is_the_client_says_so() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let client = Client::new(Target::new("127.0.0.1", port));
    let error = client.get::<api::Version>("version").await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable { .. }), "{error}");
}
