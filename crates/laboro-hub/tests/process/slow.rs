//! Those who are given something and do not take it, and those whose time is over.

use crate::rig::*;
use laboro_api as api;
use laboro_api::access::Role;
use laboro_core::*;
use laboro_dialects::fuq2::WorkerSettings;
use laboro_hub::process::start;
use laboro_hub::security::{NewToken, TokenBook};
use laboro_net::Clock;

/// What this process, in which the hub is, has in memory.
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[test]
fn a_worker_that_never_reads_is_cut_off_and_others_notice_nothing() {
    let dir = dir();
    let mut settings = settings(&dir);
    settings.limits.write_ms = 500;
    let hub = start(&settings).unwrap();
    visit(async {
        let values = (0..1500).map(|_| [b'x'; 32 << 10]).collect();
        let large = |work| {
            let list = ArraySpec::numbered("large", 1500, work);
            ArraySpec { values, ..list }
        };
        let tagged = Needs { tags: vec!["deaf".into()], ..Needs::default() };
        let profile = Profile { needs: tagged, ..Profile::default() };
        let job = submit_array(&hub.handle, large, profile).await;
        let before = resident_bytes();
        let tags = vec!["deaf".to_owned()];
        let deaf = WorkerSettings { tags, ..WorkerSettings::new("deaf", 1500) };
        let deaf = Worker::with(&hub.access, &hub.access.token, deaf).await;
        let _deaf = deaf.turn_deaf().await;
        // Somebody else works on meanwhile.
        let mut other = Worker::connect(&hub.access, &hub.access.token, "other").await;
        other.is_welcome().await;
        let others = submit(&hub.handle, 50).await;
        for _ in 0..50 {
            let task = other.task().await;
            other.finish(&task, "words").await;
        }
        assert_eq!(done(&hub.handle, others).await, 50);
        eventually(async || hub.doors[0].stats.counts().slow == 1).await;
        let grown = resident_bytes().saturating_sub(before);
        assert!(grown < 40 << 20, "{} MiB more", grown >> 20);
        assert_eq!(done(&hub.handle, job).await, 0);
    });
    stop(hub);
}

#[test]
fn a_token_that_runs_out_closes_the_api_and_ends_its_connections() {
    let dir = dir();
    let mut settings = settings(&dir);
    settings.limits.admission_ms = 50;
    let hub = start(&settings).unwrap();
    let expires_ms = Some(1500);
    let new = NewToken {
        name: Some("short".into()),
        role: Role::Admin,
        owner: None,
        group: None,
        expires_ms,
    };
    let (secret, _) = TokenBook::of(dir.path()).add(new, Clock::start().now()).unwrap();
    visit(async {
        let client = client(&hub, &secret);
        client.get::<api::Jobs>("jobs").await.unwrap();
        let mut worker = Worker::connect(&hub.access, &secret, "w").await;
        worker.is_welcome().await;
        // Its end is all that comes.
        while worker.next().await.is_ok() {}
        let refused = client.get::<api::Jobs>("jobs").await.unwrap_err();
        assert_eq!(refused.reason(), Some("expired_token"));
        let told = Worker::connect(&hub.access, &secret, "w").await.next().await.unwrap_err();
        assert!(told.contains("the token short has expired"), "{told}");
        eventually(async || hub.doors[0].stats.counts().denied == 2).await;
    });
    stop(hub);
}
