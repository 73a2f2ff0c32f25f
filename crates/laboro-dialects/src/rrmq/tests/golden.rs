//! Every message captured from the original programs, byte for byte: read, written, and as our own sides and
//! our own server say it.

use super::*;
use crate::zmtp::{Connection, Options, SocketType};
use bytes::BytesMut;

const GOLDEN: &str = include_str!("../../../../../spec/golden/rrmq.jsonl");

struct Golden {
    name: String,
    from: Bytes,
    to: Bytes,
    frames: Message,
    wire: Vec<u8>,
}

fn all() -> Vec<Golden> {
    let bytes = |hex: &str| -> Vec<u8> {
        (0..hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
            .collect()
    };
    let parse = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| line[key].as_str().unwrap_or("").to_owned();
        let frames = line["frames_hex"].as_array().unwrap().iter();
        Golden {
            name: text("name"),
            from: text("from").into(),
            to: text("to").into(),
            frames: frames.map(|hex| bytes(hex.as_str().unwrap())).collect(),
            wire: bytes(&text("wire_hex")),
        }
    };
    GOLDEN.lines().map(parse).collect()
}

fn named(name: &str) -> Golden {
    all().into_iter().find(|golden| golden.name == name).expect(name)
}

/// Two ROUTERs of ours after the handshake, the second with this identity; and what it said until then.
fn ready(identity: &Bytes) -> (Connection, Connection, BytesMut) {
    let router = |identity: Bytes| Options { identity, ..Options::new(SocketType::Router) };
    let mut a = Connection::new(router(Bytes::from_static(b"a")));
    let mut b = Connection::new(router(identity.clone()));
    let (mut to_a, mut to_b, mut said) = (BytesMut::new(), BytesMut::new(), BytesMut::new());
    a.open(NOW, &mut to_b);
    b.open(NOW, &mut to_a);
    while !a.is_ready() || !b.is_ready() {
        said.extend_from_slice(&to_a);
        a.receive(NOW, &mut to_a, &mut to_b).unwrap();
        b.receive(NOW, &mut to_b, &mut to_a).unwrap();
    }
    (a, b, said)
}

#[test]
fn every_message_is_read_and_written_to_the_byte() {
    let (mut reader, mut writer, _) = ready(&Bytes::from_static(b"b"));
    let (mut say, mut unsaid) = (BytesMut::new(), BytesMut::new());
    let mut count = 0;
    for golden in all().iter().filter(|golden| !golden.name.starts_with("zmtp.")) {
        let mut wire = BytesMut::from(&golden.wire[..]);
        let read = reader.receive(NOW, &mut wire, &mut unsaid).unwrap().expect(&golden.name);
        assert_eq!(read, golden.frames, "{}", golden.name);
        let envelope = Envelope::parse(&read).expect(&golden.name);
        writer.send(envelope.to_message().slices(), &mut say);
        assert_eq!(say.split()[..], golden.wire, "{}", golden.name);
        count += 1;
    }
    assert_eq!(count, 39);
}

#[test]
fn the_handshake_is_that_of_the_originals() {
    for side in ["peer", "server"] {
        let wanted =
            [named(&format!("zmtp.greeting.{side}")), named(&format!("zmtp.ready.{side}"))];
        let (_, _, said) = ready(&wanted[1].from);
        assert_eq!(said[..], wanted.map(|golden| golden.wire).concat(), "{side}");
    }
}

#[test]
fn data_frames_are_read_and_written_to_the_byte() {
    let mut count = 0;
    for golden in all() {
        let Ok(envelope) = Envelope::parse(&golden.frames) else { continue };
        let is_data = |frame: &&Bytes| frame.len() >= 11 && envelope.command == Command::Response;
        if let Some(frame) = envelope.args.first().filter(is_data) {
            let packet = Packet::parse(frame).expect(&golden.name);
            assert_eq!(packet.to_frame(), frame, "{}", golden.name);
            count += 1;
        }
    }
    assert_eq!(count, 9);
}

#[test]
fn a_captured_stream_holds_what_was_asked_for() {
    let envelope = Envelope::parse(&named("stream.3.response.worker-to-server").frames).unwrap();
    let packet = Packet::parse(&envelope.args[0]).unwrap();
    let data = StreamReader::new(2000).read(&packet).unwrap().unwrap();
    assert_eq!(example::ones(&data), Some(1024));
}

