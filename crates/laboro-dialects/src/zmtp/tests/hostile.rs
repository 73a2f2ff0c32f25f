//! What strangers say: each ends at once, with an error that names it.

use super::*;

/// What is said to a server that just opened, and what it thinks of it.
#[test]
fn a_stranger_is_recognised_at_once() {
    let v2 = |version| [b"\xff\0\0\0\0\0\0\0\x01\x7f".as_slice(), &[version]].concat();
    let mut odd_mechanism = greeting("NULL", false);
    odd_mechanism[20] = b'X';
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("http", b"GET / HTTP/1.1\r\n\r\n".into(), "began with \"GET / HTTP/1.1\\r\\n\\r\\n\""),
        ("a shell", b"id\n".into(), "began with \"id\\n\""),
        ("zeros", vec![0; 9], "peer does not speak zmtp"),
        ("tls", b"\x16\x03\x01\x02\0\x01".into(), "peer does not speak zmtp"),
        ("a broken signature", b"\xff\0\0\0\0\0\0\0\x01\0".into(), "peer does not speak zmtp"),
        ("version 1", b"\x05\0peer".into(), "zmtp 1.0, which is too old"),
        ("version 1 that is versioned", v2(0), "zmtp 1.0, which is too old"),
        ("version 2", v2(1), "zmtp 2.0, which is too old"),
        ("curve", greeting("CURVE", false), "wants the mechanism \"CURVE\", this side wants NULL"),
        ("plain", greeting("PLAIN", false), "wants the mechanism \"PLAIN\", this side wants NULL"),
        ("no mechanism", greeting("", false), "wants the mechanism \"\""),
        ("bytes after the mechanism", odd_mechanism, "wants the mechanism \"NULL\""),
    ];
    for (who, said, wanted) in cases {
        let mut server = Side::open(server_options());
        let error = server.hear(&said).expect_err(who);
        assert!(error.to_string().contains(wanted), "{who}: {error}");
        // It stays over, whatever comes.
        assert_eq!(server.hear(&greeting("NULL", false)), Err(error), "{who}");
    }
}

#[test]
fn one_byte_is_enough_to_know_that_it_is_not_zmtp() {
    assert!(Side::open(server_options()).hear(b"G").is_err());
}

/// What is said after a good greeting.
#[test]
fn a_bad_handshake_ends_at_once() {
    let long_identity =
        [b"\x0bSocket-Type\0\0\0\x03REQ\x08Identity\0\0\x01\0".as_slice(), &[b'x'; 256]];
    let ready = |rest: &[u8]| command("READY", rest);
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("a message", b"\x00\x01a".into(), "a message before the handshake"),
        (
            "a message of 2^63 bytes",
            b"\x02\x80\0\0\0\0\0\0\0".into(),
            "a message before the handshake",
        ),
        (
            "a command of 2^63 bytes",
            b"\x06\x80\0\0\0\0\0\0\0".into(),
            "command of 9223372036854775808",
        ),
        ("a command of 4097 bytes", b"\x06\0\0\0\0\0\0\x10\x01".into(), "over the limit of 4096"),
        ("reserved flags", b"\x0c\x01".into(), "flags 0x0c"),
        ("a command with more", b"\x05\x01".into(), "flags 0x05"),
        ("an empty command", b"\x04\0".into(), "command is malformed: it is empty"),
        ("no name", b"\x04\x01\0".into(), "its name is empty"),
        ("a name beyond the end", b"\x04\x03\xffAB".into(), "its name is longer than itself"),
        (
            "a long name",
            command(&"A".repeat(255), b""),
            "command \"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA...\"",
        ),
        ("hello", command("HELLO", &[0; 194]), "command \"HELLO\" came where READY belongs"),
        ("ping", command("PING", b"\0\0"), "command \"PING\" came where READY belongs"),
        ("error", command("ERROR", b"\x03400"), "peer refused the connection: \"400\""),
        ("a broken error", command("ERROR", b"\x09400"), "ERROR is malformed"),
        ("an empty error", command("ERROR", b""), "ERROR is malformed"),
        ("nothing in ready", ready(b""), "it has no Socket-Type"),
        ("a cut property", ready(b"\x0bSocket-Type\0\0\0\x09REQ"), "a property is cut off"),
        ("a huge property", ready(b"\x0bSocket-Type\xff\xff\xff\xffREQ"), "a property is cut off"),
        ("an odd socket", ready(b"\x0bSocket-Type\0\0\0\x03req"), "the unknown type \"req\""),
        (
            "a long identity",
            ready(&long_identity.concat()),
            "its identity is longer than 255 bytes",
        ),
    ];
    for (who, said, wanted) in cases {
        let mut server = Side::open(server_options());
        server.hear(&greeting("NULL", false)).unwrap();
        let error = server.hear(&said).expect_err(who);
        assert!(error.to_string().contains(wanted), "{who}: {error}");
    }
}

/// What is said after a good handshake, to a server with small limits.
#[test]
fn bad_traffic_ends_at_once() {
    let limits = Limits {
        frame_bytes: 100,
        frames_a_message: 4,
        message_bytes: 250,
        command_bytes: 300,
        ..Limits::default()
    };
    let hundred = [b"\x01\x64".as_slice(), &[0; 100]].concat();
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        (
            "2^63 bytes",
            b"\x02\x80\0\0\0\0\0\0\0".into(),
            "frame of 9223372036854775808 bytes is over",
        ),
        (
            "2^64-1 bytes",
            [2, 255, 255, 255, 255, 255, 255, 255, 255].into(),
            "frame of 18446744073709551615",
        ),
        ("101 bytes", b"\x00\x65".into(), "frame of 101 bytes is over the limit of 100"),
        ("unending frames", b"\x01\x01a".repeat(5), "message has more than 4 frames"),
        ("unending empty frames", b"\x01\x00".repeat(5), "message has more than 4 frames"),
        (
            "a long message",
            hundred.repeat(3),
            "message of at least 300 bytes is over the limit of 250",
        ),
        ("a long command", b"\x06\0\0\0\0\0\0\x01\x2d".into(), "command of 301 bytes"),
        ("reserved flags", b"\x80\x01".into(), "flags 0x80"),
        ("subscribe", command("SUBSCRIBE", b"a"), "command \"SUBSCRIBE\" came where PING, PONG"),
        ("ready again", command("READY", b""), "command \"READY\" came where"),
        ("a long name", command(&"B".repeat(255), b""), "command \"BBBB"),
        ("an empty command", b"\x04\0".into(), "it is empty"),
        ("a ping without time to live", command("PING", b"\0"), "PING is malformed"),
        ("a ping with a long context", command("PING", &[0; 19]), "its context is over 16 bytes"),
        ("error", command("ERROR", b"\x04gone"), "peer refused the connection: \"gone\""),
    ];
    for (who, said, wanted) in cases {
        let mut server = ready_server_with(limits);
        let error = server.hear(&said).expect_err(who);
        assert!(error.to_string().contains(wanted), "{who}: {error}");
        assert_eq!(server.hear(b"\x00\x01a"), Err(error), "{who}");
    }
}

#[test]
fn what_is_just_within_the_limits_passes() {
    let limits =
        Limits { frame_bytes: 100, frames_a_message: 3, message_bytes: 250, ..Limits::default() };
    let mut server = ready_server_with(limits);
    server.send(&[&[1; 100], &[2; 100], &[3; 50]]);
    let said = server.say.split();
    for _ in 0..3 {
        assert_eq!(server.hear(&said).unwrap(), [message(&[&[1; 100], &[2; 100], &[3; 50]])]);
    }
}
