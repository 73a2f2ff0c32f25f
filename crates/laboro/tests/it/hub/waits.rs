//! Waiting for jobs and following what happens.

use super::place::Place;
use crate::rig::until;
use rustix::process::Signal;

#[test]
fn a_wait_ends_with_its_jobs_and_has_the_exit_status_of_a_run() {
    let place = Place::new();
    place.out(&["submit", "--array", "1-3", "--", "echo", "{}"]);
    place.out(&["submit", "--", "true"]);
    let waiting = place.laboro(&["wait", "1", "2"]).start();
    let worker = place.worker("w", 10);
    assert_eq!(worker.work_off(&[]), 4);
    waiting.wait().expect(0).says("job 1: 3 tasks done in ");
    place.out(&["submit", "--array", "1-3", "--", "echo", "{}"]);
    worker.work_off(&[2]);
    place.run(&["wait"]).expect(1).says("job 3 failed").says("laboro retry 3");
    assert_eq!(place.out(&["retry", "3"]), "job 3: 1 task will run again");
    worker.work_off(&[]);
    let ended = place.json(&["wait", "--json", "3"]);
    assert_eq!((&ended[0]["state"], &ended[0]["counts"]["done"]), (&"done".into(), &3.into()));
}

#[test]
fn a_submit_that_waits_is_like_a_run() {
    let place = Place::new();
    let submit = place.laboro(&["submit", "--wait", "--array", "1-2", "--", "echo", "{}"]).start();
    let worker = place.worker("w", 10);
    let mut done = 0;
    until("both tasks are there", || {
        done += worker.work_off(&[2]);
        done == 2
    });
    submit.wait().expect(1).says("1 done, 1 failed");
}

#[test]
fn a_wait_gives_up_when_its_time_is_over() {
    let place = Place::new();
    place.out(&["submit", "--", "true"]);
    place.run(&["wait", "--timeout", "50ms"]).expect(1).says("timed out; still unfinished: job");
}

#[test]
fn what_waits_for_a_person_is_not_waited_for() {
    let place = Place::new();
    let flow = "[[task]]\nname = \"a\"\ncommand = \"true\"\n[[task]]\nname = \"b\"\nafter = \"a\"\ncommand = \"true\"\n";
    place.rig.write("flow.toml", flow);
    place.out(&["submit", "flow.toml"]);
    place.worker("w", 1).work_off(&[1]);
    place.run(&["wait"]).expect(1).says("1 failed, 1 blocked");
    assert!(place.out(&["explain", "b"]).contains("it is blocked: a failed"));
    place.out(&["forget", "1"]);
    assert!(!place.out(&["jobs"]).contains("blocked"));
    place.out(&["submit", "--hold", "--", "true"]);
    place.run(&["wait"]).expect(1).says("laboro release 2");
}

#[test]
fn an_interrupted_wait_says_that_the_job_goes_on() {
    let place = Place::new();
    place.out(&["submit", "--", "true"]);
    let waiting = place.laboro(&["wait"]).start();
    // Its first words come after two seconds, when it surely waits.
    until("it waits", || waiting.err().contains("0 of 1"));
    waiting.signal(Signal::INT);
    waiting.wait().expect(130).says("job 1 continues");
}

#[test]
fn events_are_followed_until_a_signal_comes() {
    let place = Place::new();
    place.out(&["submit", "--", "true"]);
    let events = place.laboro(&["events", "--json"]).start();
    let worker = place.worker("w", 1);
    let mut job = 1;
    until("an event of a task", || {
        job += 1;
        place.out(&["submit", "--quiet", "--", "true"]);
        worker.work_off(&[]);
        events.out().contains(r#""kind":"tasks""#)
    });
    let of_job = place.laboro(&["events", "1"]).start();
    events.signal(Signal::INT);
    let ran = events.wait();
    ran.expect(130);
    assert!(ran.events().iter().all(|event| event["at_ms"].as_u64().is_some()));
    of_job.signal(Signal::TERM);
}
