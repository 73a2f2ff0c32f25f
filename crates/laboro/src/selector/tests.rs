//! What a person may write, and what it means.

use super::{JobRef, Selector, SelectorError};
use laboro_core::State;

fn parse(text: &str) -> Selector {
    Selector::parse(text).unwrap()
}

fn named(name: &str) -> Selector {
    Selector::Name(name.to_owned())
}

#[test]
fn a_job_is_a_number_a_name_or_the_last_one() {
    assert_eq!(parse("12"), Selector::Job(JobRef::Number(12)));
    assert_eq!(parse("last"), Selector::Job(JobRef::Last));
    assert_eq!(parse("night"), named("night"));
    assert_eq!(parse("12a"), named("12a"));
    assert_eq!(parse("-3"), named("-3"));
    assert_eq!(parse("4294967295"), Selector::Job(JobRef::Number(u32::MAX)));
    for wrong in ["0", "4294967296", "99999999999999999999999"] {
        assert_eq!(Selector::parse(wrong), Err(SelectorError::JobNumber(wrong.to_owned())));
    }
    assert_eq!(Selector::parse(""), Err(SelectorError::Empty));
}

#[test]
fn tasks_are_numbers_and_ranges_of_a_job() {
    let twelve = JobRef::Number(12);
    assert_eq!(parse("12/5"), Selector::Ranges(twelve.clone(), vec![(5, 5)]));
    assert_eq!(parse("12/1-100,200"), Selector::Ranges(twelve, vec![(1, 100), (200, 200)]));
    assert_eq!(parse("last/7"), Selector::Ranges(JobRef::Last, vec![(7, 7)]));
    assert_eq!(parse("night/7"), Selector::Ranges(JobRef::Name("night".into()), vec![(7, 7)]));
}

#[test]
fn ranges_are_sorted_and_joined_where_they_meet() {
    let ranges = |text: &str| match parse(text) {
        Selector::Ranges(_, ranges) => ranges,
        other => panic!("{other:?}"),
    };
    assert_eq!(ranges("1/9,3-5,1-2,4,20"), [(1, 5), (9, 9), (20, 20)]);
    assert_eq!(ranges("1/1-2147483647,5"), [(1, 2_147_483_647)]);
}

#[test]
fn a_state_stands_for_all_tasks_in_it() {
    assert_eq!(parse("12/failed"), Selector::InState(JobRef::Number(12), State::Failed));
    assert_eq!(parse("last/running"), Selector::InState(JobRef::Last, State::Leased));
    for state in State::ALL {
        let text = format!("a job/{}", state.word());
        assert_eq!(parse(&text), Selector::InState(JobRef::Name("a job".into()), state));
    }
}

#[test]
fn anything_else_is_a_name_with_or_without_its_job() {
    assert_eq!(parse("fit.3"), named("fit.3"));
    assert_eq!(parse("deep/first"), named("deep/first"));
    assert_eq!(parse("/etc"), named("/etc"));
    assert_eq!(parse("deep/"), named("deep/"));
    assert_eq!(parse("12/fit.3"), Selector::NamedIn(JobRef::Number(12), "fit.3".into()));
    assert_eq!(parse("12/deep/first"), Selector::NamedIn(JobRef::Number(12), "deep/first".into()));
    assert_eq!(parse("last/1-"), Selector::NamedIn(JobRef::Last, "1-".into()));
    assert_eq!(parse("last/1,,2"), Selector::NamedIn(JobRef::Last, "1,,2".into()));
}

#[test]
fn numbers_that_no_task_can_have_are_refused_by_their_name() {
    for wrong in ["0", "2147483648", "0-3", "1-99999999999"] {
        let text = format!("12/{wrong}");
        assert_eq!(Selector::parse(&text), Err(SelectorError::TaskNumber(wrong.to_owned())));
    }
    assert_eq!(Selector::parse("12/9-3"), Err(SelectorError::Backwards("9-3".into())));
    let many = format!("12/{}", vec!["1"; 10_001].join(","));
    assert!(matches!(Selector::parse(&many), Err(SelectorError::TooMany(_))));
}
