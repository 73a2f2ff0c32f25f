//! How long a worker waits before it tries again.

use super::*;

#[test]
fn pauses_grow_to_a_limit_and_begin_anew_after_a_good_connection() {
    let mut backoff = Backoff::default();
    let pauses: Vec<Duration> = (0..40).map(|_| backoff.later()).collect();
    assert!(pauses[0] <= FIRST, "{:?}", pauses[0]);
    assert!(pauses.iter().all(|pause| *pause <= MOST));
    assert!(pauses[39] >= MOST / 2);
    backoff.reset();
    assert!(backoff.soon() <= FIRST / 2);
}

#[test]
fn a_connection_lost_again_and_again_is_not_remade_in_a_hurry() {
    let mut backoff = Backoff::default();
    let all: Duration = (0..10).map(|_| backoff.soon()).sum();
    assert!(all > Duration::from_secs(10), "{all:?}");
}

#[test]
fn two_workers_do_not_wait_equally_long() {
    assert_ne!(jittered(MOST), jittered(MOST));
}
