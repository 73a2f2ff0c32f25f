//! Jobs by the clock, at a real hub that is stopped and killed.

use super::documents;
use super::whole::Whole;
use crate::rig::{Rig, until};
use serde_json::Value;

fn hub_with(schedule: &str) -> Whole {
    let rig = Rig::new();
    let file = rig.at("jobs/night.txt");
    rig.write("jobs/night.txt", "pwd > here; sleep 0.01\n");
    rig.write("hub.toml", format!("[[schedule]]\nname = \"night\"\nfile = {file:?}\n{schedule}"));
    Whole::at(rig)
}

fn shown(hub: &Whole) -> Value {
    hub.run(&["schedule", "show", "night", "--json"]).expect(0).events().remove(0)
}

/// As if the last time had been decided so many hours ago. Gives what is known of the schedule.
fn set_back(hub: &Whole, hours: u64) -> Value {
    documents::change(&hub.rig.at("hub"), "schedule", "night", |known| {
        let decided = known["decided_ms"].as_u64().unwrap();
        known["decided_ms"] = (decided - hours * 3_600_000).into();
    })
}

fn restart(hub: &mut Whole) {
    hub.start_hub();
    until("the hub is there again", || hub.run(&["jobs"]).status.success());
}

fn jobs(hub: &Whole) -> Vec<Value> {
    hub.run(&["jobs", "--json"]).expect(0).events()
}

#[test]
fn what_was_missed_is_caught_up_once_and_a_restart_doubles_nothing() {
    let mut hub =
        hub_with("cron = \"0 * * * *\"\ntime_zone = \"UTC\"\ncatch_up = true\nowner = \"ann\"\n");
    assert_eq!(shown(&hub)["last"], Value::Null, "nothing was planned yet");
    hub.kill_hub();
    set_back(&hub, 5);
    restart(&mut hub);
    until("one job was submitted", || shown(&hub)["last"]["job"] == 1);
    hub.run(&["wait", "1"]).expect(0);
    assert_eq!(
        hub.rig.read("jobs/here").trim(),
        hub.rig.at("jobs").canonicalize().unwrap().to_str().unwrap()
    );
    let missed = shown(&hub)["missed"].as_u64().unwrap();
    assert!((4..=5).contains(&missed), "{missed}");
    assert_eq!(jobs(&hub)[0]["owner"], "ann");
    // As if it had been killed before it could note what it had submitted.
    hub.kill_hub();
    let planned = set_back(&hub, 1)["last"]["planned_ms"].as_u64().unwrap();
    restart(&mut hub);
    until("the same time was decided again", || shown(&hub)["missed"].as_u64().unwrap() > missed);
    assert_eq!(shown(&hub)["last"]["planned_ms"], planned);
    assert_eq!(jobs(&hub).len(), 1, "the job of that time is there once");
    let table = hub.run(&["schedule"]).expect(0).out();
    assert!(
        table.contains("0 * * * *") && table.contains("UTC") && table.contains("job 1"),
        "{table}"
    );
}

#[test]
fn a_schedule_is_run_by_hand_paused_and_resumed() {
    let mut hub = hub_with("cron = \"0 0 1 1 *\"\n");
    assert_eq!(
        hub.run(&["schedule", "run-now", "night"]).expect(0).out(),
        "schedule night: job 1\n"
    );
    hub.run(&["schedule", "pause", "night"]).expect(0);
    assert_eq!(shown(&hub)["next_ms"], Value::Null);
    hub.kill_hub();
    set_back(&hub, 9000);
    restart(&mut hub);
    assert_eq!(shown(&hub)["paused"], true);
    hub.run(&["schedule", "resume", "night"]).expect(0).out();
    assert_eq!(shown(&hub)["missed"], 0, "what passes while it is paused is not missed");
    assert_eq!(jobs(&hub).len(), 1);
    hub.run(&["schedule", "show", "day"]).expect(4).says("no schedule day");
    std::fs::remove_file(hub.rig.at("jobs/night.txt")).unwrap();
    hub.run(&["schedule", "run-now", "night"]).expect(4).says("night.txt");
}

#[test]
fn a_job_that_still_runs_is_skipped_waited_for_or_replaced() {
    for (word, is_cancelled) in [("skip", false), ("queue", false), ("replace", true)] {
        let mut hub = hub_with(&format!(
            "cron = \"0 * * * *\"\ntime_zone = \"UTC\"\ncatch_up = true\nif_running = {word:?}\n"
        ));
        hub.rig.write("jobs/night.txt", "touch begun; while [ ! -e go ]; do sleep 0.01; done\n");
        hub.run(&["schedule", "run-now", "night"]).expect(0);
        until("it runs", || hub.rig.at("jobs/begun").exists());
        hub.kill_hub();
        set_back(&hub, 3);
        restart(&mut hub);
        until("the time was decided", || shown(&hub)["missed"].as_u64() > Some(0));
        let state =
            |at: usize| jobs(&hub).into_iter().rev().nth(at).map(|job| job["state"].clone());
        match word {
            "skip" => {
                assert!(shown(&hub)["last"]["why"].as_str().unwrap().contains("job 1 still runs"));
            }
            "queue" => assert!(shown(&hub)["queued_ms"].is_u64()),
            _ => until("the first is cancelled", || state(0) == Some("cancelled".into())),
        }
        hub.rig.write("jobs/go", "");
        let wanted = if word == "skip" { 1 } else { 2 };
        until("all have ended", || {
            let jobs = jobs(&hub);
            jobs.len() == wanted && jobs.iter().all(|job| job["ended_ms"].is_u64())
        });
        assert_eq!(state(0) == Some("cancelled".into()), is_cancelled, "{word}");
    }
}
