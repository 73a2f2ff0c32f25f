//! Every recorded request to the original hub, put to ours. Where ours answers otherwise on purpose, the
//! answer and the reason stand in `spec/golden/dwork.differences.txt`, one line a step.

use super::ring::{Ring, show};
use super::{recorded, unhex};
use crate::zmtp::SocketType;
use serde_json::Value;
use std::collections::BTreeMap;

/// Our answer to a step, by its number, with the reason.
fn differences() -> BTreeMap<u64, String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/golden/dwork.differences.txt");
    let text = std::fs::read_to_string(path).expect("the differences are there");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut found = BTreeMap::new();
    for line in lines {
        let (id, rest) = line.split_once(' ').expect("a number stands first");
        let (answer, reason) = rest.split_once(" -- ").expect("a reason stands behind --");
        assert!(!reason.trim().is_empty(), "{line} has no reason");
        let id = id.parse().expect("a number stands first");
        assert!(found.insert(id, answer.trim().to_owned()).is_none(), "{id} stands twice");
    }
    found
}

fn frames(json: &Value) -> Vec<Vec<u8>> {
    match json {
        Value::String(hex) => vec![unhex(hex)],
        Value::Array(frames) => {
            frames.iter().map(|hex| unhex(hex.as_str().expect("hex"))).collect()
        }
        _ => Vec::new(),
    }
}

#[test]
fn every_recorded_request_is_answered_as_recorded_or_as_we_say() {
    let mut differences = differences();
    let mut wrong = Vec::new();
    let mut count = 0;
    let mut group = String::new();
    let mut ring = Ring::new();
    let mut peer = 0;
    for step in recorded() {
        let name = step["group"].as_str().expect("a group").to_owned();
        if name != group {
            // One group goes on where another ended, after a restart.
            if name == "persist-2-after-sigterm" {
                ring.restart();
            } else {
                ring = Ring::new();
            }
            peer = ring.connect(SocketType::Req);
            group = name;
        }
        let request = frames(&step["request_hex"]);
        if request.is_empty() {
            continue;
        }
        let mut message: Vec<&[u8]> = vec![b""];
        message.extend(request.iter().map(|frame| &frame[..]));
        ring.send(peer, &message);
        let answers = ring.answers(peer);
        assert_eq!(answers.len(), 1, "step {}", step["id"]);
        let ours = show(&answers[0].0[1]);
        let id = step["id"].as_u64().expect("an id");
        let expected = match (differences.remove(&id), step["reply_hex"].as_str()) {
            (Some(answer), _) => answer,
            (None, Some(hex)) => show(&unhex(hex)),
            (None, None) => "nothing".to_owned(),
        };
        count += 1;
        if ours != expected {
            wrong.push(format!("{id} {ours} -- {} [recorded: {expected}]", step["desc"]));
        }
    }
    assert!(wrong.is_empty(), "{} steps differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(differences.is_empty(), "no such steps: {:?}", differences.keys());
    assert!(count > 220, "only {count} steps were compared");
}

#[test]
fn envelopes_come_back_and_what_has_no_delimiter_is_dropped() {
    let mut ring = Ring::new();
    let peer = ring.connect(SocketType::Dealer);
    for step in recorded().iter().filter(|step| step["socket"] == "DEALER") {
        let request = frames(&step["request_frames_hex"]);
        let message: Vec<&[u8]> = request.iter().map(|frame| &frame[..]).collect();
        ring.send(peer, &message);
        let answers = ring.answers(peer);
        let reply = frames(&step["reply_frames_hex"]);
        if reply.is_empty() {
            assert!(answers.is_empty());
        } else {
            let ours: Vec<Vec<u8>> = answers[0].iter().map(|frame| frame.to_vec()).collect();
            assert_eq!(ours, reply, "step {}", step["id"]);
        }
    }
    assert_eq!(ring.dropped(peer), 1);
}

#[test]
fn the_recorded_bytes_of_a_whole_connection_are_answered() {
    // What a peer said, from its greeting on; the last two steps are another connection.
    let mut ring = Ring::new();
    let peer = ring.connect(SocketType::Req);
    let raw: Vec<Value> = recorded().into_iter().filter(|s| s["group"] == "zmtp-raw").collect();
    let hex = |at: usize| raw[at]["hex"].as_str().expect("hex").to_owned();
    for (request, reply) in [(4, 5), (6, 7), (10, 11)] {
        // Delimiter and body stand in short frames: flags, length, bytes.
        let body = unhex(&hex(request))[4..].to_vec();
        if request == 10 {
            ring.ask(peer, &unhex("080132027731")).expect("the task is stolen first");
        }
        let answer = ring.ask(peer, &body).expect("an answer");
        assert_eq!(answer, unhex(&hex(reply))[4..], "step {request}");
    }
}
