//! The states and steps of the manager's side.

use super::rig::{Rig, script};
use crate::runexp::{Filled, ManagerDoor, Success};
use crate::session::HangUp;
use bytes::Bytes;
use laboro_core::{
    ArraySpec, Command, CommandWork, Conduct, ConductRule, Config, IfTaken, JobId, JobOptions,
    Name, Outcome, Profile, Program, Selection, Setting, State, Submit, SubmitTo, UnknownPred,
    Which, Work,
};
use std::sync::Arc;

pub(super) const GOOD: &str = "runexp summary: success\n\nd -- [r] Running a\n> bash 'x'\nd -- Finished \
                    running\nProgram exited with status 0\nProgram output follows\n\nRES:ok\n";

fn with_status(status: i32) -> String {
    GOOD.replace("status 0", &format!("status {status}"))
}

impl Rig {
    /// Asks, and takes the job of this name.
    pub(super) fn takes(&mut self, peer: u64, name: &str) {
        assert_eq!(self.says(peer, "PETO"), [format!("LABORO {name} .sh 12")]);
        assert_eq!(self.says(peer, "PRETA"), ["echo RES:ok\\n"]);
    }

    pub(super) fn hands_in(&mut self, peer: u64, name: &str, status: &str, body: &str) {
        let size = body.len();
        assert_eq!(self.says(peer, format!("REZULTO {name} {status} {size}")), ["PRETA"]);
        assert_eq!(self.says(peer, body), ["RICEVIS"]);
    }
}

#[test]
fn a_conversation_from_hail_to_farewell() {
    let mut rig = Rig::with_scripts(&["a", "dir/b c"], 1);
    rig.greet(1, "r1");
    rig.takes(1, "a");
    rig.takes(1, "dir/b c");
    assert_eq!(rig.says(1, "PETO"), ["FINO"], "both run here, for the last time");
    rig.hands_in(1, "a", "success", GOOD);
    rig.hands_in(1, "dir/b c", "failure", &with_status(768));
    assert_eq!(rig.state("a"), State::Done);
    assert_eq!(rig.task("dir/b c").attempts.last().unwrap().outcome, Some(Outcome::Exit(3)));
    assert_eq!(rig.says(1, "PETO"), ["FINO"]);
    assert_eq!(rig.says(1, "PETO"), ["FINO"], "to every worker of the runner");
    assert_eq!(rig.says(1, "FINO ANKAU"), [""; 0]);
    assert_eq!(rig.hang_up(1), Some(HangUp::Finished));
    let kept: Vec<u8> = rig.kept.iter().flat_map(|chunk| chunk.bytes.to_vec()).collect();
    assert_eq!(kept, [GOOD, &with_status(768)].concat().as_bytes());
}

#[test]
fn an_idle_runner_is_answered_when_a_job_comes_back_or_all_is_done() {
    let mut rig = Rig::with_scripts(&["a", "b"], 1);
    (1..=3).for_each(|peer| rig.greet(peer, &format!("r{peer}")));
    rig.takes(1, "a");
    rig.takes(2, "b");
    assert_eq!(rig.says(3, "PETO"), [""; 0], "both run elsewhere");
    rig.pass(3_600_000);
    assert_eq!((rig.said(3), rig.hang_up(3)), (vec![], None), "there is no hurry");
    rig.close(1);
    assert_eq!(rig.said(3), ["LABORO a .sh 12"]);
    rig.says(3, "PRETA");
    rig.hands_in(2, "b", "success", GOOD);
    assert_eq!(rig.says(2, "PETO"), [""; 0]);
    rig.hands_in(3, "a", "success", GOOD);
    assert_eq!(rig.said(2), ["FINO"]);
    assert_eq!(rig.says(3, "PETO"), ["FINO"]);
}

#[test]
fn a_runner_that_waits_may_say_goodbye() {
    let mut rig = Rig::with_scripts(&["a"], 1);
    rig.greet(1, "r1");
    rig.greet(2, "r2");
    rig.takes(1, "a");
    assert_eq!(rig.says(2, "PETO"), [""; 0]);
    assert_eq!(rig.says(2, "FINO ANKAU"), [""; 0]);
    assert_eq!(rig.hang_up(2), Some(HangUp::Finished));
    rig.close(2);
    rig.close(1);
    assert_eq!(rig.state("a"), State::Ready, "nobody is there who could have it");
}

