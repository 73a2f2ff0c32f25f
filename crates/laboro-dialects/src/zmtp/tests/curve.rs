//! CURVE: who gets in, who does not, and that nothing sealed can be changed or sent twice.

use super::*;
use std::sync::Arc;

/// A server that lets one client in, and that client.
fn pair() -> (Side, Side) {
    let (server, client) = (KeyPair::generate(), KeyPair::generate());
    let allowed = client.public;
    let allow: Allow = Arc::new(move |key| *key == allowed);
    let server_options =
        Options { mechanism: Mechanism::curve_server(&server, allow), ..server_options() };
    (Side::open(server_options), client_of(server.public, &client))
}

fn client_of(server_public: KeyBytes, keys: &KeyPair) -> Side {
    let mechanism = Mechanism::curve_client(server_public, keys);
    Side::open(Options { mechanism, ..options(SocketType::Dealer, "peer") })
}

fn ready_pair() -> (Side, Side) {
    let (mut server, mut client) = pair();
    converse(&mut client, &mut server).unwrap();
    (server, client)
}

/// What the client says when it heard everything that the server says: greeting, HELLO, INITIATE.
fn next_said(from: &mut Side, to: &mut Side) -> BytesMut {
    let said = to.say.split();
    from.hear(&said).unwrap();
    from.say.split()
}

#[test]
fn both_sides_are_ready_and_have_proven_their_keys() {
    let (server, client) = (KeyPair::generate(), KeyPair::generate());
    let mechanism = Mechanism::curve_server(&server, Arc::new(|_| true));
    let mut server_side = Side::open(Options { mechanism, ..server_options() });
    let mut client_side = client_of(server.public, &client);
    converse(&mut client_side, &mut server_side).unwrap();
    assert!(server_side.connection.is_ready() && client_side.connection.is_ready());
    assert_eq!(server_side.connection.peer_identity(), b"peer");
    assert_eq!(client_side.connection.peer_identity(), b"hub");
    assert_eq!(server_side.connection.peer_key(), Some(&client.public));
    assert_eq!(client_side.connection.peer_key(), Some(&server.public));
}

#[test]
fn sealed_messages_arrive_as_they_were_sent() {
    let (mut server, mut client) = ready_pair();
    let long = vec![7; 70_000];
    let shapes: [&[&[u8]]; 3] = [&[b""], &[b"secret"], &[b"", &long, b"", &long[..223]]];
    shapes.iter().for_each(|frames| client.send(frames));
    assert!(!client.say.windows(6).any(|bytes| bytes == b"secret"));
    assert_eq!(converse(&mut client, &mut server).unwrap(), shapes.map(message));
    shapes.iter().for_each(|frames| server.send(frames));
    assert_eq!(converse(&mut client, &mut server).unwrap(), shapes.map(message));
}

#[test]
fn heartbeats_are_sealed_too() {
    let (mut server, mut client) = ready_pair();
    let at = client.connection.deadline().unwrap();
    client.connection.tick(at, &mut client.say).unwrap();
    assert!(!client.say.windows(4).any(|bytes| bytes == b"PING"));
    assert_eq!(server.hear(&client.say.split()).unwrap(), []);
    assert_eq!(server.say[..2], [0, 33 + 5]);
    let said = server.say.split();
    client.hear_at(at, &said).unwrap();
    assert!(client.connection.is_ready());
}

#[test]
fn limits_are_for_what_is_in_a_sealed_frame() {
    let (server, client) = (KeyPair::generate(), KeyPair::generate());
    let limits = Limits { frame_bytes: 100, message_bytes: 150, ..Limits::default() };
    for (frames, is_good) in
        [(vec![100], true), (vec![101], false), (vec![100, 50], true), (vec![100, 51], false)]
    {
        let mechanism = Mechanism::curve_server(&server, Arc::new(|_| true));
        let mut server_side = Side::open(Options { mechanism, limits, ..server_options() });
        let mut client_side = client_of(server.public, &client);
        converse(&mut client_side, &mut server_side).unwrap();
        let bodies: Vec<Vec<u8>> = frames.iter().map(|&len| vec![1; len]).collect();
        client_side.send(&bodies.iter().map(Vec::as_slice).collect::<Vec<_>>());
        assert_eq!(converse(&mut client_side, &mut server_side).is_ok(), is_good, "{frames:?}");
    }
}

