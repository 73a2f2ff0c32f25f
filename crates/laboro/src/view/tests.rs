//! Times in as few letters as say enough.

use super::{ago, between};

#[test]
fn ages_are_as_short_as_they_can_be() {
    let now = 10_000_000_000;
    let said = |seconds: u64| ago(now - seconds * 1000, now);
    assert_eq!(
        [0, 59, 60, 3599, 3600, 86_399, 86_400].map(said),
        ["0s", "59s", "1m", "59m", "1h", "23h", "1d"]
    );
    assert_eq!(ago(now + 5000, now), "0s", "a clock elsewhere may be ahead");
}

#[test]
fn spans_are_told_in_the_two_units_that_matter() {
    assert_eq!(between(1000, 2500), "1.50s");
    assert_eq!(between(0, 90_000), "1m30s");
    assert_eq!(between(0, 93_600_000), "1d02h");
    assert_eq!(between(2000, 1000), "0.00s");
}
