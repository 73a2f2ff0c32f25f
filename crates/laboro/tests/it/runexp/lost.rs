//! Runners that a manager loses, and those that come back to another one.

use super::hostile::Peer;
use super::port;
use crate::rig::{Rig, until};
use rustix::process::Signal;

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
    until("it is told", || manager.err().contains("is gone, and 3 jobs of its go back"));
    take(&mut Peer::greeted(&port), &["a", "b", "c", "d"]);
    let mut last = Peer::greeted(&port);
    take(&mut last, &["a"]);
    manager.signal(Signal::INT);
    let ran = manager.wait();
    assert!(
        !ran.err().contains("and a job of its"),
        "it was cut off by the manager: {}",
        ran.err()
    );
    ran.expect(130).says("0 done, 0 failed, 4 left; the same command goes on from here");
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
