//! What is said of tasks that workers have.

use super::*;

#[test]
fn what_runs_is_said_where_it_is_known() {
    let words = |given, slots_used, slots_ahead| {
        at_workers(given, Some(Fleet { slots_used, slots_ahead, ..Fleet::default() }))
    };
    assert_eq!(words(4, 4, 0), "4 running");
    assert_eq!(words(2, 8, 0), "2 running", "others run too, or a task takes four slots");
    assert_eq!(words(12, 4, 8), "4 running, 8 dispatched ahead");
    assert_eq!(words(6, 4, 8), "6 at workers", "whose tasks wait there is not known");
    assert_eq!(at_workers(6, None), "6 at workers");
}
