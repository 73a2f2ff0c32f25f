//! What is learned, and that it ends.

use super::*;
use std::future::poll_fn;

/// Which of these words it waits for awake; `true` is one that is answered at once.
fn waits(linger: &mut Linger, answers: &[bool]) -> Vec<bool> {
    answers
        .iter()
        .map(|&at_once| {
            let pays = linger.pays();
            linger.learn(at_once);
            pays
        })
        .collect()
}

#[test]
fn a_peer_that_takes_its_time_is_soon_not_waited_for() {
    let mut linger = Linger::default();
    let waits = waits(&mut linger, &[false; 100]);
    let tried = waits.iter().filter(|&&awake| awake).count();
    assert_eq!(tried, 1 + 99 / (usize::from(TRY_EVERY) + 1));
}

#[test]
fn a_peer_in_lock_step_is_always_waited_for() {
    let mut linger = Linger::default();
    assert!(!waits(&mut linger, &[true; 100]).contains(&false));
}

#[test]
fn one_pause_does_not_end_it() {
    let mut linger = Linger::default();
    waits(&mut linger, &[true; 100]);
    linger.learn(false);
    assert!(!waits(&mut linger, &[true; 10]).contains(&false));
}

#[test]
fn whoever_shall_not_wait_awake_never_does() {
    let mut linger = Linger::never();
    linger.said();
    assert!(!linger.is_awake);
    linger.heard();
    linger.said();
    assert!(!linger.is_awake);
}

/// A job and its result: three words that are answered at once, then the time that the job takes.
#[test]
fn where_a_round_has_its_pause_is_learned() {
    let mut linger = Linger::default();
    let round = [true, true, true, false];
    waits(&mut linger, &round.repeat(10));
    assert_eq!(waits(&mut linger, &round.repeat(10)), round.repeat(10));
}

#[test]
fn no_more_than_a_few_are_awake_at_a_time_and_those_who_leave_make_room() {
    let mut many: Vec<Linger> = (0..3 * AWAKE_MAX).map(|_| Linger::default()).collect();
    many.iter_mut().for_each(Linger::said);
    assert!(many.iter().filter(|linger| linger.is_awake).count() <= AWAKE_MAX);
    drop(many);
    let mut another = Linger::default();
    another.said();
    assert!(another.is_awake);
    another.heard();
    assert!(!another.is_awake);
}

#[tokio::test]
async fn after_its_moment_it_lets_its_thread_sleep() {
    let mut linger = Linger::default();
    linger.said();
    // It is asked again and again, until it does not want to be: then only the timer is left.
    let asked = poll_fn(|context| {
        linger.poll(context);
        if linger.is_awake { Poll::Pending } else { Poll::Ready(()) }
    });
    asked.await;
}

#[test]
fn a_quick_peer_is_given_up_sooner_until_it_is_late_once() {
    let mut habit = Habit::default();
    assert_eq!(habit.patience(), MOMENT);
    let quick = Duration::from_micros(15);
    (0..100).for_each(|_| habit.took(quick));
    assert_eq!(habit.patience(), 2 * quick);
    habit.took(Duration::from_micros(80));
    assert_eq!(habit.patience(), MOMENT);
    habit.trust = -1;
    (0..100).for_each(|_| habit.took(quick));
    assert_eq!(habit.patience(), MOMENT, "who is tried again is given time");
}
