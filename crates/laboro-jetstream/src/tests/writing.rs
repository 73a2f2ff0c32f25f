//! One pen and a stream with bad luck.

use super::model::Model;
use crate::message::{Head, Kind, Message};
use crate::pen::{Mark, Pen, PenError};
use crate::read::Assembler;
use crate::stream::Stream;
use std::time::Duration;

fn pen(stream: Model, writer: u64) -> Pen<Model> {
    Pen::new(stream, Mark::default(), writer, 1, 10).with_patience(Duration::from_secs(600))
}

/// All whole records.
async fn records(stream: &Model) -> Vec<Vec<u8>> {
    let (mut stream, mut assembler) = (stream.copy(), Assembler::after("test", Mark::default()));
    let mut records = Vec::new();
    while assembler.mark().sequence < stream.bounds().await.unwrap().last {
        for (sequence, bytes) in assembler.next(&mut stream).await.unwrap() {
            records.extend(assembler.take(sequence, bytes).unwrap().1.map(|bytes| bytes.to_vec()));
        }
    }
    records
}

#[tokio::test(start_paused = true)]
async fn whatever_is_lost_or_late_every_record_is_there_once() {
    for seed in 0..100 {
        let stream = Model::new(seed).with_trouble(60, 2000);
        let mut pen = pen(stream.clone(), 7);
        let written: Vec<Vec<u8>> = (0..20).map(|n| vec![n; usize::from(n) * 3]).collect();
        for record in &written {
            pen.record(record).await.unwrap();
        }
        assert_eq!(records(&stream).await, written, "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_writer_that_was_overtaken_writes_nothing_more() {
    for seed in 0..300 {
        let stream = Model::new(seed).with_trouble(40, 500);
        let mut old = pen(stream.clone(), 1);
        old.record(b"first").await.unwrap();
        let mut new =
            Pen::new(stream.clone(), old.mark(), 2, 2, 10).with_patience(Duration::from_secs(600));
        new.word(Kind::Alive, &[]).await.unwrap();
        let told = old.record(b"a record of several parts").await.unwrap_err();
        assert!(matches!(told, PenError::Fenced { sequence: 2, .. }), "seed {seed}: {told}");
        new.record(b"second").await.unwrap();
        assert_eq!(records(&stream).await, [b"first".to_vec(), b"second".to_vec()], "{seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_record_without_its_last_part_does_not_count() {
    let stream = Model::new(1);
    let mut old = pen(stream.clone(), 1);
    old.record(b"whole").await.unwrap();
    stream.dies_after(Some(2));
    let mut old = old.with_patience(Duration::from_secs(1));
    old.record(b"thirty bytes make three parts.").await.unwrap_err();
    stream.dies_after(None);
    assert_eq!(records(&stream).await, [b"whole".to_vec()]);
    let mut new = Pen::new(stream.clone(), old.mark(), 2, 2, 10);
    new.record(b"another one of several parts").await.unwrap();
    assert_eq!(records(&stream).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_became_shorter_is_never_written_to() {
    let mut pen = pen(Model::new(1), 1);
    pen.record(b"one").await.unwrap();
    let mut pen = Pen::new(Model::new(2), pen.mark(), 1, 1, 10);
    let told = pen.record(b"two").await.unwrap_err();
    assert_eq!(told, PenError::Lost { last: 0, known: 1 });
}

#[tokio::test(start_paused = true)]
async fn without_an_answer_it_gives_up_and_says_why() {
    let stream = Model::new(1);
    let mut pen = pen(stream.clone(), 1).with_patience(Duration::from_secs(20));
    stream.dies_after(Some(0));
    let told = pen.record(b"one").await.unwrap_err().to_string();
    assert!(told.contains("no clear answer from NATS in 2") && told.contains("dead"), "{told}");
}

#[test]
fn a_message_that_was_changed_or_cut_is_not_taken() {
    let head = Head { kind: Kind::Record, writer: 1, life: 2, number: 3, part: 0, chain: 4 };
    let (bytes, check) = head.seal(b"body");
    let message = Message::open(bytes.clone()).unwrap();
    assert_eq!((message.head, message.check, &message.body[..]), (head, check, &b"body"[..]));
    for at in 0..bytes.len() {
        let mut changed = bytes.to_vec();
        changed[at] ^= 1;
        assert!(Message::open(changed.into()).is_err(), "byte {at}");
        assert!(Message::open(bytes.slice(..at)).is_err(), "cut at {at}");
    }
}
