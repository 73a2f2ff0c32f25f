//! What websockets promise, with sessions of a real dialect inside.

use super::frame::{self, Broken, Opcode};
use super::messages::{Arrival, Messages};
use super::*;
use crate::fuq2::{Foreman, Mode, Plain, PlainSettings, PlainWorker};
use crate::session::{Delivery, HangUp, OpenAdmission, Output, Session, SessionContext};
use crate::worker::{News, Order, Orders, Parting, TaskEnd, Used, WorkerSide};
use bytes::BytesMut;
use laboro_core::{
    Command, Element, Grant, JobId, LeaseNo, Name, Outcome, Reply, Role, SessionId, TaskId, Time,
    Values, Work, WorkerId,
};
use std::sync::Arc;

const NOW: Time = Time(1_000_000);
const BYTES_MAX: usize = 70_000;

fn server() -> Server<Foreman> {
    let context = SessionContext {
        session: SessionId(1),
        group: Name::from("default"),
        peer: None,
        message_max: BYTES_MAX,
        grace_ms: 3_600_000,
        admission: Arc::new(OpenAdmission),
    };
    let plain = Plain::websocket(Name::from("vm:7:1"), Vec::new());
    let mut server =
        Server::new(Foreman::new(context, Mode::Plain(plain)), BYTES_MAX, "f2w_vm:7:1");
    let mut out = Output::default();
    server.open(NOW, &mut out);
    assert_eq!(out.say, b""[..], "on a websocket the foreman does not speak first");
    server
}

fn client() -> Client<PlainWorker> {
    Client::new(PlainWorker::new(PlainSettings::websocket("w", 2)), BYTES_MAX, "w2f_w")
}

fn framed(opcode: Opcode, payload: &[u8], is_masked: bool) -> BytesMut {
    let mut bytes = BytesMut::new();
    frame::write(&mut bytes, opcode, payload, is_masked.then_some([1, 2, 3, 4]));
    bytes
}

fn hear(server: &mut Server<Foreman>, bytes: impl AsRef<[u8]>) -> Output {
    let mut out = Output::default();
    server.receive(NOW, &mut BytesMut::from(bytes.as_ref()), &mut out);
    out
}

#[test]
fn frames_of_every_size_arrive_as_they_were_sent() {
    for length in [0, 1, 7, 8, 125, 126, 127, 65_535, 65_536, BYTES_MAX] {
        for is_masked in [false, true] {
            let payload: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let mut messages = Messages::new(is_masked, BYTES_MAX);
            let mut input = framed(Opcode::Binary, &payload, is_masked);
            let mut rest = input.split_off(input.len() - 1);
            assert_eq!(messages.next(&mut input), Ok(None), "{length}");
            input.unsplit(rest.split());
            let taken = messages.next(&mut input);
            assert_eq!(taken, Ok(Some(Arrival::Message(payload[..].into()))), "{length}");
            assert!(input.is_empty());
        }
    }
}

#[test]
fn the_examples_of_the_standard_are_read() {
    let mut messages = Messages::new(true, BYTES_MAX);
    let mut ping =
        BytesMut::from(&[0x89, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58][..]);
    assert_eq!(messages.next(&mut ping), Ok(Some(Arrival::Ping(b"Hello"[..].into()))));
    let mut messages = Messages::new(false, BYTES_MAX);
    let mut pieces = BytesMut::from(&b"\x02\x03Hel\x89\x01!\x80\x02lo"[..]);
    assert_eq!(messages.next(&mut pieces), Ok(Some(Arrival::Ping(b"!"[..].into()))));
    assert_eq!(messages.next(&mut pieces), Ok(Some(Arrival::Message(b"Hello"[..].into()))));
}

