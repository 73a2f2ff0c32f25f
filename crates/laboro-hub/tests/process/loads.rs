//! Much to do of many kinds for many workers: everything gets done, and nothing becomes slow.

use crate::rig::*;
use laboro_api as api;
use laboro_core::*;
use laboro_dialects::fuq2::WorkerSettings;
use laboro_hub::process::RunningHub;
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Workers that do at once what they are given, for as long as the set is kept.
async fn crowd(hub: &RunningHub, all: impl Iterator<Item = WorkerSettings>) -> JoinSet<()> {
    let mut crowd = JoinSet::new();
    for settings in all {
        let mut worker = Worker::with(&hub.access, &hub.access.token, settings).await;
        worker.is_welcome().await;
        crowd.spawn(worker.work_on());
    }
    crowd
}

async fn all_done(hub: &RunningHub, jobs: &[JobId], each: u32) {
    eventually(async || {
        for &job in jobs {
            if done(&hub.handle, job).await != each {
                return false;
            }
        }
        true
    })
    .await;
}

#[test]
fn five_hundred_workers_of_one_slot_share_the_work() {
    let dir = dir();
    let hub = hub(&dir);
    visit(async {
        let workers = (0..500).map(|number| WorkerSettings::new(format!("w{number}"), 1));
        let _crowd = crowd(&hub, workers).await;
        let job = submit(&hub.handle, 1500).await;
        all_done(&hub, &[job], 1500).await;
        let query = Query::Workers { group: None, from: WorkerId(0), most: 1000 };
        let reply = hub.handle.ask(Command::Query(query)).await.unwrap();
        let Reply::Workers(workers) = reply else { panic!("{reply:?}") };
        assert_eq!(workers.iter().filter(|worker| worker.succeeded > 0).count(), 500);
    });
    stop(hub);
}

#[test]
fn tasks_of_many_different_needs_are_all_done() {
    let dir = dir();
    let hub = hub(&dir);
    let tags = ["a", "b", "c"];
    visit(async {
        let workers = (0..16).map(|number| WorkerSettings {
            memory: 1 << 30,
            tags: vec![tags[number % 3].to_owned()],
            ..WorkerSettings::new(format!("w{number}"), 4 + number as u32 % 5)
        });
        let _crowd = crowd(&hub, workers).await;
        let mut jobs = Vec::new();
        for number in 0..32_u32 {
            let tags = tags.get(number as usize / 4 % 4).map(|&tag| Name::from(tag));
            let needs = Needs {
                slots: 1 + number % 4,
                memory: if number < 16 { 0 } else { 100 << 20 },
                tags: tags.into_iter().collect(),
                ..Needs::default()
            };
            let profile = Profile { needs, ..Profile::default() };
            let array = |work| ArraySpec::numbered("", 1000, work);
            jobs.push(submit_array(&hub.handle, array, profile).await);
        }
        all_done(&hub, &jobs, 1000).await;
    });
    stop(hub);
}

#[test]
fn arrays_of_ever_higher_priority_displace_nothing_for_good() {
    let dir = dir();
    let hub = hub(&dir);
    visit(async {
        let ahead = |name: &str| WorkerSettings { ahead: 64, ..WorkerSettings::new(name, 2) };
        let _crowd = crowd(&hub, ["one", "two"].map(ahead).into_iter()).await;
        let mut jobs = Vec::new();
        for priority in 0..20 {
            let profile = Profile { priority, ..Profile::default() };
            let array = |work| ArraySpec::numbered("", 1000, work);
            let job = submit_array(&hub.handle, array, profile).await;
            jobs.push(job);
            eventually(async || done(&hub.handle, job).await > 0).await;
        }
        all_done(&hub, &jobs, 1000).await;
    });
    stop(hub);
}

#[test]
fn one_task_more_costs_as_little_in_a_job_of_a_million() {
    let dir = dir();
    let hub = hub(&dir);
    visit(async {
        let client = client(&hub, &hub.access.token);
        let mut least = Vec::new();
        for count in [1, 1_000_000] {
            let tasks = json!([{"command": "true", "count": count}]);
            let job = json!({"open": true, "held": true, "tasks": tasks});
            let made: api::Submitted = client.post("jobs", &job).await.unwrap();
            let (path, one) =
                (format!("jobs/{}/tasks", made.job), json!({"tasks": [{"command": "x"}]}));
            let mut times = Vec::new();
            for number in 1..=100 {
                let started = Instant::now();
                let added: api::Submitted = client.post(&path, &one).await.unwrap();
                times.push(started.elapsed());
                assert_eq!((added.first, added.count), (count + number, 1));
            }
            // The least of many says what it costs; the others, what else this machine did.
            least.extend(times.iter().min().copied());
        }
        assert!(least[1] < least[0] * 5 + Duration::from_millis(1), "{least:?}");
    });
    stop(hub);
}
