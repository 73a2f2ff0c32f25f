//! What rrmq promises: the bytes of the original programs, and what its faults became.

mod golden;
mod server;
mod sides;
mod stream;

use super::*;
use crate::zmtp::Message;
use bytes::Bytes;
use laboro_core::{BrokerConfig, Dropped, PeerId, Time};

const NOW: Time = Time(1_000_000);

/// A message as text: frames between bars, `""` for an empty one, bytes that are no text as `\x01`.
fn message(text: &str) -> Message {
    text.split('|').map(frame).collect()
}

fn frame(text: &str) -> Bytes {
    let text = text.trim_matches('"');
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if rest.starts_with(b"\\x") {
            bytes.push(u8::from_str_radix(std::str::from_utf8(&rest[2..4]).unwrap(), 16).unwrap());
            rest = &rest[4..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    bytes.into()
}

fn text(message: &Message) -> String {
    let shown = |frame: &Bytes| match frame.is_empty() {
        true => "\"\"".into(),
        false => frame.escape_ascii().to_string(),
    };
    message.iter().map(shown).collect::<Vec<_>>().join("|")
}

/// A server with peers that are called by one letter, which is also the number of their connection.
struct Scene {
    server: Server,
    out: Vec<Effect>,
}

impl Scene {
    fn new() -> Scene {
        Scene { server: Server::new(BrokerConfig::default(), 1), out: Vec::new() }
    }

    fn open(&mut self, names: &str) {
        for name in names.bytes() {
            self.server.open(NOW, PeerId(u64::from(name)), &[name], &mut self.out);
        }
    }

    /// What the server does when `from` says this: `A> message` lines.
    fn say(&mut self, from: &str, said: &str) -> String {
        let peer = PeerId(u64::from(from.as_bytes()[0]));
        // What is refused is seen in the counters.
        let _ = self.server.receive(NOW, peer, message(said), &mut self.out);
        self.done()
    }

    fn done(&mut self) -> String {
        let line = |effect| match effect {
            Effect::Send { to, message } => format!("{}> {}", letter(to), text(&message)),
            Effect::Close { peer } => format!("{} closed", letter(peer)),
        };
        self.out.drain(..).map(line).collect::<Vec<_>>().join("\n")
    }

    fn dropped(&self, why: Dropped) -> u64 {
        self.server.broker().counters().dropped(why)
    }

    fn table(&self) -> Vec<(String, u32)> {
        self.server.broker().workers().map(|row| (row.identity.to_string(), row.free)).collect()
    }
}

fn letter(peer: PeerId) -> char {
    char::from(u8::try_from(peer.0).unwrap())
}
