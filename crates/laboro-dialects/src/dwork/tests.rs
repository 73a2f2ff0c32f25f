//! The codec against recorded bytes, the hub's side against a real hub, the other sides against the hub's
//! side. Connections are real; only sockets are missing.

mod codec;
mod conversations;
mod creates;
mod golden;
mod ring;
mod worker;

use serde_json::Value;

/// Everything that was recorded of the original programs, step by step.
fn recorded() -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/golden/dwork.jsonl");
    let text = std::fs::read_to_string(path).expect("the recording is there");
    text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

fn unhex(hex: &str) -> Vec<u8> {
    assert!(hex.len().is_multiple_of(2), "{hex} has half a byte");
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex digits");
    (0..hex.len()).step_by(2).map(byte).collect()
}
