//! What a hub may order.

use laboro_worker::agent::Farewell;

use super::hub::Rig;
use crate::rig::Life;

#[test]
fn no_more_runs_at_once_than_there_are_slots() {
    let mut rig = Rig::new("slots", |_| {});
    rig.write("one", "");
    for key in 1..=3 {
        rig.say(&format!(
            "start {key} 1 echo $$ > pid{key}; while test -e one; do sleep 0.01; done"
        ));
    }
    let (first, second) = (rig.line_of("pid1"), rig.line_of("pid2"));
    assert!(!Life::of(&first).is_over() && !Life::of(&second).is_over());
    assert!(!rig.dir.at("pid3").exists());
    std::fs::remove_file(rig.dir.at("one")).unwrap();
    (1..=3).for_each(|key| rig.ends(key, "success"));
}

#[test]
fn a_task_of_two_slots_has_the_worker_to_itself() {
    let mut rig = Rig::new("wide", |_| {});
    let alone = "mkdir lock && sleep 0.05 && rmdir lock";
    for key in 1..=9 {
        // Whoever runs beside a wide one finds its lock, or is found by it.
        let (slots, line) = match key % 3 {
            0 => (2, format!("test $(ls | grep -c busy) = 0 && {alone}")),
            _ => (1, format!("test ! -e lock && touch busy{key} && sleep 0.02 && rm busy{key}")),
        };
        rig.say(&format!("start {key} {slots} {line}"));
    }
    (1..=9).for_each(|key| rig.ends(key, "success"));
}

#[test]
fn a_cancelled_task_is_ended_wherever_it_stands() {
    let mut rig = Rig::new("cancel", |options| options.slots = 1);
    rig.say("start 1 1 echo $$ > pid; exec sleep 600");
    let life = Life::of(&rig.line_of("pid"));
    // Both at once: else it may wait with the guardian already, and is ended there.
    rig.say("start 2 1 true\ncancel 2");
    rig.returns(2);
    rig.say("cancel 1");
    rig.ends(1, "lost");
    assert!(life.is_over());
    rig.say("cancel 99");
    rig.say("start 3 1 true");
    rig.ends(3, "success");
}

#[test]
fn a_drained_worker_finishes_what_runs_and_returns_the_rest() {
    let mut rig = Rig::new("drain", |options| options.slots = 1);
    rig.write("go", "");
    rig.say("start 1 1 echo $$ > pid; while test -e go; do sleep 0.01; done");
    rig.line_of("pid");
    rig.say("start 2 1 true");
    rig.say("drain");
    rig.expect("draining");
    rig.returns(2);
    rig.say("start 3 1 true");
    rig.returns(3);
    std::fs::remove_file(rig.dir.at("go")).unwrap();
    rig.ends(1, "success");
    assert_eq!(rig.leaves(), Farewell::Finished);
}

#[test]
fn where_nothing_is_taken_back_a_drained_worker_runs_all_it_has() {
    let mut rig = Rig::new("drain-hard", |options| options.slots = 1);
    rig.write("go", "");
    rig.say("hard");
    rig.say("start 1 1 echo $$ > pid; while test -e go; do sleep 0.01; done");
    rig.line_of("pid");
    rig.say("start 2 1 true");
    rig.say("drain");
    rig.expect("draining");
    std::fs::remove_file(rig.dir.at("go")).unwrap();
    rig.ends(1, "success");
    rig.ends(2, "success");
    assert_eq!(rig.leaves(), Farewell::Finished);
}

#[test]
fn who_has_to_go_gives_back_what_it_would_have_run_for_a_hub_that_drains_it() {
    let mut rig = Rig::new("drain-hard-signal", |options| options.slots = 1);
    rig.say("hard");
    rig.say("start 1 1 echo $$ > pid; exec sleep 600");
    rig.line_of("pid");
    rig.say("start 2 1 true");
    rig.say("drain");
    rig.expect("draining");
    rig.signal();
    rig.returns(2);
    rig.signal();
    rig.returns(1);
    assert_eq!(rig.leaves(), Farewell::Finished);
}

#[test]
fn a_stopped_worker_ends_everything_at_once() {
    let mut rig = Rig::new("stop", |_| {});
    rig.say("start 1 1 trap '' TERM; echo $$ > pid; while :; do sleep 600; done");
    let life = Life::of(&rig.line_of("pid"));
    rig.say("stop");
    rig.returns(1);
    assert!(life.is_over());
    assert_eq!(rig.leaves(), Farewell::Finished);
}

#[test]
fn a_worker_without_slots_leaves_when_nothing_runs() {
    let mut rig = Rig::new("slots-given-up", |_| {});
    rig.say("slots 1");
    rig.say("start 1 1 true");
    rig.ends(1, "success");
    rig.say("slots 1");
    assert_eq!(rig.leaves(), Farewell::Finished);
}

#[test]
fn a_refused_worker_does_not_come_back() {
    let mut rig = Rig::new("refused", |_| {});
    rig.say("start 1 1 echo $$ > pid; exec sleep 600");
    let life = Life::of(&rig.line_of("pid"));
    rig.say("refuse the token has expired");
    assert_eq!(rig.finish().unwrap(), Farewell::Refused("the token has expired".into()));
    assert!(life.is_over());
}

#[test]
fn short_tasks_are_asked_for_ahead_and_go_back_when_a_long_one_is_in_their_way() {
    let mut rig = Rig::new("ahead", |options| options.slots = 1);
    rig.say("start 1 1 true");
    rig.ends(1, "success");
    rig.expect_begin("ahead ");
    rig.say("start 2 1 exec sleep 600");
    rig.say("start 3 1 true");
    for key in 4..=20 {
        rig.say(&format!("start {key} 1 true"));
    }
    rig.expect("ahead 0");
    (3..=20).for_each(|key| rig.returns(key));
    rig.say("cancel 2");
    rig.ends(2, "lost");
}
