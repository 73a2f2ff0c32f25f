//! Runners that a manager loses, and those that come back to another one.

use super::hostile::Peer;
use super::port;
use crate::rig::{Rig, until};
use rustix::process::Signal;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

#[test]
fn what_a_lost_runner_had_comes_back_first_and_in_order() {
    let rig = Rig::new();
    for name in ["a", "b", "c", "d"] {
        rig.write(&format!("runs/{name}.sh"), "");
    }
    let manager = rig.manage(&[]);
    let port = port(&manager);
    let take = |peer: &mut Peer, names: &[&str]| {
        let mut ask = "PETO";
        for name in names {
            assert_eq!(peer.says(ask), format!("LABORO {name} .sh 0"));
            ask = "PRETAPETO";
        }
    };
    let mut lost = Peer::greeted(&port);
    take(&mut lost, &["a", "b", "c"]);
    drop(lost);
    until("it is told", || manager.err().contains("was lost: 3 of its jobs go back"));
    take(&mut Peer::greeted(&port), &["a", "b", "c", "d"]);
    let mut last = Peer::greeted(&port);
    take(&mut last, &["a"]);
    manager.signal(Signal::INT);
    let ran = manager.wait();
    assert!(!ran.err().contains("1 of its jobs"), "it was cut off by the manager: {}", ran.err());
    ran.expect(130).says("0 done, 0 failed, 4 left; the same command resumes");
}

#[test]
fn a_job_that_no_runner_survives_is_named() {
    let rig = Rig::new();
    rig.write("runs/a.sh", "x");
    let manager = rig.manage(&[]);
    let port = port(&manager);
    for _ in 0..6 {
        let mut peer = Peer::greeted(&port);
        assert_eq!(peer.says("PETO"), "LABORO a .sh 1");
    }
    let ran = manager.wait();
    ran.expect(1).says("failure a: its runner was lost 6 times").says("0 done, 1 failed");
    let said = ran.err();
    assert_eq!(said.matches("1 of its jobs goes back").count(), 5, "{said}");
    assert_eq!(
        said.matches("1 of its jobs has failed: it was lost too often").count(),
        1,
        "{said}"
    );
}

/// A runner without work is not sent to sleep for ten seconds: it waits for the answer.
#[test]
fn two_runners_are_gone_as_soon_as_the_last_result_is_in() {
    let rig = Rig::new();
    for number in 0..600 {
        rig.write(&format!("runs/{number:03}.sh"), "echo RES:ok\n");
    }
    rig.write("runs/z.sh", "touch last; until [ -e go ]; do sleep 0.01; done; echo RES:ok\n");
    let manager = rig.manage(&[]);
    let port = port(&manager);
    let runners = [rig.runner(&port, "2"), rig.runner(&port, "2")];
    until("the last one runs", || rig.at("last").exists());
    until("all others are done", || results(&rig) == 600);
    rig.write("go", "");
    until("the last one is done", || results(&rig) == 601);
    let since = Instant::now();
    for runner in runners {
        runner.wait().expect(0);
    }
    manager.wait().expect(0);
    assert!(since.elapsed() < Duration::from_secs(1), "{:?}", since.elapsed());
}

fn results(rig: &Rig) -> usize {
    let is_result = |name: &OsStr| name.as_bytes().ends_with(b".res");
    let files = std::fs::read_dir(rig.at("outputs")).unwrap();
    files.filter(|file| is_result(&file.as_ref().unwrap().file_name())).count()
}

#[test]
fn the_job_of_a_killed_runner_goes_to_the_one_that_waits() {
    let rig = Rig::new();
    rig.write("runs/a.sh", "echo ran >> ran; until [ -e go ]; do sleep 0.01; done; echo RES:ok\n");
    let manager = rig.manage(&[]);
    let port = port(&manager);
    let first = rig.runner(&port, "1");
    until("it runs", || rig.lines("ran").len() == 1);
    let from = format!("runexp://127.0.0.1:{port}");
    let second = rig.laboro(["worker", "--from", &from, "-j1", "--host=r2"]).start();
    until("another one is there", || second.err().contains("connected as"));
    first.signal(Signal::KILL);
    first.wait();
    until("it has taken the job", || rig.lines("ran").len() == 2);
    rig.write("go", "");
    second.wait().expect(0);
    let ran = manager.wait();
    ran.expect(0).says("1 done, 0 failed");
    assert!(!ran.err().contains("on hold"), "{}", ran.err());
    assert!(rig.read("outputs/a.res").contains("[r2] Running a"));
}

#[test]
fn a_runner_that_waits_leaves_when_it_is_told_to() {
    let rig = Rig::new();
    rig.write("runs/a.sh", "x");
    let manager = rig.manage(&[]);
    let port = port(&manager);
    let mut busy = Peer::greeted(&port);
    assert_eq!(busy.says("PETO"), "LABORO a .sh 1");
    let from = format!("runexp://127.0.0.1:{port}");
    let idle = rig.laboro(["worker", "--from", &from, "-j1", "--host=r2"]).start();
    until("it is there", || idle.err().contains("connected as"));
    idle.signal(Signal::TERM);
    idle.wait().expect(0);
}

/// A runner waits longer and longer between its tries, and would find nobody.
#[test]
fn a_manager_that_goes_on_waits_for_the_runners_of_the_last_one() {
    let rig = Rig::new();
    rig.write("runs/a.sh", "touch began; until [ -e go ]; do sleep 0.01; done; echo RES:ok\n");
    let manager = rig.manage(&[]);
    let port = port(&manager);
    let runner = rig.runner(&port, "1");
    until("it runs", || rig.at("began").exists());
    manager.signal(Signal::KILL);
    drop(manager);
    // Long enough for it to try less often.
    until("it has tried", || runner.err().matches("efused").count() > 0);
    rig.write("go", "");
    let manager = rig.manage(&["--port", &port]);
    rig.other("runner.py", &[&port, "1", "py"]).wait().expect(0);
    runner.wait().expect(0);
    manager.wait().expect(0);
}
