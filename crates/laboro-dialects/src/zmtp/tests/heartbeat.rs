//! Time: how long a handshake may take, who asks whether the other is there, and who gives up when.

use super::*;

#[test]
fn a_half_handshake_ends_in_time() {
    let mut server = Side::open(server_options());
    server.hear(&greeting("NULL", false)).unwrap();
    let until = server.connection.deadline().unwrap();
    assert_eq!(until, NOW.after_ms(10_000));
    server.connection.tick(Time(until.0 - 1), &mut server.say).unwrap();
    let error = server.connection.tick(until, &mut server.say).unwrap_err();
    assert_eq!(error, ZmtpError::SlowHandshake { ms: 10_000 });
    assert_eq!(server.connection.deadline(), None);
}

#[test]
fn a_ping_is_answered_with_its_context() {
    let mut server = ready_server();
    assert_eq!(server.hear(&command("PING", b"\0\0context")).unwrap(), []);
    assert_eq!(server.say[..], command("PONG", b"context"));
    assert_eq!(server.connection.deadline(), None);
}

#[test]
fn a_ping_between_the_frames_of_a_message_does_not_disturb_it() {
    let mut server = ready_server();
    let mut said = b"\x01\x01a".to_vec();
    said.extend(command("PING", b"\0\0"));
    said.extend(b"\x00\x01b");
    assert_eq!(server.hear(&said).unwrap(), [message(&[b"a", b"b"])]);
    assert_eq!(server.say[..], command("PONG", b""));
}

#[test]
fn a_peer_that_breaks_its_own_time_to_live_is_given_up() {
    let mut server = ready_server();
    server.hear(&command("PING", b"\0\x14")).unwrap();
    assert_eq!(server.connection.deadline(), Some(NOW.after_ms(2000)));
    server.hear_at(NOW.after_ms(1500), b"\x00\x01a").unwrap();
    assert_eq!(server.connection.deadline(), Some(NOW.after_ms(3500)));
    server.connection.tick(NOW.after_ms(3499), &mut server.say).unwrap();
    let error = server.connection.tick(NOW.after_ms(3500), &mut server.say).unwrap_err();
    assert_eq!(error, ZmtpError::Silent { ms: 2000 });
}

/// A client of 3.1 with PINGs every 100 ms, and 50 ms for an answer.
fn pinging_client() -> Side {
    let limits = Limits { heartbeat_ms: 100, silence_ms: 50, ..Limits::default() };
    let mut client = Side::open(Options { limits, ..options(SocketType::Dealer, "") });
    converse(&mut Side::open(server_options()), &mut client).unwrap();
    client
}

#[test]
fn the_side_that_connected_asks_whether_the_other_is_there() {
    let mut client = pinging_client();
    assert_eq!(client.connection.deadline(), Some(NOW.after_ms(100)));
    client.connection.tick(NOW.after_ms(100), &mut client.say).unwrap();
    assert_eq!(client.say.split()[..], command("PING", b"\0\x01"));
    assert_eq!(client.connection.deadline(), Some(NOW.after_ms(150)));
    client.hear_at(NOW.after_ms(149), &command("PONG", b"")).unwrap();
    assert_eq!(client.connection.deadline(), Some(NOW.after_ms(200)));
    client.connection.tick(NOW.after_ms(200), &mut client.say).unwrap();
    let error = client.connection.tick(NOW.after_ms(250), &mut client.say).unwrap_err();
    assert_eq!(error, ZmtpError::Silent { ms: 101 });
    assert_eq!(client.hear(b""), Err(error));
}

#[test]
fn the_side_that_listens_sends_no_ping() {
    assert_eq!(ready_server().connection.deadline(), None);
}
