//! What one token may have queued.

use crate::rig::*;
use laboro_api::access::Role;
use laboro_api::client::{Client, ClientError};
use laboro_api::{Changed, Submitted};
use laboro_hub::config::{QuotaSettings, Settings};
use laboro_hub::process::start;
use laboro_hub::security::{NewToken, TokenBook};
use laboro_net::Clock;
use serde_json::{Value, json};

async fn submit(client: &Client, tasks: &Value) -> Result<Submitted, ClientError> {
    client.post("jobs", &json!({ "tasks": tasks })).await
}

#[test]
fn a_token_has_a_quota_that_survives_a_restart() {
    let dir = dir();
    let quotas = QuotaSettings { max_tasks_per_token: 3, ..QuotaSettings::default() };
    let settings = Settings { quotas, ..settings(&dir) };
    let first = start(&settings).unwrap();
    let made = |name: &str| {
        let new = NewToken {
            name: Some(name.to_owned()),
            role: Role::Submit,
            owner: None,
            group: Some("exp".into()),
            expires_ms: None,
        };
        TokenBook::of(dir.path()).add(new, Clock::start().now()).unwrap().0
    };
    let (ann, bob) = (made("ann"), made("bob"));
    let two = json!([{"name": "a"}, {"name": "b"}]);
    let job = visit(async {
        let submitted = submit(&client(&first, &ann), &two).await.unwrap();
        submit(&client(&first, &bob), &json!([{"name": "c"}])).await.unwrap();
        submitted.job
    });
    let is_refused = |told: ClientError| {
        assert_eq!(told.reason(), Some("quota"), "{told}");
        let told = told.to_string();
        let words =
            "the quota of token ann is 3 queued tasks: 2 are queued, and this submit adds 2";
        assert!(told.contains(words), "{told}");
    };
    let more = json!([{"name": "d"}, {"name": "e"}]);
    is_refused(visit(submit(&client(&first, &ann), &more)).unwrap_err());
    stop(first);

    let second = start(&settings).unwrap();
    let ann = client(&second, &ann);
    is_refused(visit(submit(&ann, &more)).unwrap_err());
    visit(async {
        let _: Changed = ann.post(&format!("jobs/{job}/cancel"), &json!({})).await.unwrap();
        submit(&ann, &more).await.unwrap();
    });
    stop(second);
}
