//! `laboro runexp manage` and `laboro worker --from runexp://…`, against each other and against a runner and a
//! manager of other hands, which take one read for one message.

mod dashboard;
mod door;
mod hostile;
mod lost;
mod runner;

use crate::rig::{Live, Rig, until};
use rustix::process::Signal;
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

impl Rig {
    fn manage(&self, arguments: &[&str]) -> Live {
        let call = self.laboro([&["runexp", "manage", "."], arguments].concat());
        call.env("HOME", self.dir().to_str().unwrap()).start()
    }

    fn other(&self, program: &str, arguments: &[&str]) -> Live {
        let mut command = Command::new("python3");
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/runexp/");
        command.arg(format!("{dir}{program}")).args(arguments);
        self.call(command).start()
    }

    fn runner(&self, port: &str, slots: &str) -> Live {
        let from = format!("runexp://127.0.0.1:{port}");
        self.laboro(["worker", "--from", &from, "-j", slots, "--name", "r1"]).start()
    }
}

/// Where it listens, as it says itself.
fn port(manager: &Live) -> String {
    let found = || {
        let said = manager.err();
        let after = said.split("runexp on 127.0.0.1:").nth(1)?;
        after.contains(',').then(|| after.split(',').next().unwrap().to_owned())
    };
    until("the manager listens", || found().is_some());
    found().unwrap()
}

fn scripts(rig: &Rig) {
    rig.write("runs/first.sh", "echo one; echo RES:ok\n");
    rig.write("runs/deep/second one.sh", "echo two; echo RES: fine; echo wrong >&2; exit 3\n");
    rig.write("runs/deep/x .sh 5.sh", "head -c 300000 /dev/zero | tr '\\0' x; echo; echo RES:ok\n");
    rig.write("runs/empty.sh", "");
    rig.write("runs/notes.txt", "no script\n");
}

/// What every manager makes of these scripts.
fn check_results(rig: &Rig, host: &str) {
    let first = rig.read("outputs/first.res");
    assert!(first.starts_with("runexp summary: success\n\n"), "{first}");
    assert!(first.contains(&format!(" -- [{host}] Running first\n> bash")), "{first}");
    assert!(
        first.contains("Program exited with status 0\nProgram output follows\n\none\nRES:ok\n")
    );
    let second = rig.read("outputs/deep/second one.res");
    assert!(second.contains("status 768\nProgram output follows\n\ntwo\nRES: fine\n"), "{second}");
    assert!(rig.read("outputs/deep/x .sh 5.res").len() > 300_000);
    assert!(rig.read("outputs/empty.res").starts_with("runexp summary: failure\n"));
    let table = "deep/second one\n1\ndeep/x .sh 5\n1\nempty\n0\nfirst\n1\n";
    assert_eq!(rig.read("outputs/runexp.am"), table);
    assert_eq!(drafts(rig), 0);
}

fn drafts(rig: &Rig) -> usize {
    let drafts = std::fs::read_dir(rig.at("outputs")).unwrap();
    let drafts = drafts
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().ends_with(".new"));
    drafts.count()
}

#[test]
fn our_runner_runs_what_our_manager_has() {
    let rig = Rig::new();
    scripts(&rig);
    let manager = rig.manage(&["--shownames", "--progress"]);
    let runner = rig.runner(&port(&manager), "2").wait();
    assert!(!runner.expect(0).err().contains("cgroup"), "jobs have no limits: {}", runner.err());
    manager.wait().expect(1).says("3 done, 1 failed").says("success deep/second one");
    check_results(&rig, "r1");
    assert!(rig.read("outputs/deep/second one.res").ends_with("RES: fine\nwrong\n"));
}

#[test]
fn a_runner_of_other_hands_works_for_our_manager() {
    let rig = Rig::new();
    scripts(&rig);
    let manager = rig.manage(&["--group", "exp-7"]);
    let port = port(&manager);
    let stranger = rig.other("runner.py", &[&port, "1", "py"]).wait();
    stranger.expect(4);
    rig.other("runner.py", &[&port, "3", "py", "exp-7"]).wait().expect(0);
    manager.wait().expect(1);
    check_results(&rig, "py");
}