/// It would be blocked as a whole, with its results.
#[test]
fn a_runner_with_jobs_is_answered_at_once() {
    let mut rig = Rig::with_scripts(&["a", "b"], 1);
    rig.greet(1, "r1");
    rig.greet(2, "r2");
    rig.takes(1, "a");
    rig.takes(2, "b");
    assert_eq!(rig.says(1, "PETO"), ["FINO"], "all that is left runs");
    let mut rig = Rig::with_scripts(&["a"], 1);
    rig.greet(1, "r1");
    rig.takes(1, "a");
    rig.close(1);
    rig.greet(2, "r2");
    rig.takes(2, "a");
    rig.greet(3, "r1");
    assert_eq!(rig.says(3, "PETO"), ["ATENDI"], "it may still run what its old connection had");
    let mut rig = Rig::with_scripts(&["a"], 2);
    rig.greet(1, "r1");
    rig.takes(1, "a");
    assert_eq!(rig.says(1, "PETO"), ["ATENDI"], "it may fail, and has another attempt");
    rig.hands_in(1, "a", "failure", GOOD);
    rig.takes(1, "a");
    assert_eq!(rig.says(1, "PETO"), ["FINO"]);
}

#[test]
fn results_of_a_manager_that_is_gone_count_where_nobody_else_has_the_job() {
    let mut rig = Rig::with_scripts(&["a", "b", "c"], 2);
    rig.door =
        ManagerDoor::new("").unwrap().following_another([Bytes::from_static(b"long ago")].into());
    rig.greet(1, "r1");
    rig.greet(2, "r2");
    rig.takes(2, "a");
    rig.hands_in(1, "a", "success", GOOD);
    assert_eq!(rig.state("a"), State::Leased, "the exchange is completed, but another has it");
    rig.hands_in(1, "b", "success", GOOD);
    assert_eq!(rig.state("b"), State::Done);
    rig.hands_in(1, "b", "failure", GOOD);
    assert_eq!(rig.state("b"), State::Done, "once");
    rig.hands_in(1, "c", "failure", GOOD);
    assert_eq!(rig.task("c").failed_attempts, 1);
    rig.takes(1, "c");
    rig.hands_in(1, "long ago", "success", GOOD);
    assert_eq!(rig.says(1, "REZULTO d success 5"), [""; 0], "no such job was ever there");
    assert!(rig.malformed(1).contains("never given"));
}

#[test]
fn a_different_hail_ends_the_conversation() {
    let mut rig = Rig::with_scripts(&["a"], 1);
    rig.connect(1);
    assert_eq!(rig.says(1, "PETO"), [""; 0]);
    assert!(rig.malformed(1).contains("where SALUTON was due"));
}

#[test]
fn results_are_served_after_fino_and_after_eliri() {
    let conduct = Conduct { rule: ConductRule::Fixed, results_min: 1, ..Conduct::default() };
    let mut rig = Rig::new(Config { conduct, ..Config::default() });
    let tasks = ["a", "b"].map(|name| (name, script(b"echo RES:ok\n")));
    rig.submit(&tasks, Profile::default());
    rig.greet(1, "r1");
    rig.takes(1, "a");
    rig.takes(1, "b");
    rig.hands_in(1, "a", "failure", GOOD);
    assert_eq!(rig.says(1, "PETO"), ["ELIRI"]);
    rig.hands_in(1, "b", "success", GOOD);
    assert_eq!(rig.says(1, "FINO ANKAU"), [""; 0]);
    assert_eq!(rig.hang_up(1), Some(HangUp::Finished));
}

#[test]
fn a_door_may_keep_its_runners() {
    let mut rig = Rig::with_scripts(&["a"], 1);
    rig.door = ManagerDoor::new("").unwrap().staying();
    rig.greet(1, "r1");
    rig.takes(1, "a");
    assert_eq!(rig.says(1, "PETO"), ["ATENDI"]);
    rig.hands_in(1, "a", "success", GOOD);
    assert_eq!(rig.says(1, "PETO"), [""; 0]);
    rig.submit(&[("b", script(b"echo RES:ok\n"))], Profile::default());
    assert_eq!(rig.said(1), ["LABORO b .sh 12"]);
}

