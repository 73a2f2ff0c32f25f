//! Many launches, and how a runner begins and ends.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::num::NonZeroUsize;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use laboro_worker::{Ending, Launch, Options, Reason, Runner, RunnerError, RunnerEvent};

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
                RunnerEvent::NoRoom { .. } | RunnerEvent::Room => {}
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

/// The threads that spawn get a turn only when nobody else wants one, so many a task has ended
/// before they can say that it has begun.
#[test]
fn a_task_that_ends_before_its_spawner_has_said_so_is_not_lost() {
    let mut rig = Rig::new();
    let guardian = rig.run(shell(0, "echo $PPID")).text().to_owned();
    hold_back_spawners(&guardian);
    let cores = std::thread::available_parallelism().unwrap().get() as u64;
    let busy = 1..=cores;
    for id in busy.clone() {
        rig.runner.launch(shell(id, "while :; do :; done"));
    }
    let short = 100..300;
    for id in short.clone() {
        rig.runner.launch(shell(id, &format!("echo {id}; exit {}", id % 200)));
    }
    let (mut started, mut said) = (HashSet::new(), HashMap::new());
    let mut ended = HashMap::new();
    while ended.len() < 200 + cores as usize {
        if ended.len() == 200 {
            for id in busy.clone() {
                rig.runner.stop(id, Duration::ZERO);
            }
        }
        for event in rig.next() {
            match event {
                RunnerEvent::NoRoom { .. } | RunnerEvent::Room => {}
                RunnerEvent::Started { id, .. } => assert!(started.insert(id)),
                RunnerEvent::Output { id, bytes, .. } => {
                    assert!(started.contains(&id));
                    assert!(said.insert(id, bytes).is_none());
                }
                RunnerEvent::Ended { id, ending, .. } => {
                    assert!(started.contains(&id));
                    assert!(ended.insert(id, ending).is_none());
                }
            }
        }
    }
    for id in short {
        assert_eq!(ended[&id], Ending::Exited((id % 200) as i32));
        assert_eq!(said[&id], format!("{id}\n").into_bytes());
    }
}

fn hold_back_spawners(guardian: &str) {
    let mut found = 0;
    for thread in fs::read_dir(format!("/proc/{guardian}/task")).unwrap() {
        let thread = thread.unwrap();
        if fs::read_to_string(thread.path().join("comm")).unwrap() == "task-spawner\n" {
            let tid = thread.file_name().to_str().unwrap().parse().unwrap();
            // SAFETY: sched_param is plain data.
            let none: libc::sched_param = unsafe { std::mem::zeroed() };
            let policy = libc::SCHED_IDLE | libc::SCHED_RESET_ON_FORK;
            // SAFETY: the pointer is to a live value.
            assert_eq!(unsafe { libc::sched_setscheduler(tid, policy, &raw const none) }, 0);
            found += 1;
        }
    }
    assert!(found > 0, "guardian {guardian} has no spawners");
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
    let (mut begun, mut stopped) = (Vec::new(), Vec::new());
    while begun.len() + stopped.len() < 20 {
        for event in rig.next() {
            match event {
                RunnerEvent::NoRoom { .. } | RunnerEvent::Room => {}
                RunnerEvent::Started { id, .. } => assert!(![3, 19].contains(&id)),
                RunnerEvent::Output { bytes, .. } => assert!(matches!(&*bytes, b"1\n" | b"2\n")),
                RunnerEvent::Ended { id, ending: Ending::Exited(0), started, .. } => {
                    begun.push((started, id));
                }
                RunnerEvent::Ended { id, ending, .. } => {
                    assert_eq!(ending, Ending::Stopped { killed: false });
                    stopped.push(id);
                }
            }
        }
    }
    stopped.sort_unstable();
    assert_eq!(stopped, [3, 19]);
    // Two that begin at once may be told of in any order, but each began in its turn.
    begun.sort_unstable();
    let begun: Vec<u64> = begun.into_iter().map(|(_, id)| id).collect();
    assert_eq!(begun, (0..19).filter(|&id| id != 3).collect::<Vec<_>>());
}

