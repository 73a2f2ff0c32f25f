//! Every way to end, and every way not to begin.

use std::collections::HashSet;
use std::fs;
use std::num::NonZeroUsize;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use laboro_worker::{Ending, Launch, Options, Reason, Runner, RunnerEvent};

use crate::rig::{Dir, Life, Rig, command, options, shell, until};

#[test]
fn an_exit_code_is_told_as_it_is() {
    let mut rig = Rig::new();
    for code in [0, 1, 7, 255] {
        let ended = rig.run(shell(1, &format!("exit {code}"))).ending;
        assert_eq!(ended, Ending::Exited(code));
        assert_eq!(ended.exit_code(), code);
    }
}

#[test]
fn a_signal_is_told_by_its_number() {
    let mut rig = Rig::new();
    for (name, number) in [("KILL", 9), ("SEGV", 11), ("TERM", 15)] {
        let ended = rig.run(shell(1, &format!("kill -{name} $$"))).ending;
        assert_eq!(ended, Ending::Signalled(number));
        assert_eq!(ended.exit_code(), 128 + number);
    }
}

#[test]
fn a_task_over_time_is_told_to_end() {
    let mut rig = Rig::new();
    let timeout = Some(Duration::from_millis(50));
    let ended = rig.run(Launch { timeout, ..command(1, &["sleep", "1000"]) });
    assert_eq!(ended.ending, Ending::TimedOut { killed: false });
    assert_eq!(ended.ending.exit_code(), 124);
    assert!(ended.usage.wall >= Duration::from_millis(50));
}

#[test]
fn one_that_does_not_listen_is_killed_with_its_grandchildren() {
    let mut rig = Rig::new();
    let script = "trap '' TERM; sh -c 'trap \"\" TERM; echo $$; while :; do sleep 1; done' & \
                  wait; while :; do sleep 1; done";
    rig.runner.launch(Launch {
        timeout: Some(Duration::from_millis(100)),
        grace: Duration::from_millis(100),
        ..shell(1, script)
    });
    let grandchild = Life::of(&rig.said(1, 1)[0]);
    assert_eq!(rig.finish(1).ending, Ending::TimedOut { killed: true });
    until("the grandchild is gone", || grandchild.is_over());
}

#[test]
fn a_task_is_stopped_on_request() {
    let mut rig = Rig::new();
    rig.runner.launch(shell(1, "echo here; exec sleep 1000"));
    rig.said(1, 1);
    rig.runner.stop(1, Duration::from_secs(100));
    assert_eq!(rig.finish(1).ending, Ending::Stopped { killed: false });
}

#[test]
fn a_second_stop_kills_at_once() {
    let mut rig = Rig::new();
    rig.runner.launch(shell(1, "trap 'echo heard' TERM; echo here; while :; do sleep 0.01; done"));
    rig.said(1, 1);
    rig.runner.stop(1, Duration::from_secs(1000));
    rig.said(1, 1);
    rig.runner.stop(1, Duration::from_secs(1000));
    assert_eq!(rig.finish(1).ending, Ending::Stopped { killed: true });
}

#[test]
fn a_stop_without_grace_kills() {
    let mut rig = Rig::new();
    rig.runner.launch(shell(1, "trap '' TERM; echo here; while :; do sleep 1; done"));
    rig.said(1, 1);
    rig.runner.stop(1, Duration::ZERO);
    assert_eq!(rig.finish(1).ending, Ending::Stopped { killed: true });
}

/// Whether it waits, is being spawned, or runs: it either never begins or is killed.
#[test]
fn a_stop_reaches_every_launch_still_on_its_way() {
    let mut rig = Rig::new();
    for id in 0..200 {
        rig.runner.launch(shell(id, "trap '' TERM; while :; do sleep 1; done"));
        rig.runner.stop(id, Duration::ZERO);
    }
    let (mut started, mut ended) = (HashSet::new(), HashSet::new());
    while ended.len() < 200 {
        for event in rig.next() {
            match event {
                RunnerEvent::NoRoom { .. } | RunnerEvent::Room => {}
                RunnerEvent::Started { id, .. } => assert!(started.insert(id)),
                RunnerEvent::Output { .. } => panic!("none of them speaks"),
                RunnerEvent::Ended { id, ending, .. } => {
                    let killed = started.contains(&id);
                    assert_eq!(ending, Ending::Stopped { killed });
                    assert!(ended.insert(id));
                }
            }
        }
    }
}

