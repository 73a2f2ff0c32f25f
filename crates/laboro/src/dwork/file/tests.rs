//! Task files as they are found in the wild.

use super::{in_order, parse};

fn order(text: &str) -> Result<String, String> {
    let tasks = parse(text.as_bytes());
    let name = |at: usize| String::from_utf8_lossy(tasks[at].name).into_owned();
    match in_order(&tasks) {
        Ok(order) => Ok(order.into_iter().map(name).collect::<Vec<_>>().join(" ")),
        Err(at) => Err(name(at)),
    }
}

#[test]
fn spaces_returns_blank_lines_and_empty_fields_do_not_count() {
    let tasks = parse(b"a\r\n\r\n  \n b , a,,\t\r\n,c,b\nlast, a ,b");
    let shown: Vec<String> = tasks.iter().map(|task| format!("{:?}", task.preds.len())).collect();
    assert_eq!(tasks[1].name, b"b");
    assert_eq!(tasks[1].preds, [b"a"]);
    assert_eq!(tasks[2].name, b"c");
    assert_eq!(shown, ["0", "1", "1", "2"]);
}

#[test]
fn what_is_waited_for_is_sent_before() {
    assert_eq!(order("a\nb,a\nc,b").unwrap(), "a b c");
    assert_eq!(order("c,b\nb,a\nd\na").unwrap(), "a b c d");
    assert_eq!(order("a,elsewhere\nb").unwrap(), "a b");
    // Twice in the file, one task with all its predecessors.
    assert_eq!(order("a\na,b\nb").unwrap(), "b a");
}

#[test]
fn a_cycle_is_named() {
    assert_eq!(order("a,a").unwrap_err(), "a");
    assert_eq!(order("x\na,c\nb,a\nc,b").unwrap_err(), "a");
}

#[test]
fn a_chain_may_be_long() {
    let mut text = String::new();
    for number in 0..200_000 {
        text += &format!("t{number},t{}\n", number + 1);
    }
    assert!(order(&text).unwrap().starts_with("t199999 t199998 "));
}
