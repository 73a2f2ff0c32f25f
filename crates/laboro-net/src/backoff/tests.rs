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
fn whoever_is_soon_given_up_tries_more_often() {
    let mut backoff = Backoff::default();
    backoff.within(Duration::from_secs(6));
    assert!((0..40).all(|_| backoff.later() <= Duration::from_secs(2)));
    backoff.within(Duration::from_secs(600));
    assert!(backoff.later() <= MOST);
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
