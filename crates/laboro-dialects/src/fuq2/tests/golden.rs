//! Every message of the originals, both ways. Where the page decides otherwise than they do, it is said by
//! name below.

use crate::fuq2::frame::{self, Frame};
use crate::fuq2::header::{MessageHeader, MessageKind, Numbering};
use crate::fuq2::pack::{PackError, PackReader};
use crate::fuq2::payload::{
    JobStatusUpdate, PlainHello, Task, read_pairs, read_tasks, write_pairs, write_tasks,
};
use bytes::BytesMut;
use serde_json::Value;

/// Decoded as the originals do, but written in the form that their programs send.
const WRITTEN_OTHERWISE: [(&str, &str); 2] = [
    ("hello-8-nil", "an empty list is written as one, not as nil"),
    ("job-niltasks", "an empty list is written as one, not as nil"),
];

fn vectors() -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/golden/fuq.jsonl");
    let text = std::fs::read_to_string(path).expect("the golden data is in the tree");
    text.lines().map(|line| serde_json::from_str(line).expect("one value a line")).collect()
}

fn hex(text: &Value) -> BytesMut {
    let text = text.as_str().unwrap_or_default();
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

fn numbering(proto: &str) -> Option<Numbering> {
    match proto {
        "v2" => Some(Numbering::Current),
        "v2@2035bbb" => Some(Numbering::Older),
        "v2@pre-2035bbb" => Some(Numbering::Oldest),
        // Version 1 has its own tests.
        _ => None,
    }
}

enum Body {
    None,
    Hello(PlainHello),
    Job(Vec<Task>),
    Update(JobStatusUpdate),
    Cancel(Vec<crate::fuq2::payload::TaskPair>),
}

fn read(message: &Frame) -> Result<Body, PackError> {
    if message.body.is_empty() {
        return Ok(Body::None);
    }
    Ok(match message.header.kind {
        MessageKind::Hello => Body::Hello(PlainHello::read(&message.body)?),
        MessageKind::Job => Body::Job(read_tasks(&message.body)?),
        MessageKind::Update => {
            Body::Update(JobStatusUpdate::read(&mut PackReader::new(&message.body))?)
        }
        MessageKind::Cancel => Body::Cancel(read_pairs(&message.body)?),
        _ => Body::None,
    })
}

fn write(header: MessageHeader, body: &Body, numbering: Numbering) -> BytesMut {
    let mut rest = BytesMut::new();
    match body {
        Body::None => {}
        Body::Hello(hello) => hello.write(&mut rest),
        Body::Job(tasks) => write_tasks(&mut rest, tasks),
        Body::Update(update) => update.write(&mut rest),
        Body::Cancel(pairs) => write_pairs(&mut rest, pairs),
    }
    let arg0 = if header.has_body() { rest.len() as u32 } else { header.arg0 };
    let mut bytes = BytesMut::new();
    MessageHeader { arg0, ..header }.write(numbering, &mut bytes);
    bytes.unsplit(rest);
    bytes
}

#[test]
fn every_message_of_the_originals_is_read_and_written_as_they_do() {
    let mut checked = 0;
    for vector in vectors() {
        let id = vector["id"].as_str().unwrap();
        let Some(numbering) = numbering(vector["proto"].as_str().unwrap()) else { continue };
        let mut input = hex(&vector["hex"]);
        let taken = frame::take(&mut input, numbering, 1 << 20);
        match vector["kind"].as_str().unwrap() {
            "encode" | "accept" => {
                let message = taken.expect(id).expect(id);
                assert!(input.is_empty(), "{id}: something is left");
                let MessageHeader { seq, subtype, .. } = message.header;
                assert_eq!(u64::from(seq), vector["seq"], "{id}");
                assert_eq!(u64::from(subtype), vector["subtype"], "{id}");
                let body = read(&message).unwrap_or_else(|error| panic!("{id}: {error}"));
                let otherwise = WRITTEN_OTHERWISE.iter().any(|(other, _)| *other == id);
                if vector["kind"] == "encode" && !otherwise {
                    assert_eq!(
                        write(message.header, &body, numbering),
                        hex(&vector["hex"]),
                        "{id}"
                    );
                }
            }
            "reject" => {
                let is_read = matches!(&taken, Ok(Some(message)) if read(message).is_ok());
                assert!(!is_read, "{id} should not be taken");
            }
            "encode-fails" => assert!(Numbering::Current.kind(6).is_none(), "{id}"),
            other => panic!("{id}: what is {other}?"),
        }
        checked += 1;
    }
    assert_eq!(checked, 78);
}

#[test]
fn what_a_message_says_is_what_the_originals_say_it_says() {
    let all = vectors();
    let find = |id: &str| all.iter().find(|vector| vector["id"] == id).expect(id);
    let message = |id: &str| {
        let mut input = hex(&find(id)["hex"]);
        frame::take(&mut input, Numbering::Current, 1 << 20).unwrap().unwrap()
    };
    let update = |id: &str| match read(&message(id)).unwrap() {
        Body::Update(update) => update,
        _ => panic!("{id} is an update"),
    };
    let done = update("update-done");
    assert_eq!((done.job, done.task, done.success, &done.status[..]), (7, 8, true, &b"done"[..]));
    assert_eq!(update("update-newjob").new_job, Some(1));
    assert_eq!(update("update-as-array"), JobStatusUpdate { ..done.clone() });
    assert_eq!(update("update-trailing-bytes"), done);
    assert_eq!(update("update-nil"), JobStatusUpdate::default());
    assert_eq!(update("update-lowercase-keys"), JobStatusUpdate::default());
    assert_eq!((update("update-unknown-field").job, update("update-unknown-field").task), (7, 8));

    let Body::Job(tasks) = read(&message("job-wide")).unwrap() else { panic!("a job") };
    assert_eq!((tasks[0].task, tasks[0].job.id), (70_000, 0x8000_0000_0000_0005));
    // The originals do not read the flat form; the page does.
    let Body::Job(flat) = read(&message("task-flat")).unwrap() else { panic!("a job") };
    assert_eq!((flat[0].task, flat[0].job.id), (6, 3));
    let Body::Job(none) = read(&message("job-task-neg")).unwrap() else { panic!("a job") };
    assert_eq!(none[0].task, -1);
}
