//! Runners that come back, and hubs that were started anew meanwhile: what counts of what they bring.

use super::manager::GOOD;
use super::rig::{Rig, script};
use crate::runexp::ManagerDoor;
use laboro_core::{Command, JobId, Profile, Query, Reply, State, TaskId, TaskRef};

#[test]
fn whoever_is_back_may_use_the_names_that_it_was_given() {
    let mut rig = Rig::with_scripts(&["a"], 1);
    let unsayable = "n".repeat(1000);
    rig.submit(&[(&unsayable, script(b"echo RES:ok\n"))], Profile::default());
    rig.greet(1, "r1");
    rig.takes(1, "a");
    rig.takes(1, "laboro-2-1");
    rig.greet(2, "r1");
    rig.hands_in(2, "laboro-2-1", "success", GOOD);
    assert_eq!(rig.state(&unsayable), State::Done);
    assert_eq!(rig.says(2, "REZULTO laboro-2-1 success 5"), [""; 0], "it was handed in");
    assert!(rig.malformed(2).contains("never given"));
}

/// The door forgets, as after a restart; the hub does not.
#[test]
fn a_hub_that_was_started_anew_still_knows_what_it_gave_to_whom() {
    let mut rig = Rig::with_scripts(&["a", "b", "c"], 1);
    rig.greet(1, "r1");
    rig.takes(1, "a");
    rig.takes(1, "b");
    rig.vanish(1);
    rig.door = ManagerDoor::new("").unwrap();
    rig.greet(2, "r2");
    rig.greet(1, "r1");
    assert_eq!((rig.state("a"), rig.state("b")), (State::Ready, State::Ready));
    rig.hands_in(1, "a", "success", GOOD);
    assert_eq!(rig.state("a"), State::Done, "nobody else had it");
    rig.takes(2, "b");
    rig.hands_in(1, "b", "success", GOOD);
    assert_eq!(rig.state("b"), State::Leased, "the exchange is completed, but another has it");
    assert_eq!(rig.says(1, "REZULTO c success 5"), [""; 0]);
    assert!(rig.malformed(1).contains("never given"));
    assert_eq!(rig.says(2, "REZULTO a success 5"), [""; 0], "that was another's");
    assert!(rig.malformed(2).contains("never given"));
}

/// The hub was killed after it had written the result down, and before its runner heard of it.
#[test]
fn a_result_that_a_hub_has_from_before_may_be_told_again() {
    let mut rig = Rig::with_scripts(&["a", "b"], 1);
    rig.greet(1, "r1");
    rig.takes(1, "a");
    rig.hands_in(1, "a", "success", GOOD);
    rig.vanish(1);
    rig.door = ManagerDoor::new("").unwrap();
    rig.greet(1, "r1");
    rig.hands_in(1, "a", "failure", GOOD);
    assert_eq!(rig.state("a"), State::Done, "the first one counts");
    rig.takes(1, "b");
}

/// The hub knows no name that was made of numbers, only the numbers.
#[test]
fn a_hub_that_was_started_anew_knows_tasks_without_a_name_too() {
    let mut rig = Rig::with_scripts(&["", "laboro-1-1"], 1);
    let id = |index| TaskRef::Id(TaskId { job: JobId(1), index });
    rig.greet(1, "r1");
    rig.takes(1, "laboro-1-1");
    rig.takes(1, "laboro-1-2");
    rig.vanish(1);
    rig.door = ManagerDoor::new("").unwrap();
    rig.greet(1, "r1");
    rig.hands_in(1, "laboro-1-2", "success", GOOD);
    rig.hands_in(1, "laboro-1-1", "success", GOOD);
    for index in [1, 2] {
        let group = "default".into();
        let Reply::Task(view) = rig.ask(Command::Query(Query::Task { group, task: id(index) }))
        else {
            panic!("it is there");
        };
        assert_eq!(view.state, State::Done);
    }
    assert_eq!(rig.says(1, "REZULTO laboro-1-7 success 5"), [""; 0]);
    assert!(rig.malformed(1).contains("never given"));
}

#[test]
fn a_result_that_comes_over_a_new_connection_counts_if_nobody_else_has_the_job() {
    let mut rig = Rig::with_scripts(&["a", "b"], 1);
    rig.greet(1, "r1");
    rig.takes(1, "a");
    rig.takes(1, "b");
    rig.close(1);
    rig.greet(2, "r2");
    let other = rig.says(2, "PETO").remove(0);
    assert_eq!(rig.says(2, "PRETA"), ["echo RES:ok\\n"]);
    let (theirs, free) = if other.contains(" a ") { ("a", "b") } else { ("b", "a") };
    rig.greet(1, "r1");
    rig.hands_in(1, theirs, "failure", GOOD);
    assert_eq!(rig.state(theirs), State::Leased, "the other one has it");
    rig.hands_in(1, free, "success", GOOD);
    assert_eq!(rig.state(free), State::Done);
    rig.hands_in(2, theirs, "success", GOOD);
    assert_eq!(rig.state(theirs), State::Done);
}

#[test]
fn a_result_whose_receipt_was_not_heard_may_be_told_again() {
    let mut rig = Rig::with_scripts(&["a", "b"], 1);
    rig.greet(1, "r1");
    rig.takes(1, "a");
    rig.hands_in(1, "a", "success", GOOD);
    rig.close(1);
    rig.greet(1, "r1");
    rig.hands_in(1, "a", "failure", GOOD);
    assert_eq!(rig.state("a"), State::Done, "the first one counts");
    rig.takes(1, "b");
}
