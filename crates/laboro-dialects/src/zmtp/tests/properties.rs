//! Whatever comes in, in whatever pieces: no panic, nothing held beyond the limits, and the same messages.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

const LIMITS: Limits = Limits {
    frame_bytes: 300,
    leaves_out_long: true,
    frames_a_message: 5,
    message_bytes: 500,
    command_bytes: 200,
    handshake_ms: 1000,
    heartbeat_ms: 0,
    silence_ms: 0,
};

/// Pieces of what a peer might say, good and bad.
fn words() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(any::<u8>(), 0..20),
        Just(greeting("NULL", false)),
        Just(greeting("CURVE", true)),
        Just(command("READY", b"\x0bSocket-Type\0\0\0\x03REQ\x08Identity\0\0\0\x01x")),
        Just(command("PING", b"\0\x01abc")),
        Just(command("PONG", b"abc")),
        vec(any::<u8>(), 0..8).prop_map(|rest| command("PING", &rest)),
        (0u8..8, 0u8..20).prop_map(|(flags, len)| {
            [&[flags, len][..], &vec![len; usize::from(len)]].concat()
        }),
        (any::<u64>(), 0u32..64)
            .prop_map(|(size, shift)| { [&[2u8][..], &(size >> shift).to_be_bytes()].concat() }),
    ]
}

/// What the connection and its caller hold for this peer.
fn held(side: &Side) -> usize {
    side.input.len() + side.connection.partial_bytes()
}

proptest! {
    #[test]
    fn no_input_panics_or_is_held_beyond_the_limits(
        starts_well: bool,
        words in vec(words(), 0..30),
        piece in 1usize..50,
    ) {
        let mut server = if starts_well {
            ready_server_with(LIMITS)
        } else {
            Side::open(Options { limits: LIMITS, ..server_options() })
        };
        for piece in words.concat().chunks(piece) {
            let Ok(messages) = server.hear(piece) else { break };
            prop_assert!(held(&server) <= LIMITS.message_bytes + 9);
            for message in messages {
                prop_assert!(message.bytes() <= LIMITS.message_bytes);
                prop_assert!(message.len() <= LIMITS.frames_a_message);
            }
        }
    }

    #[test]
    fn messages_survive_any_cut(
        messages in vec(vec(vec(any::<u8>(), 0..100), 1..5), 0..10),
        pieces in vec(1usize..400, 1..20),
    ) {
        let mut server = ready_server_with(LIMITS);
        for message in &messages {
            server.connection.send(message.iter().map(Vec::as_slice), &mut server.say);
        }
        let said = server.say.split();
        let (mut rest, mut arrived) = (&said[..], Vec::new());
        for &piece in pieces.iter().cycle() {
            if rest.is_empty() { break }
            let (now, later) = rest.split_at(piece.min(rest.len()));
            arrived.extend(server.hear(now).unwrap());
            rest = later;
        }
        let sent: Vec<Message> = messages.iter().map(|m| m.iter().cloned().collect()).collect();
        prop_assert_eq!(arrived, sent);
    }
}
