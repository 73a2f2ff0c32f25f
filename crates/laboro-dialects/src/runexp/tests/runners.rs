//! What the manager makes of runners: those that fail, that are lost, that come back, that leave.

use super::manager::GOOD;
use super::rig::{Rig, script};
use laboro_core::{
    Command, Conduct, ConductRule, Config, Drain, Name, Profile, Query, Reply, State, WorkerRef,
    WorkerView,
};

impl Rig {
    fn worker(&mut self, name: &str) -> WorkerView {
        let worker = WorkerRef::Name { group: Name::from("default"), name: Name::from(name) };
        match self.ask(Command::Query(Query::Worker(worker))) {
            Reply::Workers(mut workers) => workers.remove(0),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_ejected_runner_that_comes_back_is_known_by_host_and_address() {
    let conduct = Conduct { rule: ConductRule::Fixed, results_min: 1, ..Conduct::default() };
    let mut rig = Rig::new(Config { conduct, ..Config::default() });
    let tasks = ["a", "b", "c"].map(|name| (name, script(b"echo RES:ok\n")));
    rig.submit(&tasks, Profile::default());
    rig.greet(1, "r1");
    rig.takes(1, "a");
    rig.hands_in(1, "a", "failure", GOOD);
    assert_eq!(rig.says(1, "PETO"), ["ELIRI"]);
    rig.greet(2, "r1");
    assert_eq!(rig.says(2, "PETO"), ["ELIRI"], "while the first is still there");
    rig.close(2);
    rig.close(1);
    rig.greet(3, "r1");
    assert_eq!(rig.says(3, "PETO"), ["ELIRI"], "after it has gone");
    rig.connect_from(4, "127.0.0.2");
    rig.hears(4, b"SALUTON; MI r1");
    rig.hears(4, b"KOMPRENAS");
    rig.hears(4, b"JES");
    rig.said(4);
    rig.takes(4, "b");
    let hour = Conduct::default().ejected_ms;
    rig.close(3);
    rig.pass(hour + 1);
    rig.greet(5, "r1");
    rig.takes(5, "c");
}

/// Each result is judged, also while others are out.
#[test]
fn a_runner_on_hold_is_ejected_when_too_little_of_all_was_good() {
    let conduct = Conduct { rule: ConductRule::Fixed, ..Conduct::default() };
    let mut rig = Rig::new(Config { conduct, ..Config::default() });
    let names: Vec<String> = (10..23).map(|number| number.to_string()).collect();
    let tasks: Vec<_> = names.iter().map(|name| (&**name, script(b"echo RES:ok\n"))).collect();
    rig.submit(&tasks, Profile::default());
    rig.greet(1, "r1");
    names[..12].iter().for_each(|name| rig.takes(1, name));
    for (name, good) in names.iter().zip([true; 6].into_iter().chain([false; 4])) {
        rig.hands_in(1, name, if good { "success" } else { "failure" }, GOOD);
    }
    assert_eq!(rig.says(1, "PETO"), ["ATENDI"], "four of the last ten failed, 60 % were good");
    rig.hands_in(1, "20", "failure", GOOD);
    assert_eq!(rig.says(1, "PETO"), ["ELIRI"], "6 of 11, and one is still out");
}

#[test]
fn a_pardon_holds_for_all_who_came_as_the_ejected_one() {
    let conduct = Conduct { rule: ConductRule::Fixed, results_min: 1, ..Conduct::default() };
    let mut rig = Rig::new(Config { conduct, ..Config::default() });
    let tasks = ["a", "b", "c"].map(|name| (name, script(b"echo RES:ok\n")));
    rig.submit(&tasks, Profile::default());
    rig.greet(1, "r1");
    rig.takes(1, "a");
    rig.hands_in(1, "a", "failure", GOOD);
    assert_eq!(rig.says(1, "PETO"), ["ELIRI"]);
    rig.greet(2, "r1");
    assert_eq!(rig.says(2, "PETO"), ["ELIRI"]);
    let name = Name::from("r1@127.0.0.1");
    rig.ask(Command::Pardon(WorkerRef::Name { group: Name::from("default"), name }));
    rig.takes(1, "b");
    rig.takes(2, "c");
}

#[test]
fn two_runners_of_one_host_are_two_workers() {
    let mut rig = Rig::with_scripts(&["a", "b"], 1);
    rig.greet(1, "r1");
    rig.greet(2, "r1");
    rig.takes(1, "a");
    rig.takes(2, "b");
    rig.close(1);
    assert_eq!((rig.state("a"), rig.state("b")), (State::Ready, State::Leased));
    assert_eq!(rig.worker("r1@127.0.0.1#2").lease_count, 1);
    rig.takes(2, "a");
}

#[test]
fn a_runner_is_back_before_its_old_connection_is_known_to_be_lost() {
    let mut rig = Rig::with_scripts(&["a", "b", "c", "d"], 1);
    rig.greet(1, "r1");
    ["a", "b", "c", "d"].into_iter().for_each(|name| rig.takes(1, name));
    rig.greet(2, "r1");
    rig.hands_in(2, "a", "success", GOOD);
    assert_eq!(rig.state("a"), State::Done);
    rig.close(1);
    assert_eq!((rig.state("a"), rig.state("b")), (State::Done, State::Ready));
    rig.hands_in(2, "b", "failure", GOOD);
    assert_eq!(rig.state("b"), State::Failed, "nobody else had it");
    rig.greet(3, "r3");
    let given = rig.says(3, "PETO").remove(0);
    rig.says(3, "PRETA");
    let other = given.split(' ').nth(1).unwrap();
    rig.hands_in(2, other, "success", GOOD);
    assert_eq!(rig.state(other), State::Leased, "the exchange is completed, but another has it");
    assert_eq!(rig.says(3, "REZULTO a success 5"), [""; 0], "that was another host's");
    assert!(rig.malformed(3).contains("never given"));
}

#[test]
fn a_name_means_one_job_at_all_runners_of_a_host() {
    let mut rig = Rig::with_scripts(&[&"n".repeat(1000)], 1);
    rig.submit(&[("laboro-1-1", script(b"echo RES:ok\n"))], Profile::default());
    rig.greet(1, "r1");
    rig.greet(2, "r1");
    rig.takes(1, "laboro-1-1");
    rig.takes(2, "laboro-2-1");
    rig.hands_in(2, "laboro-1-1", "success", GOOD);
    assert_eq!(rig.state("laboro-1-1"), State::Leased, "the other one was meant");
}

#[test]
fn a_lost_connection_puts_its_jobs_first_in_line() {
    let mut rig = Rig::with_scripts(&["a", "b", "c"], 1);
    rig.greet(1, "r1");
    rig.takes(1, "a");
    rig.takes(1, "b");
    rig.close(1);
    rig.greet(2, "r2");
    let mut names = Vec::new();
    for _ in 0..3 {
        names.extend(rig.says(2, "PETO"));
        rig.says(2, "PRETA");
    }
    names.sort();
    assert_eq!(names, ["LABORO a .sh 12", "LABORO b .sh 12", "LABORO c .sh 12"]);
}

#[test]
fn a_job_that_is_lost_too_often_is_held() {
    let mut rig = Rig::with_scripts(&["a"], 1);
    for peer in 1..=6 {
        rig.greet(peer, "r1");
        rig.takes(peer, "a");
        rig.close(peer);
    }
    assert_eq!(rig.state("a"), State::Held);
}

#[test]
fn whoever_says_goodbye_with_jobs_gives_them_back() {
    let mut rig = Rig::with_scripts(&["a"], 1);
    rig.greet(1, "r1");
    rig.takes(1, "a");
    assert_eq!(rig.says(1, "FINO ANKAU"), [""; 0]);
    assert_eq!(rig.state("a"), State::Ready);
}

#[test]
fn a_drained_worker_goes_home_also_if_it_waits() {
    let mut rig = Rig::new(Config::default());
    rig.greet(1, "r1");
    assert_eq!(rig.says(1, "PETO"), [""; 0]);
    let name = Name::from("r1@127.0.0.1");
    let worker = WorkerRef::Name { group: Name::from("default"), name };
    rig.ask(Command::Drain(worker, Drain::All));
    assert_eq!(rig.said(1), ["FINO"]);
    rig.submit(&[("a", script(b"echo RES:ok\n"))], Profile::default());
    assert_eq!(rig.says(1, "PETO"), ["FINO"]);
}
