//! Who gets in at the native door.

use crate::rig::*;
use laboro_api::access::{Role, Secret};
use laboro_core::Time;
use laboro_hub::config::Settings;
use laboro_hub::process::start;
use laboro_hub::security::{NewToken, TokenBook};
use laboro_net::Clock;
use tempfile::TempDir;

fn token(dir: &TempDir, role: Role, now: Time, expires_ms: Option<u64>) -> (Secret, String) {
    let new = NewToken { name: None, role, owner: None, group: None, expires_ms };
    let (secret, token) = TokenBook::of(dir.path()).add(new, now).unwrap();
    (secret, token.name)
}

#[test]
fn a_worker_with_a_token_made_while_the_hub_runs_is_welcome() {
    let dir = dir();
    let hub = hub(&dir);
    let (secret, _) = token(&dir, Role::Work, Clock::start().now(), None);
    visit(async {
        Worker::connect(&hub.access, &secret, "w").await.is_welcome().await;
    });
    stop(hub);
}

#[test]
fn wrong_expired_revoked_and_unfit_tokens_are_turned_away_and_counted() {
    let dir = dir();
    let hub = hub(&dir);
    let now = Clock::start().now();
    let (revoked, name) = token(&dir, Role::Work, now, None);
    TokenBook::of(dir.path()).revoke(&name).unwrap();
    let (expired, _) = token(&dir, Role::Work, Time(now.0 - 10_000), Some(5000));
    let (watch, _) = token(&dir, Role::Watch, now, None);
    visit(async {
        for (secret, words) in
            [(&revoked, "no such token"), (&expired, "has expired"), (&watch, "may not run tasks")]
        {
            let told = Worker::connect(&hub.access, secret, "w").await.next().await.unwrap_err();
            assert!(told.contains(words), "{told}");
        }
    });
    stop_and_count(hub, 3);
}

fn stop_and_count(hub: laboro_hub::process::RunningHub, denied: u64) {
    let stats = hub.doors[0].stats.clone();
    stop(hub);
    assert_eq!(stats.counts().denied, denied);
    assert_eq!(stats.counts().connections, 0, "everyone has left");
}

#[test]
fn whoever_guesses_tokens_is_slowed_down() {
    let dir = dir();
    let hub = hub(&dir);
    let now = Clock::start().now();
    visit(async {
        let mut told = String::new();
        for _ in 0..11 {
            let (guess, name) = token(&dir, Role::Work, now, None);
            TokenBook::of(dir.path()).revoke(&name).unwrap();
            told = Worker::connect(&hub.access, &guess, "w").await.next().await.unwrap_err();
        }
        assert!(told.contains("too many wrong tokens"), "{told}");
        // Whoever guesses does not keep out the others behind its address.
        Worker::connect(&hub.access, &hub.access.token, "w").await.is_welcome().await;
    });
    stop(hub);
}

#[test]
fn a_client_does_not_talk_to_a_hub_with_another_certificate() {
    let (one, other) = (dir(), dir());
    let (hub, wrong) = (hub(&one), hub(&other));
    let mut access = hub.access.clone();
    access.native = wrong.access.native.clone();
    let told = visit(connect(&access)).unwrap_err().to_string();
    assert!(told.contains("certificate"), "{told}");
    stop(hub);
    stop(wrong);
}

#[test]
fn a_list_of_addresses_keeps_others_out_of_the_api_and_the_native_door() {
    let dir = dir();
    let elsewhere = vec!["192.0.2.0/24".parse().unwrap()];
    let strict =
        Settings { http_allow: elsewhere.clone(), native_allow: elsewhere, ..settings(&dir) };
    let hub = start(&strict).unwrap();
    visit(async {
        assert!(connect(&hub.access).await.is_err(), "the native door is shut");
        let told =
            client(&hub, &hub.access.token).get::<serde_json::Value>("jobs").await.unwrap_err();
        assert!(told.is_away(), "{told}");
        assert!(told.to_string().contains("this address is not allowed"), "{told}");
    });
    stop(hub);
    let here = vec!["127.0.0.0/8".parse().unwrap()];
    let hub = start(&Settings { http_allow: here, ..settings(&dir) }).unwrap();
    visit(async {
        client(&hub, &hub.access.token).get::<serde_json::Value>("jobs").await.unwrap();
    });
    stop(hub);
}
