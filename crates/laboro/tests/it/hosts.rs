//! `laboro run --sshlogin`: the same run over other machines. One stand-in for `ssh` stays on this machine and is a
//! shell; where sshd is installed, a real one listens on 127.0.0.1.

use crate::rig::{LABORO, Live, Ran, Rig, not_tried, until};
use crate::workers::SSH;
use rustix::process::Signal;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

fn program(rig: &Rig, name: &str, text: &str) {
    rig.write(name, text);
    std::fs::set_permissions(rig.at(name), std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn start(rig: &Rig, hosts: &str, words: &[&str]) -> Live {
    let path = format!("{}:{}", rig.at("bin").display(), std::env::var("PATH").unwrap());
    let own = ["run", "--sshlogin", hosts, "--remote-laboro", LABORO];
    rig.laboro(own.iter().chain(words)).env("PATH", &path).start()
}

fn run(rig: &Rig, hosts: &str, words: &[&str]) -> Ran {
    start(rig, hosts, words).wait()
}

#[test]
fn tasks_run_on_every_host_and_their_output_comes_back_in_order() {
    let rig = Rig::new();
    program(&rig, "bin/ssh", SSH);
    let line = "echo {} $LABORO_TEST_HOST; sleep 0.2";
    let words = ["-k", "--", line, ":::", "a", "b", "c", "d"];
    let ran = run(&rig, "1/alpha,1/beta", &words);
    let out = ran.expect(0).says("4 of 4 tasks done").out();
    let firsts: Vec<&str> = out.lines().map(|line| &line[..1]).collect();
    assert_eq!(firsts, ["a", "b", "c", "d"]);
    assert!(out.contains("alpha") && out.contains("beta"), "{out}");
}

#[test]
fn what_is_said_of_tasks_is_passed_to_the_workers() {
    let rig = Rig::new();
    program(&rig, "bin/ssh", &SSH.replacen('\n', "\necho \"$*\" >> \"$0.log\"\n", 1));
    let words = ["-kq", "--pin-tasks", "--limits=none", "--grace=7s", "--durability=os", "--"];
    let line = ["test -n \"$LABORO_CPUS\" && echo pinned"];
    let ran = run(&rig, "1/alpha", &[&words[..], &line].concat());
    assert_eq!(ran.expect(0).out(), "pinned\n");
    let asked = rig.read("bin/ssh.log");
    for option in ["-j 1", "--pin-tasks=compact", "--limits=none", "--grace=7s"] {
        assert!(asked.contains(option), "{option}: {asked}");
    }
}

#[test]
fn what_is_done_does_not_run_again() {
    let rig = Rig::new();
    program(&rig, "bin/ssh", SSH);
    let words = ["--", "echo {} >> ran; test -e ok || test {} = a", ":::", "a", "b"];
    let ran = run(&rig, "1/alpha", &words);
    ran.expect(1).says("1 of 2 tasks done, 1 failed").says("b  exit code 1");
    rig.write("ok", "");
    let again: Vec<&str> = ["--retry-failed"].into_iter().chain(words).collect();
    let ran = run(&rig, "1/alpha", &again);
    ran.expect(0).says("resuming: 1 of 2 tasks already done").says("2 of 2 tasks done");
    assert_eq!(rig.sorted_lines("ran"), ["a", "b", "b"]);
}

#[test]
fn of_a_changed_run_only_what_is_new_runs_on_the_hosts() {
    let rig = Rig::new();
    program(&rig, "bin/ssh", SSH);
    let line = "echo {} >> ran; echo {}";
    run(&rig, "1/alpha", &["-kq", "--", line, ":::", "a", "b"]).expect(0);
    let words = ["-k", "--results", "t.csv", "--", line, ":::", "c", "a", "b"];
    let ran = run(&rig, "1/alpha", &words);
    let out = ran.expect(0).says("resuming: 2 of 3 tasks already done, 1 new").out();
    assert_eq!(out, "c\na\nb\n", "also what an earlier run did, in order");
    assert_eq!(rig.sorted_lines("ran"), ["a", "b", "c"]);
    assert_eq!(rig.lines("t.csv").iter().filter(|line| line.contains(",\"echo ")).count(), 3);
    let words = ["-q", "--results", "out", "--", line, ":::", "c", "a", "b"];
    run(&rig, "1/alpha", &words).expect(0);
    assert_eq!((rig.read("out/1/c/stdout"), rig.read("out/1/b/seq")), ("c\n".into(), "3\n".into()));
    run(&rig, "1/alpha", &["-q", "--fresh", "--", line, ":::", "a"]).expect(0);
    assert_eq!(rig.sorted_lines("ran"), ["a", "a", "b", "c"]);
}

#[test]
fn an_edited_step_runs_again_on_the_hosts_with_all_that_comes_after_it() {
    let rig = Rig::new();
    program(&rig, "bin/ssh", SSH);
    let flow = "[[task]]\nname = \"prep\"\ncommand = \"echo prep >> ran\"\n\
                [[task]]\nname = \"fit\"\nforeach = [\"a\", \"b\"]\nafter = \"prep\"\n\
                command = \"echo fit {} >> ran\"\n[[task]]\nname = \"join\"\nafter = \"fit\"\n\
                command = \"echo join >> ran\"\n";
    let ran = |flow: &str| {
        rig.write("ran", "");
        rig.write("flow.toml", flow);
        run(&rig, "1/alpha", &["flow.toml"]).expect(0);
        rig.lines("ran").join(",")
    };
    assert_eq!(ran(flow), "prep,fit a,fit b,join");
    assert_eq!(ran(&flow.replace("\"b\"]", "\"b\", \"c\"]")), "fit c,join");
    assert_eq!(ran(&flow.replace("echo fit", "echo  fit")), "fit a,fit b,join");
    // Going back is a change too.
    assert_eq!(ran(flow), "fit a,fit b,join");
}

#[test]
fn a_run_over_hosts_halts_when_it_is_told_to() {
    let rig = Rig::new();
    program(&rig, "bin/ssh", SSH);
    let line = "echo {} >> ran; test {} != 1 || exit 1; sleep 60";
    let words = ["--halt", "now,fail=1", "--", line, ":::", "1", "2", "3"];
    run(&rig, "1/alpha,1/beta", &words).expect(1).says("1 failed");
    let line = "test {} = 1 || sleep 60";
    let words = ["--halt", "now,success=1", "--", line, ":::", "1", "2", "3"];
    run(&rig, "1/alpha", &words).expect(0);
}

#[test]
fn a_host_that_cannot_be_reached_is_named_and_nobody_waits_for_ever() {
    let rig = Rig::new();
    program(&rig, "bin/ssh", SSH);
    let ran = run(&rig, "nowhere,1/beta", &["--", "true"]);
    ran.expect(0).says("nowhere: the worker ended with status 255");
    let ran = run(&rig, "nowhere", &["--", "false"]);
    ran.expect(3).says("no worker is left; type the same command again to resume");
}

#[test]
fn who_interrupts_it_twice_goes_on_later() {
    let rig = Rig::new();
    program(&rig, "bin/ssh", SSH);
    let words = ["--", "echo {} >> ran; test -e go || sleep 60", ":::", "a"];
    let live = start(&rig, "1/alpha", &words);
    until("it runs", || rig.lines("ran").len() == 1);
    live.signal(Signal::INT);
    until("it was heard", || live.err().contains("interrupt again to end their tasks"));
    live.signal(Signal::INT);
    live.wait().expect(130);
    rig.write("go", "");
    run(&rig, "1/alpha", &words).expect(0).says("1 of 1 tasks done");
}

/// Where the server is in Debian.
const SSHD: &str = "/usr/sbin/sshd";

#[test]
fn a_real_ssh_leads_workers_to_the_run() {
    if !std::path::Path::new(SSHD).exists() {
        return not_tried("a run over a real sshd: it is not installed");
    }
    let rig = Rig::new();
    let at = |name: &str| rig.at(name).display().to_string();
    for key in ["host", "user"] {
        let mut keygen = Command::new("ssh-keygen");
        keygen.args(["-q", "-t", "ed25519", "-N", "", "-f", &at(key)]);
        assert!(keygen.status().is_ok_and(|status| status.success()), "no key");
    }
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    rig.write("sshd_config", format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPidFile none\n",
        at("host"), at("user.pub"),
    ));
    rig.write("ssh_config", format!(
        "Host node1\n HostName 127.0.0.1\n Port {port}\n IdentityFile {}\n UserKnownHostsFile /dev/null\n StrictHostKeyChecking no\n LogLevel ERROR\n",
        at("user"),
    ));
    program(
        &rig,
        "bin/ssh",
        &format!("#!/bin/sh\nexec /usr/bin/ssh -F {} \"$@\"\n", at("ssh_config")),
    );
    let _ = std::fs::create_dir_all("/run/sshd");
    let mut sshd = Command::new(SSHD);
    sshd.args(["-D", "-e", "-f", &at("sshd_config")]);
    let server = rig.call(sshd).start();
    until("it listens", || server.err().contains("listening") || server.err().contains("rror"));
    let ran =
        run(&rig, "1/node1", &["-k", "--", "echo {} ${SSH_CONNECTION:+by ssh}", ":::", "a", "b"]);
    server.signal(Signal::TERM);
    let said = server.wait();
    assert_eq!(ran.expect(0).out(), "a by ssh\nb by ssh\n", "{}", said.err());
}
