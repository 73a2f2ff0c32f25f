//! Many launches, and how a runner begins and ends.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::process::Command;
use std::time::Duration;

use laboro_worker::{Ending, Launch, Options, Runner, RunnerError, RunnerEvent};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::rig::{Dir, Life, PATIENCE, Rig, command, options, shell};

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
fn no_more_run_at_once_than_wanted_and_the_waiting_can_be_stopped() {
    let at_once = NonZeroUsize::new(2);
    let (runner, events) = Runner::start(Options { at_once, ..options() }).unwrap();
    let mut rig = Rig { runner, events };
    let dir = Dir::new("at-once");
    for id in 0..20 {
        // Each looks who else is there while it runs.
        let script = "touch $$.here; ls | grep -c here; sleep 0.02; rm $$.here";
        rig.runner.launch(Launch { dir: Some(dir.0.clone()), ..shell(id, script) });
    }
    for id in [3, 19] {
        rig.runner.stop(id, Duration::from_secs(100));
    }
    let (mut started, mut ended, mut stopped) = (Vec::new(), 0, Vec::new());
    while ended < 20 {
        for event in rig.next() {
            match event {
                RunnerEvent::Started { id, .. } => started.push(id),
                RunnerEvent::Output { bytes, .. } => assert!(matches!(&*bytes, b"1\n" | b"2\n")),
                RunnerEvent::Ended { id, ending, .. } => {
                    ended += 1;
                    if ending != Ending::Exited(0) {
                        assert_eq!(ending, Ending::Stopped { killed: false });
                        stopped.push(id);
                    }
                }
            }
        }
    }
    stopped.sort_unstable();
    assert_eq!(stopped, [3, 19]);
    assert_eq!(started, (0..19).filter(|&id| id != 3).collect::<Vec<_>>());
}

#[test]
fn launches_may_come_from_many_threads() {
    let mut rig = Rig::new();
    let runner = &rig.runner;
    std::thread::scope(|scope| {
        for first in [0, 100, 200, 300] {
            scope.spawn(move || {
                for id in first..first + 25 {
                    runner.launch(shell(id, "exit 5"));
                }
            });
        }
    });
    let mut ended = HashSet::new();
    while ended.len() < 100 {
        for event in rig.next() {
            if let RunnerEvent::Ended { id, ending, .. } = event {
                assert_eq!(ending, Ending::Exited(5));
                assert!(ended.insert(id));
            }
        }
    }
}

#[test]
fn the_descriptor_shows_when_there_is_something_to_take() {
    let mut rig = Rig::new();
    let is_ready = |rig: &Rig, timeout| {
        let mut fds = [PollFd::new(&rig.events, PollFlags::IN)];
        poll(&mut fds, Some(&timeout)).unwrap() == 1
    };
    assert!(!is_ready(&rig, Timespec { tv_sec: 0, tv_nsec: 0 }));
    rig.runner.launch(command(1, &["no-such-program"]));
    assert!(is_ready(&rig, Timespec { tv_sec: 60, tv_nsec: 0 }));
    assert_eq!(rig.events.wait(Some(Duration::ZERO)).unwrap().unwrap().len(), 1);
    assert!(!is_ready(&rig, Timespec { tv_sec: 0, tv_nsec: 0 }));
    // What is refused before it reaches the guardian shows too.
    rig.runner.launch(command(2, &[]));
    assert!(is_ready(&rig, Timespec { tv_sec: 60, tv_nsec: 0 }));
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
