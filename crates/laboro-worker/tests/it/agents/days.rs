//! How a worker's day ends.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use laboro_worker::agent::Farewell;

use super::hub::{Rig, shell};
use crate::rig::Life;

#[test]
fn an_idle_worker_leaves_after_its_time_and_not_before_its_results_are_taken() {
    let mut rig = Rig::new("idle", |options| {
        options.idle_timeout = Some(Duration::from_millis(100));
    });
    rig.say("start 1 1 sleep 0.3");
    rig.ends(1, "success");
    rig.expect("draining");
    assert_eq!(rig.leaves(), Farewell::Finished);
}

#[test]
fn a_signal_lets_what_runs_finish() {
    let mut rig = Rig::new("signal", |_| {});
    rig.write("go", "");
    rig.say("start 1 1 echo $$ > pid; while test -e go; do sleep 0.01; done");
    rig.line_of("pid");
    rig.signal();
    rig.expect("draining");
    std::fs::remove_file(rig.dir.at("go")).unwrap();
    rig.ends(1, "success");
    assert_eq!(rig.leaves(), Farewell::Finished);
}

#[test]
fn what_does_not_finish_in_time_after_a_signal_is_ended_and_goes_back() {
    let mut rig =
        Rig::new("signal-drain", |options| options.drain = Some(Duration::from_millis(50)));
    rig.say("start 1 1 trap 'echo asked > asked; exit 0' TERM; echo $$ > pid; while :; do sleep 0.01; done");
    let life = Life::of(&rig.line_of("pid"));
    rig.signal();
    rig.returns(1);
    assert!(life.is_over());
    assert_eq!(rig.line_of("asked"), "asked");
    assert_eq!(rig.leaves(), Farewell::Finished);
}

#[test]
fn a_second_signal_ends_what_runs_at_once() {
    let mut rig = Rig::new("signals", |_| {});
    rig.say("start 1 1 trap '' TERM; echo $$ > pid; while :; do sleep 0.01; done");
    let life = Life::of(&rig.line_of("pid"));
    rig.signal();
    rig.expect("draining");
    rig.signal();
    rig.returns(1);
    assert!(life.is_over());
    assert_eq!(rig.leaves(), Farewell::Finished);
}

#[test]
fn who_has_results_that_nobody_takes_leaves_in_the_end_all_the_same() {
    let mut rig = Rig::new("unsettled", |_| {});
    rig.say("start 1 1 true");
    rig.expect("ended 1 success");
    rig.signal();
    rig.expect("draining");
    rig.signal();
    rig.signal();
    assert_eq!(rig.finish().unwrap(), Farewell::Unsettled);
}

#[test]
fn a_worker_that_leaves_while_its_hub_is_silent_waits_asleep() {
    let mut rig = Rig::new("silent", |options| {
        options.drain = Some(Duration::from_millis(50));
        options.grace = Duration::ZERO;
    });
    rig.say("start 1 1 true");
    rig.expect("ended 1 success");
    rig.signal();
    rig.expect("draining");
    let turns = Arc::clone(&rig.turns);
    assert_eq!(rig.finish().unwrap(), Farewell::Unsettled);
    let turns = turns.load(Ordering::Relaxed);
    assert!(turns < 1000, "{turns} turns with nothing to do");
}

#[test]
fn a_task_that_may_take_longer_than_the_worker_has_goes_back_and_others_are_taken() {
    let mut long = shell(1, "true");
    long.time_limit_ms = Some(3_600_000);
    let mut short = shell(2, "true");
    short.time_limit_ms = Some(1000);
    let limit = |options: &mut laboro_worker::agent::AgentOptions| {
        options.time_limit = Some(Duration::from_secs(1800));
    };
    let mut rig = Rig::with("time-limit", limit, vec![long, short], true);
    rig.say("give 1");
    rig.returns(1);
    rig.say("give 2");
    rig.ends(2, "success");
    rig.signal();
    assert_eq!(rig.leaves(), Farewell::Finished);
}

#[test]
fn when_its_time_is_over_a_worker_ends_what_runs_and_leaves() {
    let mut rig = Rig::new("time-over", |options| {
        options.time_limit = Some(Duration::from_secs(2));
        options.grace = Duration::from_millis(100);
    });
    rig.say("start 1 1 echo $$ > pid; exec sleep 600");
    let life = Life::of(&rig.line_of("pid"));
    rig.returns(1);
    assert!(life.is_over());
    assert_eq!(rig.leaves(), Farewell::Finished);
}

#[test]
fn nothing_starts_while_memory_is_short() {
    let mut rig = Rig::new("memory", |options| options.memory_free = Some(u64::MAX));
    rig.say("start 1 1 true");
    rig.say("drain");
    rig.returns(1);
    assert_eq!(rig.leaves(), Farewell::Finished);
}