#[test]
fn our_runner_works_for_a_manager_of_other_hands() {
    let rig = Rig::new();
    let jobs =
        ["echo RES:ok", "", "echo a; echo b >&2; exit 3", "head -c 100000 /dev/zero; echo RES:x"];
    let manager = rig.other("manager.py", &jobs);
    until("it listens", || manager.out().ends_with('\n'));
    let runner = rig.runner(manager.out().trim(), "3");
    runner.wait().expect(0);
    let ran = manager.wait();
    let mut lines: Vec<String> = ran.expect(0).out().lines().skip(1).map(str::to_owned).collect();
    assert_eq!(lines.pop().as_deref(), Some("OK"));
    lines.sort();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[0], "job 1 success b'RES:ok\\n' 7");
    assert_eq!(lines[1], "job 2 failure b'' 0");
    assert_eq!(lines[2], "job 3 failure b'a\\nb\\n' 4");
    assert!(
        lines[3].starts_with("job 4 success ") && lines[3].ends_with(" 100006"),
        "{}",
        lines[3]
    );
}

#[test]
fn a_manager_goes_on_from_the_files_alone() {
    let rig = Rig::new();
    for name in ["a", "b", "c", "d", "e"] {
        rig.write(&format!("runs/{name}.sh"), format!("echo {name} >> ran; echo RES:ok\n"));
    }
    rig.write("outputs/a.res", "runexp summary: success\n");
    rig.write("outputs/b.res", "whatever\nRES:done\n");
    rig.write("outputs/c.res", "runexp summary: success\n");
    rig.write("outputs/runexp.am", "c\n0\nd\n1\n");
    let list = rig.laboro(["runexp", "manage", ".", "--print-jobs"]).run();
    assert_eq!(list.expect(0).out(), "c\nd\ne\n", "c failed, d has no result");
    let manager = rig.manage(&[]);
    rig.runner(&port(&manager), "1").wait().expect(0);
    manager.wait().expect(0);
    assert_eq!(rig.read("ran"), "c\nd\ne\n");
    rig.manage(&[]).wait().expect(0).says("all 5 are done");
}

/// What a manager leaves that is killed between making the file of a result and filling it.
#[test]
fn an_empty_result_is_none() {
    let rig = Rig::new();
    for name in ["new", "tried"] {
        rig.write(&format!("runs/{name}.sh"), "echo RES:ok\n");
        rig.write(&format!("outputs/{name}.res"), "");
    }
    rig.write("outputs/runexp.am", "tried\n0\n");
    let list = rig.laboro(["runexp", "manage", ".", "--print-jobs"]).run();
    assert_eq!(list.expect(0).out(), "new\ntried\n");
}

#[test]
fn what_a_table_says_of_a_result_that_is_gone_is_forgotten() {
    let rig = Rig::new();
    rig.write("runs/a.sh", "echo RES:ok\n");
    rig.write("runs/b.sh", "echo RES:ok\n");
    rig.write("outputs/b.res", "runexp summary: failure\n");
    rig.write("outputs/runexp.am", "a\n1\nb\n0\n");
    let manager = rig.manage(&[]);
    port(&manager);
    assert_eq!(rig.read("outputs/runexp.am"), "b\n0\n", "a half-made a.res must not be good");
    manager.signal(Signal::TERM);
    manager.wait().expect(130);
}

#[test]
fn to_list_what_is_left_changes_nothing_and_follows_links() {
    let rig = Rig::new();
    for name in ["a", "linked", "deep/b"] {
        rig.write(&format!("runs/{name}.sh"), "echo RES:ok\n");
    }
    let list = || {
        let list = rig.laboro(["runexp", "manage", ".", "--print-jobs"]).run();
        list.expect(0).out().to_owned()
    };
    assert_eq!(list(), "a\ndeep/b\nlinked\n");
    assert!(!rig.at("outputs").exists());
    rig.write("elsewhere/b.res", "runexp summary: success\n");
    rig.write("outputs/other", "");
    std::os::unix::fs::symlink("../elsewhere", rig.at("outputs/deep")).unwrap();
    std::os::unix::fs::symlink("../elsewhere/b.res", rig.at("outputs/linked.res")).unwrap();
    assert_eq!(list(), "a\n");
}

