//! Each kind of change is one line.

use super::line;
use laboro_api::Event;

fn said(json: &str) -> String {
    let event: Event = serde_json::from_str(json).unwrap();
    line(&event).split("  ").nth(1).unwrap().to_owned()
}

#[test]
fn changes_are_told_in_words() {
    let failed = r#"{"kind":"tasks","job":3,"first":7,"last":7,"state":"failed","worker":2,"outcome":{"kind":"exit","code":4}}"#;
    assert_eq!(said(failed), "3/7 failed (exit code 4) worker 2");
    let ready = r#"{"kind":"tasks","job":3,"first":1,"last":1000,"state":"ready"}"#;
    assert_eq!(said(ready), "3/1-1000 ready");
    let running = r#"{"kind":"tasks","job":3,"first":1,"last":1,"state":"running","worker":2}"#;
    assert_eq!(said(running), "3/1 running worker 2");
    assert_eq!(said(r#"{"kind":"job","job":3}"#), "job 3");
    assert_eq!(said(r#"{"kind":"gap"}"#), "some events are missing here");
    assert_eq!(said(r#"{"kind":"tomorrow"}"#), "an event that this program does not know");
}
