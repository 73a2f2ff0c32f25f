//! Many launches, and how a runner begins and ends.

use std::collections::HashSet;
use std::process::Command;
use std::time::Duration;

use laboro_worker::{Ending, Options, Runner, RunnerError, RunnerEvent};

use crate::rig::{Life, PATIENCE, Rig, command, shell};

#[test]
fn a_thousand_short_tasks_each_start_once_and_end_once() {
    let mut rig = Rig::new();
    let (mut started, mut ended) = (HashSet::new(), HashSet::new());
    let mut launched = 0;
    while ended.len() < 1000 {
        while launched < 1000 && launched - ended.len() as u64 <= 8 {
            rig.runner.launch(command(launched, &["/bin/true"]));
            launched += 1;
        }
        for event in rig.next() {
            match event {
                RunnerEvent::Started { id, .. } => assert!(started.insert(id)),
                RunnerEvent::Output { .. } => panic!("true says nothing"),
                RunnerEvent::Ended { id, ending, .. } => {
                    assert!(started.contains(&id), "{id} ended before it started");
                    assert!(ended.insert(id));
                    assert_eq!(ending, Ending::Exited(0));
                }
            }
        }
    }
}

#[test]
fn more_launches_than_the_socket_holds_all_run() {
    let mut rig = Rig::new();
    let filling = "x".repeat(10_000);
    for id in 0..300 {
        rig.runner.launch(command(id, &["/bin/sh", "-c", "exit 3", &filling]));
    }
    let mut ended = HashSet::new();
    while ended.len() < 300 {
        for event in rig.next() {
            if let RunnerEvent::Ended { id, ending, .. } = event {
                assert_eq!(ending, Ending::Exited(3));
                assert!(ended.insert(id));
            }
        }
    }
}

#[test]
fn a_shut_down_runner_kills_tells_and_is_silent() {
    let mut rig = Rig::new();
    rig.runner.launch(shell(1, "trap '' TERM; echo $$; while :; do sleep 1; done"));
    let life = Life::of(&rig.said(1, 1)[0]);
    rig.runner.shutdown();
    assert!(life.is_over());
    let batch = rig.events.wait(Some(PATIENCE)).unwrap().unwrap();
    assert!(matches!(
        batch.as_slice(),
        [RunnerEvent::Ended { id: 1, ending: Ending::Stopped { killed: true }, .. }]
    ));
    assert_eq!(rig.events.wait(Some(PATIENCE)).unwrap(), None);
    assert_eq!(rig.events.wait(None).unwrap(), None);
}

#[test]
fn waiting_ends_with_its_time() {
    let mut rig = Rig::new();
    assert_eq!(rig.events.wait(Some(Duration::ZERO)).unwrap(), Some(Vec::new()));
    assert_eq!(rig.events.wait(Some(Duration::from_millis(5))).unwrap(), Some(Vec::new()));
}

#[test]
fn a_program_that_is_no_guardian_is_an_error() {
    let start = |guardian: &str| {
        Runner::start(Options { guardian: guardian.into(), ..Options::default() }).err()
    };
    assert!(matches!(start("/no/such/guardian"), Some(RunnerError::Guardian { .. })));
    assert!(matches!(start("/bin/true"), Some(RunnerError::Silent(_))));
}

#[test]
fn a_person_who_types_the_hidden_argument_is_told_off() {
    let output = Command::new(crate::rig::PROBE).arg("__guardian").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(words.contains("__guardian is not for people to use"), "{words}");
}
