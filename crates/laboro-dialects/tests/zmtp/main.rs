//! Our ZMTP against libzmq, by way of pyzmq: both as the side that listens and as the side that connects.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod python;
mod wire;

use bytes::Bytes;
use laboro_dialects::zmtp::*;
use python::Peer;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
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
fn visited(options: Options, args: &[impl AsRef<str>]) -> Visit {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let port = format!("--port={}", address.port());
    let client = Peer::start(&port, args).wakes(address);
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
fn visiting(options: Options, args: &[impl AsRef<str>]) -> (Wire, Peer) {
    let mut server = Peer::start("server", args);
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

/// A router with CURVE that lets these clients in.
fn curve_router(keys: &KeyPair, allowed: &[KeyBytes]) -> Options {
    let allowed = allowed.to_vec();
    let allow: Allow = Arc::new(move |key| allowed.contains(key));
    Options { mechanism: Mechanism::curve_server(keys, allow), ..router() }
}

fn curve_dealer(server: KeyBytes, keys: &KeyPair) -> Options {
    Options { mechanism: Mechanism::curve_client(server, keys), ..dealer() }
}

/// One argument each: a key may begin with a dash.
fn key_args(keys: &KeyPair) -> Vec<String> {
    let (public, secret) = (key_to_text(&keys.public), key_to_text(&keys.secret));
    vec![format!("--public={public}"), format!("--secret={secret}")]
}

/// The arguments of a client of libzmq with these keys.
fn client_args(command: &str, server: &KeyBytes, keys: &KeyPair) -> Vec<String> {
    let server = format!("--server-key={}", key_to_text(server));
    [vec![command.into(), server], key_args(keys)].concat()
}

#[test]
fn libzmq_clients_with_the_right_keys_are_echoed_sealed() {
    let (server, client) = (KeyPair::generate(), KeyPair::generate());
    let mut args = client_args("client", &server.public, &client);
    args.push("--heartbeat".into());
    let visit = visited(curve_router(&server, &[client.public]), &args);
    assert_eq!((visit.ended, visit.said.as_str()), (Ok(()), "ok"));
    assert_eq!(visit.wire.connection.peer_key(), Some(&client.public));
}

#[test]
fn libzmq_clients_with_wrong_keys_are_refused() {
    let (server, client) = (KeyPair::generate(), KeyPair::generate());

    let args = client_args("refused", &server.public, &client);
    let visit = visited(curve_router(&server, &[KeyPair::generate().public]), &args);
    assert_eq!(visit.ended, Err(ZmtpError::Denied { key: key_to_text(&client.public) }));
    assert_eq!(visit.said, "denied 400");

    let args = client_args("refused", &KeyPair::generate().public, &client);
    let visit = visited(curve_router(&server, &[client.public]), &args);
    assert_eq!(visit.ended, Err(ZmtpError::Box { command: "HELLO" }));
    assert!(!visit.said.starts_with("succeeded"), "{}", visit.said);

    // A client without CURVE leaves by itself as soon as it sees the greeting.
    let visit = visited(curve_router(&server, &[client.public]), &["refused"]);
    assert!(!visit.wire.connection.is_ready());
    assert!(visit.said.starts_with("protocol"), "{}", visit.said);
}

#[test]
fn libzmq_servers_with_curve_echo_us_or_refuse_us() {
    let (server, client) = (KeyPair::generate(), KeyPair::generate());
    let allow = format!("--allow={}", key_to_text(&client.public));
    let args = [key_args(&server), vec!["--kind=ROUTER".into(), allow]].concat();

    let (mut wire, _server) = visiting(curve_dealer(server.public, &client), &args);
    assert_eq!(wire.until_ready(), Ok(true));
    assert_echoes(&mut wire, b"x");
    wire.tick_at_deadline();
    assert_echoes(&mut wire, b"x");

    let stranger = KeyPair::generate();
    let (mut wire, _server) = visiting(curve_dealer(server.public, &stranger), &args);
    assert_eq!(wire.until_ready(), Err(ZmtpError::Refused("400".into())));

    let (mut wire, _server) = visiting(curve_dealer(stranger.public, &client), &args);
    assert_eq!(wire.until_ready(), Ok(false));

    // Whoever sees first that the mechanisms differ leaves.
    let (mut wire, _server) = visiting(dealer(), &args);
    assert_ne!(wire.until_ready(), Ok(true));
}
