//! What becomes of an assignment before anything runs.

use std::sync::Arc;

use laboro_dialects::worker::{Key, Value};

use super::*;
use crate::Until;
use crate::agent::LimitBy;

fn options() -> AgentOptions {
    AgentOptions {
        name: "w".into(),
        slots: 1,
        shell: DEFAULT_SHELL.into(),
        dir: "/base".into(),
        scratch: std::env::temp_dir(),
        task_dirs: true,
        command: Vec::new(),
        nice: None,
        grace: Duration::ZERO,
        drain: Duration::ZERO,
        memory_free: None,
        idle_timeout: None,
        time_limit: None,
        output_limit: 0,
        until: Until::default(),
        limit_by: LimitBy::Nothing,
    }
}

fn assignment(work: Work) -> Assignment {
    Assignment {
        key: Key(1),
        name: "array.3".into(),
        job: 9,
        index: 30,
        attempt: 1,
        work: Arc::new(work),
        value: None,
        slots: 1,
        memory: 0,
        time_limit_ms: None,
        resources: Vec::new(),
    }
}

fn command(program: Program, dir: Option<&str>) -> Work {
    let setting = Setting { dir: dir.map(|dir| dir.as_bytes().into()), ..Setting::default() };
    Work::Command(CommandWork { program, setting: Arc::new(setting) })
}

fn make(assignment: &Assignment) -> Made {
    let scratch = Scratch::open(&std::env::temp_dir(), None).unwrap();
    Maker::new(&options()).make(assignment, &scratch).unwrap()
}

#[test]
fn directories_are_relative_to_the_workers_own() {
    let line = || Program::Shell(b"true".as_slice().into());
    for (dir, is) in [(None, "/base"), (Some("sub"), "/base/sub"), (Some("/own"), "/own")] {
        let made = make(&assignment(command(line(), dir)));
        assert_eq!(made.launch.dir.as_deref(), Some(Path::new(is)));
    }
}

#[test]
fn a_line_that_needs_no_shell_gets_none_however_it_came() {
    let line = b"/bin/echo a b".as_slice();
    let words = [b"/bin/sh".as_slice(), b"-c", line].into_iter().collect();
    for program in [Program::Shell(line.into()), Program::Argv(words)] {
        assert_eq!(make(&assignment(command(program, None))).launch.argv, ["/bin/echo", "a", "b"]);
    }
}

#[test]
fn the_text_of_a_task_that_is_no_element_is_left_as_it_is() {
    let line = b"awk '{print $1}' {} {1}".as_slice();
    let made = make(&assignment(command(Program::Shell(line.into()), None)));
    assert_eq!(made.launch.argv, ["/bin/sh", "-c", "awk '{print $1}' {} {1}"]);
}

#[test]
fn a_placeholder_that_cannot_be_quoted_is_an_error_with_advice() {
    let line = b"echo `ls {}`".as_slice();
    let mut element = assignment(command(Program::Shell(line.into()), None));
    element.value = Some(Value { position: 2, bytes: b"a b".as_slice().into() });
    let scratch = Scratch::open(&std::env::temp_dir(), None).unwrap();
    let error = Maker::new(&options()).make(&element, &scratch).unwrap_err();
    assert!(error.message.contains("cannot be quoted safely"), "{error:?}");
}

#[test]
fn a_script_of_a_type_that_nobody_knows_is_an_error_that_says_so() {
    let setting = Arc::default();
    let odd = assignment(Work::script(".py", b"pass".as_slice().into(), setting));
    let scratch = Scratch::open(&std::env::temp_dir(), None).unwrap();
    let error = Maker::new(&options()).make(&odd, &scratch).unwrap_err();
    assert!(error.message.contains("scripts of type .py"), "{error:?}");
}

#[test]
fn a_name_from_a_peer_never_leaves_the_log_directory() {
    let mut odd = assignment(Work::Named);
    odd.name = "../../etc/x.3".into();
    let copy = log_file(&odd, 3, b"/logs");
    assert_eq!(copy, Some(Copy::Beside("/logs/.._.._etc_x_3.log".into())));
}