/// A runner that was not told before the manager was killed tells its result again.
#[test]
fn a_result_that_is_known_already_is_taken_again() {
    let rig = Rig::new();
    rig.write("runs/a.sh", "echo RES:ok\n");
    rig.write("runs/b.sh", "echo RES:ok\n");
    rig.write("outputs/a.res", "runexp summary: success\n\nas it was\n");
    rig.write("outputs/runexp.am", "a\n1\n");
    let manager = rig.manage(&[]);
    let mut runner = TcpStream::connect(format!("127.0.0.1:{}", port(&manager))).unwrap();
    let words = [
        ("SALUTON; MI r1", "VERSIO 1.3"),
        ("KOMPRENAS", "ALIGI __defaulte__"),
        ("JESREZULTO a success 4", "PRETA"),
        ("what", "RICEVIS"),
    ];
    for (said, answer) in words {
        runner.write_all(said.as_bytes()).unwrap();
        let mut heard = vec![0; answer.len()];
        runner.read_exact(&mut heard).unwrap();
        assert_eq!(heard, answer.as_bytes());
    }
    runner.write_all(b"FINO ANKAU").unwrap();
    rig.runner(&port(&manager), "1").wait().expect(0);
    manager.wait().expect(0).says("1 done, 0 failed");
    assert_eq!(rig.read("outputs/a.res"), "runexp summary: success\n\nas it was\n");
}

#[test]
fn a_group_is_what_it_is_called() {
    let rig = Rig::new();
    rig.write("runs/a.sh", "echo RES:ok\n");
    let manager = rig.manage(&["--group", "default"]);
    let from = format!("runexp://127.0.0.1:{}", port(&manager));
    let runner = |group: &[&str]| rig.laboro([&["worker", "--from", &from], group].concat()).run();
    runner(&[]).expect(3).says("the manager's group is default, this runner's __defaulte__");
    runner(&["--group", "default"]).expect(0);
    manager.wait().expect(0);
}

/// Short ones are written at once, long ones by way of a draft.
#[test]
fn results_of_any_length_are_kept_whole() {
    let rig = Rig::new();
    for length in (3700..4200).step_by(100).chain([0, 9000]) {
        let script = format!("head -c {length} /dev/zero | tr '\\0' x; echo; echo RES:ok\n");
        rig.write(&format!("runs/{length}.sh"), script);
    }
    let manager = rig.manage(&[]);
    rig.runner(&port(&manager), "2").wait().expect(0);
    manager.wait().expect(0);
    for length in (3700..4200).step_by(100).chain([0, 9000]) {
        let result = rig.read(&format!("outputs/{length}.res"));
        let printed = format!("Program output follows\n\n{}\nRES:ok\n", "x".repeat(length));
        assert!(result.starts_with("runexp summary: success\n") && result.ends_with(&printed));
    }
    assert_eq!(drafts(&rig), 0);
}

#[test]
fn results_do_not_get_into_each_others_way() {
    let rig = Rig::new();
    for name in ["a", "a.res/b", "runexp.am/deep/c", "fine/d"] {
        rig.write(&format!("runs/{name}.sh"), "echo RES:ok\n");
    }
    for command in [&["runexp", "manage", "."][..], &["run", "--runs", "runs"]] {
        let refused = rig.laboro(command).run();
        let refused = refused.expect(2);
        refused.says("a.res/b: its result would lie below `a.res`, which is a file");
        refused.says("runexp.am/deep/c: its result would lie below `runexp.am`");
    }
    // A hub keeps no such files.
    rig.laboro(["submit", "--check", "--runs", "runs"]).run().expect(0);
}

#[test]
fn a_killed_manager_loses_nothing_that_it_received() {
    let rig = Rig::new();
    rig.write("runs/a.sh", "echo a >> ran; echo RES:ok\n");
    rig.write("runs/b.sh", "echo b >> ran; until [ -e go ]; do sleep 0.01; done; echo RES:ok\n");
    let manager = rig.manage(&[]);
    let port = port(&manager);
    let runner = rig.other("runner.py", &[&port, "1", "py"]);
    until("the second one runs", || rig.read("ran") == "a\nb\n");
    assert_eq!(rig.read("outputs/runexp.am"), "a\n1\n", "in time, not only at the end");
    manager.signal(Signal::KILL);
    drop(manager);
    drop(runner);
    rig.write("outputs/.runexp-draft-7.new", "half of a result");
    rig.write("go", "");
    let manager = rig.manage(&[]);
    rig.runner(&crate::runexp::port(&manager), "2").wait().expect(0);
    manager.wait().expect(0);
    assert_eq!(rig.read("ran"), "a\nb\nb\n");
    assert_eq!(drafts(&rig), 0);
}

