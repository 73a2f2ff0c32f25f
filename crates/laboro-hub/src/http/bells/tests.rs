//! Who is rung for, and who is not.

use super::*;
use laboro_core::State;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

fn has_rung(bell: &JobBell<'_>) -> bool {
    let rung = pin!(bell.rung());
    rung.poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[test]
fn only_those_who_wait_for_the_job_are_rung_for() {
    let bells = Bells::default();
    let (first, both) = (bells.hang(&[1]), bells.hang(&[1, 2]));
    bells.ring(&[Change::Job { job: JobId(2) }]);
    assert!(!has_rung(&first));
    assert!(has_rung(&both));
    assert!(!has_rung(&both), "one ring is heard once");
}

#[test]
fn what_happens_to_tasks_does_not_ring() {
    let bells = Bells::default();
    let bell = bells.hang(&[1]);
    let state = State::Done;
    let change =
        Change::Tasks { job: JobId(1), first: 1, last: 9, state, worker: None, outcome: None };
    bells.ring(&[change]);
    assert!(!has_rung(&bell));
}

#[test]
fn a_bell_that_is_taken_down_leaves_nothing_behind() {
    let bells = Bells::default();
    let kept = bells.hang(&[1]);
    drop(bells.hang(&[1, 7]));
    assert_eq!(bells.lock().len(), 1);
    bells.ring(&[Change::Job { job: JobId(1) }]);
    assert!(has_rung(&kept));
}
