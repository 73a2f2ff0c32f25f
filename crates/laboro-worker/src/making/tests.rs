//! What becomes of an assignment before anything runs.

use std::sync::Arc;

use laboro_dialects::worker::{ElementValue, Key};

use super::*;
use crate::Until;

fn common() -> Common {
    Common {
        shell: DEFAULT_SHELL.into(),
        dir: Some("/base".into()),
        command: Vec::new(),
        worker: Some("w".into()),
        grace: Duration::ZERO,
        nice: Some(5),
        until: Until::default(),
        items: Vec::new(),
    }
}

fn element(work: Work, position: u32, value: &'static str) -> Assignment {
    let value = Some(ElementValue { position, bytes: value.into() });
    Assignment { value, ..assignment(work) }
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
        role: laboro_core::Role::Only,
        access: None,
    }
}

fn command(program: Program, dir: Option<&str>) -> Work {
    let setting = Setting { dir: dir.map(|dir| dir.as_bytes().into()), ..Setting::default() };
    Work::Command(CommandWork { program, setting: Arc::new(setting) })
}

fn made(assignment: &Assignment, common: Common) -> Result<Made, Refusal> {
    Maker::new(common).make(assignment, &Scripts::in_dir(&std::env::temp_dir()), None, 3)
}

fn make(assignment: &Assignment) -> Made {
    made(assignment, common()).unwrap()
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
fn files_of_the_streams_are_filled_in_and_opened_by_the_runner() {
    let path = |path: &str| Some(path.as_bytes().into());
    let setting = Setting {
        stdin: laboro_core::Stdin::File(b"in/{}".as_slice().into()),
        stdout: path("{#}.out"),
        stderr: path("/logs/{/}.err"),
        nice: Some(-3),
        ..Setting::default()
    };
    let script = Work::script(".sh", b"true".as_slice().into(), Arc::new(setting));
    let launch = make(&element(script, 2, "a/b")).launch;
    let file = |path: &str| Capture::File(path.into(), WriteMode::Truncate);
    assert_eq!(launch.stdin, Stdin::File("in/a/b".into()));
    assert_eq!((launch.stdout, launch.stderr), (file("3.out"), file("/logs/b.err")));
    assert_eq!(launch.nice, Some(-3));
}

#[test]
fn a_task_that_asks_for_nothing_has_what_its_worker_has() {
    let plain = assignment(command(Program::Shell(b"true".as_slice().into()), None));
    let launch = make(&plain).launch;
    assert_eq!((launch.stdin, launch.stdout, launch.nice), (Stdin::Null, Capture::Pipe, Some(5)));
}

#[test]
fn a_line_of_a_job_file_is_for_the_shell_of_the_worker() {
    let words = VALUE_AS_LINE.into_iter().collect();
    let line = element(command(Program::Argv(words), None), 0, "echo {1} $x");
    let common = Common { shell: "/bin/bash".into(), ..common() };
    assert_eq!(made(&line, common).unwrap().launch.argv, ["/bin/bash", "-c", "echo {1} $x"]);
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
    let element = element(command(Program::Shell(line.into()), None), 2, "a b");
    let error = made(&element, common()).unwrap_err();
    assert!(error.message.contains("cannot be quoted safely"), "{error:?}");
}

#[test]
fn a_script_of_a_type_that_nobody_knows_is_an_error_that_says_so() {
    let setting = Arc::default();
    let odd = assignment(Work::script(".py", b"pass".as_slice().into(), setting));
    let error = made(&odd, common()).unwrap_err();
    assert!(error.message.contains("scripts of type .py"), "{error:?}");
}

#[test]
fn a_name_from_a_peer_never_leaves_the_log_directory() {
    let mut odd = assignment(Work::Named);
    odd.name = "../../etc/x.3".into();
    assert_eq!(log_file(&odd, 3, b"/logs"), Some("/logs/.._.._etc_x_3.log".into()));
}
