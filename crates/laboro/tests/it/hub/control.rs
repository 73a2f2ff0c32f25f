//! What people do to jobs, tasks, workers and groups.

use super::place::Place;
use laboro_core::Outcome;

#[test]
fn tasks_are_cancelled_by_number_by_state_by_name_and_as_a_job() {
    let place = Place::new();
    place.out(&["submit", "--name", "night", "--array", "1-10", "--", "echo", "{}"]);
    assert_eq!(place.out(&["cancel", "1/2-4,9"]), "job 1: 4 tasks cancelled");
    assert_eq!(place.out(&["cancel", "last/1"]), "job 1: 1 task cancelled");
    assert_eq!(place.out(&["retry", "night/cancelled"]), "job 1: 5 tasks will run again");
    assert_eq!(place.out(&["cancel", "night"]), "job 1: 10 tasks cancelled");
    place.rig.write("flow.toml", "[[task]]\nname = \"prepare\"\ncommand = \"true\"\n");
    place.out(&["submit", "flow.toml"]);
    assert_eq!(place.out(&["cancel", "prepare"]), "job 2: 1 task cancelled");
    place
        .run(&["cancel", "2/prepare"])
        .expect(4)
        .says("nothing to cancel among these tasks of job 2");
    place.run(&["cancel", "2"]).expect(4).says("job 2 has already finished (cancelled)");
}

#[test]
fn a_directory_without_runs_does_not_hide_the_hub() {
    let place = Place::new();
    std::fs::create_dir_all(place.rig.at(".laboro/slurm")).unwrap();
    place.out(&["submit", "--", "true"]);
    assert_eq!(place.out(&["cancel", "1"]), "job 1: 1 task cancelled");
}

#[test]
fn what_is_held_starts_when_it_is_released() {
    let place = Place::new();
    place.out(&["submit", "--hold", "--array", "1-3", "--", "echo", "{}"]);
    let worker = place.worker("w", 10);
    assert_eq!(worker.take(10).len(), 0);
    assert_eq!(place.out(&["release", "last"]), "job 1 resumed, 3 tasks released");
    assert_eq!(place.out(&["hold", "1/2"]), "job 1: 1 task held");
    assert_eq!(worker.take(10).len(), 2);
    let changed = place.json(&["release", "--json", "1/held"]);
    assert_eq!((&changed[0]["did"], &changed[0]["tasks"]), (&"release".into(), &1.into()));
}

#[test]
fn a_higher_priority_goes_first() {
    let place = Place::new();
    place.out(&["submit", "--", "true"]);
    place.out(&["submit", "--priority", "-5", "--", "true"]);
    place.out(&["submit", "--", "true"]);
    assert_eq!(place.out(&["priority", "9", "2"]), "job 2: priority 9 for 1 task");
    assert_eq!(place.out(&["priority", "-3", "1"]), "job 1: priority -3 for 1 task");
    let order: Vec<u32> =
        place.worker("w", 3).take(3).iter().map(|grant| grant.task.job.0).collect();
    assert_eq!(order, [2, 3, 1]);
}

#[test]
fn a_paused_group_starts_nothing_and_says_so() {
    let place = Place::new();
    place.out(&["submit", "--", "true"]);
    let worker = place.worker("w", 1);
    assert_eq!(
        place.out(&["groups", "pause", "default"]),
        "group default is paused; running tasks continue"
    );
    assert_eq!(worker.take(1).len(), 0);
    assert!(place.out(&["explain", "1/1"]).contains("group default is paused"));
    assert!(place.out(&["groups"]).contains("paused"));
    assert_eq!(place.out(&["groups", "resume", "default"]), "group default is resumed");
    assert_eq!(worker.take(1).len(), 1);
    place.run(&["groups", "pause", "nowhere"]).expect(4).says("nowhere");
}

#[test]
fn a_worker_is_drained_ejected_and_pardoned_by_its_name() {
    let place = Place::new();
    let worker = place.worker("node 7", 2);
    place.out(&["submit", "--array", "1-4", "--", "echo", "{}"]);
    assert!(place.out(&["workers", "drain", "node 7"]).contains("starts no more tasks"));
    assert!(place.out(&["workers"]).contains("draining"));
    assert_eq!(worker.take(2).len(), 0);
    place.out(&["workers", "lift", "node 7"]);
    let taken = worker.take(2);
    assert_eq!(taken.len(), 2);
    taken.iter().for_each(|grant| worker.report(grant, Outcome::Success));
    place.out(&["workers", "eject", "node 7", "--reason", "smoke"]);
    let workers = place.json(&["workers", "--json"]);
    assert_eq!(workers[0]["conduct"]["standing"], "ejected");
    place.out(&["workers", "pardon", "node 7"]);
    assert_eq!(place.json(&["workers", "--json"])[0]["conduct"]["standing"], "good");
    place.run(&["workers", "drain", "node 8"]).expect(4).says("there is no worker node 8");
}

#[test]
fn which_hub_and_group_may_be_said_before_the_verb() {
    let place = Place::new();
    let _worker = place.worker("w", 2);
    let dir = place.rig.at("hub");
    let dir = dir.to_str().unwrap();
    let typed = |words: &[&str]| place.rig.laboro(words.iter().copied()).run();
    typed(&["workers", "--dir", dir, "--group", "default", "drain", "w"]).expect(0);
    typed(&["workers", "lift", "w", "--dir", dir]).expect(0);
    typed(&["groups", "--dir", dir, "pause", "default"]).expect(0);
    typed(&["workers", "--dir", dir, "--group", "other", "drain", "w"]).expect(4);
    // What is for lists would do nothing.
    typed(&["workers", "--dir", dir, "--json", "drain", "w"]).expect(2).says("--json");
    typed(&["groups", "--dir", dir, "-n", "1", "pause", "default"]).expect(2).says("--limit");
}
