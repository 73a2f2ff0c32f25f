//! Creates and transfers: names and circles that are refused, and which job new tasks become part of.

use super::ring::{Ring, say};
use crate::dwork::codec::{Log, Note};
use crate::dwork::{HubDoor, Settings};
use crate::zmtp::SocketType::Req;
use bytes::BytesMut;
use laboro_core::*;

#[test]
fn names_that_cannot_be_kept_are_refused() {
    let mut ring = Ring::new();
    let peer = ring.connect(Req);
    ring.hears(peer, BytesMut::from(&[8, 0, 0x12, 4, 0x0a, 0, 0x12, 0][..]), "Error");
    ring.hears(peer, say::create(&"x".repeat(5000)), "Error");
    ring.hears(peer, say::create("good <good"), "Error");
    let long_log = vec![Log::new(Note::Done, i64::MAX); 2000];
    ring.hears(peer, say::create_with_log("a", &long_log), "Error");
    ring.hears(peer, say::status(), "OK \"dhub: 0 active tasks, 0 ready.\" n=0");
}

#[test]
fn a_create_that_would_close_a_cycle_changes_nothing() {
    let mut ring = Ring::new();
    let peer = ring.connect(Req);
    ring.hears(peer, say::create("a b<a c<b"), "OK");
    ring.hears(peer, say::create("new a<c"), "Error");
    ring.hears(peer, say::create("s<s"), "Error");
    ring.hears(peer, say::status(), "OK \"dhub: 3 active tasks, 1 ready.\" n=1");
    ring.hears(peer, say::steal(1, "w"), "Transfer [a]");
    ring.hears(peer, say::transfer("a<c", "w"), "Error");
    ring.hears(peer, say::lookup("a"), "Lookup \"a\" at w");
    ring.hears(peer, say::lookup("b"), "NotFound");
    ring.hears(peer, say::lookup("nobody"), "NotFound");
}

#[test]
fn a_transfer_is_all_or_nothing() {
    let mut ring = Ring::new();
    let peer = ring.connect(Req);
    ring.hears(peer, say::create("a b c"), "OK");
    ring.hears(peer, say::steal(2, "w"), "Transfer [a b]");
    ring.hears(peer, say::transfer("a c", "w"), "NotFound");
    ring.hears(peer, say::transfer("a a", "w"), "NotFound");
    ring.hears(peer, say::transfer("a b", "v"), "NotFound");
    ring.hears(peer, say::transfer("a b", "w"), "OK");
    ring.hears(peer, say::steal(9, "w"), "Transfer [c b a]");
}

#[test]
fn a_job_that_somebody_closed_is_followed_by_another() {
    let mut ring = Ring::new();
    let (peer, other) = (ring.connect(Req), ring.connect(Req));
    ring.hears(peer, say::create("a"), "OK");
    let first = ring.task("a").task.job;
    for name in ["b", "c"] {
        let job = ring.task("a").task.job;
        ring.command(Command::Close(job));
        ring.hears(peer, say::create(name), "OK");
        ring.hears(other, say::create(&format!("{name}2")), "OK");
    }
    assert_ne!(ring.task("b").task.job, first);
    assert_eq!(ring.task("b").task.job, ring.task("c2").task.job);
    // Another door, as after a restart, finds the one that is open.
    ring.door = HubDoor::new(Settings::default());
    let peer = ring.connect(Req);
    ring.hears(peer, say::create("d"), "OK");
    assert_eq!(ring.task("d").task.job, ring.task("c").task.job);
}

#[test]
fn two_that_create_first_at_once_both_get_their_tasks() {
    let mut ring = Ring::new();
    let (one, two) = (ring.connect(Req), ring.connect(Req));
    for (peer, name) in [(one, "a"), (two, "b")] {
        let request = say::create(name);
        let mut bytes = BytesMut::from(&[1, 0, 0, request.len() as u8][..]);
        bytes.extend_from_slice(&request);
        ring.send_bytes(peer, bytes);
    }
    ring.turn();
    ring.heard(one, "OK");
    ring.heard(two, "OK");
    assert_eq!(ring.task("a").task.job, ring.task("b").task.job);
}