#[test]
fn what_no_websocket_says_is_told_apart() {
    let taken = |bytes: &[u8]| Messages::new(false, 10).next(&mut BytesMut::from(bytes));
    assert_eq!(taken(b"\xC2\x00"), Err(Broken::Reserved));
    assert_eq!(taken(b"\x83\x00"), Err(Broken::Opcode(3)));
    assert_eq!(taken(b"\x82\x80"), Err(Broken::Masking));
    assert_eq!(taken(b"\x09\x00"), Err(Broken::Control(0)));
    assert_eq!(taken(b"\x89\x7e\x00\x7e"), Err(Broken::Control(126)));
    assert_eq!(taken(b"\x80\x00"), Err(Broken::Order));
    assert_eq!(taken(b"\x02\x01a\x02\x01b"), Err(Broken::Order));
    assert_eq!(taken(b"\x81\x01a"), Err(Broken::Text));
    let large = Err(Broken::TooLarge { bytes: 1 << 32, most: 10 });
    assert_eq!(taken(b"\x82\x7f\x00\x00\x00\x01\x00\x00\x00\x00"), large);
    let grown = Err(Broken::TooLarge { bytes: 11, most: 10 });
    assert_eq!(taken(b"\x02\x06aaaaaa\x80\x05bbbbb"), grown, "before its bytes are there");
}

/// Both sides after the HELLO and its answer.
fn joined() -> (Server<Foreman>, Client<PlainWorker>) {
    let (mut server, mut client) = (server(), client());
    let mut said = Orders::default();
    client.open(NOW, &mut said);
    let out = hear(&mut server, said.take_bytes());
    assert!(matches!(out.ask[..], [(_, Command::Query(_))]), "who it is was asked of the hub");
    let mut out = Output::default();
    server.deliver(NOW, Delivery::Reply { tag: 2, reply: Reply::Workers(Vec::new()) }, &mut out);
    let [(tag, Command::Join(join))] = &out.ask[..] else { panic!("it joins") };
    assert_eq!((join.name.bytes(), join.capacity.slots), (&b"vm:7:1"[..], 2));
    let reply = Reply::Joined { worker: WorkerId(1), unknown: Vec::new() };
    let mut out = Output::default();
    server.deliver(NOW, Delivery::Reply { tag: *tag, reply }, &mut out);
    assert_eq!(out.messages(), 1);
    client.receive(NOW, &mut out.take_bytes(), &mut said);
    assert!(!said.orders.is_empty(), "it is welcome");
    (server, client)
}

/// The foreman's messages of a real conversation.
fn golden(kind: &str) -> Vec<u8> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/golden/fuq-conversation.jsonl");
    let text = std::fs::read_to_string(path).expect("the golden data is in the tree");
    let mut lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let is_meant = |line: &serde_json::Value| {
        line["dir"] == "foreman->node" && line["decoded"]["type"] == kind
    };
    let line = lines.find(is_meant).expect("every type is said there");
    let hex = line["hex"].as_str().unwrap();
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(byte).collect()
}

#[test]
fn what_the_foreman_says_before_it_hears_of_the_close_is_heard() {
    let (mut client, mut said) = (client(), Orders::default());
    client.open(NOW, &mut said);
    client.receive(NOW, &mut framed(Opcode::Binary, &golden("OK"), false), &mut said);
    said.take_bytes();
    client.tell(NOW, News::Draining, &mut said);
    assert_eq!(said.take_bytes()[0], 0x88, "a close");
    assert_eq!((&said.hang_up, client.is_settled()), (&None, false));
    said.orders.clear();
    client.receive(NOW, &mut framed(Opcode::Binary, &golden("JOB"), false), &mut said);
    assert!(matches!(said.orders[..], [Order::Start(_), Order::Start(_)]));
    assert!(said.take_bytes().is_empty(), "nothing is said after a close");
    let mut late = Orders::default();
    let deadline = client.deadline().unwrap();
    client.tick(deadline, &mut late);
    assert!(matches!(late.hang_up, Some(Parting::Again(_))), "it is not waited for without end");
    client.receive(NOW, &mut framed(Opcode::Close, &1000u16.to_be_bytes(), false), &mut said);
    assert!(matches!(said.hang_up, Some(Parting::Again(_))));
}