#[test]
fn a_launch_that_waits_for_the_grace_of_another_begins_after_it() {
    let at_once = NonZeroUsize::new(1);
    let (runner, events) = Runner::start(Options { at_once, ..options() }).unwrap();
    let mut rig = Rig { runner, events };
    assert_eq!(rig.run(shell(1, "true")).ending, Ending::Exited(0));
    // Its process is gone at once; what it started has the room for a while yet.
    let work = "trap 'sleep 0.3; exit 0' TERM; echo here; while :; do sleep 0.01; done";
    rig.runner.launch(shell(2, &format!("sh -c \"{work}\" & wait")));
    rig.said(2, 1);
    rig.runner.launch(shell(3, "echo after"));
    rig.runner.stop(2, Duration::from_secs(50));
    assert_eq!(rig.finish(3).text(), "after");
    // Whoever listens hears more than launches.
    rig.runner.launch(shell(4, "echo here; exec sleep 100"));
    rig.said(4, 1);
    rig.runner.stop(4, Duration::from_secs(50));
    assert_eq!(rig.finish(4).ending, Ending::Stopped { killed: false });
}

#[test]
fn a_stop_right_behind_its_launch_is_heard_after_it_whoever_hears_them() {
    let at_once = NonZeroUsize::new(8);
    let (runner, events) = Runner::start(Options { at_once, ..options() }).unwrap();
    let mut rig = Rig { runner, events };
    for round in 0..50 {
        // Eight threads have nothing to do and hear sixteen requests.
        for id in round * 8..round * 8 + 8 {
            rig.runner.launch(shell(id, "exec sleep 100"));
            rig.runner.stop(id, Duration::from_secs(50));
        }
        let mut ended = 0;
        while ended < 8 {
            for event in rig.next() {
                if let RunnerEvent::Ended { ending, .. } = event {
                    assert_eq!(ending, Ending::Stopped { killed: false });
                    ended += 1;
                }
            }
        }
    }
}

#[test]
fn a_program_that_was_there_a_moment_ago_is_missed_by_name() {
    let mut rig = Rig::new();
    let dir = Dir::new("gone");
    fs::write(dir.at("tool"), "#!/bin/sh\necho mine\n").unwrap();
    fs::set_permissions(dir.at("tool"), fs::Permissions::from_mode(0o700)).unwrap();
    let launch = |id| {
        let path = format!("/nowhere:{}:/usr/bin:/bin", dir.0.display());
        Launch { env: vec![("PATH".into(), path.into())], ..command(id, &["tool"]) }
    };
    assert_eq!(rig.run(launch(1)).text(), "mine");
    fs::remove_file(dir.at("tool")).unwrap();
    let Ending::NotStarted { reason, message } = rig.run(launch(2)).ending else {
        panic!("there is no such program");
    };
    assert_eq!(reason, Reason::ProgramMissing);
    assert!(message.contains("tool not found in PATH"), "{message}");
}

#[test]
fn recalled_launches_never_begin_and_what_runs_goes_on() {
    let at_once = NonZeroUsize::new(2);
    let (runner, events) = Runner::start(Options { at_once, ..options() }).unwrap();
    let mut rig = Rig { runner, events };
    let dir = Dir::new("recall");
    for id in 0..10 {
        let script = "touch $$.here; until [ -e go ]; do sleep 0.01; done";
        rig.runner.launch(Launch { dir: Some(dir.0.clone()), ..shell(id, script) });
    }
    let (mut begun, mut recalled, mut ended) = (Vec::new(), Vec::new(), Vec::new());
    while ended.len() < 2 {
        for event in rig.next() {
            match event {
                RunnerEvent::NoRoom { .. } | RunnerEvent::Room => {}
                RunnerEvent::Started { id, .. } => begun.push(id),
                RunnerEvent::Ended { id, ending: Ending::Stopped { killed: false }, .. } => {
                    recalled.push(id);
                }
                RunnerEvent::Ended { id, ending, .. } => {
                    assert_eq!(ending, Ending::Exited(0));
                    ended.push(id);
                }
                RunnerEvent::Output { .. } => panic!("they print nothing"),
            }
        }
        if begun.len() == 2 && recalled.is_empty() {
            rig.runner.recall();
        }
        if recalled.len() == 8 {
            fs::write(dir.0.join("go"), "").unwrap();
        }
    }
    recalled.sort_unstable();
    assert_eq!(recalled, (2..10).collect::<Vec<_>>());
    begun.sort_unstable();
    assert_eq!(begun, [0, 1]);
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
    assert!(words.contains("__guardian is for internal use"), "{words}");
}
