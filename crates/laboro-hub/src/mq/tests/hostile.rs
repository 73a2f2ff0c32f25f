//! Peers that are broken or mean, while others go on.

use super::*;
use std::io::Write;
use std::net::TcpStream;

/// One request, there and back.
fn assert_serves(server: &RunningBroker) {
    let (mut worker, mut client) = (server.dial("good worker"), server.dial("good client"));
    worker.register("1");
    client.ask(b"id");
    let asked = worker.receive();
    worker.answer(&asked);
    assert_eq!(client.receive().get(3).unwrap()[..], *b"id");
    worker.send(&[b"", b"LMQv100", &[3], b"WORKER", &[9], b""]);
    worker.sync();
}

#[test]
fn a_thousand_half_handshakes_do_no_harm_and_are_ended() {
    let server = door(|settings| settings.limits.handshake_ms = 1500);
    let greeting = [&[0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f][..], b"\x03\x00NULL"].concat();
    let half: Vec<TcpStream> = (0..1000)
        .map(|index| {
            let mut stream = TcpStream::connect(server.address).unwrap();
            stream.write_all(&greeting[..index % greeting.len()]).unwrap();
            stream
        })
        .collect();
    assert_serves(&server);
    server.until(|table| table.connections == 0);
    drop(half);
    assert_serves(&server);
}

#[test]
fn a_name_that_comes_again_closes_its_old_connection() {
    let server = door(|_| ());
    let mut old = server.dial("name");
    old.register("1");
    let mut new = server.dial("name");
    assert!(old.is_closed());
    let mut client = server.dial("client");
    client.ask(b"1");
    let asked = new.receive();
    new.answer(&asked);
    client.receive();
    assert_eq!(server.now().connections, 2);
}

#[test]
fn a_peer_that_never_reads_is_cut_off_and_counted() {
    let server = door(|settings| settings.unsent_bytes_max = 1 << 20);
    let mut deaf = server.dial("deaf");
    deaf.sync();
    let mut client = server.dial("client");
    let large = vec![7; 1 << 20];
    while server.now().slow == 0 {
        client.send(&[b"deaf", b"", b"LMQv100", &[6], b"id", &large, b""]);
    }
    client.sync();
    assert_serves(&server);
}

#[test]
fn peers_that_together_leave_too_much_unread_lose_the_slowest() {
    let server = door(|settings| settings.unsent_bytes_all_max = 8 << 20);
    let mut client = server.dial("client");
    let large = vec![7; 1 << 20];
    let mut deaf: Vec<Wire> =
        (0..20).map(|number| server.dial(&format!("deaf {number}"))).collect();
    deaf.iter_mut().for_each(|wire| drop(wire.sync()));
    // None of them comes near its own limit.
    for _ in 0..12 {
        for number in 0..20 {
            let to = format!("deaf {number}");
            client.send(&[to.as_bytes(), b"", b"LMQv100", &[6], b"id", &large, b""]);
        }
    }
    client.sync();
    let table = server.now();
    assert!(table.slow > 0 && table.connections < 21, "{table:?}");
    assert!(table.unread_bytes <= 8 << 20, "{table:?}");
    assert_serves(&server);
}

#[test]
fn a_message_cut_after_any_frame_is_dropped_and_counted() {
    let server = door(|_| ());
    let mut worker = server.dial("worker");
    worker.register("10");
    let mut client = server.dial("client");
    let whole: [&[u8]; 6] = [b"", b"LMQv100", &[4], b"12345678", &[1], b""];
    (1..whole.len()).for_each(|frames| client.send(&whole[..frames]));
    client.sync();
    assert_eq!(server.dropped("malformed"), 5);
    assert_eq!(worker.sync(), []);
    client.send(&whole);
    worker.receive();
}

#[test]
fn a_connection_cut_after_any_byte_leaves_no_trace() {
    let server = door(|_| ());
    let mut worker = server.dial("worker");
    worker.register("100");
    for cut in 0..40 {
        let mut client = server.dial("client");
        // Frames with their headers: a whole request has 29 bytes.
        let bytes = b"\x01\x00\x01\x07LMQv100\x01\x01\x04\x01\x08abcdefgh\x01\x01\x01\x00\x00";
        client.stream.write_all(&bytes[..cut.min(bytes.len() - 1)]).unwrap();
    }
    server.until(|table| table.connections == 1);
    assert_eq!(worker.sync(), []);
    assert_eq!(server.now().requests, 0);
    let mut client = server.dial("client");
    client.ask(b"id");
    let asked = worker.receive();
    worker.answer(&asked);
    client.receive();
}

#[test]
fn bytes_that_are_no_zmtp_end_only_their_own_connection() {
    let server = door(|_| ());
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
    server.until(|table| table.connections == 0);
    assert_serves(&server);
}

#[test]
fn registers_that_make_no_sense_are_not_answered() {
    let server = door(|_| ());
    let mut worker = server.dial("worker");
    for slots in [&b"abc"[..], b"-1", b"+5", b" 5", b"99999999999", b"100001", b"1.5"] {
        worker.send(&[b"", b"LMQv100", &[4], b"id", &[8], slots, b""]);
    }
    worker.send(&[b"", b"LMQv100", &[4], b"id", &[8], b""]);
    assert_eq!(worker.sync(), []);
    assert_eq!((server.dropped("bad_slots"), server.now().workers.len()), (8, 0));
}

#[test]
fn more_connections_than_allowed_are_turned_away() {
    let server = door(|settings| settings.connections_max = 3);
    let kept: Vec<Wire> = ["a", "b", "c"].map(|name| server.dial(name)).into();
    let mut late = TcpStream::connect(server.address).unwrap();
    late.set_read_timeout(Some(wire::PATIENCE)).unwrap();
    assert_eq!(io::Read::read(&mut late, &mut [0; 8]).unwrap_or(0), 0);
    drop(kept);
    server.until(|table| table.connections == 0);
    assert_serves(&server);
}

#[test]
fn a_server_that_is_dropped_has_ended() {
    let server = door(|_| ());
    let address = server.address;
    let mut peer = server.dial("peer");
    drop(server);
    assert!(peer.is_closed());
    assert!(TcpStream::connect(address).is_err());
}
