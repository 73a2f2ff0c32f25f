//! What a person is told. Each case is a flow and the whole message.

use std::path::Path;

use crate::{After, On, Part, Plan, Position, parse_duration, parse_flow, parse_size};

/// `mistakes.txt`: a flow, `----`, the message, `====`, and so on. `LABORO_RENEW=1` writes the messages anew,
/// to be read before they are kept.
#[test]
fn each_mistake_is_shown_with_its_line_and_a_caret() {
    let mut renewed = Vec::new();
    let cases = include_str!("mistakes.txt");
    for case in cases.trim_end().split("\n====\n") {
        let (flow, _) = case.split_once("\n----\n").expect("a case has a flow and a message");
        let error = parse_flow("flow.toml", flow, Path::new("")).unwrap_err();
        renewed.push(format!("{flow}\n----\n{error}"));
    }
    let renewed = renewed.join("\n====\n") + "\n";
    if std::env::var_os("LABORO_RENEW").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/tests/mistakes.txt");
        std::fs::write(path, &renewed).unwrap();
    }
    assert_eq!(renewed, cases, "\n{renewed}");
}

#[test]
fn a_file_with_many_mistakes_shows_the_first_few() {
    let flow: String =
        (0..100).map(|i| format!("[[task]]\nname = \"t{i}\"\ncommand = 1\n")).collect();
    let error = parse_flow("flow.toml", &flow, Path::new("")).unwrap_err().to_string();
    assert_eq!(error.matches("`command` is a shell line").count(), 20);
    assert!(error.ends_with("\nand 80 more mistakes"), "{error}");
}

#[test]
fn control_characters_of_a_file_do_not_reach_the_terminal() {
    let flow = "[[task]]\nname = \"a\\u001b[2J\"\ncommand = \"x\"\n\"\\u001bkey\" = 1\n";
    let error = parse_flow("flow.toml", flow, Path::new("")).unwrap_err().to_string();
    assert!(error.contains("unknown key `\\u{1b}key`"), "{error}");
    assert!(!error.contains('\x1b'), "{error:?}");
}

#[test]
fn a_flow_in_one_long_line_or_nested_without_end_is_no_trouble() {
    let values = "\"é\", ".repeat(300_000);
    let text = format!("[[task]]\nname = \"a\"\ncommand = \"x\"\nforeach = [{values}{{}}]\n");
    let error = parse_flow("flow.toml", &text, Path::new("")).unwrap_err().to_string();
    assert!(error.starts_with("flow.toml:4:1500012: `foreach` holds strings"), "{error}");
    for open in ["[", "{a=", "a."] {
        let text = format!("a = {}", open.repeat(200_000));
        parse_flow("flow.toml", &text, Path::new("")).unwrap_err();
    }
}

#[test]
fn a_missing_list_file_is_named() {
    let flow = "[[task]]\nname = \"a\"\ncommand = \"x\"\nforeach = { file = \"no/such\" }\n";
    let error = parse_flow("flow.toml", flow, Path::new("base")).unwrap_err().to_string();
    assert!(
        error.starts_with("flow.toml:4:20: base/no/such: cannot be read: No such file"),
        "{error}"
    );
}

#[test]
fn a_plan_made_by_a_program_is_checked_too() {
    let mut plan: Plan = super::flow(
        "[[task]]\nname = \"a\"\ncommand = \"x\"\n[[task]]\nname = \"b\"\nforeach = \"1-2\"\ncommand = \"x\"\n",
    );
    plan.source = "program".into();
    let Part::Task(task) = &mut plan.parts[0] else { panic!("a is a task") };
    task.at = Position::default();
    task.after = [On::Task("b".into()), On::All("a".into()), On::Task("b.3".into())]
        .map(|on| After { on, at: Position::default() })
        .into();
    assert_eq!(
        plan.validate().unwrap_err().to_string(),
        "program: `b` is an array: wait for all or for each of it\n\
         program: `a` is one task, not an array\n\
         program: unknown task `b.3` in `after` (the array `b` ends with `b.2`)\n\
         program: `a` waits for itself"
    );
}

#[test]
fn a_cycle_of_a_hundred_thousand_tasks_is_found_without_a_stack() {
    let line = |i: usize| {
        format!("{{\"name\":\"t{i}\",\"command\":\"x\",\"after\":\"t{}\"}}\n", (i + 1) % 100_000)
    };
    let text: String = (0..100_000).map(line).collect();
    let error = crate::parse_jsonl("t", Path::new(""), text.as_bytes()).unwrap_err().to_string();
    assert!(
        error.contains("cycle: t0 -> t99999 -> t99998 -> t99997 -> t99996 -> (99991 more) -> t4"),
        "{error}"
    );
}

#[test]
fn quantities_are_read_as_people_write_them() {
    let seconds = |text: &str| parse_duration(text).map(|duration| duration.as_secs_f64()).ok();
    let durations = ["90s", "2h", "1h30m", "1h 30m", "250ms", "1.5d", "90", "0.5", "0"];
    let expected = [90.0, 7200.0, 5400.0, 5400.0, 0.25, 129_600.0, 90.0, 0.5, 0.0];
    assert_eq!(durations.map(seconds), expected.map(Some));
    let wrong = ["", "s", "1x", "-1s", "1h30", "1..2s", "1e3", "9999999999d", "ninety", "1 2"];
    assert_eq!(wrong.map(seconds), [None; 10]);
    let sizes = ["0", "1024", "512M", "512MiB", "512mb", "1.5G", "2 T", "1K"];
    let expected = [0, 1024, 512 << 20, 512 << 20, 512 << 20, 3 << 29, 2 << 40, 1024];
    assert_eq!(sizes.map(|text| parse_size(text).ok()), expected.map(Some));
    assert_eq!(["", "G", "1X", "-1", "9999999T"].map(|text| parse_size(text).ok()), [None; 5]);
}