#[test]
fn a_client_that_is_not_on_the_list_is_told_so() {
    let server = KeyPair::generate();
    let mechanism = Mechanism::curve_server(&server, Arc::new(|_| false));
    let mut server_side = Side::open(Options { mechanism, ..server_options() });
    let client = KeyPair::generate();
    let mut client_side = client_of(server.public, &client);
    let error = converse(&mut client_side, &mut server_side).unwrap_err();
    assert_eq!(error, ZmtpError::Denied { key: key_to_text(&client.public) });
    let said = server_side.say.split();
    assert_eq!(client_side.hear(&said), Err(ZmtpError::Refused("400".into())));
}

#[test]
fn a_client_with_another_server_key_gets_nowhere() {
    let (mut server, _) = pair();
    let mut client = client_of(KeyPair::generate().public, &KeyPair::generate());
    let error = converse(&mut client, &mut server).unwrap_err();
    assert_eq!(error, ZmtpError::Box { command: "HELLO" });
}

#[test]
fn a_client_cannot_use_a_key_that_it_has_not_the_secret_of() {
    let (server, client) = (KeyPair::generate(), KeyPair::generate());
    let mechanism = Mechanism::curve_server(&server, Arc::new(|_| true));
    let mut server_side = Side::open(Options { mechanism, ..server_options() });
    let thief = KeyPair { public: client.public, secret: KeyPair::generate().secret };
    let error = converse(&mut client_of(server.public, &thief), &mut server_side).unwrap_err();
    assert_eq!(error, ZmtpError::Box { command: "vouch of INITIATE" });
}

#[test]
fn mechanisms_and_roles_must_fit() {
    let (mut server, mut client) = pair();
    let (mut other_server, mut other_client) = pair();
    let mut null = Side::open(options(SocketType::Dealer, ""));
    let error = server.hear(&null.say.split()).unwrap_err();
    assert_eq!(error, ZmtpError::OtherMechanism { ours: "CURVE", peer: "NULL".into() });
    let error = pair().0.hear(&other_server.say.split()).unwrap_err();
    assert_eq!(error, ZmtpError::TwoServers);
    let error = converse(&mut client, &mut other_client).unwrap_err();
    let (name, wanted) = ("HELLO".into(), "WELCOME");
    assert_eq!(error, ZmtpError::OtherCommand { name, wanted });
}

#[test]
fn a_frame_that_is_sent_twice_ends_the_connection() {
    let (mut server, mut client) = ready_pair();
    client.send(&[b"pay"]);
    let said = client.say.split();
    assert_eq!(server.hear(&said).unwrap(), [message(&[b"pay"])]);
    assert_eq!(server.hear(&said), Err(ZmtpError::Nonce { number: 3, last: 3 }));
}

#[test]
fn a_side_does_not_take_its_own_frames_back() {
    let (_, mut client) = ready_pair();
    client.send(&[b"one"]);
    client.send(&[b"two"]);
    let said = client.say.split();
    assert!(client.hear(&said).is_err());
}

#[test]
fn a_changed_byte_anywhere_in_a_sealed_frame_ends_the_connection() {
    let (_, mut client) = ready_pair();
    client.send(&[b"pay"]);
    for at in 0..client.say.len() {
        let (mut server, mut client) = ready_pair();
        client.send(&[b"pay"]);
        let mut said = client.say.split();
        said[at] ^= 1;
        // A length that is one more only waits for the byte.
        let heard = server.hear(&said).and_then(|messages| {
            assert_eq!(messages, []);
            server.hear(&[0])
        });
        assert!(heard.is_err(), "byte {at}: {heard:?}");
    }
}

#[test]
fn a_changed_byte_anywhere_in_the_handshake_ends_it() {
    const PADDING: std::ops::Range<usize> = 10..82;
    for at in (2..202).filter(|at| !PADDING.contains(at)) {
        let (mut server, mut client) = pair();
        let greeting = client.say.split();
        server.hear(&greeting).unwrap();
        let mut hello = next_said(&mut client, &mut server);
        hello[at] ^= 1;
        assert!(server.hear(&hello).is_err(), "byte {at} of HELLO");
    }
    for at in 2..170 {
        let (mut server, mut client) = pair();
        let greeting = client.say.split();
        server.hear(&greeting).unwrap();
        let hello = next_said(&mut client, &mut server);
        server.hear(&hello).unwrap();
        server.say[at] ^= 1;
        let said = server.say.split();
        assert!(client.hear(&said).is_err(), "byte {at} of WELCOME");
    }
    for at in (9..300).step_by(7) {
        let (mut server, mut client) = pair();
        let greeting = client.say.split();
        server.hear(&greeting).unwrap();
        let hello = next_said(&mut client, &mut server);
        server.hear(&hello).unwrap();
        let mut initiate = next_said(&mut client, &mut server);
        initiate[at] ^= 1;
        assert!(server.hear(&initiate).is_err(), "byte {at} of INITIATE");
    }
}

