//! What is run, and what is told of it.

use std::sync::Arc;

use laboro_core::{CommandWork, Program, Setting, Stdin, Work};
use laboro_worker::agent::Farewell;

use super::hub::{Rig, element, task};

fn argv(words: &[&str], setting: Setting) -> Work {
    let words = words.iter().collect();
    Work::Command(CommandWork { program: Program::Argv(words), setting: Arc::new(setting) })
}

#[test]
fn what_a_task_prints_and_how_it_ends_is_told_in_this_order() {
    let mut rig = Rig::new("prints", |_| {});
    rig.say("start 7 1 echo out; echo err >&2; exit 3");
    rig.expect("started 7");
    rig.ends(7, "exit code 3");
    assert!(rig.heard().contains(&r#"wrote 7 Out 4 "out\n""#.to_owned()), "{:?}", rig.heard());
    assert!(rig.heard().contains(&r#"wrote 7 Err 4 "err\n""#.to_owned()), "{:?}", rig.heard());
    rig.say("drain");
    assert_eq!(rig.leaves(), Farewell::Finished);
}

#[test]
fn every_way_to_end_has_its_words() {
    let mut slow = task(5, argv(&["sleep", "600"], Setting::default()));
    slow.time_limit_ms = Some(50);
    let missing = task(6, argv(&["/no/such/program"], Setting::default()));
    let mut rig = Rig::with("ways", |_| {}, vec![slow, missing], true);
    rig.say("start 1 1 true");
    rig.ends(1, "success");
    rig.say("start 2 1 kill -9 $$");
    rig.ends(2, "signal 9");
    rig.say("give 5");
    rig.ends(5, "timed out");
    rig.say("give 6");
    let line = rig.expect_begin("ended 6 error: ");
    assert!(line.contains("/no/such/program"), "{line}");
}

#[test]
fn a_task_knows_itself_and_its_scratch_directory_is_gone_after_it() {
    let mut known = task(3, Work::Named);
    known.work = Arc::new(Work::Command(CommandWork {
        program: Program::Shell(
            b"echo $LABORO_TASK $LABORO_JOB $LABORO_INDEX $LABORO_ATTEMPT $LABORO_SLOTS \
              $LABORO_WORKER $LABORO_GPU $CUDA_VISIBLE_DEVICES $OWN > facts; \
              touch $LABORO_SCRATCH/file; echo $LABORO_SCRATCH > where"
                .as_slice()
                .into(),
        ),
        setting: Arc::new(Setting {
            env: vec![(b"OWN".as_slice().into(), b"mine".as_slice().into())],
            ..Setting::default()
        }),
    }));
    known.resources = vec![("gpu".into(), vec![0, 2])];
    let mut rig = Rig::with("knows", |_| {}, vec![known], true);
    rig.say("give 3");
    rig.ends(3, "success");
    assert_eq!(rig.line_of("facts"), "task3 1 3 1 1 tester 0,2 0,2 mine");
    let scratch = rig.line_of("where");
    crate::rig::until("the scratch directory is gone", || !std::path::Path::new(&scratch).exists());
}

#[test]
fn placeholders_of_an_element_are_filled_in() {
    let setting = Setting {
        env: vec![(b"V".as_slice().into(), b"{/}".as_slice().into())],
        stdin: Stdin::Text(b"in {#}".as_slice().into()),
        stderr: Some(b"err-{#}".as_slice().into()),
        ..Setting::default()
    };
    let line = b"echo {} {name} $V \"$(cat)\"; echo {/} >&2".as_slice().into();
    let program = Program::Shell(line);
    let work = Work::Command(CommandWork { program, setting: Arc::new(setting) });
    let shell = element(1, 4, b"a dir/it's", work);
    let pair =
        element(2, 0, b"x\x1fy z", argv(&["printf", "%s|", "{}", "{2}"], Setting::default()));
    let mut rig = Rig::with("placeholders", |_| {}, vec![shell, pair], true);
    rig.say("give 1");
    rig.ends(1, "success");
    let all = "a dir/it's array.5 it's in 5";
    rig.expect(&format!("wrote 1 Out {} {:?}", all.len() + 1, format!("{all}\n")));
    assert_eq!(rig.line_of("err-5"), "it's");
    rig.say("give 2");
    rig.ends(2, "success");
    rig.expect(r#"wrote 2 Out 10 "x|y z|y z|""#);
}

#[test]
fn scripts_run_from_a_file_with_their_elements_values_as_arguments() {
    let body = b"#!/bin/sh\n[[ $1 == 'a b' ]] && echo $2 {} && ls $LABORO_SCRATCH".as_slice();
    let script = Work::script(".sh", body.into(), Arc::default());
    let mut rig = Rig::with("script", |_| {}, vec![element(1, 0, b"a b\x1f2", script)], true);
    rig.say("give 1");
    rig.ends(1, "success");
    rig.expect(r#"wrote 1 Out 5 "2 {}\n""#);
}

#[test]
fn indexed_work_gets_its_number_and_a_log_file_of_its_own() {
    let indexed = |key, dir: &str| {
        let dir = || dir.as_bytes().into();
        element(key, 6, b"7", Work::indexed(b"./count".as_slice().into(), dir(), dir()))
    };
    let dir = crate::rig::Dir::new("indexed-work");
    std::fs::write(dir.at("count"), "echo number $1").unwrap();
    std::process::Command::new("chmod").arg("+x").arg(dir.at("count")).status().unwrap();
    let path = dir.0.to_str().unwrap();
    let mut rig = Rig::with("indexed", |_| {}, vec![indexed(1, path), indexed(2, path)], true);
    for key in [1, 2] {
        rig.say(&format!("give {key}"));
        rig.ends(key, "success");
    }
    for log in ["array_7.log", "array_7-1.log"] {
        assert_eq!(std::fs::read_to_string(dir.at(log)).unwrap(), "number 7\n");
    }
}

#[test]
fn a_name_alone_means_what_the_worker_was_started_with() {
    let name = || vec![task(1, Work::Named)];
    let command = ["echo", "run", "{}"].map(Into::into).to_vec();
    let mut rig = Rig::with("named", |options| options.command = command, name(), true);
    rig.say("give 1");
    rig.ends(1, "success");
    rig.expect(r#"wrote 1 Out 10 "run task1\n""#);
    let mut rig = Rig::with("nameless", |_| {}, name(), true);
    rig.say("give 1");
    let line = rig.expect_begin("ended 1 error: ");
    assert!(line.contains("-- COMMAND {}"), "{line}");
}

#[test]
fn without_a_crew_everything_is_done_at_once_and_asked_for_far_ahead() {
    let mut rig = Rig::with("no-op", |_| {}, Vec::new(), false);
    rig.expect("ahead 8192");
    for key in 1..=100 {
        rig.say(&format!("start {key} 1 exit 1"));
    }
    for key in 1..=100 {
        rig.ends(key, "success");
    }
}

#[test]
fn output_beyond_the_limit_is_dropped_and_said_to_be() {
    let mut rig = Rig::new("cut", |options| options.output_limit = 10);
    rig.say("start 1 1 head -c 100000 /dev/zero | tr '\\0' x; exit 0");
    rig.ends(1, "success: its output exceeded the limit and was cut");
    rig.expect(r#"wrote 1 Out 10 "xxxxxxxxxx""#);
}

#[test]
fn what_is_said_of_an_error_is_not_lost_behind_much_output() {
    let mut rig = Rig::new("each", |options| options.output_limit = 10);
    rig.say("start 1 1 head -c 100000 /dev/zero | tr '\\0' x; echo broken >&2; exit 1");
    rig.ends(1, "exit code 1: its output exceeded the limit and was cut");
    rig.expect(r#"wrote 1 Err 7 "broken\n""#);
}