#[test]
fn retries_and_exit_codes_as_told() {
    let rig = Rig::new();
    rig.write("runs/a.sh", "echo x >> tries; [ $(wc -l < tries) = 3 ]\n");
    let manager = rig.manage(&["--retries", "2", "--success", "exit-code"]);
    rig.runner(&port(&manager), "1").wait().expect(0);
    manager.wait().expect(0);
    assert_eq!(rig.read("tries"), "x\nx\nx\n");
}

#[test]
fn with_ban_a_bad_runner_is_sent_away() {
    let rig = Rig::new();
    for number in 10..30 {
        rig.write(&format!("runs/{number}.sh"), "echo RES:failed\n");
    }
    let manager = rig.manage(&["--ban"]);
    let port = port(&manager);
    let ran = rig.runner(&port, "1").wait();
    ran.expect(3).says("ejected");
    manager.signal(Signal::INT);
    manager.wait().expect(130).says("runner r1@127.0.0.1 is ejected: too many of its jobs failed");
    assert_eq!(rig.lines("outputs/runexp.am").len(), 20);
}

#[test]
fn names_that_collide_or_are_too_long_are_refused() {
    let rig = Rig::new();
    rig.write("runs/a.sh", "");
    rig.write("runs/a.m", "");
    let ran = rig.manage(&[]).wait();
    ran.expect(2).says("would both be the task");
    let rig = Rig::new();
    rig.write(&format!("runs/{}.sh", "x".repeat(252)), "");
    rig.manage(&[]).wait().expect(2).says("its result would have a name of 256 bytes");
}

#[test]
fn one_manager_at_a_time_writes_to_a_directory() {
    let rig = Rig::new();
    rig.write("runs/a.sh", "echo RES:ok\n");
    let first = rig.manage(&[]);
    port(&first);
    rig.manage(&[]).wait().expect(3).says("is in use by another manager");
    rig.laboro(["runexp", "manage", ".", "--print-jobs"]).run().expect(0);
    first.signal(Signal::TERM);
    first.wait().expect(130);
}

#[test]
fn a_stopped_manager_goes_on_with_what_its_runners_still_have() {
    let rig = Rig::new();
    rig.write("runs/a.sh", "echo a >> ran; until [ -e go ]; do sleep 0.01; done; echo RES:ok\n");
    rig.write("runs/b.sh", "echo b >> ran; echo RES:ok\n");
    let manager = rig.manage(&[]);
    let port = port(&manager);
    let runner = rig.runner(&port, "1");
    until("the first one runs", || rig.read("ran") == "a\n");
    manager.signal(Signal::TERM);
    manager.wait().expect(130);
    let manager = rig.manage(&["--port", &port]);
    crate::runexp::port(&manager);
    until("the runner is back", || runner.err().matches("connected as").count() == 2);
    rig.write("go", "");
    runner.wait().expect(0);
    manager.wait().expect(0);
    assert_eq!(rig.read("ran"), "a\nb\n", "what was given out by a manager that is gone counts");
    assert!(rig.read("outputs/a.res").contains("[r1] Running a"));
    assert!(rig.read("outputs/b.res").contains("[r1] Running b"));
}

#[test]
fn folders_and_port_are_where_one_says() {
    let rig = Rig::new();
    rig.write("elsewhere/x.sh", "echo RES:ok\n");
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    rig.write(".runexp", format!("port={free}\nqmanager=127.0.0.1\nhostname=node.of.mine\n"));
    let manager = rig.manage(&["--runs", "elsewhere", "--outputs", "res/deep", "--sort"]);
    assert_eq!(port(&manager), free.to_string());
    let runner = rig.laboro(["worker", "--from", "runexp://", "-j", "1"]);
    runner.env("HOME", rig.dir().to_str().unwrap()).run().expect(0);
    manager.wait().expect(0);
    assert!(rig.read("res/deep/x.res").contains("[node] Running x"));
    assert_eq!(rig.read("res/deep/runexp.am"), "x\n1\n");
    rig.write(".runexp", "port=7001\nqmanager\n");
    let ran = rig.manage(&["--runs", "elsewhere"]).wait();
    ran.expect(2).says(".runexp: line 2: `qmanager` is not a setting");
}