/// What is said to a server after a good greeting.
#[test]
fn a_bad_curve_handshake_ends_at_once() {
    let hello = |from: &[u8], len: usize| command("HELLO", &[from, &vec![0; len]].concat());
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("ready", command("READY", b""), "command \"READY\" came where HELLO belongs"),
        ("initiate", command("INITIATE", &[0; 300]), "\"INITIATE\" came where HELLO belongs"),
        ("a message", b"\x00\x08\x07MESSAGE".into(), "a message before the handshake"),
        ("a short hello", hello(b"\x01\0", 191), "HELLO is malformed: it has not 200 bytes"),
        ("a long hello", hello(b"\x01\0", 193), "HELLO is malformed: it has not 200 bytes"),
        ("another version", hello(b"\x02\0", 192), "its version is not 1.0"),
        ("zeros", hello(b"\x01\0", 192), "HELLO does not open"),
    ];
    for (who, said, wanted) in cases {
        let (mut server, _) = pair();
        server.hear(&greeting("CURVE", false)).unwrap();
        let error = server.hear(&said).expect_err(who);
        assert!(error.to_string().contains(wanted), "{who}: {error}");
    }
}

/// What is said after HELLO and WELCOME.
#[test]
fn a_bad_initiate_ends_at_once() {
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("hello again", command("HELLO", &[0; 194]), "\"HELLO\" came where INITIATE belongs"),
        ("an empty one", command("INITIATE", b""), "INITIATE is malformed: it is cut off"),
        ("another cookie", command("INITIATE", &[0; 300]), "its cookie is not the one"),
        ("error", command("ERROR", b"\x03500"), "peer refused the connection: \"500\""),
    ];
    for (who, said, wanted) in cases {
        let (mut server, mut client) = pair();
        let greeting = client.say.split();
        server.hear(&greeting).unwrap();
        let hello = next_said(&mut client, &mut server);
        server.hear(&hello).unwrap();
        let error = server.hear(&said).expect_err(who);
        assert!(error.to_string().contains(wanted), "{who}: {error}");
    }
}

#[test]
fn after_the_handshake_nothing_unsealed_is_taken() {
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("a message", b"\x00\x05plain".into(), "MESSAGE is malformed: it is not sealed"),
        ("ping", command("PING", b"\0\0"), "MESSAGE is malformed: it is not sealed"),
        ("a short one", b"\x00\x0a\x07MESSAGE12".into(), "MESSAGE is malformed: it is too short"),
        ("nothing", b"\x00\x00".into(), "MESSAGE is malformed: it is not sealed"),
        ("an old number", [b"\x00\x21\x07MESSAGE".as_slice(), &[0; 25]].concat(), "nonce 0 came"),
        ("2^63 bytes", b"\x02\x80\0\0\0\0\0\0\0".into(), "frame of 9223372036854775808 bytes"),
    ];
    for (who, said, wanted) in cases {
        let (mut server, _) = ready_pair();
        let error = server.hear(&said).expect_err(who);
        assert!(error.to_string().contains(wanted), "{who}: {error}");
    }
}

#[test]
fn keys_are_written_as_zeromq_writes_them() {
    // The pair that the manual of libzmq's zmq_curve uses.
    let secret = key_from_text("D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs").unwrap();
    assert_eq!((secret[0], secret[31]), (0x7b, 0x88));
    let pair = KeyPair::from_secret(secret);
    assert_eq!(key_to_text(&pair.public), "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID");
    assert_eq!(key_from_text(&key_to_text(&pair.public)), Ok(pair.public));
}

#[test]
fn what_is_no_key_is_said() {
    assert_eq!(key_from_text("abc"), Err(KeyError::Length(3)));
    assert_eq!(key_from_text(&"ä".repeat(40)), Err(KeyError::Character('ä')));
    let too_large = "0".repeat(35) + "#####";
    assert_eq!(key_from_text(&too_large), Err(KeyError::TooLarge(35)));
}

#[test]
fn secrets_are_not_shown() {
    let keys = KeyPair::generate();
    let shown = format!("{keys:?} {:?}", Mechanism::curve_client([1; 32], &keys));
    assert!(!shown.contains(&key_to_text(&keys.secret)));
}
