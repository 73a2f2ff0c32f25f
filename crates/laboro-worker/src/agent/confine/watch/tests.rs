//! Whose memory is counted for which task.

use super::*;

fn process(pid: pid_t, parent: pid_t, group: pid_t) -> Process {
    Process { pid, parent, group, session: 1, is_zombie: false, born: 0, resident_pages: 1 }
}

#[test]
fn what_a_task_started_counts_wherever_it_went() {
    let processes = [
        process(1, 0, 1),
        process(10, 1, 10),
        process(11, 10, 10),
        // In a group of its own, and its child.
        process(12, 11, 12),
        process(13, 12, 13),
        // Its parent is gone.
        process(14, 1, 10),
        process(20, 1, 20),
        // Nobody's.
        process(30, 1, 30),
    ];
    let leaders = HashMap::from([(10, ()), (20, ())]);
    let members = members(&processes, &leaders);
    let pids = |leader| -> Vec<pid_t> { members[&leader].iter().map(|one| one.pid).collect() };
    assert_eq!(pids(10), [10, 11, 12, 13, 14]);
    assert_eq!(pids(20), [20]);
    assert_eq!(members.len(), 2);
}

#[test]
fn parents_in_a_ring_are_not_followed_for_ever() {
    let processes = [process(2, 3, 2), process(3, 2, 3)];
    assert!(members(&processes, &HashMap::from([(9, ())])).is_empty());
}