#[test]
fn scripts_go_out_in_the_order_of_their_names() {
    let rig = Rig::new();
    for name in ["b", "a/z", "a/b/c", "a.x", "B", "10", "9"] {
        rig.write(&format!("runs/{name}.sh"), format!("echo {name} >> ran; echo RES:ok\n"));
    }
    let sorted = ["10", "9", "B", "a.x", "a/b/c", "a/z", "b"];
    let manage = ["runexp", "manage", ".", "--sort", "--print-jobs"];
    assert_eq!(rig.laboro(manage).run().expect(0).out().lines().collect::<Vec<_>>(), sorted);
    let manager = rig.manage(&["--sort"]);
    rig.runner(&port(&manager), "1").wait().expect(0);
    manager.wait().expect(0);
    assert_eq!(rig.lines("ran"), sorted);
}

#[test]
fn without_ban_a_bad_runner_stays_and_names_are_said_when_wanted_only() {
    let rig = Rig::new();
    for number in 10..25 {
        rig.write(&format!("runs/{number}.sh"), "echo RES:failed\n");
    }
    let manager = rig.manage(&[]);
    rig.runner(&port(&manager), "1").wait().expect(0);
    let ran = manager.wait();
    ran.expect(1).says("0 done, 15 failed");
    assert!(!ran.err().contains("failure 10"), "{}", ran.err());
    assert!(!ran.err().contains("15/15"), "no bar: {}", ran.err());
}

#[test]
fn folders_are_below_the_base_directory_unless_they_are_whole_paths() {
    let rig = Rig::new();
    rig.write("exp/jobs/a.sh", "");
    rig.write("elsewhere/b.sh", "");
    let list = |runs: &str| {
        let manage = ["runexp", "manage", "exp", "--outputs", "res/deep", "--print-jobs", "--runs"];
        rig.laboro([&manage[..], &[runs]].concat()).run().expect(0).out().to_owned()
    };
    assert_eq!(list("jobs"), "a\n");
    assert_eq!(list(rig.at("elsewhere").to_str().unwrap()), "b\n");
    rig.write("exp/res/deep/a.res", "runexp summary: success\n");
    assert_eq!(list("jobs"), "");
}

#[test]
fn names_are_bytes_as_those_of_files_are() {
    let rig = Rig::new();
    let path = |bytes: &[u8]| rig.dir().join(OsStr::from_bytes(bytes));
    rig.write("runs/b.sh", "echo RES:ok\n");
    rig.write("outputs/b.res", "runexp summary: success\n");
    std::fs::write(path(b"runs/caf\xe9.sh"), "echo RES:ok\n").unwrap();
    std::fs::write(path(b"outputs/runexp.am"), b"b\n0\ncaf\xe9\n0\n").unwrap();
    let list = rig.laboro(["runexp", "manage", ".", "--print-jobs"]).run();
    assert_eq!(list.expect(0).out(), "b\ncaf\u{fffd}\n", "as the table says");
    let manager = rig.manage(&["--shownames"]);
    rig.runner(&port(&manager), "1").wait().expect(0);
    manager.wait().expect(0).says("success caf\u{fffd}");
    assert_eq!(std::fs::read(path(b"outputs/runexp.am")).unwrap(), b"b\n1\ncaf\xe9\n1\n");
    let result = std::fs::read(path(b"outputs/caf\xe9.res")).unwrap();
    assert!(result.starts_with(b"runexp summary: success\n"));
    rig.manage(&[]).wait().expect(0).says("all 2 are done");
}

#[test]
fn names_with_control_characters_are_harmless_on_a_terminal_and_whole_in_a_pipe() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use std::io::{BufRead, BufReader};
    let rig = Rig::new();
    rig.write("runs/a\u{1b}]0;b\u{7}.sh", "true\n");
    let piped = rig.laboro(["runexp", "manage", ".", "--print-jobs"]).run();
    assert_eq!(piped.expect(0).out(), "a\u{1b}]0;b\u{7}\n");

    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let path = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
    let theirs = std::fs::File::options().read(true).write(true).open(path).unwrap();
    let mut manage = Command::new(env!("CARGO_BIN_EXE_laboro"));
    manage.args(["runexp", "manage", ".", "--print-jobs"]).current_dir(rig.at(""));
    let mut manage = manage.stdout(theirs.try_clone().unwrap()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(std::fs::File::from(ours)).read_line(&mut line).unwrap();
    assert!(manage.wait().unwrap().success());
    assert_eq!(line.trim_end(), r"a\u{1b}]0;b\u{7}");
}