#[test]
fn a_signal_reaches_a_launch_still_on_its_way() {
    let mut rig = Rig::new();
    for id in 0..50 {
        rig.runner.launch(command(id, &["sleep", "1000"]));
        // In another order it would stay as it is for good.
        for signal in [libc::SIGSTOP, libc::SIGCONT, libc::SIGUSR1] {
            rig.runner.signal(id, signal);
        }
    }
    let mut ended = 0;
    while ended < 50 {
        for event in rig.next() {
            if let RunnerEvent::Ended { ending, .. } = event {
                assert_eq!(ending, Ending::Signalled(libc::SIGUSR1));
                ended += 1;
            }
        }
    }
}

#[test]
fn a_signal_reaches_a_launch_that_waits_for_room() {
    let (runner, events) =
        Runner::start(Options { at_once: NonZeroUsize::new(2), ..options() }).unwrap();
    let mut rig = Rig { runner, events };
    for id in 0..8 {
        rig.runner.launch(command(id, &["sleep", "1000"]));
    }
    // Those that have room die of it, and so do those that take it then, each in its turn.
    for id in 0..6 {
        rig.runner.signal(id, libc::SIGUSR1);
    }
    for id in 0..8 {
        rig.runner.signal(id, libc::SIGUSR2);
    }
    let mut endings: [Option<i32>; 8] = [None; 8];
    while endings.contains(&None) {
        for event in rig.next() {
            if let RunnerEvent::Ended { id, ending: Ending::Signalled(signal), .. } = event {
                endings[id as usize] = Some(signal);
            }
        }
    }
    assert_eq!(endings[5], Some(libc::SIGUSR1), "both were sent; the lower number comes first");
    assert_eq!(endings[6..], [Some(libc::SIGUSR2); 2], "the others had no other");
}

#[test]
fn the_work_behind_a_shell_has_the_grace_too() {
    let mut rig = Rig::new();
    // The shell dies of the signal; what it started takes its time to save its work.
    let work = "trap 'sleep 0.3; echo saved; exit 0' TERM; echo here; while :; do sleep 0.01; done";
    rig.runner.launch(shell(1, &format!("sh -c \"{work}\" & wait")));
    rig.said(1, 1);
    rig.runner.stop(1, Duration::from_secs(50));
    let ended = rig.finish(1);
    assert_eq!(ended.text(), "saved");
    assert_eq!(ended.ending, Ending::Stopped { killed: false });
}

#[test]
fn a_task_that_stopped_itself_still_hears_that_it_shall_end() {
    let mut rig = Rig::new();
    rig.runner.launch(shell(1, "echo here; kill -STOP $$"));
    rig.said(1, 1);
    rig.runner.stop(1, Duration::from_secs(100));
    assert_eq!(rig.finish(1).ending, Ending::Stopped { killed: false });
}

#[test]
fn all_can_be_stopped_together() {
    let mut rig = Rig::new();
    for id in 1..=3 {
        rig.runner.launch(shell(id, "echo here; while :; do sleep 0.01; done"));
        rig.said(id, 1);
    }
    rig.runner.stop_all(Duration::from_secs(100));
    let mut left = 3;
    while left > 0 {
        for event in rig.next() {
            if let RunnerEvent::Ended { ending, .. } = event {
                assert_eq!(ending, Ending::Stopped { killed: false });
                left -= 1;
            }
        }
    }
}

