//! Our ZMTP against libzmq, by way of pyzmq: both as the side that listens and as the side that connects.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod python;
mod wire;

use bytes::Bytes;
use laboro_dialects::zmtp::*;
use python::Peer;
use std::net::{TcpListener, TcpStream};
use wire::Wire;

fn router() -> Options {
    let identity = Bytes::from_static(b"hub");
    Options { identity, as_server: true, ..Options::new(SocketType::Router) }
}

fn dealer() -> Options {
    Options { identity: Bytes::from_static(b"worker"), ..Options::new(SocketType::Dealer) }
}

/// What became of one client of libzmq: how the connection ended here, and what the client said.
struct Visit {
    wire: Wire,
    ended: Result<(), ZmtpError>,
    said: String,
}

/// Echoes everything to one client until it leaves.
fn visited(options: Options, args: &[&str]) -> Visit {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let port = address.port().to_string();
    let client = Peer::start(&[args, &["--port", &port]].concat()).wakes(address);
    let mut wire = Wire::open(listener.accept().unwrap().0, options);
    // A client that is refused may come again; nobody is there then.
    drop(listener);
    let ended = echo(&mut wire);
    wire.hang_up();
    Visit { wire, ended, said: client.join().unwrap() }
}

fn echo(wire: &mut Wire) -> Result<(), ZmtpError> {
    if !wire.until_ready()? {
        return Ok(());
    }
    if wire.connection.peer_socket() == Some(SocketType::Router) {
        wire.send([&b"hello"[..]]);
    }
    while let Some(message) = wire.receive()? {
        wire.send(message.slices());
    }
    Ok(())
}

/// Connects to a server of libzmq that echoes.
fn visiting(options: Options, args: &[&str]) -> (Wire, Peer) {
    let mut server = Peer::start(&[&["server"], args].concat());
    let port: u16 = server.line().parse().expect("a server says its port first");
    (Wire::open(TcpStream::connect(("127.0.0.1", port)).unwrap(), options), server)
}

fn assert_echoes(wire: &mut Wire, envelope: &[u8]) {
    let long = vec![7; 300_000];
    for frames in [vec![envelope, b"a"], vec![envelope, b"", &long, b"b"]] {
        wire.send(frames.iter().copied());
        let back = wire.receive().unwrap().expect("the server stays");
        assert!(back.slices().eq(frames.iter().copied()), "{back:?}");
    }
}

#[test]
fn libzmq_clients_of_every_kind_are_echoed() {
    for kind in ["DEALER", "REQ", "ROUTER"] {
        let visit = visited(router(), &["client", "--kind", kind, "--identity", "me"]);
        assert_eq!((visit.ended, visit.said.as_str()), (Ok(()), "ok"), "{kind}");
        assert_eq!(visit.wire.connection.peer_identity(), b"me");
        assert_eq!(visit.wire.connection.peer_socket().unwrap().name(), kind);
    }
}

#[test]
fn libzmq_stays_when_its_heartbeats_are_answered() {
    let visit = visited(router(), &["client", "--heartbeat"]);
    assert_eq!((visit.ended, visit.said.as_str()), (Ok(()), "ok"));
}

#[test]
fn a_socket_of_libzmq_that_does_not_fit_is_refused() {
    let visit = visited(router(), &["refused", "--kind", "SUB"]);
    let (ours, peer) = (SocketType::Router, SocketType::Sub);
    assert_eq!(visit.ended, Err(ZmtpError::OtherSocket { ours, peer }));
}

#[test]
fn libzmq_servers_echo_us() {
    for (socket, kind, envelope) in [
        (SocketType::Dealer, "ROUTER", &b"x"[..]),
        (SocketType::Dealer, "DEALER", b"x"),
        (SocketType::Req, "REP", b""),
        (SocketType::Dealer, "REP", b""),
    ] {
        let (mut wire, mut server) = visiting(Options { socket, ..dealer() }, &["--kind", kind]);
        assert_eq!(wire.until_ready(), Ok(true), "{socket} to {kind}");
        assert_echoes(&mut wire, envelope);
        wire.tick_at_deadline();
        assert_echoes(&mut wire, envelope);
        assert_eq!(server.end(), "");
    }
}
