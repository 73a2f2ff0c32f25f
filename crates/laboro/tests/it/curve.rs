//! CURVE at the ZeroMQ doors and in what connects to such doors, against libzmq's own.

use crate::mq::rig::Program;
use crate::rig::{Live, Rig, python, until};
use laboro_hub::config::{DoorSettings, Settings};
use laboro_hub::process::{RunningHub, start};
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

/// A hub with a dwork and an rrmq door that let one key in.
struct Locked {
    rig: Rig,
    hub: RunningHub,
    server_key: String,
    /// In `good.key`, with its public half on the lists.
    good: String,
}

impl Locked {
    fn start() -> Locked {
        let rig = Rig::new();
        let public = new_key(&rig, "good.key");
        let mut settings = Settings::in_dir(&rig.at("hub"));
        for dialect in ["dwork", "rrmq"] {
            let door = format!("{dialect}=127.0.0.1:0,curve_allow={public}");
            settings.door.push(door.parse::<DoorSettings>().unwrap());
        }
        let hub = start(&settings).unwrap();
        let printed = rig.laboro(["access", "curve", "--dir", "hub"]).run();
        let server_key = printed.expect(0).out().trim().to_owned();
        let good = secret_of(&rig.at("good.key"));
        Locked { rig, hub, server_key, good }
    }

    fn address(&self, dialect: &str) -> String {
        let found = self.hub.doors.iter().find(|door| door.dialect.word() == dialect);
        found.unwrap().address.to_string()
    }

    fn denied(&self, dialect: &str) -> u64 {
        let found = self.hub.doors.iter().find(|door| door.dialect.word() == dialect);
        found.unwrap().stats.counts().denied
    }

    /// What a client of libzmq comes to.
    fn libzmq(&self, dialect: &str, keys: Option<(&str, &str)>) -> String {
        let address = self.address(dialect);
        let mut words = vec!["client".to_owned(), dialect.to_owned(), address];
        if let Some((server_key, secret)) = keys {
            words.push(format!("--server-key={server_key}"));
            words.push(format!("--secret={secret}"));
        }
        peer(&words).line()
    }
}

fn peer<W: AsRef<std::ffi::OsStr>>(words: &[W]) -> Program {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/curve/peer.py");
    let mut command = Command::new(python());
    command.arg(script).args(words);
    Program::start(command)
}

/// The public half; the pair is in this file.
fn new_key(rig: &Rig, file: &str) -> String {
    let made = rig.laboro(["mq", "keys", "--file", file]).run();
    made.expect(0).out().trim().to_owned()
}

fn secret_of(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().find_map(|line| line.strip_prefix("secret ")).unwrap().to_owned()
}

