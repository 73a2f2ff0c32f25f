//! How far ahead a worker asks.

use super::*;

fn pace(millis: u64, slots: u32) -> Option<u32> {
    let mut pace = Pace::default();
    (0..50).for_each(|_| pace.took(Duration::from_millis(millis)));
    pace.news(slots)
}

#[test]
fn short_tasks_are_asked_for_ahead_and_long_ones_are_not() {
    assert_eq!(pace(5, 4), Some(40));
    assert_eq!(pace(49, 1), Some(1));
    assert_eq!(pace(50, 64), None);
    assert_eq!(pace(10_000, 64), None);
}

#[test]
fn there_is_an_end_to_it() {
    assert_eq!(pace(0, 2), Some(AHEAD_MAX));
    assert_eq!(pace(1, 1 << 20), Some(AHEAD_MAX));
}

#[test]
fn small_changes_are_no_news() {
    let mut pace = Pace::default();
    pace.took(Duration::from_millis(5));
    assert_eq!(pace.news(2), Some(20));
    pace.took(Duration::from_millis(6));
    assert_eq!(pace.news(2), None);
    (0..50).for_each(|_| pace.took(Duration::from_millis(20)));
    assert_eq!(pace.news(2), Some(5));
    (0..50).for_each(|_| pace.took(Duration::from_millis(70)));
    assert_eq!(pace.news(2), Some(0));
}

#[test]
fn one_long_task_among_short_ones_does_not_stop_it() {
    let mut pace = Pace::default();
    (0..20).for_each(|_| pace.took(Duration::from_millis(2)));
    pace.took(Duration::from_millis(100));
    assert!(pace.news(2).unwrap() > 0);
}
