//! The fuq door, tried by programs that have nothing of ours in them: a node in both of its modes, the command
//! line, and their faults; and our own worker at a foreman that is not ours.

mod foreman;
mod hub;

use crate::rig::{Rig, until};
use hub::Hub;

fn good(options: &str, case: &str) {
    let rig = Rig::new();
    let hub = Hub::start(&rig, options);
    hub.python(case, &[]).says_good();
    hub.ends_well();
}

#[test]
fn a_node_that_stays_connected_works_as_with_its_own_foreman() {
    good("", "persistent");
}

#[test]
fn a_task_that_the_node_had_no_room_for_is_sent_again() {
    good("", "race");
}

#[test]
fn a_node_that_polls_works_as_with_its_own_foreman() {
    good("", "polling");
}

#[test]
fn everything_the_command_line_asks_is_answered_and_it_can_stop_the_hub() {
    let rig = Rig::new();
    let hub = Hub::start(&rig, "");
    hub.python("clients", &[]).says_good();
    hub.live.wait().expect(0);
}

#[test]
fn who_has_no_password_or_cookie_is_told_so() {
    let rig = Rig::new();
    let hub = Hub::start(&rig, ",no_shutdown");
    hub.python("lock_out", &[]).says_good();
    let told = hub.live.err();
    assert!(told.contains("was denied"), "{told}");
    assert!(!told.contains(&hub.password), "the log holds no secrets");
    hub.ends_well();
}

#[test]
fn faults_end_one_connection_at_most_and_nobody_else_notices() {
    let rig = Rig::new();
    let hub = Hub::start(&rig, "");
    hub.python("faults", &[]).says_good();
    assert!(hub.live.err().matches("sent malformed data").count() >= 8, "{}", hub.live.err());
    hub.ends_well();
}

#[test]
fn a_login_runs_out_and_is_renewed() {
    good(",cookie_ms=300", "stale");
}

#[test]
fn a_result_that_comes_after_the_end_of_a_login_counts() {
    good(",cookie_ms=1000", "late");
}

#[test]
fn what_a_node_that_polled_ran_when_it_was_killed_goes_to_others() {
    good(",quiet_ms=300", "gone");
    good(",quiet_ms=300", "half");
}

#[test]
fn a_node_that_polls_is_told_to_leave_when_nothing_runs_there() {
    good("", "last");
}

#[test]
fn who_guesses_passwords_has_to_wait() {
    good("", "guesses");
}

#[test]
fn nodes_go_on_when_the_hub_is_stopped_or_killed_under_trivial_tasks() {
    let rig = Rig::new();
    rig.write("hub.toml", "grace_ms = 3000\n[limits]\nlost_ms = 1000\n");
    let (options, more) = (",quiet_ms=1000", &["--config=hub.toml"]);
    let mut hub = Hub::start_with(&rig, options, more);
    let made = hub.python("new_job", &["3000"]);
    let job = made.ran.expect(0).out().trim().to_owned();
    let crowd = hub.call("crowd", &[&job, "3000"]).start();
    for (part, is_killed) in [("part 1\n", true), ("part 2\n", false), ("part 4\n", true)] {
        until("they work", || crowd.out().contains(part));
        hub = if is_killed { hub.killed(options, more) } else { hub.stopped(options, more) };
    }
    let ran = crowd.wait();
    ran.expect(0);
    assert!(ran.out().ends_with("good\n"), "{}", ran.out());
    hub.ends_well();
}

#[test]
fn what_a_dead_node_ran_is_run_by_another_after_the_grace_time() {
    let rig = Rig::new();
    rig.write("hub.toml", "grace_ms = 1500\n");
    let hub = Hub::start_with(&rig, "", &["--config=hub.toml"]);
    hub.python("dead", &[]).says_good();
    hub.ends_well();
}

#[test]
fn what_a_node_that_polls_has_not_heard_of_is_given_again() {
    let rig = Rig::new();
    rig.write("hub.toml", "[limits]\nlost_ms = 400\n");
    let hub = Hub::start_with(&rig, "", &["--config=hub.toml"]);
    hub.python("unheard", &[]).says_good();
    hub.ends_well();
}

#[test]
fn a_node_that_polls_need_not_stay_connected_while_it_works() {
    let rig = Rig::new();
    rig.write("hub.toml", "grace_ms = 100\n");
    let hub = Hub::start_with(&rig, "", &["--config=hub.toml"]);
    hub.python("silent", &["1"]).says_good();
    hub.ends_well();
}

#[test]
fn a_restart_of_the_hub_costs_a_node_neither_its_login_nor_its_task() {
    let rig = Rig::new();
    let hub = Hub::start(&rig, "");
    let before = hub.python("remember", &[]);
    before.ran.expect(0);
    hub.ends_well();
    let hub = Hub::start(&rig, "");
    hub.python("recall", &[before.ran.out().trim()]).says_good();
    hub.ends_well();
}

#[test]
fn a_hub_that_stops_says_goodbye() {
    let rig = Rig::new();
    let hub = Hub::start(&rig, "");
    let node = hub.call("goodbye", &[]).start();
    until("it is connected", || node.out().contains("ready"));
    hub.ends_well();
    let ran = node.wait();
    ran.expect(0);
    assert!(ran.out().ends_with("good\n"), "{}", ran.out());
}

#[test]
fn older_nodes_are_spoken_to_in_their_numbers() {
    for (numbering, stop) in [("older", "6"), ("oldest", "5")] {
        let rig = Rig::new();
        let hub = Hub::start(&rig, &format!(",numbering={numbering}"));
        hub.python("numbered", &[stop]).says_good();
        hub.ends_well();
    }
}

#[test]
fn jobs_of_the_door_are_jobs_of_the_hub() {
    let rig = Rig::new();
    let hub = Hub::start(&rig, "");
    hub.queue("mine", 3);
    rig.laboro(["hold", "--dir=hub", "1"]).run().expect(0);
    assert_eq!(hub.statuses(), ["paused"]);
    rig.laboro(["release", "--dir=hub", "1"]).run().expect(0);
    let worker = rig.laboro(["worker", "hub", "-j2"]).start();
    rig.laboro(["wait", "--dir=hub", "1"]).run().expect(0);
    assert_eq!(rig.read("logs/mine_2.log"), "task 2\n");
    hub.queue("mine", 2);
    rig.laboro(["wait", "--dir=hub", "2"]).run().expect(0);
    assert_eq!(rig.read("logs/mine_2-1.log"), "task 2\n", "a log is never overwritten");
    worker.signal(rustix::process::Signal::TERM);
    worker.wait().expect(0);
    hub.ends_well();
}

#[test]
fn what_our_worker_cannot_finish_has_not_failed() {
    for way in ["https", "wss"] {
        let rig = Rig::new();
        rig.write("hub.toml", "grace_ms = 100\n");
        let hub = Hub::start_with(&rig, "", &["--config=hub.toml"]);
        hub.queue("long", 1);
        rig.write("say", "#!/bin/sh\n: > \"$0.runs\"\nexec sleep 600\n");
        let from = format!("--from=fuq+{way}://{}", hub.address);
        let words = ["--ca=hub/tls.pem", "--auth-file=hub/fuq.auth", "--drain=0s", "-j1"];
        let call = rig.laboro(["worker", &from].iter().chain(&words));
        let worker = call.start();
        until("it runs", || hub.statuses() == ["running"] && rig.at("say.runs").exists());
        worker.signal(rustix::process::Signal::TERM);
        worker.wait();
        until("another may have it", || hub.statuses() == ["waiting"]);
        hub.ends_well();
    }
}