#[test]
fn a_client_of_libzmq_comes_in_with_a_key_on_the_list_and_not_without() {
    let locked = Locked::start();
    new_key(&locked.rig, "bad.key");
    let bad = secret_of(&locked.rig.at("bad.key"));
    for dialect in ["dwork", "rrmq"] {
        let server_key = &locked.server_key[..];
        assert_eq!(locked.libzmq(dialect, Some((server_key, &locked.good))), "answered");
        assert_eq!(locked.denied(dialect), 0);
        assert_eq!(locked.libzmq(dialect, Some((server_key, &bad))), "refused 400");
        until("the wrong key is counted", || locked.denied(dialect) == 1);
        // libzmq does not even try when it reads that a server wants keys; somebody else might.
        assert!(locked.libzmq(dialect, None).starts_with("mismatch"), "{dialect}");
        let mut keyless = TcpStream::connect(locked.address(dialect)).unwrap();
        let mut greeting = [0; 64];
        greeting[..16].copy_from_slice(b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01NULL");
        keyless.write_all(&greeting).unwrap();
        until("the missing key is counted", || locked.denied(dialect) == 2);
        assert_eq!(locked.libzmq(dialect, Some((server_key, &locked.good))), "answered");
    }
}

#[test]
fn our_clients_come_in_with_a_key_on_the_list_and_are_told_what_is_wrong_else() {
    let locked = Locked::start();
    let bad = new_key(&locked.rig, "bad.key");
    let server = format!("--curve-server-key={}", locked.server_key);
    for (dialect, words) in [
        ("dwork", &["dwork", "status"][..]),
        ("rrmq", &["mq", "workers"]),
        ("rrmq", &["mq", "client", "--timeout=1s", "send", "x"]),
    ] {
        let address = locked.address(dialect);
        let call = |keys: &[&str]| {
            let (command, rest) = words.split_at(if words[0] == "mq" { 2 } else { 1 });
            locked.rig.laboro([command, &["-s", &address], keys, rest].concat()).run()
        };
        let good = call(&[&server, "--curve-key-file=good.key"]);
        // Nobody is there to answer what is sent on to a worker.
        good.expect(if words.contains(&"send") { 1 } else { 0 });
        call(&[&server, "--curve-key-file=bad.key"]).expect(3).says(&bad);
        call(&[]).expect(3).says("--curve-server-key");
        let other = format!("--curve-server-key={bad}");
        call(&[&other]).expect(3).says("is --curve-server-key its key?");
    }
}

fn worker(rig: &Rig, address: &str, keys: &[&str]) -> Live {
    let from = format!("dwork://{address}");
    let words = ["worker", "--from", &from, "-j", "1"];
    rig.laboro([&words[..], keys, &["--", "sh", "-c", "echo $0 >> done.txt"]].concat()).start()
}

#[test]
fn our_dwork_worker_works_behind_a_lock() {
    let locked = Locked::start();
    let address = locked.address("dwork");
    let server = format!("--curve-server-key={}", locked.server_key);
    let keys = [&server[..], "--curve-key-file=good.key"];
    let create = [&["dwork", "-s", &address], &keys[..], &["create", "a"]].concat();
    locked.rig.laboro(create).run().expect(0);
    worker(&locked.rig, &address, &keys).wait().expect(0);
    assert_eq!(locked.rig.lines("done.txt"), ["a"]);
    worker(&locked.rig, &address, &[]).wait().expect(3).says("CURVE");
    let told = worker(&locked.rig, &address, &[&server]).wait();
    told.expect(3).says("refused the connection");
}

#[test]
fn our_clients_and_workers_speak_curve_to_servers_of_libzmq() {
    let rig = Rig::new();
    new_key(&rig, "own.key");
    let mut dwork = peer(&["server", "dwork"]);
    let line = dwork.line();
    let (address, key) = line.split_once(' ').unwrap();
    let key = format!("--curve-server-key={key}");
    let keys = [&key[..], "--curve-key-file=own.key"];
    let create = [&["dwork", "-s", address], &keys[..], &["create", "a"]].concat();
    rig.laboro(create).run().expect(0);
    worker(&rig, address, &keys).wait().expect(0);

    let mut rrmq = peer(&["server", "rrmq"]);
    let line = rrmq.line();
    let (address, key) = line.split_once(' ').unwrap();
    let key = format!("--curve-server-key={key}");
    rig.laboro(["mq", "client", "-s", address, &key, "pingt"]).run().expect(0);
    let mut worker = Program::laboro(&["worker", "-d", "0", "-s", address, &key]);
    worker.until("registered with");
}

#[test]
fn a_server_of_libzmq_that_refuses_our_key_is_understood() {
    let rig = Rig::new();
    let public = new_key(&rig, "own.key");
    let mut server = peer(&["server", "dwork", "--deny"]);
    let line = server.line();
    let (address, key) = line.split_once(' ').unwrap();
    let key = format!("--curve-server-key={key}");
    let keys = ["--curve-key-file=own.key", &key];
    let status = [&["dwork", "-s", address], &keys[..], &["status"]].concat();
    rig.laboro(status).run().expect(3).says(&public);
}

#[test]
fn the_keys_of_a_hub_stay_the_same_and_are_told_with_its_doors() {
    let rig = Rig::new();
    let words = ["hub", "--dir=hub", "--http=off", "--native=off"];
    let door = "--door=dwork=127.0.0.1:0,curve";
    let first = rig.laboro(words.into_iter().chain([door])).start();
    until("it listens", || first.out().contains(", curve "));
    let told = |out: String| out.trim().rsplit_once(", curve ").unwrap().1.to_owned();
    let key = told(first.out());
    first.signal(rustix::process::Signal::TERM);
    first.wait().expect(0);
    let second = rig.laboro(words.into_iter().chain([door])).start();
    until("it listens", || second.out().contains(", curve "));
    assert_eq!(told(second.out()), key);
    assert_eq!(rig.laboro(["access", "--dir=hub", "curve"]).run().expect(0).out().trim(), key);
    let again = rig.laboro(["mq", "keys", "--file", "hub/curve.key"]).run();
    again.expect(3).says("curve.key");
}
