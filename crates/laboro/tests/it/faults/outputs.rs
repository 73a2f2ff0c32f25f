//! The disk on which a hub keeps what tasks print is full. A task that is done has its output, or says that it has not.

use super::Hub;
use super::machine::Disk;
use crate::rig::{Rig, until};
use rustix::process::Signal;
use serde_json::Value;

const PRINTS: &str = "yes output | head -c 200000";

/// What can be had of each task of a job: `None` where it says that something is lost.
fn printed(hub: &Hub, job: &str, tasks: u32) -> Vec<Option<usize>> {
    let read = |task: u32| {
        let ran = hub.laboro(&["logs", "--hub", &format!("{job}/{task}")]);
        match ran.status.code() {
            Some(3) => {
                ran.says("could not be written by the hub");
                None
            }
            _ => Some(ran.expect(0).out.len()),
        }
    };
    (1..=tasks).map(read).collect()
}

fn submit(hub: &Hub, tasks: u32) -> String {
    let line = format!("{PRINTS}; : {{}}");
    let range = format!("1-{tasks}");
    hub.out(&["submit", "-q", "--array", &range, "--", "sh", "-c", &line])
}

fn tasks(hub: &Hub, job: &str) -> Vec<Value> {
    hub.laboro(&["tasks", job, "--json", "--limit", "1000"]).expect(0).events()
}

fn done(hub: &Hub, job: &str) -> usize {
    tasks(hub, job).iter().filter(|task| task["state"] == "done").count()
}

#[test]
fn results_wait_while_output_cannot_be_written_and_count_once_it_can() {
    let rig = Rig::new();
    let Some(disk) = Disk::at(&rig, "hub/outputs", "size=1m,mode=700") else { return };
    let hub = Hub::start(&rig, &[], "");
    let worker = hub.worker("one", &[]);
    let job = submit(&hub, 12);
    let warned = || hub.out(&["status"]).contains("No space left on device");
    until("the hub says that it cannot write", warned);
    // Workers that bring no output are not held up by it.
    let other = hub.worker("two", &["--group", "quiet"]);
    let quiet = hub.out(&["submit", "-q", "--group", "quiet", "--", "true"]);
    hub.laboro(&["wait", &quiet, "--timeout", "60s"]).expect(0);
    // First the states: what is done then has its output already.
    let before = tasks(&hub, &job);
    let had = printed(&hub, &job, 12);
    let is_done = |at: &usize| before[*at]["state"] == "done";
    assert!((0..12).filter(is_done).all(|at| had[at] == Some(200_000)), "{before:?} {had:?}");
    assert!((0..12).filter(is_done).count() < 12, "{before:?}");
    disk.remount("size=100m");
    hub.laboro(&["wait", &job, "--timeout", "90s"]).expect(0);
    assert_eq!(printed(&hub, &job, 12), vec![Some(200_000); 12]);
    assert!(tasks(&hub, &job).iter().all(|task| task["output_lost"].is_null()));
    until("the warning goes", || !warned());
    let told = hub.live.err().matches("output of tasks cannot be written").count();
    assert_eq!(told, 1, "said once: {}", hub.live.err());
    for worker in [worker, other] {
        worker.signal(Signal::TERM);
        worker.wait().expect(0);
    }
    hub.stop();
}

#[test]
fn a_task_whose_output_is_lost_says_so_for_good_where_that_is_the_setting() {
    let rig = Rig::new();
    let Some(disk) = Disk::at(&rig, "hub/outputs", "size=1m,mode=700") else { return };
    let config = "[outputs]\non_write_error = \"mark\"\n";
    let hub = Hub::start(&rig, &[], config);
    let worker = hub.worker("one", &[]);
    let job = submit(&hub, 12);
    hub.laboro(&["wait", &job, "--timeout", "60s"]).expect(0);
    let had = printed(&hub, &job, 12);
    assert!(had.iter().all(|had| had.is_none_or(|had| had == 200_000)), "{had:?}");
    let lost = had.iter().filter(|had| had.is_none()).count();
    assert!((5..12).contains(&lost), "{had:?}");
    let marked =
        |hub: &Hub| tasks(hub, &job).iter().filter(|task| task["output_lost"] == true).count();
    assert_eq!(marked(&hub), lost);
    let last = format!("{job}/12");
    assert!(hub.out(&["show", &last]).contains("bytes lost"), "{}", hub.out(&["show", &last]));
    assert!(hub.out(&["tasks", &last]).contains("output lost"));
    assert!(hub.out(&["status"]).contains(&format!("{lost} attempts lost output")));
    assert_eq!(hub.live.err().matches("output of tasks cannot be written").count(), 1);
    hub.kill();
    // After a kill, and still without room.
    let hub = Hub::start(&rig, &[], config);
    assert_eq!((marked(&hub), printed(&hub, &job, 12)), (lost, had));
    disk.remount("size=100m");
    let job = submit(&hub, 3);
    hub.laboro(&["wait", &job, "--timeout", "60s"]).expect(0);
    assert_eq!(printed(&hub, &job, 3), [Some(200_000); 3]);
    worker.signal(Signal::TERM);
    worker.wait().expect(0);
    hub.stop();
}

#[test]
fn a_hub_that_shall_stops_where_output_cannot_be_written() {
    let rig = Rig::new();
    let Some(disk) = Disk::at(&rig, "hub/outputs", "size=1m,mode=700") else { return };
    let config = "[outputs]\non_write_error = \"stop\"\n";
    let hub = Hub::start(&rig, &[], config);
    let worker = hub.worker("one", &[]);
    let job = submit(&hub, 12);
    hub.live.wait().expect(3).says("make room and start the hub again");
    disk.remount("size=100m");
    let hub = Hub::start(&rig, &[], config);
    hub.laboro(&["wait", &job, "--timeout", "60s"]).expect(0);
    assert_eq!(printed(&hub, &job, 12), [Some(200_000); 12]);
    worker.signal(Signal::TERM);
    worker.wait().expect(0);
    hub.stop();
}

#[test]
fn output_of_done_tasks_outlives_a_full_disk_that_the_journal_is_on_too() {
    let rig = Rig::new();
    let Some(disk) = Disk::at(&rig, "hub", "size=3m,mode=700") else { return };
    let hub = Hub::start(&rig, &[], "");
    let worker = hub.worker("one", &[]);
    let job = submit(&hub, 30);
    until("the disk is full", || {
        let err = hub.live.err();
        err.contains("cannot be written") || err.contains("No space left")
    });
    // The journal may still have room, or it may have none: then the hub has ended already.
    hub.kill();
    disk.remount("size=100m");
    let hub = Hub::start(&rig, &[], "");
    let over: Vec<bool> = tasks(&hub, &job).iter().map(|task| task["state"] == "done").collect();
    let had = printed(&hub, &job, 30);
    let whole = |at: usize| had[at] == Some(200_000);
    assert!((0..30).all(|at| !over[at] || whole(at)), "{over:?} {had:?}");
    hub.laboro(&["wait", &job, "--timeout", "90s"]).expect(0);
    assert_eq!(done(&hub, &job), 30);
    assert_eq!(printed(&hub, &job, 30), vec![Some(200_000); 30]);
    worker.signal(Signal::TERM);
    worker.wait().expect(0);
    hub.stop();
}
