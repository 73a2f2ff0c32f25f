//! What strangers may send: cut, huge and deep messages, wrong tokens, and random bytes. Nobody panics, and
//! nothing is allocated ahead of the bytes that are there.

use super::rig::context;
use crate::fuq2::header::{LABORO, MessageHeader, MessageKind, Numbering};
use crate::fuq2::native::{Batch, NativeHello, Update};
use crate::fuq2::pack::PackReader;
use crate::fuq2::payload::{self, JobStatusUpdate};
use crate::fuq2::{Foreman, Mode, NativeWorker, Plain, WorkerSettings};
use crate::session::{Admission, Admitted, Denied, HangUp, Output, Session};
use crate::worker::{Orders, Parting, WorkerSide};
use bytes::{Bytes, BytesMut};
use laboro_core::{Name, Time};
use std::net::IpAddr;
use std::sync::Arc;

const NOW: Time = Time(1000);

fn native() -> Foreman {
    Foreman::new(context(1), Mode::Native)
}

fn hear(foreman: &mut Foreman, bytes: &[u8]) -> Output {
    let mut out = Output::default();
    foreman.receive(NOW, &mut BytesMut::from(bytes), &mut out);
    out
}

fn header(kind: MessageKind, seq: u32, padding: u32, arg0: u32) -> BytesMut {
    let mut bytes = BytesMut::new();
    MessageHeader { kind, subtype: 0, seq, padding, arg0 }.write(Numbering::Current, &mut bytes);
    bytes
}

#[test]
fn a_stranger_with_a_huge_length_is_cut_off_before_its_bytes_come() {
    let out = hear(&mut native(), &header(MessageKind::Hello, 0, LABORO, u32::MAX));
    assert!(matches!(out.hang_up, Some(HangUp::Malformed(why)) if why.contains("4294967295")));
}

#[test]
fn what_is_not_fuq_is_cut_off() {
    let out = hear(&mut native(), b"GET / HTTP/1.1\r\nHost: hub\r\n\r\n");
    assert!(matches!(out.hang_up, Some(HangUp::Malformed(why)) if why.contains("not fuq")));
}

#[test]
fn an_original_at_the_native_door_is_told_where_to_go() {
    let out = hear(&mut native(), &header(MessageKind::Hello, 0, 0, 0));
    assert!(matches!(out.hang_up, Some(HangUp::Denied(why)) if why.contains("fuq2 door")));
}

#[test]
fn an_update_of_a_stranger_is_not_read() {
    let out = hear(&mut native(), &header(MessageKind::Update, 0, LABORO, 0));
    assert!(matches!(out.hang_up, Some(HangUp::Malformed(_))));
    assert!(out.ask.is_empty());
}

/// One good token, bound to a group.
struct Lock;

impl Admission for Lock {
    fn admit_worker(&self, secret: &[u8], _: Option<IpAddr>, _: Time) -> Result<Admitted, Denied> {
        if secret == b"good" {
            Ok(Admitted { group: Some(Name::from("sim")) })
        } else {
            Err(Denied("no such token: make one".into()))
        }
    }
}

fn greet(settings: WorkerSettings) -> (Output, Option<Parting>) {
    let context = crate::session::SessionContext { admission: Arc::new(Lock), ..context(1) };
    let mut foreman = Foreman::new(context, Mode::Native);
    let mut worker = NativeWorker::new(settings);
    let mut orders = Orders::default();
    worker.open(NOW, &mut orders);
    let mut out = Output::default();
    foreman.receive(NOW, &mut orders.take_bytes(), &mut out);
    worker.receive(NOW, &mut out.take_bytes(), &mut orders);
    (out, orders.hang_up)
}

#[test]
fn a_wrong_token_is_refused_in_words_that_reach_the_worker() {
    let bad = WorkerSettings { token: b"bad".to_vec(), ..WorkerSettings::new("w", 1) };
    let (out, parting) = greet(bad);
    assert!(out.ask.is_empty());
    assert_eq!(out.hang_up, Some(HangUp::Denied("no such token: make one".into())));
    assert_eq!(parting, Some(Parting::Refused("no such token: make one".into())));
}

#[test]
fn a_token_is_good_for_its_group_only() {
    let good = WorkerSettings { token: b"good".to_vec(), ..WorkerSettings::new("w", 1) };
    let (out, _) = greet(good.clone());
    assert!(
        matches!(&out.ask[..], [(_, laboro_core::Command::Join(join))] if join.group == "sim".into())
    );
    let (out, parting) = greet(WorkerSettings { group: Some("other".into()), ..good });
    assert!(matches!(out.hang_up, Some(HangUp::Denied(_))));
    assert!(matches!(parting, Some(Parting::Refused(why)) if why.contains("sim")));
}