#[test]
fn a_runner_that_came_before_the_first_job_waits_for_it() {
    let mut rig = Rig::new(Config::default());
    rig.greet(1, "r1");
    rig.greet(2, "r2");
    assert_eq!(rig.says(1, "PETO"), [""; 0]);
    assert_eq!(rig.says(2, "PETO"), [""; 0]);
    rig.submit(&[("a", script(b"echo RES:ok\n"))], Profile::default());
    assert_eq!(rig.said(1), ["LABORO a .sh 12"]);
    rig.says(1, "PRETA");
    rig.hands_in(1, "a", "success", GOOD);
    assert_eq!(rig.said(2), ["FINO"]);
}

#[test]
fn the_two_words_for_a_result_without_a_byte_do_not_run_into_each_other() {
    let mut rig = Rig::with_scripts(&["a"], 1);
    rig.greet(1, "r1");
    rig.takes(1, "a");
    assert_eq!(rig.says(1, "REZULTO a success 0"), ["PRETA"]);
    rig.pass(49);
    assert_eq!(rig.said(1), [""; 0]);
    rig.pass(1);
    assert_eq!(rig.said(1), ["RICEVIS"]);
    assert_eq!(rig.state("a"), State::Done);
}

#[test]
fn a_job_may_be_tried_again() {
    let mut rig = Rig::with_scripts(&["a"], 2);
    rig.greet(1, "r1");
    rig.takes(1, "a");
    rig.hands_in(1, "a", "failure", GOOD);
    rig.takes(1, "a");
    rig.hands_in(1, "a", "success", GOOD);
    assert_eq!(rig.state("a"), State::Done);
}

#[test]
fn by_the_exit_status_if_so_told() {
    let mut rig = Rig::with_scripts(&["a", "b", "c"], 1);
    rig.door = ManagerDoor::new("").unwrap().with_success(Success::ExitCode);
    rig.greet(1, "r1");
    rig.takes(1, "a");
    rig.takes(1, "b");
    rig.takes(1, "c");
    rig.hands_in(1, "a", "success", &with_status(256));
    rig.hands_in(1, "b", "failure", GOOD);
    rig.hands_in(1, "c", "failure", "a runner without a header\n");
    assert_eq!(rig.state("a"), State::Failed);
    assert_eq!(rig.state("b"), State::Done);
    assert_eq!(rig.task("c").attempts[0].outcome, Some(Outcome::Error));
}

#[test]
fn commands_go_by_their_exit_status_in_any_case() {
    let mut rig = Rig::new(Config::default());
    let program = Program::Argv(["true"].into_iter().collect());
    let work = Work::Command(CommandWork { program, setting: Arc::new(Setting::default()) });
    rig.submit(&[("a", work)], Profile::default());
    rig.greet(1, "r1");
    assert_eq!(rig.says(1, "PETO"), ["LABORO a .sh 87"]);
    let script = rig.says(1, "PRETA").remove(0);
    assert!(script.starts_with("export LABORO_JOB=\\'1\\'\\n"), "{script}");
    assert!(script.ends_with("\\nexec -- \\'true\\'\\n"), "{script}");
    rig.hands_in(1, "a", "failure", GOOD);
    assert_eq!(rig.state("a"), State::Done);
}

#[test]
fn tasks_that_no_runner_can_name_or_take_hold_up_nobody() {
    let mut rig = Rig::new(Config::default());
    let long = "n".repeat(981);
    let bad = Setting { env: vec![(Box::from(&b"a-b"[..]), Box::default())], ..Setting::default() };
    let program = Program::Argv(["true"].into_iter().collect());
    let bad = Work::Command(CommandWork { program, setting: Arc::new(bad) });
    let tasks = [("bad", bad), ("", script(b"1")), ("x\ny", script(b"2")), (&*long, script(b"3"))];
    rig.submit(&tasks, Profile::default());
    rig.greet(1, "r1");
    for (number, body) in [(2, "1"), (3, "2"), (4, "3")] {
        assert_eq!(rig.says(1, "PETO"), [format!("LABORO laboro-1-{number} .sh 1")]);
        assert_eq!(rig.says(1, "PRETA"), [body]);
    }
    let bad = rig.task("bad");
    assert_eq!(bad.state, State::Failed);
    let words = "runexp runners cannot take it: a shell has no variable a-b";
    assert_eq!(bad.message.as_deref(), Some(words));
    rig.hands_in(1, "laboro-1-3", "success", GOOD);
    assert_eq!(rig.state("x\ny"), State::Done);
}

