//! A machine that has too little of something: room on the disk, open files, memory.

use super::Hub;
use crate::rig::{Rig, not_tried, until};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;

/// A small disk of its own, which goes away with the test.
pub(super) struct Disk(PathBuf);

impl Disk {
    /// `None` where nobody may mount anything.
    fn new(rig: &Rig, options: &str) -> Option<Disk> {
        Disk::at(rig, "hub", options)
    }

    pub(super) fn at(rig: &Rig, dir: &str, options: &str) -> Option<Disk> {
        let path = rig.at(dir);
        std::fs::create_dir_all(&path).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(&path);
        match mount.output().is_ok_and(|done| done.status.success()) {
            true => Some(Disk(path)),
            false => {
                not_tried("nothing can be mounted");
                None
            }
        }
    }

    pub(super) fn remount(&self, options: &str) {
        let options = format!("remount,{options}");
        let done = Command::new("mount").args(["-o", &options]).arg(&self.0).status();
        assert!(done.unwrap().success());
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_hub_on_a_full_disk_ends_with_a_reason_and_keeps_what_it_promised() {
    let rig = Rig::new();
    let Some(disk) = Disk::new(&rig, "size=3m,mode=700") else { return };
    let hub = Hub::start(&rig, &[], "");
    let mut promised = 0;
    // A journal takes little, so each submit brings a lot.
    rig.write("lines", format!("true {}\n", "x".repeat(1000)).repeat(600));
    while hub.laboro(&["submit", "-q", "lines"]).status.success() {
        promised += 1;
        assert!(promised < 1000, "the disk is never full");
    }
    let ran = hub.live.wait();
    ran.expect(3);
    // Others who cannot write may complain after it.
    assert!(ran.err().lines().any(|line| line.starts_with("laboro: ")), "{}", ran.err());
    assert!(!rig.at("hub/journal/blank.tmp").exists(), "nothing is kept that nobody needs");
    disk.remount("size=100m");
    let hub = Hub::start(&rig, &[], "");
    let jobs = hub.laboro(&["jobs", "--json"]).expect(0).events();
    // The last one may have been saved without anybody having heard of it.
    assert!((promised..=promised + 1).contains(&jobs.len()), "{promised}, {}", jobs.len());
    hub.stop();
}

#[test]
fn a_hub_whose_directory_is_read_only_says_so() {
    let rig = Rig::new();
    let Some(disk) = Disk::new(&rig, "size=20m,mode=700") else { return };
    disk.remount("ro");
    let words = ["hub", "--dir=hub", "--http=127.0.0.1:0", "--native=127.0.0.1:0"];
    let ran = rig.laboro(words).run();
    ran.expect(3).says("hub/");
    ran.says("Read-only file system");
    disk.remount("rw");
    Hub::start(&rig, &[], "").stop();
}

#[test]
fn a_hub_without_files_to_open_serves_again_when_there_are_some() {
    let rig = Rig::new();
    let few = ["sh", "-c", "ulimit -n 64; exec \"$0\" \"$@\""];
    let hub = Hub::start_in(&rig, &few, &[], &["fuq2", "dwork"], "");
    let address = hub.address("fuq2");
    let mut held: Vec<TcpStream> = Vec::new();
    for _ in 0..100 {
        held.push(TcpStream::connect(&address).unwrap());
    }
    // The first ones were let in before there were none left.
    let mut first = &held[0];
    first.read_exact(&mut [0; 16]).unwrap();
    drop(held);
    until("it serves again", || hub.laboro(&["status"]).status.success());
    let mut late = TcpStream::connect(&address).unwrap();
    late.read_exact(&mut [0; 16]).unwrap();
    assert!(!hub.live.err().contains("panicked"), "{}", hub.live.err());
    hub.stop();
}

#[test]
fn a_task_that_gets_no_more_memory_fails_alone() {
    let rig = Rig::new();
    let hub = Hub::start(&rig, &[], "");
    let hog = "d = []\nwhile True: d.append(bytearray(1 << 20))";
    // By a limit of its own: it must never come to take what others need.
    let line = format!("ulimit -v 400000 && exec python3 -c '{hog}'");
    let worker = hub.worker("one", &[]);
    let hog = hub.out(&["submit", "-q", "--", "sh", "-c", &line]);
    hub.laboro(&["wait", &hog, "--timeout", "60s"]).expect(1);
    let shown = hub.out(&["show", &format!("{hog}/1")]);
    assert!(shown.contains("exit code 1"), "{shown}");
    let next = hub.out(&["submit", "-q", "--", "true"]);
    hub.laboro(&["wait", &next, "--timeout", "60s"]).expect(0);
    worker.signal(rustix::process::Signal::TERM);
    worker.wait().expect(0);
    hub.stop();
}

#[test]
fn a_peer_that_says_a_byte_at_a_time_is_served_and_holds_up_nobody() {
    let rig = Rig::new();
    let hub = Hub::start(&rig, &["dwork", "runexp"], "");
    // An original's first words, a byte in each packet.
    let mut slow = TcpStream::connect(hub.address("runexp")).unwrap();
    slow.set_nodelay(true).unwrap();
    for (at, byte) in b"SALUTON; MI slow\n".iter().enumerate() {
        slow.write_all(&[*byte]).unwrap();
        if at % 6 == 0 {
            hub.out(&["jobs"]);
        }
    }
    let mut answer = [0; 10];
    slow.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"VERSIO 1.3");
    hub.stop();
}
