//! The hub's side of every dialect, in conversation with a stranger. The first byte chooses among settings;
//! the rest are the steps of the conversation.

use crate::codecs::rrmq::frames;
use crate::conversation::{Dialect, MESSAGE_BYTES_MAX, hold, plain};
use crate::steps::{Deed, number, read};
use laboro_core::{BrokerConfig, Kinds, Name, PeerId, Time};
use laboro_dialects::dwork::{HubDoor, HubSide, Settings};
use laboro_dialects::fuq2::{Foreman, Mode, Numbering, Plain};
use laboro_dialects::rrmq::{Effect, Server};
use laboro_dialects::zmtp::Message;
use laboro_dialects::{fuq1, runexp, websocket};

fn split(bytes: &[u8]) -> (u8, &[u8]) {
    bytes.split_first().map_or((0, bytes), |(&first, rest)| (first, rest))
}

pub(crate) fn native(bytes: &[u8]) {
    let session = &|place| Box::new(Foreman::new(place, Mode::Native)) as _;
    hold(&Dialect { session, greeting: &[], wrap: plain }, read(bytes));
}

fn numbering(first: u8) -> Numbering {
    [Numbering::Current, Numbering::Older, Numbering::Oldest][usize::from(first) % 3]
}

pub(crate) fn fuq2(bytes: &[u8]) {
    let (first, steps) = split(bytes);
    let mode = Plain { numbering: numbering(first), ..Plain::tcp() };
    let session = &|place| Box::new(Foreman::new(place, Mode::Plain(mode.clone()))) as _;
    hold(&Dialect { session, greeting: &[], wrap: plain }, read(steps));
}

pub(crate) fn fuq1(bytes: &[u8]) {
    let session = &|place| Box::new(fuq1::Server::new(place)) as _;
    hold(&Dialect { session, greeting: &[], wrap: plain }, read(bytes));
}

pub(crate) fn websocket(bytes: &[u8]) {
    let (first, steps) = split(bytes);
    let node = Name::from("node");
    let mode = Plain {
        numbering: numbering(first),
        slots: u32::from(first >> 4),
        ..Plain::websocket(node, Vec::new())
    };
    let session = &|place| {
        let foreman = Foreman::new(place, Mode::Plain(mode.clone()));
        Box::new(websocket::Server::new(foreman, MESSAGE_BYTES_MAX, "fuzz")) as _
    };
    hold(&Dialect { session, greeting: &[], wrap: masked }, read(steps));
}

/// One binary message of a client.
fn masked(message: &[u8]) -> Vec<u8> {
    let length = message.len() as u16;
    let head = [&[0x82, 0x80 | 126][..], &length.to_be_bytes(), &[0; 4]].concat();
    [&head, &message[..usize::from(length)]].concat()
}

pub(crate) fn dwork(bytes: &[u8]) {
    let (first, steps) = split(bytes);
    let door = HubDoor::new(Settings {
        patience_ms: if first & 1 == 0 { 0 } else { 1000 },
        exit_when_finished: first & 2 == 0,
        lease_ms: (first & 4 != 0).then_some(5000),
        kinds: if first & 8 == 0 { Settings::default().kinds } else { Kinds::ALL },
        only_holder: first & 16 != 0,
        tasks_a_message: 100,
        ..Settings::default()
    });
    let session = &|place| Box::new(HubSide::new(place, door.clone())) as _;
    hold(&Dialect { session, greeting: &req_greeting(), wrap: request }, read(steps));
}

/// What a REQ socket says first.
pub(crate) fn req_greeting() -> Vec<u8> {
    let mut greeting = vec![0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 1];
    greeting.extend_from_slice(b"NULL");
    greeting.resize(64, 0);
    let ready = b"\x05READY\x0bSocket-Type\0\0\0\x03REQ\x08Identity\0\0\0\0";
    greeting.extend_from_slice(&[4, ready.len() as u8]);
    greeting.extend_from_slice(ready);
    greeting
}

/// The empty frame that a REQ socket sends, and the body.
fn request(body: &[u8]) -> Vec<u8> {
    let head = [&[1, 0, 2][..], &(body.len() as u64).to_be_bytes()].concat();
    [&head, body].concat()
}

pub(crate) fn runexp(bytes: &[u8]) {
    let (first, steps) = split(bytes);
    let mut door = runexp::ManagerDoor::new("").expect("the default group can be said");
    if first & 1 != 0 {
        door = door.staying();
    }
    if first & 2 != 0 {
        door = door.with_success(runexp::Success::ExitCode);
    }
    let session = &|place| Box::new(door.session(place)) as _;
    hold(&Dialect { session, greeting: b"SALUTON; MI host", wrap: plain }, read(steps));
}

/// The broker takes messages, not bytes: ZMTP is in front of it.
pub(crate) fn rrmq(bytes: &[u8]) {
    let (first, steps) = split(bytes);
    let config = BrokerConfig {
        workers_max: 8,
        queue_messages_max: 32,
        queue_bytes_max: 4096,
        probe_ms: if first & 1 == 0 { 0 } else { 1000 },
        ..BrokerConfig::default()
    };
    let (mut server, mut now, mut out) = (Server::new(config, 1), Time(1_000_000), Vec::new());
    // A number of a connection is never used twice.
    let (mut peers, mut next) = ([PeerId(0); 8], 1);
    for step in read(steps) {
        let peer = &mut peers[usize::from(step.which & 7)];
        match step.deed {
            Deed::Wait => now = now.after_ms(number(&step.payload[..step.payload.len().min(5)])),
            Deed::Reconnect => server.close(now, *peer),
            Deed::Greet | Deed::Act => {
                server.close(now, *peer);
                (*peer, next) = (PeerId(next), next + 1);
                server.open(now, *peer, &step.payload[..step.payload.len().min(255)], &mut out);
            }
            Deed::Say | Deed::SayInPieces | Deed::SayMessage | Deed::Stop => {
                let message = Message::from_iter(frames(step.payload));
                let _ = server.receive(now, *peer, message, &mut out);
            }
        }
        if server.deadline().is_some_and(|due| due <= now) {
            server.tick(now, &mut out);
        }
        for effect in out.drain(..) {
            if let Effect::Close { peer } = effect {
                server.close(now, peer);
            }
        }
    }
}