#[test]
fn elements_of_arrays_are_filled_in_where_the_door_can() {
    let mut rig = Rig::new(Config::default());
    let array = ArraySpec::numbered("sweep", 2, script(b"template"));
    rig.ask(Command::Submit(Submit {
        group: Name::from("default"),
        job: SubmitTo::New(JobOptions::default()),
        profiles: vec![Profile::default()],
        tasks: Vec::new(),
        arrays: vec![array],
        unknown_pred: UnknownPred::Refuse,
        if_taken: IfTaken::Refuse,
    }));
    rig.door = ManagerDoor::new("").unwrap().with_fill(|grant| {
        let position = grant.element.as_ref().unwrap().position;
        let filled = Filled { work: script(b"filled"), arguments: Vec::new() };
        if position == 0 { Ok(filled) } else { Err("no value".into()) }
    });
    rig.greet(1, "r1");
    assert_eq!(rig.says(1, "PETO"), ["LABORO sweep.1 .sh 6"]);
    assert_eq!(rig.says(1, "PRETA"), ["filled"]);
    assert_eq!(rig.says(1, "PETO"), ["FINO"], "the second one has failed, the first one runs here");
    rig.hands_in(1, "sweep.1", "success", GOOD);
    assert_eq!(rig.says(1, "PETO"), ["FINO"]);
    assert_eq!(rig.state("sweep.2"), State::Failed);
}

#[test]
fn held_with_nothing_left_to_hand_out_is_finished() {
    let conduct = Conduct { rule: ConductRule::Fixed, good_share_min: 0.0, ..Conduct::default() };
    let mut rig = Rig::new(Config { conduct, ..Config::default() });
    let names: Vec<String> = (0..11).map(|number| format!("t{number:02}")).collect();
    let tasks: Vec<_> =
        names.iter().map(|name| (name.as_str(), script(b"echo RES:ok\n"))).collect();
    rig.submit(&tasks, Profile::default());
    rig.greet(1, "r1");
    rig.greet(2, "r2");
    rig.takes(2, "t00");
    for name in &names[1..] {
        rig.takes(1, name);
        rig.hands_in(1, name, "failure", GOOD);
    }
    assert_eq!(rig.says(1, "PETO"), ["ATENDI"], "held, and a job may come back");
    rig.hands_in(2, "t00", "success", GOOD);
    assert_eq!(rig.says(1, "PETO"), ["FINO"]);
}

#[test]
fn a_cancelled_job_may_still_be_handed_in() {
    let mut rig = Rig::with_scripts(&["a"], 1);
    rig.greet(1, "r1");
    rig.takes(1, "a");
    rig.cancel_all();
    rig.hands_in(1, "a", "success", GOOD);
    assert_eq!(rig.state("a"), State::Cancelled);
}

impl Rig {
    fn cancel_all(&mut self) {
        self.ask(Command::Cancel(Selection { job: JobId(1), which: Which::Job }));
    }
}

#[test]
fn jobs_run_as_long_as_they_want() {
    let mut rig = Rig::with_scripts(&["a"], 1);
    rig.greet(1, "r1");
    rig.takes(1, "a");
    rig.pass(7 * 86_400_000);
    assert_eq!(rig.hang_up(1), None);
    rig.hands_in(1, "a", "success", GOOD);
    assert_eq!(rig.state("a"), State::Done);
}

#[test]
fn the_group_is_said_as_it_is_and_must_be_one_word() {
    let mut rig = Rig::new(Config::default());
    rig.door = ManagerDoor::new("exp-7").unwrap();
    rig.connect(1);
    rig.says(1, "SALUTON; MI r1");
    assert_eq!(rig.says(1, "KOMPRENAS"), ["ALIGI exp-7"]);
    let error = ManagerDoor::new("two words").unwrap_err().to_string();
    assert!(error.contains("`two words` has white space"), "{error}");
}
