//! Ctrl-C and its relatives: once, twice, and what is there afterwards.

use crate::rig::{Life, Live, Rig, until};
use rustix::process::Signal;
use std::process::Command;

/// Two tasks that run until they are let go, and eight behind them.
fn begun() -> (Rig, Live) {
    let rig = Rig::new();
    let wait = "echo $$ >> begun; trap 'echo $LABORO_TASK >> told; exit 1' TERM; \
                until [ -e go ]; do sleep 0.01; done; echo $LABORO_TASK >> ran\n";
    rig.write("jobs.txt", wait.repeat(2) + &"echo $LABORO_TASK >> ran\n".repeat(8));
    let live = rig.laboro(["run", "-j2", "--grace", "300ms", "jobs.txt"]).start();
    until("both run", || rig.lines("begun").len() == 2);
    (rig, live)
}

fn goes_on_to_the_end(rig: &Rig) {
    rig.write("go", "");
    rig.journal();
    rig.run(["-j2", "jobs.txt"]).expect(0).says("10 of 10 tasks done");
    let mut ran: Vec<u32> = rig.lines("ran").iter().map(|line| line.parse().unwrap()).collect();
    ran.sort();
    assert_eq!(ran, (1..=10).collect::<Vec<_>>(), "each ran to its end once");
}

#[test]
fn once_waits_for_what_runs_and_starts_nothing_more() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let (rig, live) = begun();
        live.signal(signal);
        until("it is noticed", || live.err().contains("stopping: waiting for 2 running tasks"));
        rig.write("go", "");
        let ran = live.wait();
        ran.expect(130)
            .says("2 of 10 tasks done, 8 not run")
            .says("type the same command again to resume");
        assert_eq!(rig.sorted_lines("ran"), ["1", "2"]);
        assert!(!rig.at("told").exists());
        goes_on_to_the_end(&rig);
    }
}

#[test]
fn twice_ends_what_runs_and_it_runs_again_later() {
    let (rig, live) = begun();
    live.signal(Signal::INT);
    until("it is noticed", || live.err().contains("interrupt again to end now"));
    live.signal(Signal::TERM);
    live.wait().expect(130).says("0 of 10 tasks done, 10 not run");
    assert_eq!(rig.sorted_lines("told"), ["1", "2"]);
    assert!(!rig.at("ran").exists());
    goes_on_to_the_end(&rig);
}

#[test]
fn twice_kills_what_does_not_listen_after_the_grace() {
    let rig = Rig::new();
    let deaf = "trap '' TERM INT HUP; echo $$ >> begun; setsid sh -c 'trap \"\" TERM; echo $$ >> begun; \
                while :; do sleep 1; done' & while :; do sleep 1; done\n";
    rig.write("jobs.txt", deaf);
    let live = rig.laboro(["run", "--grace", "200ms", "jobs.txt"]).start();
    until("both processes run", || rig.lines("begun").len() == 2);
    let lives: Vec<Life> = rig.lines("begun").iter().map(|pid| Life::of(pid)).collect();
    live.signal(Signal::INT);
    until("it is noticed", || live.err().contains("interrupt again to end now"));
    live.signal(Signal::INT);
    live.wait().expect(130);
    for life in lives {
        until("it is gone", || life.is_over());
    }
    assert_eq!(rig.journal()["tasks"]["ready"], 1);
}

#[test]
fn what_was_ignored_from_the_start_stays_ignored() {
    let rig = Rig::new();
    rig.write("jobs.txt", "touch begun; until [ -e go ]; do sleep 0.01; done\ntrue\n");
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' HUP; exec \"$0\" run -j1 jobs.txt", crate::rig::LABORO]);
    let live = rig.call(shell).start();
    until("it runs", || rig.at("begun").exists());
    live.signal(Signal::HUP);
    rig.write("go", "");
    live.wait().expect(0).says("2 of 2 tasks done");
}

#[test]
fn an_interrupted_run_that_keeps_order_prints_all_of_it_when_it_goes_on() {
    let rig = Rig::new();
    rig.write(
        "jobs.txt",
        "touch begun; until [ -e go ]; do sleep 0.01; done; echo 1\necho 2\necho 3; touch third\n",
    );
    let live = rig.laboro(["run", "-k", "-j2", "jobs.txt"]).start();
    until("all but the first have ended", || rig.at("begun").exists() && rig.at("third").exists());
    live.signal(Signal::INT);
    until("it is noticed", || live.err().contains("interrupt again to end now"));
    live.signal(Signal::INT);
    live.wait().expect(130);
    rig.write("go", "");
    assert_eq!(rig.run(["-k", "jobs.txt"]).expect(0).out(), "1\n2\n3\n");
}
