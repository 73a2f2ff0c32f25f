//! Every message of the original programs of version 1.

use crate::fuq1::codec::Message;
use bytes::BytesMut;
use serde_json::Value;

#[test]
fn every_message_of_the_originals_is_read_and_written_as_they_do() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/golden/fuq.jsonl");
    let text = std::fs::read_to_string(path).expect("the golden data is in the tree");
    let mut checked = 0;
    for line in text.lines() {
        let vector: Value = serde_json::from_str(line).expect("one value a line");
        if vector["proto"] != "v1" {
            continue;
        }
        let (id, hex) = (vector["id"].as_str().unwrap(), vector["hex"].as_str().unwrap());
        let bytes: BytesMut = (0..hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
            .collect();
        let mut input = bytes.clone();
        let taken = Message::take(&mut input, 1 << 20);
        match vector["kind"].as_str().unwrap() {
            // The originals have no number for ERROR; the page gives it this one.
            _ if id == "v1-type-5-error" => assert_eq!(taken, Ok(Some(Message::Error(1)))),
            "encode" => {
                let mut written = BytesMut::new();
                taken.expect(id).expect(id).write(&mut written);
                assert_eq!(written, bytes, "{id}");
            }
            "accept" => assert!(matches!(taken, Ok(Some(_))), "{id}"),
            "reject" => assert!(!matches!(taken, Ok(Some(_))), "{id}"),
            other => panic!("{id}: what is {other}?"),
        }
        checked += 1;
    }
    assert_eq!(checked, 18);
}