fn grant(number: u32) -> Grant {
    let part = |text: &str| Box::from(text.as_bytes());
    let work = Work::indexed(part("/x"), part("/"), part("/"));
    let values = Values::Numbers { first: 1, step: 1 };
    Grant {
        lease: LeaseNo(u64::from(number)),
        task: TaskId::new(JobId(1), number),
        name: Name::from("sim"),
        job_name: Name::from("sim"),
        own_names: false,
        element: Some(Element { position: number - 1, count: 9, values }),
        attempt: 1,
        fails: 0,
        work: Some(Arc::new(work)),
        profile: Arc::default(),
        share: None,
        memo: None,
        role: Role::Only,
    }
}

#[test]
fn an_answer_and_a_result_that_come_together_are_met_with_one_write() {
    let (mut server, mut client) = joined();
    let (mut out, mut said) = (Output::default(), Orders::default());
    let grants = vec![grant(1), grant(2)];
    server.deliver(NOW, Delivery::Work { worker: WorkerId(1), grants }, &mut out);
    assert_eq!(out.messages(), 1, "one task a JOB");
    client.receive(NOW, &mut out.take_bytes(), &mut said);
    let [Order::Start(start)] = &said.orders[..] else { panic!("one task") };
    let how = TaskEnd { outcome: Outcome::Success, message: None, used: Used::default() };
    let news = News::Ended { key: start.key, how };
    client.tell(NOW, news, &mut said);
    let mut out = hear(&mut server, said.take_bytes());
    assert_eq!((out.messages(), out.heard), (0, 2), "the result is not safe yet");
    let [(_, Command::Acknowledge(..)), (tag, Command::Report(_))] = out.ask[..] else {
        panic!("a report")
    };
    let reply = Reply::Reported(vec![Ok(())]);
    server.deliver(NOW, Delivery::Reply { tag, reply }, &mut out);
    assert_eq!(out.messages(), 2, "its answer, and the next JOB");
}

#[test]
fn silence_is_broken_by_pings_and_at_last_ends_it() {
    let (mut server, mut client) = joined();
    let (mut out, mut said) = (Output::default(), Orders::default());
    let later = NOW.after_ms(PING_MS);
    assert_eq!((server.deadline(), client.deadline()), (Some(later), Some(later)));
    server.tick(later, &mut out);
    assert!(out.say.ends_with(b"PING:f2w_vm:7:1:1"));
    client.receive(later, &mut out.take_bytes(), &mut said);
    assert_eq!((said.say[0], said.say[1] & 0x7F), (0x8A, 17), "a pong says what the ping said");
    client.tick(later, &mut said);
    server.receive(later, &mut said.take_bytes(), &mut out);
    assert!(out.say.ends_with(b"PING:w2f_w:1"));
    let much_later = later.after_ms(SILENT_MS);
    server.tick(much_later, &mut out);
    assert!(matches!(out.hang_up, Some(HangUp::Silent)));
    client.tick(much_later, &mut said);
    assert!(matches!(said.hang_up, Some(Parting::Again(_))));
}

#[test]
fn a_close_is_answered_and_ends_it() {
    let out = hear(&mut server(), framed(Opcode::Close, b"\x03\xe8closing", true));
    assert_eq!(out.say, b"\x88\x02\x03\xe8"[..]);
    assert_eq!(out.hang_up, Some(HangUp::Finished));
}

#[test]
fn strangers_are_told_why_and_cut_off() {
    for (bytes, code) in [
        (framed(Opcode::Text, b"hello", true), 1003),
        (framed(Opcode::Binary, b"hello", false), 1002),
        (framed(Opcode::Binary, b"GET / HTTP/1.1 and more", true), 1002),
        // A message of the dialect that is cut, and one that ends before its frame.
        (framed(Opcode::Binary, b"\x47\xc0\x02\0\0\0\0\0\0\0\0\0\x14\0\0\0", true), 1002),
        (framed(Opcode::Binary, b"\x47\xc0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0!", true), 1002),
        (BytesMut::from(&b"\x82\xff\0\0\0\x01\0\0\0\0mask"[..]), 1009),
    ] {
        let out = hear(&mut server(), &bytes);
        let expected = u16::to_be_bytes(code);
        assert_eq!((out.say[0], &out.say[2..4]), (0x88, &expected[..]), "{bytes:?}");
        assert!(matches!(out.hang_up, Some(HangUp::Malformed(_))), "{:?}", out.hang_up);
    }
}
