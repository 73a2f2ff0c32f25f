//! `laboro tunnel`: a door of a hub, reached through its native one.

use crate::rig::{Live, Rig, until};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

const DOORS: [&str; 3] =
    ["--door=dwork=127.0.0.1:0,patience_ms=0", "--door=fuq1=127.0.0.1:0,group=exp", "--http=off"];

fn hub(rig: &Rig) -> Live {
    let words = ["hub", "--dir=hub", "--native=127.0.0.1:0", "--durability=os"];
    let hub = rig.laboro(words.into_iter().chain(DOORS)).start();
    until("all doors are told", || hub.out().contains("fuq1 on "));
    hub
}

/// A token with this role, as a file to be given away.
fn access(rig: &Rig, role: &str, more: &[&str]) -> String {
    let words = ["access", "--dir", "hub", "--hub-address", "127.0.0.1", "--role", role];
    let made = rig.laboro(words.iter().chain(more)).run();
    made.expect(0);
    rig.write(role, made.out());
    rig.at(role).to_str().unwrap().to_owned()
}

/// A tunnel, and where it listens.
fn tunnel(rig: &Rig, door: &str, access: &str) -> (Live, String) {
    let tunnel = rig.laboro(["tunnel", door, "--access", access]).start();
    until("the tunnel is open", || tunnel.out().contains(", at hub "));
    let address = tunnel.out().split([' ', ',']).nth(2).unwrap().to_owned();
    (tunnel, address)
}

#[test]
fn a_client_that_knows_nothing_of_tokens_works_through_a_tunnel() {
    let rig = Rig::new();
    let hub = hub(&rig);
    let (tunnel, address) = tunnel(&rig, "dwork", &access(&rig, "submit", &[]));
    let dwork = |words: &[&str]| {
        let ran = rig.laboro(["dwork", "-s", &address].iter().chain(words)).run();
        ran.expect(0);
        ran.out()
    };
    dwork(&["create", "a"]);
    assert_eq!(dwork(&["steal", "-q", "w"]), "a\n");
    dwork(&["complete", "a", "--location", "w"]);
    assert_eq!(dwork(&["status"]), "dhub: 0 active tasks, 0 ready.\n");
    tunnel.signal(Signal::TERM);
    let ran = tunnel.wait();
    ran.expect(0);
    assert!(ran.err().contains("4 connections, "), "{}", ran.err());
    hub.signal(Signal::TERM);
    hub.wait().expect(0);
}

#[test]
fn an_end_of_one_direction_leaves_the_other_open() {
    let rig = Rig::new();
    let _hub = hub(&rig);
    let (_tunnel, address) = tunnel(&rig, "fuq1/exp", &access(&rig, "work", &["--group", "exp"]));
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // The server speaks first, and hears that nothing more will come.
    stream.shutdown(Shutdown::Write).unwrap();
    let mut said = Vec::new();
    stream.read_to_end(&mut said).unwrap();
    assert!(!said.is_empty());
}

#[test]
fn bytes_of_connections_that_are_still_open_are_counted() {
    let rig = Rig::new();
    let _hub = hub(&rig);
    let (tunnel, address) = tunnel(&rig, "fuq1", &access(&rig, "work", &[]));
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // The server greets, hears a greeting, and says more.
    stream.read_exact(&mut [0; 12]).unwrap();
    stream.write_all(b"\x47\xc0\x01\0\0\0\0\0\x01\0\0\0").unwrap();
    stream.read_exact(&mut [0; 1]).unwrap();
    tunnel.signal(Signal::TERM);
    let ran = tunnel.wait();
    ran.expect(0);
    assert!(ran.err().contains("1 connection, 12 bytes to the hub, "), "{}", ran.err());
    assert!(!ran.err().contains(" 0 from it"), "{}", ran.err());
}

#[test]
fn whoever_may_not_go_there_is_told_why() {
    let rig = Rig::new();
    let _hub = hub(&rig);
    let tries = [
        ("dwork", access(&rig, "watch", &[]), "needs submit"),
        ("fuq1", access(&rig, "submit", &[]), "needs work"),
        ("runexq", access(&rig, "admin", &[]), "there is dwork/default, fuq1/exp"),
        ("native", rig.at("admin").to_str().unwrap().to_owned(), "needs no tunnel"),
        ("http", rig.at("admin").to_str().unwrap().to_owned(), "needs no tunnel"),
        ("fuq", rig.at("admin").to_str().unwrap().to_owned(), "needs no tunnel"),
    ];
    for (door, access, words) in tries {
        rig.laboro(["tunnel", door, "--access", &access]).run().expect(4).says(words);
    }
    // What it may not use it does not learn of: doors of other groups, and those for another role.
    let bound = access(&rig, "work", &["--group", "other"]);
    for door in ["fuq1", "fuq1/exp", "dwork", "runexq"] {
        let told = rig.laboro(["tunnel", door, "--access", &bound]).run();
        told.expect(4).says(&format!("this hub has no door {door} for the token"));
        assert!(!told.err().contains("there is"), "{}", told.err());
    }
    let tried = rig.laboro(["tunnel", "runexq", "--access", &access(&rig, "work", &[])]).run();
    tried.expect(4).says("there is fuq1/exp");
    assert!(!tried.err().contains("dwork"), "{}", tried.err());
    let open = ["tunnel", "dwork", "--listen", "0.0.0.0:0", "--dir", "hub"];
    rig.laboro(open).run().expect(2).says("--insecure");
}

#[test]
fn a_tunnel_ends_with_its_token() {
    let rig = Rig::new();
    rig.write("hub.toml", "[limits]\nadmission_ms = 50\n");
    let words = ["hub", "--dir=hub", "--native=127.0.0.1:0", "--config=hub.toml"];
    let hub = rig.laboro(words.into_iter().chain(DOORS)).start();
    until("all doors are told", || hub.out().contains("fuq1 on "));
    let (tunnel, address) = tunnel(&rig, "fuq1", &access(&rig, "work", &["--name", "leaked"]));
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.read_exact(&mut [0; 1]).unwrap();
    rig.laboro(["access", "revoke", "--dir", "hub", "leaked"]).run().expect(0);
    let mut rest = Vec::new();
    // Closed or reset, but not left open.
    let end = stream.read_to_end(&mut rest);
    assert!(end.is_ok() || end.unwrap_err().kind() == std::io::ErrorKind::ConnectionReset);
    let mut next = TcpStream::connect(&address).unwrap();
    let _ = next.write_all(b"x");
    until("the tunnel says why", || tunnel.err().contains("no such token"));
}
