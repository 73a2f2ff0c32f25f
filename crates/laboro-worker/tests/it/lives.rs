//! Who outlives whom: nobody outlives the program, whoever is killed first.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use laboro_worker::{Ending, Options, Orphans, Runner, end_left_behind};

use crate::rig::{Life, Rig, command, options, shell, until};

/// A process that hears nothing but SIGKILL, one below it, one in a session of its own, and one of
/// that kind with an empty environment; each says its number.
const FAMILY: &str = "trap '' TERM HUP INT; echo $$; \
    sh -c 'echo $$; while :; do sleep 1; done' & \
    setsid sh -c 'sh -c \"echo \\$\\$; while :; do sleep 1; done\" & sleep 1000' & \
    env -i setsid /bin/sh -c 'echo $$; while :; do /bin/sleep 1; done' & \
    while :; do sleep 1; done";

/// Leaves the pipe open, so that the program may say more.
fn first_lines(program: &mut Child, count: usize) -> Vec<String> {
    let lines = BufReader::new(program.stdout.as_mut().unwrap()).lines();
    lines.take(count).map(Result::unwrap).collect()
}

fn lives(lines: &[String]) -> Vec<Life> {
    lines.iter().map(|line| Life::of(line)).collect()
}

#[test]
fn kill_nine_of_the_program_takes_all_its_processes_along() {
    let mut program =
        Command::new(crate::rig::PROBE).arg(FAMILY).stdout(Stdio::piped()).spawn().unwrap();
    let lines = first_lines(&mut program, 4);
    let mut lives = lives(&lines);
    lives.push(Life::of(&lives[0].parent().to_string()));
    program.kill().unwrap();
    program.wait().unwrap();
    for life in lives {
        until("every process is gone", || life.is_over());
    }
}

#[test]
fn kill_nine_in_a_storm_of_launches_leaves_nobody() {
    for lines_first in [1, 2, 5, 20, 100] {
        let storm = format!("{}-{lines_first}", std::process::id());
        let mut program = Command::new(crate::rig::PROBE)
            .args(["--times", "400", "echo $PPID; exec sleep 1000"])
            .env("LABORO_TEST_STORM", &storm)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let guardian = Life::of(&first_lines(&mut program, lines_first)[0]);
        let keeper = Life::of(&guardian.parent().to_string());
        program.kill().unwrap();
        program.wait().unwrap();
        until("the guardian and its keeper are gone", || guardian.is_over() && keeper.is_over());
        let left: Vec<u32> = with_variable(&format!("LABORO_TEST_STORM={storm}"));
        assert!(left.is_empty(), "{left:?} live on");
    }
}

/// The processes that were given this variable, with its value.
fn with_variable(wanted: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap();
    let pids = entries.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    let has = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|entry| entry == wanted.as_bytes())
    };
    pids.filter(has).collect()
}

#[test]
fn dropping_the_runner_takes_all_its_processes_along() {
    let mut rig = Rig::new();
    rig.runner.launch(shell(1, FAMILY));
    let lives = lives(&rig.said(1, 4));
    drop(rig);
    assert!(lives.iter().all(Life::is_over));
}

#[test]
fn kill_nine_of_the_guardian_takes_its_tasks_along_and_another_takes_over() {
    let mut rig = Rig::new();
    // Without the one that clears its environment: see the next test.
    let marked = "trap '' TERM; echo $$; setsid sh -c 'echo $$; sleep 1000' & \
                  while :; do sleep 1; done";
    rig.runner.launch(shell(1, marked));
    rig.runner.launch(command(2, &["sleep", "1000"]));
    let lives = lives(&rig.said(1, 2));
    let guardian = lives[0].parent().to_string();
    Command::new("kill").args(["-9", &guardian]).status().unwrap();
    let mut left = 2;
    while left > 0 {
        for event in rig.next() {
            if let laboro_worker::RunnerEvent::Ended { ending, .. } = event {
                assert_eq!(ending, Ending::GuardianLost);
                left -= 1;
            }
        }
    }
    assert!(lives.iter().all(Life::is_over));
    let again = rig.run(shell(3, "echo $PPID"));
    assert_eq!(again.ending, Ending::Exited(0));
    assert_ne!(again.text(), guardian);
}

#[test]
fn a_program_with_no_other_children_ends_even_the_unmarked_when_the_guardian_is_killed() {
    // In a program of its own, because the tests have other children.
    let script =
        "echo $PPID; env -i setsid /bin/sh -c 'echo $$; exec /bin/sleep 1000' & sleep 1000";
    let mut program = Command::new(crate::rig::PROBE)
        .arg("--all-orphans")
        .arg(script)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = first_lines(&mut program, 2);
    let stray = Life::of(&lines[1]);
    Command::new("kill").args(["-9", &lines[0]]).status().unwrap();
    assert_eq!(program.wait().unwrap().code(), Some(Ending::GuardianLost.exit_code()));
    until("the stray is gone", || stray.is_over());
}

