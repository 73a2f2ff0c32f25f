//! A table off a terminal is plain and whole.

use super::{Column, Mood, Table};

#[test]
fn columns_are_aligned_and_lines_have_no_blanks_at_their_ends() {
    let mut table = Table::new(&[Column::Right("job"), Column::Left("name"), Column::Right("n")]);
    let long = "x".repeat(300);
    table.row([("7".into(), Mood::Good), ("night".into(), Mood::Plain), ("1".into(), Mood::Plain)]);
    table.row([
        ("12".into(), Mood::Bad),
        (long.clone(), Mood::Plain),
        (String::new(), Mood::Plain),
    ]);
    let text = table.text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[0].starts_with("job  name "));
    assert!(lines[1].starts_with("  7  night ") && lines[1].ends_with(" 1"));
    assert_eq!(lines[2], format!(" 12  {long}"));
}
