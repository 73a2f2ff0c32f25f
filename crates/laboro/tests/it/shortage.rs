//! A machine that has no room to start more: no process or no open file is left. That is not the fault of the tasks,
//! so none fails by it; they wait, and it is told once.

use crate::rig::{LABORO, Ran, Rig, not_tried};
use crate::workers::hub::HubRig;
use laboro_core::Profile;
use std::process::Command;

/// Under this limit of the shell's.
fn limited(limit: &str, arguments: &[&str]) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit {limit}; exec \"$0\" \"$@\""), LABORO]).args(arguments);
    shell
}

fn times(ran: &Ran, words: &str) -> usize {
    ran.err().matches(words).count()
}

/// As a user with no other processes: root is not bound by this limit, and the processes of others do not count.
#[test]
fn tasks_wait_when_there_is_no_room_for_processes() {
    let rig = Rig::new();
    let line = "echo $LABORO_TASK >> ran; exec sleep 0.02\n";
    rig.write("jobs.txt", line.repeat(100));
    let nobody = ["--reuid", "65533", "--regid", "65533", "--clear-groups"];
    let mut check = Command::new("setpriv");
    let may = check.args(nobody).args([LABORO, "--version"]).output();
    if !may.is_ok_and(|tried| tried.status.success()) {
        not_tried("no other user can be had, or the program is closed to him");
        return;
    }
    Command::new("chmod").args(["-R", "a+rwX"]).arg(rig.dir()).status().unwrap();
    let mut shell = Command::new("setpriv");
    // 16 threads of the guardian, three processes of ours and their threads leave room for a few.
    let line = "ulimit -u 26; exec \"$0\" run -j16 jobs.txt";
    shell.args(nobody).args(["bash", "-c", line, LABORO]);
    let ran = rig.call(shell).run();
    ran.expect(0).says("100 of 100 tasks done");
    assert_eq!(rig.lines("ran").len(), 100);
    assert_eq!(times(&ran, "fewer tasks run at once"), 1, "{}", ran.err());
}

#[test]
fn tasks_wait_when_there_is_no_room_for_open_files() {
    let rig = Rig::new();
    rig.write("jobs.txt", "exec sleep 0.1\n".repeat(150));
    let ran = rig.call(limited("-n 130", &["run", "-j33", "jobs.txt"])).run();
    ran.expect(0).says("150 of 150 tasks done");
}

#[test]
fn a_worker_without_room_for_open_files_fails_nothing() {
    let hub = HubRig::new();
    let access = hub.access();
    let words = ["worker", "--access", &access, "--name", "one", "--scratch", ".", "-j64"];
    let worker = hub.rig.call(limited("-n 256", &words)).start();
    let job = hub.submit(400, "exec sleep 0.1", Profile::default());
    hub.until_done(job);
    worker.signal(rustix::process::Signal::TERM);
    let ran = worker.wait();
    assert!(times(&ran, "fewer tasks run at once") <= 1, "{}", ran.err());
}
