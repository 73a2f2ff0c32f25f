//! Peers of a manager that are broken or mean it: each loses its own connection and nothing else.

use super::port;
use crate::rig::{LABORO, Rig};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

const HAIL: [&str; 3] = ["SALUTON; MI evil", "KOMPRENAS", "JES"];

pub(super) struct Peer(TcpStream);

impl Peer {
    pub(super) fn new(port: &str) -> Peer {
        let line = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        line.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Peer(line)
    }

    pub(super) fn greeted(port: &str) -> Peer {
        let mut peer = Peer::new(port);
        assert_eq!(peer.says(HAIL[0]), "VERSIO 1.3");
        assert_eq!(peer.says(HAIL[1]), "ALIGI __defaulte__");
        peer.0.write_all(HAIL[2].as_bytes()).unwrap();
        peer
    }

    /// One write, one read. Nothing read is the end.
    pub(super) fn says(&mut self, words: &str) -> String {
        self.0.write_all(words.as_bytes()).unwrap();
        let mut heard = [0; 1024];
        let count = self.0.read(&mut heard).unwrap_or(0);
        String::from_utf8_lossy(&heard[..count]).into_owned()
    }

    #[track_caller]
    fn is_dropped_after(&mut self, words: &str) {
        assert_eq!(self.says(words), "", "{words}");
    }
}

#[test]
fn hostile_peers_leave_no_trace() {
    let rig = Rig::new();
    rig.write("runs/a.sh", "echo RES:ok\n");
    let manager = rig.manage(&[]);
    let port = port(&manager);
    for hail in ["GET / HTTP/1.1\r\n\r\n", "SALUTON; MI a.b", "saluton; mi x", "PETO"] {
        Peer::new(&port).is_dropped_after(hail);
    }
    let mut early = Peer::new(&port);
    early.says(HAIL[0]);
    early.is_dropped_after("PETO");
    for result in [
        "REZULTO ../../evil success 4",
        "REZULTO /tmp/evil success 4",
        "REZULTO a success 4",
        "REZULTO b failure 4",
        "LABORO a .sh 5",
    ] {
        Peer::greeted(&port).is_dropped_after(result);
    }
    let mut liar = Peer::greeted(&port);
    assert_eq!(liar.says("PETO"), "LABORO a .sh 12");
    assert_eq!(liar.says("PRETA"), "echo RES:ok\n");
    liar.is_dropped_after("REZULTO a success 99999999999999");
    let mut cut = Peer::greeted(&port);
    assert_eq!(cut.says("PETO"), "LABORO a .sh 12", "it is back");
    assert_eq!(cut.says("PRETA"), "echo RES:ok\n");
    assert_eq!(cut.says("REZULTO a success 1000"), "PRETA");
    cut.0.write_all(b"half of it").unwrap();
    drop(cut);
    let mut talker = Peer::greeted(&port);
    assert_eq!(talker.says("PETO"), "LABORO a .sh 12");
    assert_eq!(talker.says("PRETA"), "echo RES:ok\n");
    assert_eq!(talker.says("REZULTO a failure 3"), "PRETA");
    drop(talker);
    rig.runner(&port, "1").wait().expect(0);
    manager.wait().expect(0).says("which it was never given");
    assert!(rig.read("outputs/a.res").contains("[r1] Running a"));
    let files: Vec<_> = std::fs::read_dir(rig.at("outputs")).unwrap().collect();
    assert_eq!(files.len(), 2, "{files:?}");
    assert!(!rig.at("evil.res").exists());
}

#[test]
fn a_thousand_who_say_nothing_are_in_nobodys_way() {
    let rig = Rig::new();
    rig.write("runs/a.sh", "echo RES:ok\n");
    let manager = rig.manage(&[]);
    let port = port(&manager);
    let silent: Vec<TcpStream> =
        (0..1000).map_while(|_| TcpStream::connect(format!("127.0.0.1:{port}")).ok()).collect();
    assert!(silent.len() > 500, "{}", silent.len());
    rig.runner(&port, "1").wait().expect(0);
    drop(silent);
    manager.wait().expect(0);
}

#[test]
fn when_files_run_out_those_who_come_are_turned_away_and_work_goes_on() {
    let rig = Rig::new();
    rig.write("runs/a.sh", "");
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 64; exec \"$@\"", "sh", LABORO, "runexp", "manage", "."]);
    let home = rig.dir().to_str().unwrap().to_owned();
    let manager = rig.call(command).env("HOME", &home).start();
    let port = port(&manager);
    let mut runner = Peer::greeted(&port);
    assert_eq!(runner.says("PETO"), "LABORO a .sh 0");
    let mut silent: Vec<Peer> = (0..100).map(|_| Peer::new(&port)).collect();
    // They were taken in the order in which they came.
    silent.pop().unwrap().is_dropped_after("");
    assert_eq!(runner.says("PRETAREZULTO a success 3"), "PRETA");
    assert_eq!(runner.says("yes"), "RICEVIS");
    runner.says("FINO ANKAU");
    drop(silent);
    manager.wait().expect(0).says("more are refused").says("1 done, 0 failed");
    assert_eq!(rig.read("outputs/a.res"), "yes");
}

#[test]
fn merged_and_ended_words_are_understood() {
    let rig = Rig::new();
    rig.write("runs/a.sh", "");
    rig.write("runs/b.sh", "");
    let manager = rig.manage(&[]);
    let mut peer = Peer::new(&port(&manager));
    assert_eq!(peer.says("SALUTON; MI x\r\n"), "VERSIO 1.3");
    assert_eq!(peer.says("KOMPRENAS\n"), "ALIGI __defaulte__");
    assert_eq!(peer.says("JESPETO"), "LABORO a .sh 0");
    assert_eq!(peer.says("PRETAPETO"), "LABORO b .sh 0");
    assert_eq!(peer.says("PRETAPETO"), "FINO");
    assert_eq!(peer.says("REZULTO a success 0"), "PRETA", "and nothing in the same read");
    assert_eq!(peer.says(""), "RICEVIS");
    assert_eq!(peer.says("REZULTO b failure 2\n"), "PRETA");
    assert_eq!(peer.says("no"), "RICEVIS");
    peer.is_dropped_after("FINO ANKAU");
    manager.wait().expect(1).says("1 done, 1 failed");
    assert_eq!((rig.read("outputs/a.res"), rig.read("outputs/b.res")), ("".into(), "no".into()));
}

#[test]
fn whoever_says_nothing_is_let_go_and_its_job_too() {
    let rig = Rig::new();
    rig.write("runs/a.sh", "echo RES:ok\n");
    let manager = rig.manage(&[]);
    let port = port(&manager);
    let mut silent = Peer::new(&port);
    let mut heard = [0; 1];
    assert_eq!(silent.0.read(&mut heard).unwrap(), 0, "the manager closes it");
    // One that goes in the middle of an exchange leaves its job to others.
    let mut gone = Peer::greeted(&port);
    assert_eq!(gone.says("PETO"), "LABORO a .sh 12");
    drop(gone);
    rig.runner(&port, "1").wait().expect(0);
    manager.wait().expect(0).says("1 done, 0 failed");
}
