//! What holds for every plan: elements on demand, small memory, stable fingerprints, honest previews.

use std::ffi::OsString;

use proptest::prelude::*;

use super::{expanded, flow};
use crate::{ArgumentForm, ArgumentOptions, Column, Numbers, Part, Plan};

proptest! {
    /// The naive way: nested loops over the lists.
    #[test]
    fn an_element_equals_that_of_a_full_expansion(
        lists in proptest::collection::vec(proptest::collection::vec("[a-z]{1,3}", 1..5), 1..4),
    ) {
        let mut naive: Vec<String> = vec!["[p]".to_owned()];
        for list in &lists {
            let with = |before: &String| -> Vec<String> { list.iter().map(|value| format!("{before}[{value}]")).collect() };
            naive = naive.iter().flat_map(with).collect();
        }
        let mut words: Vec<OsString> = vec!["p".into()];
        for list in &lists {
            words.push(":::".into());
            words.extend(list.iter().map(OsString::from));
        }
        let plan = ArgumentForm::parse(&words).unwrap().plan(&ArgumentOptions::default(), None).unwrap();
        let Part::Array(array) = &plan.parts[0] else { panic!("it is an array") };
        prop_assert_eq!(array.count(), naive.len() as u64);
        for (i, expected) in naive.iter().enumerate() {
            let element = array.element(i as u64).unwrap();
            prop_assert_eq!(&super::shown(&element.work), expected);
            prop_assert_eq!(array.find(&element.name), Some(i as u64));
        }
        prop_assert!(array.element(array.count()).is_none());
    }

    #[test]
    fn no_flow_makes_the_reader_panic(text in "([\\[\\]{}=\",#.a-z0-9\n -]|task|name|command|foreach|after|each:|\\[\\[task\\]\\]\n){0,60}") {
        let _ = crate::parse_flow("f", &text, std::path::Path::new("/nonexistent"));
    }
}

fn range(count: u64) -> Plan {
    let form = ArgumentForm::parse(&["p".into(), "{}".into()]).unwrap();
    let array = Some(Column::numbers(Numbers::new(1, count, 1).unwrap()));
    form.plan(&ArgumentOptions { array, ..Default::default() }, None).unwrap()
}

#[test]
fn a_large_array_is_as_small_as_a_small_one() {
    // Nothing in it grows with the range, so the two differ only in the number itself.
    let size = |plan: &Plan| format!("{plan:?}").len();
    assert!(size(&range(1_000_000_000)) < size(&range(1)) + 100);
    let form = ArgumentForm::parse(
        &["p", ":::", "a", "b"]
            .map(OsString::from)
            .into_iter()
            .chain((0..20).flat_map(|_| [":::", "x", "y"].map(OsString::from)))
            .collect::<Vec<_>>(),
    );
    let plan = form.unwrap().plan(&ArgumentOptions::default(), None).unwrap();
    assert_eq!(plan.task_count(), 1 << 21);
    assert!(format!("{plan:?}").len() < 5_000);
    let Part::Array(array) = &plan.parts[0] else { panic!("it is an array") };
    assert_eq!(super::shown(&array.element(1 << 20).unwrap().work)[..9], *"[p][b][x]");
}

const FLOW: &str = r#"
[[task]]
name = "a"
command = "echo 1"
timeout = 5
[[task]]
name = "b"
command = "echo {}"
foreach = "1-3"
after = ["a"]
"#;

#[test]
fn the_fingerprint_changes_with_what_runs_and_with_nothing_else() {
    let print = |text: &str| flow(text).fingerprint().to_string();
    let same = print(FLOW);
    assert_eq!(print(&format!("# a comment\n{FLOW}")), same);
    assert_eq!(print(&FLOW.replace("timeout = 5", "timeout = 50\npriority = 3")), same);
    let changes = [
        ("echo 1", "echo 2"),
        ("echo {}", "echo {#}"),
        ("1-3", "1-4"),
        ("1-3", "2-4"),
        ("\"b\"", "\"c\""),
        ("after = [\"a\"]", ""),
        ("after = [\"a\"]", "after = [\"a\"]\ndir = \"x\""),
        ("\"echo 1\"", "[\"echo\", \"1\"]"),
        ("timeout = 5", "env = { A = 1 }"),
        ("timeout = 5", "stdin = \"x\""),
    ];
    let mut prints: Vec<String> =
        changes.iter().map(|(from, to)| print(&FLOW.replacen(from, to, 1))).collect();
    prints.push(same);
    prints.sort();
    prints.dedup();
    assert_eq!(prints.len(), changes.len() + 1);
    // Kept in journals: a change of the encoding would make every old job look edited.
    assert_eq!(prints.len(), 11);
    assert_eq!(range(10).fingerprint().to_string(), include_str!("fingerprint.txt").trim());
}

#[test]
fn a_dry_run_shows_names_commands_and_settings() {
    let mut shown = Vec::new();
    flow(FLOW).dry_run(&mut shown).unwrap();
    assert_eq!(
        String::from_utf8(shown).unwrap(),
        "flow.toml: 4 tasks in 2 parts\n\na\n  echo 1\n  timeout 5s\n\nb: 3 tasks\n  b.1\n    echo 1\n  b.2\n    echo 2\n  b.3\n    echo 3\n  after all of a\n"
            .replace("all of a", "a")
    );
    let mut shown = Vec::new();
    range(1_000_000).dry_run(&mut shown).unwrap();
    let shown = String::from_utf8(shown).unwrap();
    assert!(shown.contains("  5\n    p 5\n  … 999992 more …\n  999998\n    p 999998\n"), "{shown}");
    assert_eq!(shown.lines().count(), 20);
}

#[test]
fn a_dry_run_shows_arguments_as_they_could_be_typed() {
    let form =
        ArgumentForm::parse(&["echo", "a b", "", "$x", "\x1b[2J"].map(OsString::from)).unwrap();
    let plan = form.plan(&ArgumentOptions::default(), None).unwrap();
    let mut shown = Vec::new();
    plan.dry_run(&mut shown).unwrap();
    let shown = String::from_utf8(shown).unwrap();
    assert!(shown.contains("  echo 'a b' '' '$x' '\\u{1b}[2J'\n"), "{shown}");
    assert_eq!(expanded(&plan).len(), 1);
}
