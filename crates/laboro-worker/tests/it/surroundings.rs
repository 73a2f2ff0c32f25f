//! What a task finds around it: names, environment, directory, descriptors, signals, limits.

use std::ffi::OsString;
use std::fs;
use std::time::{Duration, SystemTime};

use laboro_worker::{Capture, Ending, Launch, Limits, TASK_ID_VAR, WriteMode};

use crate::rig::{Dir, Life, Rig, command, shell};

#[test]
fn names_with_spaces_quotes_and_newlines_arrive_as_they_are() {
    let odd = "a b\n\"c' $(d) \\ \u{e9} *";
    let dir = Dir::new(odd);
    let mut launch = shell(1, "printf '%s|%s|%s' \"$1\" \"$ODD\" \"$(pwd; echo x)\"");
    launch.argv.extend(["sh".into(), OsString::from(odd)]);
    launch.env.push(("ODD".into(), odd.into()));
    launch.dir = Some(dir.0.clone());
    let ended = Rig::new().run(launch);
    let expected = format!("{odd}|{odd}|{}\nx", dir.0.display());
    assert_eq!(ended.text(), expected);
}

#[test]
fn the_environment_is_what_was_given_and_the_mark() {
    let mut launch = command(1, &["env"]);
    launch.env.push(("ONLY".into(), "this".into()));
    launch.env.push((TASK_ID_VAR.into(), "forged".into()));
    let ended = Rig::new().run(launch);
    let mut names: Vec<_> =
        ended.text().lines().map(|line| line.split('=').next().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, [TASK_ID_VAR, "ONLY", "PATH"]);
    assert!(!ended.text().contains("forged"));
}

#[test]
fn the_mark_differs_from_attempt_to_attempt() {
    let mut rig = Rig::new();
    let script = format!("echo ${TASK_ID_VAR}");
    let first = rig.run(shell(1, &script));
    let second = rig.run(shell(1, &script));
    assert_ne!(first.text(), second.text());
}

#[test]
fn arguments_beyond_a_packet_arrive_in_full() {
    let mut launch = shell(1, "shift; printf %s \"$@\" | wc -c");
    launch.argv.push("sh".into());
    launch.argv.push("x".into());
    launch.argv.extend((0..15).map(|_| OsString::from("y".repeat(100_000))));
    assert_eq!(Rig::new().run(launch).text(), "1500000");
}

#[test]
fn the_program_is_found_in_the_tasks_own_path() {
    let dir = Dir::new("path");
    fs::create_dir(dir.at("bin")).unwrap();
    fs::copy("/bin/echo", dir.at("bin/my-echo")).unwrap();
    let mut launch = command(1, &["my-echo", "hello"]);
    launch.env = vec![("PATH".into(), "/nowhere:bin".into())];
    launch.dir = Some(dir.0.clone());
    assert_eq!(Rig::new().run(launch).text(), "hello");
}

#[test]
fn a_task_has_three_descriptors_and_no_more() {
    // One of the test's own that is not closed on exec must not arrive either.
    let leak = fs::File::open("/dev/null").unwrap();
    rustix::io::fcntl_setfd(&leak, rustix::io::FdFlags::empty()).unwrap();
    let mut rig = Rig::new();
    rig.runner.launch(shell(2, "echo here; exec sleep 1000"));
    rig.said(2, 1);
    // The fourth is the directory being listed.
    let ended = rig.run(command(1, &["ls", "/proc/self/fd"]));
    assert_eq!(ended.text(), "0\n1\n2\n3");
}