fn refused(launch: Launch) -> (Reason, String, i32) {
    let ended = Rig::new().run(launch);
    assert_eq!(ended.pid, None);
    let code = ended.ending.exit_code();
    match ended.ending {
        Ending::NotStarted { reason, message } => (reason, message, code),
        other => panic!("it should not have started: {other:?}"),
    }
}

#[test]
fn a_missing_program_is_named_with_the_path_it_was_sought_in() {
    let mut launch = command(1, &["no-such-program"]);
    launch.env = vec![("PATH".into(), "/bin:/nowhere".into())];
    let (reason, message, code) = refused(launch);
    assert_eq!((reason, code), (Reason::ProgramMissing, 127));
    assert_eq!(message, "program no-such-program not found in PATH /bin:/nowhere");
    let (_, message, _) = refused(command(1, &["/no/such"]));
    assert_eq!(message, "program /no/such not found");
}

#[test]
fn a_file_that_may_not_be_executed_is_said_so() {
    let dir = Dir::new("mode");
    fs::write(dir.at("plain"), "echo hello").unwrap();
    fs::set_permissions(dir.at("plain"), fs::Permissions::from_mode(0o644)).unwrap();
    let (reason, message, code) =
        refused(Launch { dir: Some(dir.0.clone()), ..command(1, &["./plain"]) });
    assert_eq!((reason, code), (Reason::NotExecutable, 126));
    assert_eq!(message, "program ./plain is not executable (mode 644): chmod +x it");
    let (_, message, _) = refused(command(1, &["/tmp"]));
    assert_eq!(message, "program /tmp is a directory");
}

#[test]
fn a_script_without_first_line_is_run_by_the_shell() {
    let dir = Dir::new("plain-script");
    fs::write(dir.at("script"), "echo $0 $1").unwrap();
    fs::set_permissions(dir.at("script"), fs::Permissions::from_mode(0o755)).unwrap();
    let ended =
        Rig::new().run(Launch { dir: Some(dir.0.clone()), ..command(1, &["./script", "x"]) });
    assert_eq!(ended.text(), "./script x");
}

#[test]
fn a_missing_interpreter_or_directory_is_not_taken_for_a_missing_program() {
    let dir = Dir::new("interpreter");
    fs::write(dir.at("script"), "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(dir.at("script"), fs::Permissions::from_mode(0o755)).unwrap();
    let (_, message, _) = refused(Launch { dir: Some(dir.0.clone()), ..command(1, &["./script"]) });
    assert_eq!(message, "program ./script is there, but the interpreter it names is not");
    let (reason, message, _) =
        refused(Launch { dir: Some("/no/such/dir".into()), ..command(1, &["true"]) });
    assert_eq!(reason, Reason::Directory);
    assert_eq!(message, "directory /no/such/dir: no such file or directory");
}

#[test]
fn what_exec_cannot_take_is_refused() {
    let long = "x".repeat(200_000);
    assert_eq!(refused(command(1, &["true", &long])).0, Reason::TooLarge);
    let endless = "x".repeat(9 << 20);
    assert_eq!(refused(command(1, &["true", &endless])).0, Reason::TooLarge);
    assert_eq!(refused(command(1, &["true", "a\0b"])).0, Reason::Invalid);
    assert_eq!(refused(command(1, &[])).0, Reason::Invalid);
    assert_eq!(refused(command(1, &[""])).0, Reason::ProgramMissing);
    let mut launch = command(1, &["true"]);
    launch.env.push(("a=b".into(), "c".into()));
    assert_eq!(refused(launch).0, Reason::Invalid);
}

#[test]
fn an_id_still_running_is_refused_and_free_again_after() {
    let mut rig = Rig::new();
    rig.runner.launch(shell(1, "echo here; exec sleep 1000"));
    rig.said(1, 1);
    let ended = rig.run(command(1, &["true"]));
    assert!(matches!(ended.ending, Ending::NotStarted { reason: Reason::Invalid, .. }));
    rig.runner.stop(1, Duration::ZERO);
    rig.finish(1);
    assert_eq!(rig.run(command(1, &["true"])).ending, Ending::Exited(0));
}
