//! Conversations that go well.

use super::*;

#[test]
fn both_sides_are_ready_and_know_each_other() {
    let mut server = Side::open(server_options());
    let mut client = Side::open(options(SocketType::Dealer, "peer"));
    assert!(!server.connection.is_ready() && server.connection.peer_socket().is_none());
    converse(&mut client, &mut server).unwrap();
    assert!(server.connection.is_ready() && client.connection.is_ready());
    assert_eq!(server.connection.peer_identity(), b"peer");
    assert_eq!(client.connection.peer_identity(), b"hub");
    assert_eq!(server.connection.peer_socket(), Some(SocketType::Dealer));
    assert_eq!(client.connection.peer_socket(), Some(SocketType::Router));
}

#[test]
fn the_greeting_and_ready_are_those_of_libzmq() {
    let mut side = Side::open(options(SocketType::Router, "tcp://127.0.0.1:6714"));
    let mut wanted = b"\xff\0\0\0\0\0\0\0\x15\x7f\x03\x01NULL".to_vec();
    wanted.resize(64, 0);
    assert_eq!(side.say.split()[..], wanted);
    side.hear(&wanted).unwrap();
    let ready = b"\x04\x3d\x05READY\x0bSocket-Type\0\0\0\x06ROUTER\x08Identity\0\0\0\x14tcp://127.0.0.1:6714";
    assert_eq!(side.say[..], ready[..]);
}

#[test]
fn a_rep_socket_tells_no_identity() {
    let mut side = Side::open(options(SocketType::Rep, ""));
    side.say.clear();
    side.hear(&greeting("NULL", false)).unwrap();
    assert_eq!(side.say[..], b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03REP"[..]);
}

#[test]
fn messages_of_every_shape_arrive_as_they_were_sent() {
    let long = vec![7; 70_000];
    let shapes: [&[&[u8]]; 6] = [
        &[b""],
        &[b"one"],
        &[b"", b"", b""],
        &[&long[..255], &long[..256], &long[..257]],
        &[b"", b"a", &long, b"b", b"", b"c", b"d"],
        &[&long],
    ];
    let mut server = Side::open(server_options());
    let mut client = Side::open(options(SocketType::Req, ""));
    converse(&mut client, &mut server).unwrap();
    shapes.iter().for_each(|frames| client.send(frames));
    let arrived = converse(&mut client, &mut server).unwrap();
    assert_eq!(arrived, shapes.map(message));
}

#[test]
fn bytes_may_come_one_by_one() {
    let mut client = Side::open(options(SocketType::Dealer, "peer"));
    let mut server = Side::open(server_options());
    let mut arrived = Vec::new();
    while !client.say.is_empty() || !server.say.is_empty() {
        let said = client.say.split();
        for byte in said {
            arrived.extend(server.hear(&[byte]).unwrap());
        }
        let was_ready = client.connection.is_ready();
        for byte in server.say.split() {
            client.hear(&[byte]).unwrap();
        }
        if !was_ready && client.connection.is_ready() {
            client.send(&[b"a", &[1; 300], b""]);
            client.send(&[b"b"]);
        }
    }
    assert_eq!(arrived, [message(&[b"a", &[1; 300], b""]), message(&[b"b"])]);
}

#[test]
fn a_message_may_follow_ready_in_the_same_piece() {
    let mut server = Side::open(server_options());
    let mut said = greeting("NULL", false);
    said.extend(command("READY", b"\x0bSocket-Type\0\0\0\x03REQ"));
    said.extend(b"\x01\x00\x00\x02hi");
    assert_eq!(server.hear(&said).unwrap(), [message(&[b"", b"hi"])]);
    assert_eq!(server.connection.peer_identity(), b"");
}

#[test]
fn frames_are_slices_of_what_was_read() {
    let mut server = ready_server();
    server.input.reserve(1000);
    let at = server.input.as_ptr() as usize;
    let arrived = server.hear(b"\x01\x03one\x00\x03two").unwrap();
    assert_eq!(arrived[0].0[0].as_ptr() as usize, at + 2);
    assert_eq!(arrived[0].0[1].as_ptr() as usize, at + 7);
}

#[test]
fn a_compact_message_is_the_same_message() {
    let one = message(&[b"one", b"", b"three"]);
    assert_eq!(one.compact(), one);
    assert_eq!((one.len(), one.bytes()), (3, 8));
}

#[test]
fn version_3_0_peers_are_welcome_and_get_no_ping() {
    let mut client = Side::open(options(SocketType::Dealer, ""));
    let mut said = greeting("NULL", false);
    said[11] = 0;
    said.extend(command("READY", b"\x0bsocket-type\0\0\0\x06ROUTER\x01x\0\0\0\x01y"));
    client.hear(&said).unwrap();
    assert!(client.connection.is_ready());
    assert_eq!(client.connection.deadline(), None);
}

#[test]
fn sockets_that_do_not_fit_are_told_so() {
    let mut server = Side::open(server_options());
    let mut said = greeting("NULL", false);
    said.extend(command("READY", b"\x0bSocket-Type\0\0\0\x03SUB"));
    let (ours, peer) = (SocketType::Router, SocketType::Sub);
    assert_eq!(server.hear(&said), Err(ZmtpError::OtherSocket { ours, peer }));
    let said = command("ERROR", b"\x13Invalid socket type");
    assert!(server.say.ends_with(&said));

    let mut told = Side::open(options(SocketType::Dealer, ""));
    told.hear(&greeting("NULL", false)).unwrap();
    assert_eq!(told.hear(&said), Err(ZmtpError::Refused("Invalid socket type".into())));
}

#[test]
fn who_talks_to_whom_is_mutual() {
    use SocketType::*;
    let all = [Req, Rep, Dealer, Router, Pub, Sub, Xpub, Xsub, Push, Pull, Pair];
    for a in all {
        assert_eq!(SocketType::from_name(a.name().as_bytes()), Some(a));
        assert!(all.iter().any(|&b| a.talks_to(b)));
        all.iter().for_each(|&b| assert_eq!(a.talks_to(b), b.talks_to(a), "{a} and {b}"));
    }
}