#[test]
fn no_signal_is_blocked_or_ignored() {
    let ended = Rig::new().run(command(1, &["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]));
    let sets = ended.text().lines().map(|line| line.split_whitespace().nth(1).unwrap());
    let sets: Vec<_> = sets.map(|set| u64::from_str_radix(set, 16).unwrap()).collect();
    // Signals 32 and 33 are the C library's own, and its posix_spawn ignores them.
    let own = 0b11 << 31;
    assert_eq!(sets.iter().map(|set| set & !own).collect::<Vec<_>>(), [0, 0]);
}

#[test]
fn a_task_leads_its_own_group_in_the_session_of_the_guardian_and_its_keeper() {
    let mut rig = Rig::new();
    let ended = rig.run(command(1, &["cat", "/proc/self/stat"]));
    let fields: Vec<_> = ended.text().split(' ').collect();
    let (pid, parent, group, session) = (fields[0], fields[3], fields[4], fields[5]);
    let keeper = Life::of(parent).parent().to_string();
    assert_eq!((group, session), (pid, keeper.as_str()));
    assert_eq!(ended.pid.unwrap().to_string(), pid);
}

#[test]
fn limits_take_effect() {
    let mut rig = Rig::new();
    let limits = Limits {
        open_files: Some(40),
        core_bytes: Some(0),
        address_space_bytes: Some(1 << 30),
        cpu_seconds: Some(500),
        file_size_bytes: Some(4096),
    };
    // They are set just after the start, so the task looks when it is told to.
    rig.runner.launch(Launch {
        limits,
        nice: Some(7),
        ..shell(
            1,
            "trap 'ulimit -n; ulimit -c; ulimit -v; ulimit -t; nice; exit 0' USR1; \
                    echo here; while :; do sleep 0.01; done",
        )
    });
    rig.said(1, 1);
    rig.runner.signal(1, 10);
    let ended = rig.finish(1);
    assert_eq!(ended.text(), "40\n0\n1048576\n500\n7");
    assert_eq!(ended.ending, Ending::Exited(0));
}

#[test]
fn a_umask_is_the_tasks_own_and_holds_for_the_file_of_its_output() {
    let mut rig = Rig::new();
    let dir = tempfile::tempdir().unwrap();
    let mode = |name: &str| {
        let meta = fs::metadata(dir.path().join(name)).unwrap();
        std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o777
    };
    let ours = rig.run(shell(1, "umask"));
    for (id, umask, bits) in [(2, 0o077, 0o600), (3, 0o002, 0o664)] {
        let stdout = Capture::File(format!("out-{id}").into(), WriteMode::Truncate);
        let (umask, dir) = (Some(umask), Some(dir.path().to_owned()));
        rig.run(Launch { umask, stdout, dir, ..shell(id, &format!(": > own-{id}")) });
        assert_eq!(mode(&format!("own-{id}")), bits, "{umask:?}");
        assert_eq!(mode(&format!("out-{id}")), bits, "{umask:?}");
    }
    assert_eq!(rig.run(shell(4, "umask")).text(), ours.text());
}

#[test]
fn the_memory_limit_holds_for_all_that_a_task_forks() {
    let mut rig = Rig::new();
    let limits = Limits { address_space_bytes: Some(1 << 30), ..Limits::default() };
    for id in 1..=20 {
        let line = "(ulimit -v; (ulimit -v) & wait) & wait";
        let ended = rig.run(Launch { limits, ..shell(id, line) });
        assert_eq!(ended.text(), "1048576\n1048576");
    }
    let ended = rig.run(Launch { limits, ..command(21, &["/no/such/program"]) });
    assert!(matches!(ended.ending, Ending::NotStarted { .. }), "{:?}", ended.ending);
}

#[test]
fn a_task_over_its_cpu_limit_is_ended_by_the_system() {
    let limits = Limits { cpu_seconds: Some(1), core_bytes: Some(0), ..Limits::default() };
    let ended = Rig::new().run(Launch { limits, ..shell(1, "while :; do :; done") });
    assert!(matches!(ended.ending, Ending::Signalled(9 | 24)), "{:?}", ended.ending);
    // The limit is checked by ticks of the clock, which need not agree with the time used.
    assert!(ended.usage.user + ended.usage.system >= Duration::from_millis(500));
}

#[test]
fn what_a_task_used_is_plausible() {
    let before = SystemTime::now();
    let script = "import time; b = bytearray(80_000_000); t = time.process_time()\n\
                  while time.process_time() < t + 0.3: pass";
    let ended = Rig::new().run(command(1, &["python3", "-c", script]));
    let usage = ended.usage;
    assert_eq!(ended.ending, Ending::Exited(0));
    assert!(usage.user + usage.system >= Duration::from_millis(250), "{usage:?}");
    assert!(usage.wall >= Duration::from_millis(250), "{usage:?}");
    assert!((80_000..400_000).contains(&usage.max_rss_kib), "{usage:?}");
    assert!(ended.started >= before - Duration::from_millis(10));
    assert!(ended.started + usage.wall <= SystemTime::now() + Duration::from_millis(10));
    let small = Rig::new().run(command(1, &["true"])).usage;
    assert!(small.max_rss_kib < 20_000, "{small:?}");
}
