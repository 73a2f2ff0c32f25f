//! The OpenAPI document: it names what is there, and what it names is there.

use crate::rig::{Rig, json_of};

const ROUTES: &str = "\
DELETE /api/v1/jobs/{job}
DELETE /api/v1/pools/{pool}
GET /api/v1/audit
GET /api/v1/brokers
GET /api/v1/doors
GET /api/v1/events
GET /api/v1/groups
GET /api/v1/groups/{group}/tasks/{name}
GET /api/v1/groups/{group}/tasks/{name}/explain
GET /api/v1/groups/{group}/tasks/{name}/output
GET /api/v1/health
GET /api/v1/history
GET /api/v1/hooks
GET /api/v1/jobs
GET /api/v1/jobs/{job}
GET /api/v1/jobs/{job}/history
GET /api/v1/jobs/{job}/parts
GET /api/v1/jobs/{job}/ranges
GET /api/v1/jobs/{job}/results
GET /api/v1/jobs/{job}/tasks
GET /api/v1/jobs/{job}/tasks/{task}
GET /api/v1/jobs/{job}/tasks/{task}/explain
GET /api/v1/jobs/{job}/tasks/{task}/output
GET /api/v1/me
GET /api/v1/metrics
GET /api/v1/openapi.json
GET /api/v1/overview
GET /api/v1/pools
GET /api/v1/pools/{pool}
GET /api/v1/schedules
GET /api/v1/schedules/{name}
GET /api/v1/version
GET /api/v1/wait
GET /api/v1/workers
GET /api/v1/workers/{worker}
POST /api/v1/bulk
POST /api/v1/groups/{group}/pause
POST /api/v1/groups/{group}/resume
POST /api/v1/groups/{group}/tasks/{name}/{action}
POST /api/v1/hooks/{number}/retry
POST /api/v1/jobs
POST /api/v1/jobs/stream
POST /api/v1/jobs/{job}/cancel
POST /api/v1/jobs/{job}/close
POST /api/v1/jobs/{job}/hold
POST /api/v1/jobs/{job}/limit
POST /api/v1/jobs/{job}/priority
POST /api/v1/jobs/{job}/release
POST /api/v1/jobs/{job}/retry
POST /api/v1/jobs/{job}/tasks
POST /api/v1/pools
POST /api/v1/pools/{pool}/pause
POST /api/v1/pools/{pool}/resume
POST /api/v1/pools/{pool}/test
POST /api/v1/schedules/{name}/pause
POST /api/v1/schedules/{name}/resume
POST /api/v1/schedules/{name}/run
POST /api/v1/workers/{worker}/drain
POST /api/v1/workers/{worker}/eject
POST /api/v1/workers/{worker}/lift
POST /api/v1/workers/{worker}/pardon
POST /api/v1/workers/{worker}/stop";

#[tokio::test]
async fn the_document_and_the_routes_agree() {
    let rig = Rig::start().await;
    let (_, body) = rig.raw("GET /api/v1/openapi.json", "", "").await;
    let document = json_of(&body);
    let mut named = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            named.push(format!("{} {path}", method.to_uppercase()));
        }
    }
    named.sort();
    assert_eq!(named.join("\n"), ROUTES);
    for route in named.iter().filter(|route| !route.ends_with("/events")) {
        let path = route.replace("{action}", "hold").replace(['{', '}'], "");
        let (head, body) = rig.raw(&path, "", "{}").await;
        assert!(head.starts_with("HTTP/1.1"), "{route}");
        assert!(!body.contains("no_such_path") && !body.contains("no_such_method"), "{route}");
    }
}

#[tokio::test]
async fn what_any_guarded_route_may_answer_is_in_the_document() {
    let rig = Rig::start().await;
    let (_, body) = rig.raw("GET /api/v1/openapi.json", "", "").await;
    let document = json_of(&body);
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let answers = &operation["responses"];
            let is_open = operation.get("security").is_some();
            assert_eq!(is_open, ["/health", "/version"].iter().any(|open| path.ends_with(open)));
            for status in ["400", "401", "403", "429"] {
                assert_eq!(answers.get(status).is_none(), is_open, "{method} {path} {status}");
            }
            assert!(!path.contains('{') || answers.get("404").is_some(), "{method} {path}");
            assert!(!path.ends_with("/output") || answers.get("416").is_some(), "{method} {path}");
        }
    }
}

#[tokio::test]
async fn every_type_that_the_document_refers_to_is_in_it() {
    let rig = Rig::start().await;
    let (_, body) = rig.raw("GET /api/v1/openapi.json", "", "").await;
    let document = json_of(&body);
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let references = body.split("\"#/components/schemas/").skip(1);
    let mut count = 0;
    for reference in references {
        let name = reference.split('"').next().unwrap();
        assert!(schemas.contains_key(name), "{name}");
        count += 1;
    }
    assert!(count > 50, "{count}");
    for name in ["SubmitJob", "TaskSpec", "Job", "Task", "Worker", "Problem", "Event"] {
        assert!(schemas.contains_key(name), "{name}");
    }
}

/// The rows of a table of the glossary: what is in code in the first column.
fn glossary(heading: &str) -> Vec<String> {
    let page = include_str!("../../../../docs/glossary.md");
    let (_, section) = page.split_once(&format!("## {heading}\n")).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let cells = section.lines().filter_map(|line| line.strip_prefix("| ")?.split('|').next());
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2).map(str::to_owned)).collect()
}

fn keys_of(schema: &serde_json::Value, found: &mut Vec<String>) {
    if let Some(properties) = schema.get("properties").and_then(|all| all.as_object()) {
        found.extend(properties.keys().cloned());
    }
    match schema {
        serde_json::Value::Object(all) => all.values().for_each(|inner| keys_of(inner, found)),
        serde_json::Value::Array(all) => all.iter().for_each(|inner| keys_of(inner, found)),
        _ => {}
    }
}

#[tokio::test]
async fn states_and_keys_are_those_of_the_glossary() {
    let rig = Rig::start().await;
    let (_, body) = rig.raw("GET /api/v1/openapi.json", "", "").await;
    let document = json_of(&body);
    let schemas = &document["components"]["schemas"];
    let states = schemas["TaskState"]["enum"].as_array().unwrap().iter();
    let states: Vec<&str> =
        states.map(|state| state.as_str().unwrap()).filter(|state| *state != "unknown").collect();
    assert_eq!(states, glossary("States of a task"));
    let avoided = glossary("Names of JSON keys and options");
    assert!(avoided.len() > 20, "{avoided:?}");
    let mut keys = Vec::new();
    keys_of(schemas, &mut keys);
    assert!(keys.len() > 200, "{}", keys.len());
    for key in keys {
        let wrong = key.split('_').find(|word| avoided.iter().any(|avoided| avoided == word));
        assert_eq!(wrong, None, "{key}: see docs/glossary.md");
        assert!(
            !key.ends_with("_max") && !key.contains("_most"),
            "{key}: a limit begins with max_"
        );
    }
}