/// All of them at once: nobody has the time to notice the end of another.
fn kill_together(pids: &[u32]) {
    for signal in ["-STOP", "-KILL"] {
        let pids = pids.iter().map(u32::to_string);
        assert!(Command::new("kill").arg(signal).args(pids).status().unwrap().success());
    }
}

#[test]
fn kill_nine_of_the_program_and_the_guardian_together_takes_all_their_processes_along() {
    let mut program =
        Command::new(crate::rig::PROBE).arg(FAMILY).stdout(Stdio::piped()).spawn().unwrap();
    let lives = lives(&first_lines(&mut program, 4));
    kill_together(&[program.id(), lives[0].parent()]);
    program.wait().unwrap();
    for life in lives {
        until("every process is gone", || life.is_over());
    }
}

#[test]
fn kill_nine_of_the_program_and_the_keeper_together_takes_all_their_processes_along() {
    let mut program =
        Command::new(crate::rig::PROBE).arg(FAMILY).stdout(Stdio::piped()).spawn().unwrap();
    let lives = lives(&first_lines(&mut program, 4));
    let guardian = Life::of(&lives[0].parent().to_string());
    kill_together(&[program.id(), guardian.parent()]);
    program.wait().unwrap();
    for life in lives.iter().chain([&guardian]) {
        until("every process is gone", || life.is_over());
    }
}

#[test]
fn kill_nine_of_the_keeper_takes_its_tasks_along_and_another_takes_over() {
    let mut rig = Rig::new();
    rig.runner.launch(shell(1, "echo $$; sleep 1000"));
    let lives = lives(&rig.said(1, 1));
    let guardian = Life::of(&lives[0].parent().to_string());
    kill_together(&[guardian.parent()]);
    assert_eq!(rig.finish(1).ending, Ending::GuardianLost);
    assert!(lives[0].is_over() && guardian.is_over());
    assert_eq!(rig.run(shell(2, "exit 3")).ending, Ending::Exited(3));
}

#[test]
fn what_all_three_left_is_ended_by_its_mark_and_nobody_else_is() {
    let script = "echo $LABORO_TASK_ID; echo $$; setsid sh -c 'echo $$; sleep 1000' & \
                  setsid sh -c 'env -i /bin/sleep 1000 & echo $!; wait' & sleep 1000";
    let mut program =
        Command::new(crate::rig::PROBE).arg(script).stdout(Stdio::piped()).spawn().unwrap();
    let lines = first_lines(&mut program, 4);
    let (mark, lives) = (lines[0].clone(), lives(&lines[1..]));
    let nonce = mark.split('.').next().unwrap();
    let mut sibling = Rig::new();
    sibling.runner.launch(shell(1, "echo $$; sleep 1000"));
    let other = Life::of(&sibling.said(1, 1)[0]);
    let guardian = Life::of(&lives[0].parent().to_string());
    kill_together(&[program.id(), lives[0].parent(), guardian.parent()]);
    program.wait().unwrap();
    until("the guardian is gone", || guardian.is_over());
    assert!(!lives.iter().any(Life::is_over), "nobody was there to end them");
    for wrong in ["", "0", "0123456789abcdef"] {
        assert_eq!(end_left_behind(wrong), 0);
    }
    assert!(end_left_behind(nonce) >= 3);
    assert!(lives.iter().all(Life::is_over));
    assert!(!other.is_over(), "a living runner's process");
    assert_eq!(end_left_behind(nonce), 0);
}

#[test]
fn a_guardian_ignores_what_a_person_might_send_it() {
    let mut rig = Rig::new();
    let said = rig.run(shell(1, "kill -TERM $PPID; kill -INT $PPID; kill -HUP $PPID; echo $PPID"));
    assert_eq!(said.ending, Ending::Exited(0));
    assert_eq!(rig.run(shell(2, "echo $PPID")).text(), said.text());
}

#[test]
fn two_runners_leave_each_other_alone() {
    let mut first = Rig::new();
    let options = Options { orphans: Orphans::Marked, ..options() };
    let (runner, events) = Runner::start(options).unwrap();
    let second = Rig { runner, events };
    first.runner.launch(shell(1, "echo here; read line; sleep 1000"));
    drop(second);
    assert_eq!(first.run(shell(2, "exit 4")).ending, Ending::Exited(4));
}
