//! What a small message costs to decode and to encode, in a full buffer. Prints a table; asserts nothing.

use bytes::BytesMut;
use laboro_core::Time;
use laboro_dialects::zmtp::{Connection, KeyPair, Mechanism, Options, SocketType};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

const NOW: Time = Time(1);

fn main() {
    // `cargo bench` passes --bench; `cargo test --benches` does not, and wants a quick look only.
    let rounds = if std::env::args().any(|arg| arg == "--bench") { 2000 } else { 10 };
    println!("{:<34} {:>12} {:>12}", "case", "decode ns", "encode ns");
    let (client, server) = (Options::new(SocketType::Dealer), Options::new(SocketType::Router));
    let (mut client, mut server) = ready(client, server);
    for (case, frames) in cases() {
        measure(case, rounds, &mut client, &mut server, &frames);
    }
    let keys = KeyPair::generate();
    let sealing = |socket, mechanism| Options { mechanism, ..Options::new(socket) };
    let client =
        sealing(SocketType::Dealer, Mechanism::curve_client(keys.public, &KeyPair::generate()));
    let server = sealing(SocketType::Router, Mechanism::curve_server(&keys, Arc::new(|_| true)));
    let (mut client, mut server) = ready(client, server);
    for (case, frames) in cases() {
        measure(&format!("{case}, sealed"), rounds / 10, &mut client, &mut server, &frames);
    }
}

fn cases() -> Vec<(&'static str, Vec<Vec<u8>>)> {
    vec![
        ("1 frame of 30 bytes", vec![vec![1; 30]]),
        ("an empty frame, 30 bytes", vec![vec![], vec![1; 30]]),
        ("6 frames, as rrmq", [0, 7, 1, 8, 1, 0].map(|len| vec![1; len]).into()),
        ("1 frame of 1000 bytes", vec![vec![1; 1000]]),
    ]
}

/// Both sides after the handshake.
fn ready(client: Options, server: Options) -> (Connection, Connection) {
    let (mut client, mut server) = (Connection::new(client), Connection::new(server));
    let (mut to_server, mut to_client) = (BytesMut::new(), BytesMut::new());
    client.open(NOW, &mut to_server);
    server.open(NOW, &mut to_client);
    while !client.is_ready() || !server.is_ready() {
        server.receive(NOW, &mut to_server, &mut to_client).expect("a client of ours is good");
        client.receive(NOW, &mut to_client, &mut to_server).expect("a server of ours is good");
    }
    (client, server)
}

/// Fills a buffer of 64 KiB, as a busy connection reads it, and empties it again, many times. The median of
/// the rounds is shown: others on the machine disturb some of them.
fn measure(
    case: &str,
    rounds: usize,
    client: &mut Connection,
    server: &mut Connection,
    frames: &[Vec<u8>],
) {
    let (mut encode, mut decode) = (Vec::new(), Vec::new());
    let mut unsaid = BytesMut::new();
    for _ in 0..rounds {
        let mut buffer = BytesMut::with_capacity(64 << 10);
        let began = Instant::now();
        let mut sent = 0;
        while buffer.len() < 60 << 10 {
            client.send(frames.iter().map(Vec::as_slice), &mut buffer);
            sent += 1;
        }
        encode.push(began.elapsed() / sent);
        let began = Instant::now();
        let mut received = 0;
        while let Some(message) =
            server.receive(NOW, &mut buffer, &mut unsaid).expect("what we say we understand")
        {
            black_box(&message);
            received += 1;
        }
        decode.push(began.elapsed() / sent);
        assert_eq!(sent, received, "every message arrives");
    }
    println!("{case:<34} {:>12} {:>12}", median(decode), median(encode));
}

fn median(mut times: Vec<Duration>) -> u128 {
    times.sort_unstable();
    times[times.len() / 2].as_nanos()
}
