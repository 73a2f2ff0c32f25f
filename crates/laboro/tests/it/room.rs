//! A disk that is full: a clear end, nothing half-written believed, and the same command goes on once there
//! is room.

use crate::rig::{LABORO, Rig};
use std::process::Command;

/// A small disk of its own. Where mounting is not allowed, a limit on the size of files says the same to a
/// program that writes: no further.
enum SmallDisk {
    Mounted(std::path::PathBuf),
    Limited,
}

impl SmallDisk {
    fn new(rig: &Rig, bytes: &str) -> SmallDisk {
        let path = rig.at("disk");
        std::fs::create_dir_all(&path).unwrap();
        let size = format!("size={bytes}");
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&path).output();
        match mount.is_ok_and(|done| done.status.success()) {
            true => SmallDisk::Mounted(path),
            false => {
                eprintln!(
                    "no mount is allowed here: a limit on the size of files stands in for it"
                );
                SmallDisk::Limited
            }
        }
    }

    fn laboro(&self, rig: &Rig, arguments: &[&str]) -> crate::rig::Ran {
        match self {
            SmallDisk::Mounted(_) => rig.laboro(arguments).run(),
            SmallDisk::Limited => limited(rig, 2000, arguments),
        }
    }

    fn make_room(self) -> SmallDisk {
        if let SmallDisk::Mounted(path) = &self {
            let grown = Command::new("mount").args(["-o", "remount,size=200m"]).arg(path).status();
            assert!(grown.unwrap().success());
        }
        self
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        if let SmallDisk::Mounted(path) = self {
            let _ = Command::new("umount").arg("-l").arg(path).status();
        }
    }
}

/// With files of at most so many blocks of 512 bytes.
fn limited(rig: &Rig, blocks: u32, arguments: &[&str]) -> crate::rig::Ran {
    let mut shell = Command::new("sh");
    let line = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
    shell.args(["-c", &line, LABORO]).args(arguments);
    rig.call(shell).run()
}

#[test]
fn a_disk_full_of_output_ends_the_run_and_room_lets_it_go_on() {
    let rig = Rig::new();
    let disk = SmallDisk::new(&rig, "4m");
    // What ran is written elsewhere, so that it can be.
    let line = "yes output | head -c 200000; echo $LABORO_TASK >> ran\n";
    rig.write("jobs.txt", line.repeat(60));
    let run = ["run", "--state", "disk/state", "-j2", "jobs.txt"];
    let ran = disk.laboro(&rig, &run);
    ran.expect(3)
        .says("what was recorded before is safe: make room and type the same command again");
    let done = recorded(&rig);
    assert!(done < 60);
    let before = rig.lines("ran");
    let disk = disk.make_room();
    rig.laboro(run).run().expect(0).says("60 of 60 tasks done");
    let lines = rig.lines("ran");
    let mut names = lines.clone();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 60, "every task has left its mark");
    // All but those that had ended without being recorded ran once.
    assert!(lines.len() <= 60 + (before.len() - done), "{done} recorded, {lines:?}");
    for task in ["1", "30", "60"] {
        let logs = rig.laboro(["logs", "--state", "disk/state", task]).run();
        assert_eq!(logs.expect(0).out.len(), 200_000);
    }
    drop(disk);
}

#[test]
fn a_disk_without_room_for_the_journal_is_said_at_once() {
    let rig = Rig::new();
    let disk = SmallDisk::new(&rig, "64k");
    rig.write("jobs.txt", "echo x >> ran\n".repeat(10));
    let run = ["run", "--state", "disk/state", "jobs.txt"];
    match &disk {
        SmallDisk::Mounted(_) => disk.laboro(&rig, &run),
        SmallDisk::Limited => limited(&rig, 100, &run),
    }
    .expect(3)
    .says("laboro: ");
    assert!(!rig.at("ran").exists());
    let disk = disk.make_room();
    rig.laboro(run).run().expect(0).says("10 of 10 tasks done");
    drop(disk);
}

#[test]
fn files_that_may_not_grow_end_the_run_with_a_reason_and_no_half_results() {
    let rig = Rig::new();
    rig.write("jobs.txt", "yes output | head -c 100000; echo $LABORO_TASK >> ran\n".repeat(30));
    let ran = limited(&rig, 2000, &["run", "-j2", "jobs.txt"]);
    ran.expect(3).says("File too large").says("type the same command again");
    assert_eq!(ran.err().matches("File too large").count(), 1, "said once: {}", ran.err());
    assert!(rig.journal()["problem"].is_null());
    rig.run(["-j2", "jobs.txt"]).expect(0).says("30 of 30 tasks done");
    assert_eq!(rig.laboro(["logs", "30"]).run().out.len(), 100_000);
}

fn recorded(rig: &Rig) -> usize {
    let state = std::fs::read_dir(rig.at("disk/state")).unwrap();
    let dir = state.map(|entry| entry.unwrap().path()).find(|path| path.is_dir()).unwrap();
    let journal = dir.join("journal");
    let check = rig.laboro(["journal", "check", "--json", journal.to_str().unwrap()]).run();
    let check: serde_json::Value = serde_json::from_slice(&check.expect(0).out).unwrap();
    check["tasks"]["done"].as_u64().unwrap_or(0) as usize
}