#[test]
fn a_secret_is_not_printed() {
    let settings = WorkerSettings { token: b"sesame".to_vec(), ..WorkerSettings::new("w", 1) };
    let shown = format!("{settings:?} {:?}", NativeWorker::new(settings.clone()));
    assert!(!shown.contains("sesame") && !shown.contains("115, 101"));
}

#[test]
fn claims_of_more_than_is_there_are_refused() {
    for claim in [
        &[0xDD, 0xFF, 0xFF, 0xFF, 0xFF][..],
        &[0xDF, 0xFF, 0xFF, 0xFF, 0xFF],
        &[0xDB, 0xFF, 0xFF, 0xFF, 0xFF],
        &[0x91, 0xDF, 0xFF, 0xFF, 0xFF, 0xFF],
    ] {
        let body = Bytes::copy_from_slice(claim);
        assert!(payload::read_tasks(&body).is_err());
        assert!(Batch::read_all(&body).is_err());
        assert!(PackReader::new(&body).skip().is_err());
    }
    // A byte each on the wire, much more in memory.
    let mut many = vec![0xDD, 0x00, 0x10, 0x00, 0x00];
    many.resize(many.len() + (1 << 20), 0xC0);
    assert!(payload::read_tasks(&Bytes::from(many)).is_err());
}

#[test]
fn depth_costs_nothing() {
    let mut deep = vec![0x81, 0xA1, b'x'];
    deep.resize(1 << 20, 0x91);
    deep.push(0xC0);
    let update = JobStatusUpdate::read(&mut PackReader::new(&Bytes::from(deep)));
    assert_eq!(update.unwrap(), JobStatusUpdate::default());
}

#[test]
fn a_newer_peer_may_say_more() {
    // {Laboro: {Results: [[1, 2, 3, 1, 7, "", 9, 0, 0, 0, 4, 0, "new", {}]], Novel: [1, {2: 3}]}, Other: nil}
    let mut body = vec![0x82, 0xA6];
    body.extend(b"Laboro\x82\xA7Results\x91\x9E\x01\x02\x03\x01\x07\xA0");
    body.extend(b"\x09\x00\x00\x00\x04\x00\xA3new\x80");
    body.extend(b"\xA5Novel\x92\x01\x81\x02\x03\xA5Other\xC0");
    let update = Update::read(&Bytes::from(body)).unwrap();
    assert_eq!(update.results.len(), 1);
    assert_eq!(update.results[0].outcome, laboro_core::Outcome::Exit(7));
    assert_eq!((update.facts[0].used.wall_us, update.facts[0].attempt), (9, 4));
    // And an older one less.
    let hello = NativeHello::read(&Bytes::from_static(b"\x81\xA6Laboro\x81\xA4Name\xA1w")).unwrap();
    assert_eq!(hello.unwrap().name, "w".into());
}

#[test]
fn random_bytes_end_no_program() {
    let mut dice = 0x2545_F491_4F6C_DD1Du64;
    let mut roll = move || {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        (dice >> 32) as u32
    };
    for round in 0..20_000 {
        let length = roll() % 64;
        let mut body: Vec<u8> = (0..length).map(|_| roll() as u8).collect();
        // Half of them begin as something that could be meant.
        if round % 2 == 0 {
            let starts: [&[u8]; 3] =
                [b"\x81\xA6Laboro\x81\xA7Results", b"\x91\x83\xA4Task", b"\x82"];
            let start = starts[roll() as usize % 3];
            body.splice(..0, start.iter().copied());
        }
        let bytes = Bytes::from(body.clone());
        let _ = (Update::read(&bytes), NativeHello::read(&bytes), Batch::read_all(&bytes));
        let _ = (payload::read_tasks(&bytes), payload::read_pairs(&bytes));
        let kind = [
            MessageKind::Hello,
            MessageKind::Update,
            MessageKind::Job,
            MessageKind::Reset,
            MessageKind::Stop,
        ][roll() as usize % 5];
        let mut message = header(kind, roll() % 8, LABORO, body.len() as u32);
        message.extend_from_slice(&body);
        hear(&mut native(), &message);
        hear(&mut Foreman::new(context(1), Mode::Plain(Plain::tcp())), &message);
        let mut worker = NativeWorker::new(WorkerSettings::new("w", 1));
        worker.open(NOW, &mut Orders::default());
        worker.receive(NOW, &mut message, &mut Orders::default());
    }
}
