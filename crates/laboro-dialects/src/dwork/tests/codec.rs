//! Recorded messages both ways, and what must not be taken for a message.

use super::{recorded, unhex};
use crate::dwork::codec::{Kind, Log, Note, Query, QueryWriter, decode};
use crate::dwork::wire::WireError;
use bytes::BytesMut;
use proptest::prelude::*;
use serde_json::Value;

fn encode(query: &Query<'_>) -> BytesMut {
    let mut bytes = BytesMut::new();
    let mut writer = QueryWriter::new(query.kind, &mut bytes);
    query.tasks.iter().for_each(|task| writer.task_again(task));
    if let Some(name) = query.name {
        writer = writer.name(name);
    }
    if let Some(n) = query.n {
        writer = writer.n(n);
    }
    if let Some(location) = query.location {
        writer.location(location);
    }
    bytes
}

/// The recording's own reading of a message.
fn is_read_as(query: &Query<'_>, json: &Value) {
    assert_eq!(format!("{:?}", query.kind).to_lowercase(), text(&json["type"]).to_lowercase());
    let tasks = json["task"].as_array().map_or(&[][..], |tasks| tasks);
    assert_eq!(query.tasks.len(), tasks.len());
    for (task, json) in query.tasks.iter().zip(tasks) {
        assert_eq!(task.name, name(&json["name"]));
        if !text(&json["origin"]).starts_with('<') {
            assert_eq!(task.origin, name(&json["origin"]));
        }
        let preds = json["pred"].as_array().map_or(&[][..], |preds| preds);
        let ours: Vec<&[u8]> = task.preds().map(|dep| dep.name).collect();
        assert_eq!(ours, preds.iter().map(|dep| name(&dep["name"])).collect::<Vec<_>>());
        let succs = json["succ"].as_array().map_or(0, Vec::len);
        assert_eq!(task.succs().count(), succs);
        let log = json["log"].as_array().map_or(&[][..], |log| log);
        let ours: Vec<&str> = task.log().map(|log| log.note.word()).collect();
        let theirs: Vec<String> = log.iter().map(|l| text(&l["state"]).to_lowercase()).collect();
        assert_eq!(ours, theirs);
    }
    assert_eq!(query.name.map(<[u8]>::to_vec), json["name"].as_str().map(Into::into));
    assert_eq!(query.n.map(i64::from), json["n"].as_i64());
    assert_eq!(query.location.map(<[u8]>::to_vec), json["location"].as_str().map(Into::into));
}

fn text(json: &Value) -> &str {
    json.as_str().unwrap_or_default()
}

fn name(json: &Value) -> Vec<u8> {
    match text(json).strip_prefix("hex:") {
        Some(hex) => unhex(hex),
        None => text(json).as_bytes().to_vec(),
    }
}

#[test]
fn every_recorded_message_is_read_and_written_again_to_the_byte() {
    let mut count = 0;
    for step in recorded() {
        for side in ["request", "reply"] {
            let (Some(hex), json) = (step[format!("{side}_hex")].as_str(), &step[side]) else {
                continue;
            };
            let bytes = unhex(hex);
            let Ok(query) = decode(&bytes, 100) else {
                let lacks = json["type"].is_null()
                    || json["task"].as_array().is_some_and(|tasks| {
                        tasks.iter().any(|task| task["name"].is_null() || task["origin"].is_null())
                    });
                assert!(lacks, "step {} is not read: {hex}", step["id"]);
                continue;
            };
            if !json.is_null() {
                is_read_as(&query, json);
            }
            // What the original echoes, what it was sent in a wrong form, and a type given twice.
            let has_more = [231, 234, 235, 236, 237].iter().any(|&id| step["id"] == id);
            if !has_more {
                assert_eq!(encode(&query), bytes, "step {}", step["id"]);
                count += 1;
            }
        }
    }
    assert!(count > 400, "only {count} messages were compared");
}

#[track_caller]
fn refused(hex: &str, why: WireError) {
    match decode(&unhex(hex), 2) {
        Err(error) => assert_eq!(error, why, "{hex}"),
        Ok(query) => panic!("{hex} was read as {query:?}"),
    }
}

#[test]
fn what_is_no_message_is_refused_and_says_why() {
    refused("", WireError::Missing("type"));
    refused("0863", WireError::Missing("type"));
    refused("08ffffffff7f", WireError::Missing("type"));
    refused("ffffffffff", WireError::BadTag);
    refused("00", WireError::BadTag);
    refused("08061a05", WireError::Cut(3));
    refused("08061affffffffffffffffff01", WireError::Cut(3));
    refused("08ffffffffffffffffffff01", WireError::LongNumber);
    refused("08062b", WireError::Cut(5));
    refused("08062c", WireError::BadType { field: 5, kind: 4 });
    refused("08062e", WireError::BadType { field: 5, kind: 6 });
    refused("080012051203636c69", WireError::Missing("task.name"));
    refused("080012030a0147", WireError::Missing("task.origin"));
    refused("080012070a014112002200", WireError::Missing("dep.name"));
    refused("080012090a0141120032021005", WireError::Missing("log.state"));
    refused("080012090a0141120032020801", WireError::Missing("log.time"));
    refused(&"1205 0a01411200".replace(' ', "").repeat(3), WireError::ManyTasks { most: 2 });
    refused(&format!("0806{}", "2b".repeat(200)), WireError::Deep(100));
}

#[test]
fn what_is_unknown_is_passed_over() {
    // A group, fixed numbers of both sizes, a field that nobody knows.
    let bytes = unhex("2b080a2c290102030405060708250102030408060a03616263a20603616263");
    let query = decode(&bytes, 2).unwrap();
    assert_eq!((query.kind, query.tasks.len(), query.name), (Kind::Ok, 0, None));
    // A later type that nobody knows does not take back an earlier one.
    assert_eq!(decode(&unhex("08060863"), 2).unwrap().kind, Kind::Ok);
}

#[test]
fn numbers_keep_their_sign() {
    for n in [0, 1, -1, i32::MIN, i32::MAX] {
        let mut bytes = BytesMut::new();
        QueryWriter::new(Kind::Steal, &mut bytes).n(n).location(b"w");
        assert_eq!(decode(&bytes, 0).unwrap().n, Some(n));
    }
    let mut bytes = BytesMut::new();
    let log = [Log::new(Note::Done, -1), Log::new(Note::Pending, i64::MAX)];
    QueryWriter::new(Kind::Complete, &mut bytes).task(b"a", b"", [].into_iter(), &log);
    assert_eq!(decode(&bytes, 1).unwrap().tasks[0].log().collect::<Vec<_>>(), log);
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_fall_over(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(query) = decode(&bytes, 4) {
            let again = encode(&query);
            let read = decode(&again, 4).unwrap();
            prop_assert_eq!(format!("{query:?}"), format!("{read:?}"));
        }
    }

    #[test]
    fn a_cut_or_changed_message_is_read_or_refused(at in 0usize..95, with in any::<u8>()) {
        let good = unhex("080012210a01461203636c69220c0a014112077463703a2f2f782a030a0142320408001005");
        let mut bytes = good.clone();
        bytes.truncate(at);
        let _ = decode(&bytes, 4);
        let mut bytes = good;
        let at = at % bytes.len();
        bytes[at] = with;
        if let Ok(query) = decode(&bytes, 4) {
            encode(&query);
        }
    }
}