#[test]
fn a_captured_zlib_stream_unpacks() {
    let mut reader = StreamReader::new(1 << 20);
    for name in ["mqs.compressed.packet1", "mqs.compressed.packet2"] {
        let envelope = Envelope::parse(&named(name).frames).unwrap();
        let packet = Packet::parse(&envelope.args[0]).unwrap();
        assert_eq!(packet.pack, Pack::Zlib);
        assert_eq!(reader.read(&packet), Ok(None), "{name}");
    }
}

/// The captured message goes into our server, and the next captured one comes out.
#[test]
fn our_server_says_what_the_original_server_says() {
    let exchanges = [
        ("hb.ping.worker-to-server", "hb.pong.server-to-worker"),
        ("register.request", "register.response"),
        ("trackexec_ping.1.client-to-server", "trackexec_ping.2.server-to-worker"),
        ("trackexec_ping.3.worker-to-server", "trackexec_ping.4.server-to-client"),
        ("exec_ping.1.client-to-server", "exec_ping.2.server-to-worker"),
        ("stream.1.request.client-to-server", "stream.2.request.server-to-worker"),
        ("stream.3.response.worker-to-server", "stream.4.response.server-to-client"),
    ];
    let mut server = Server::new(BrokerConfig::default(), 1);
    let (mut out, mut peers) = (Vec::new(), Vec::<Bytes>::new());
    let mut number = |server: &mut Server, identity: &Bytes| {
        let known = peers.iter().position(|peer| peer == identity);
        let at = known.unwrap_or_else(|| {
            peers.push(identity.clone());
            server.open(NOW, PeerId(peers.len() as u64 - 1), identity, &mut Vec::new());
            peers.len() - 1
        });
        PeerId(at as u64)
    };
    // The client is there before it is spoken to.
    number(&mut server, &named("trackexec_ping.1.client-to-server").from);
    for (asked, answered) in exchanges {
        let (asked, answered) = (named(asked), named(answered));
        let from = number(&mut server, &asked.from);
        let to = number(&mut server, &answered.to);
        server.receive(NOW, from, asked.frames, &mut out).unwrap();
        let wanted = Effect::Send { to, message: answered.frames };
        assert_eq!(std::mem::take(&mut out), [wanted], "{}", answered.name);
    }
    let worker = number(&mut server, &named("increment.request").from);
    let free = |server: &Server| server.broker().workers().map(|row| row.free).collect::<Vec<_>>();
    assert_eq!(free(&server), [7]);
    server.receive(NOW, worker, named("increment.request").frames, &mut out).unwrap();
    assert_eq!(free(&server), [8]);
    server.receive(NOW, worker, named("deregister.request").frames, &mut out).unwrap();
    assert_eq!((free(&server), out), (vec![], vec![]));
}

#[test]
fn our_server_passes_on_what_the_original_passes_on() {
    let (asked, passed) = (
        named("stream_more.2.more.client-to-server"),
        named("stream_more.3.more.server-to-worker"),
    );
    let mut server = Server::new(BrokerConfig::default(), 1);
    let mut out = Vec::new();
    server.open(NOW, PeerId(1), &asked.from, &mut out);
    server.open(NOW, PeerId(2), &passed.to, &mut out);
    server.receive(NOW, PeerId(1), asked.frames, &mut out).unwrap();
    assert_eq!(out, [Effect::Send { to: PeerId(2), message: passed.frames }]);
}

#[test]
fn our_worker_answers_as_the_original_worker_answers() {
    let mut worker = Worker::new(WorkerOptions::default());
    let mut out = Vec::new();
    let asked = named("trackexec_ping.2.server-to-worker").frames;
    worker.receive(NOW, &asked, &mut out).unwrap();
    assert_eq!(out[0], named("trackexec_ping.3.worker-to-server").frames);
    let mut increment = Envelope::parse(&out[1]).unwrap();
    increment.id = Bytes::from_static(&[1, 0, 0, 0]);
    assert_eq!(increment.to_message(), named("increment.request").frames);

    out.clear();
    worker.deregister(&mut out);
    assert_eq!(out, [named("deregister.request").frames]);
    out.clear();
    worker.register(&mut out);
    let mut register = Envelope::parse(&out[0]).unwrap();
    register.id = Bytes::from_static(&[0; 4]);
    assert_eq!(register.to_message(), named("register.request").frames);
}

#[test]
fn statuses_are_those_of_the_original() {
    for (name, status) in
        [("ongoing.response", Status::OK), ("ongoing.response.unknown", Status::FAILED)]
    {
        let envelope = Envelope::parse(&named(name).frames).unwrap();
        assert_eq!(Status::parse(&envelope.args[0]), Some(status));
        assert_eq!(status.to_frame(), envelope.args[0]);
    }
}
