//! The carrier of dwork and rrmq: a stranger's stream, and a sealed stream that somebody tampers with.

use crate::steps::{Deed, number, read};
use bytes::{Bytes, BytesMut};
use laboro_core::Time;
use laboro_dialects::zmtp::{
    Connection, KeyPair, Limits, Mechanism, Message, Options, SocketType, ZmtpError,
};
use std::sync::{Arc, LazyLock};

const LIMITS: Limits = Limits {
    frame_bytes: 16 << 10,
    leaves_out_long: false,
    frames_a_message: 64,
    message_bytes: 64 << 10,
    command_bytes: 4096,
    handshake_ms: 10_000,
    heartbeat_ms: 30_000,
    silence_ms: 30_000,
};

/// The first byte chooses the socket. Where the stream is cut must not matter.
pub(crate) fn stream(bytes: &[u8]) {
    let (&first, stream) = bytes.split_first().unwrap_or((&0, &[]));
    let socket = [SocketType::Router, SocketType::Dealer, SocketType::Req, SocketType::Rep]
        [usize::from(first & 3)];
    let options = Options {
        as_server: first & 4 != 0,
        limits: Limits { leaves_out_long: first & 8 != 0, ..LIMITS },
        ..Options::new(socket)
    };
    let whole = heard(options.clone(), [stream].into_iter());
    let pieces = heard(options, stream.chunks(1 + usize::from(first >> 4)));
    assert_eq!(whole.0, pieces.0, "where a stream is cut does not matter");
    // How much of a bad beginning was there decides on the words about it, not on the end.
    assert_eq!(whole.1.is_some(), pieces.1.is_some());
    assert!(whole.1.is_some() || whole.2 == pieces.2);
    whole.0.iter().for_each(said_again);
}

/// All messages and how it ended, and what was said to the peer.
fn heard<'a>(
    options: Options,
    pieces: impl Iterator<Item = &'a [u8]>,
) -> (Vec<Message>, Option<ZmtpError>, BytesMut) {
    let (mut connection, mut say) = (Connection::new(options), BytesMut::new());
    connection.open(Time(0), &mut say);
    let (mut input, mut messages) = (BytesMut::new(), Vec::new());
    for piece in pieces {
        input.extend_from_slice(piece);
        loop {
            match connection.receive(Time(1), &mut input, &mut say) {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(error) => return (messages, Some(error), say),
            }
        }
        assert!(
            input.len() <= LIMITS.frame_bytes + 16,
            "what is kept is the beginning of one frame: {}",
            input.len()
        );
    }
    (messages, None, say)
}

/// A message that was taken arrives as it is when it is sent on.
fn said_again(message: &Message) {
    let limits = LIMITS;
    let near = Connection::new(Options { limits, ..Options::new(SocketType::Dealer) });
    let far =
        Connection::new(Options { limits, as_server: true, ..Options::new(SocketType::Router) });
    let mut pair = Pair::new(near, far);
    pair.near.send(message.slices(), &mut pair.to_far);
    let arrived = pair.far.receive(Time(2), &mut pair.to_far, &mut pair.to_near);
    assert_eq!(arrived.as_ref().map(Option::as_ref), Ok(Some(message)));
}

struct Pair {
    near: Connection,
    far: Connection,
    to_near: BytesMut,
    to_far: BytesMut,
}

impl Pair {
    /// With the handshake behind them.
    fn new(near: Connection, far: Connection) -> Pair {
        let (to_near, to_far) = (BytesMut::new(), BytesMut::new());
        let mut pair = Pair { near, far, to_near, to_far };
        pair.near.open(Time(0), &mut pair.to_far);
        pair.far.open(Time(0), &mut pair.to_near);
        for _ in 0..8 {
            let far = pair.far.receive(Time(1), &mut pair.to_far, &mut pair.to_near);
            assert_eq!(far, Ok(None));
            let near = pair.near.receive(Time(1), &mut pair.to_near, &mut pair.to_far);
            assert_eq!(near, Ok(None));
        }
        assert!(pair.near.is_ready() && pair.far.is_ready());
        pair
    }
}

static KEYS: LazyLock<(KeyPair, KeyPair)> =
    LazyLock::new(|| (KeyPair::generate(), KeyPair::generate()));

/// Messages go through a sealed connection while somebody changes, drops or repeats bytes on the way. What
/// arrives must have been sent, in this order: nothing forged, nothing twice. Whole frames that are left out
/// are not seen, because the mechanism asks only that their numbers grow.
pub(crate) fn curve(bytes: &[u8]) {
    let (server, client) = &*KEYS;
    let (mut say_server, mut say_client) = (BytesMut::new(), BytesMut::new());
    let mut near = Connection::new(Options {
        mechanism: Mechanism::curve_client(server.public, client),
        limits: LIMITS,
        ..Options::new(SocketType::Dealer)
    });
    let mut far = Connection::new(Options {
        mechanism: Mechanism::curve_server(server, Arc::new(|_| true)),
        as_server: true,
        limits: LIMITS,
        ..Options::new(SocketType::Router)
    });
    near.open(Time(0), &mut say_server);
    far.open(Time(0), &mut say_client);
    let (mut sent, mut arrived): (Vec<Message>, Vec<Message>) = (Vec::new(), Vec::new());
    for step in read(bytes).take(32) {
        match step.deed {
            Deed::Say | Deed::SayMessage | Deed::SayInPieces if near.is_ready() => {
                let message = Message::from_iter([Bytes::copy_from_slice(step.payload)]);
                near.send(message.slices(), &mut say_server);
                sent.push(message);
            }
            // Somebody on the way.
            Deed::Act => {
                let at = number(step.payload) as usize % (say_server.len() + 1);
                if let Some(byte) = say_server.get_mut(at) {
                    *byte ^= 1 << (step.which & 7);
                }
            }
            Deed::Reconnect => {
                let at = number(step.payload) as usize % (say_server.len() + 1);
                say_server.truncate(at);
            }
            Deed::Stop => {
                let copy = say_server.clone();
                say_server.extend_from_slice(&copy);
            }
            _ => {}
        }
        if !matches!(step.deed, Deed::Wait) {
            continue;
        }
        loop {
            match far.receive(Time(1), &mut say_server, &mut say_client) {
                Ok(Some(message)) => arrived.push(message),
                Ok(None) => break,
                Err(_) => return assert_in_order(&sent, &arrived),
            }
        }
        if near.receive(Time(1), &mut say_client, &mut say_server).is_err() {
            return assert_in_order(&sent, &arrived);
        }
        assert_in_order(&sent, &arrived);
    }
}

fn assert_in_order(sent: &[Message], arrived: &[Message]) {
    let mut sent = sent.iter();
    for message in arrived {
        assert!(sent.any(|one| one == message), "what arrives was sent, once");
    }
}
