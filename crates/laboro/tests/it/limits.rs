//! Limits: time, attempts, failures, memory, slots.

use crate::rig::{Life, Rig, until};
use rustix::process::Signal;
use std::time::{Duration, Instant};

#[test]
fn a_timeout_ends_grandchildren_that_do_not_listen() {
    let rig = Rig::new();
    let family = "trap '' TERM; echo $$ >> pids; \
        sh -c 'trap \"\" TERM; echo $$ >> pids; while :; do sleep 1; done' & \
        setsid sh -c 'trap \"\" TERM; echo $$ >> pids; while :; do sleep 1; done' & \
        while :; do sleep 1; done\n";
    rig.write("jobs.txt", format!("{family}echo fine\n"));
    let live = rig.laboro(["run", "--timeout", "1s", "--grace", "200ms", "jobs.txt"]).start();
    until("all processes run", || rig.lines("pids").len() == 3);
    let lives: Vec<Life> = rig.lines("pids").iter().map(|pid| Life::of(pid)).collect();
    live.wait().expect(1).says("failed (timed out) after 1.").says("1 of 2 tasks done");
    assert!(lives.iter().all(Life::is_over));
}

#[test]
fn attempts_are_made_one_after_the_other_with_growing_waits() {
    let rig = Rig::new();
    rig.write(
        "flow.toml",
        r#"
        [[task]]
        name = "t"
        attempts = 3
        backoff = "200ms"
        command = "date +%s%N >> times; exit 1"
        "#,
    );
    rig.run(["flow.toml"])
        .expect(1)
        .says("will be tried again")
        .says("0 of 1 tasks done, 1 failed");
    let times: Vec<u64> = rig.lines("times").iter().map(|time| time.parse().unwrap()).collect();
    assert_eq!(times.len(), 3);
    assert!(times[1] - times[0] >= 200_000_000 && times[2] - times[1] >= 400_000_000);
}

#[test]
fn attempts_on_the_command_line_hold_for_all() {
    let rig = Rig::new();
    rig.write("jobs.txt", "echo $LABORO_ATTEMPT >> tried; test $LABORO_ATTEMPT = 3\n");
    rig.run(["--attempts", "3", "jobs.txt"]).expect(0);
    assert_eq!(rig.lines("tried"), ["1", "2", "3"]);
}

#[test]
fn too_many_failures_stop_the_job_and_the_same_command_goes_on() {
    let rig = Rig::new();
    rig.write("jobs.txt", "echo x >> tried; exit 1\n".repeat(20));
    let ran = rig.run(["-j1", "--max-fails", "2", "jobs.txt"]);
    ran.expect(1).says("0 of 20 tasks done, 3 failed, 17 not run").says("too many failures");
    assert_eq!(rig.lines("tried").len(), 3);
    rig.run(["-j1", "--max-fails", "2", "jobs.txt"]).expect(1).says("6 failed, 14 not run");
    rig.run(["-j1", "jobs.txt"]).expect(1).says("20 failed");
    assert_eq!(rig.lines("tried").len(), 20);
}

#[test]
fn nothing_starts_while_too_little_memory_is_free() {
    let rig = Rig::new();
    rig.write("jobs.txt", "touch ran\n");
    let live = rig.laboro(["run", "--memory-free", "900T", "jobs.txt"]).start();
    until("it is said why", || live.err().contains("900.0 TiB wanted"));
    live.signal(Signal::INT);
    live.wait().expect(130).says("0 of 1 tasks done, 1 not run");
    assert!(!rig.at("ran").exists());
    rig.run(["--memory-free", "1M", "jobs.txt"]).expect(0);
    assert!(rig.at("ran").exists());
}

#[test]
fn as_many_tasks_run_at_once_as_there_are_slots() {
    let rig = Rig::new();
    // Each waits until three are there; a fourth would be seen.
    let meet = "touch here.$LABORO_TASK; until [ $(ls here.* | wc -l) -ge 3 ]; do sleep 0.01; done";
    rig.write("jobs.txt", format!("{meet}\n").repeat(3));
    let started = Instant::now();
    rig.run(["-j3", "--timeout", "50s", "jobs.txt"]).expect(0);
    assert!(started.elapsed() < Duration::from_secs(50));
    let alone = "mkdir alone && rmdir alone";
    rig.write("alone.txt", format!("{alone}\n").repeat(20));
    rig.run(["-j1", "alone.txt"]).expect(0);
}

#[test]
fn many_slots_get_the_open_files_they_need_or_are_refused() {
    let rig = Rig::new();
    // All of them at once: nobody ends before the last has begun.
    let meet = "touch here.{}; until [ $(ls | grep -c here) -ge 40 ]; do sleep 0.05; done";
    let run = |limits: &str| {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &format!("{limits}; exec \"$0\" run -j40 --array 1-40 -- \"$1\"")]);
        shell.args([crate::rig::LABORO, meet]);
        rig.call(shell).run()
    };
    run("ulimit -n 80").expect(2).says("-j 40 needs 144 open files and 80 are allowed");
    run("ulimit -Hn 400; ulimit -Sn 80").expect(0).says("40 of 40 tasks done");
}
