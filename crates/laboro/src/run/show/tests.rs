//! How speed is said.

use super::*;

#[test]
fn what_is_slow_is_told_by_the_minute() {
    let said = [412.3, 9.96, 0.5, 0.09].map(|rate| per_second(rate, " tasks"));
    assert_eq!(said, ["412 tasks/s", "10.0 tasks/s", "0.5 tasks/s", "5.4 tasks/min"]);
    assert_eq!(per_second(25.0, ""), "25/s");
}
