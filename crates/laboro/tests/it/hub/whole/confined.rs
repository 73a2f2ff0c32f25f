//! What holds a task: the memory it asked for, the signal before its time is over, the command it is wrapped in. The
//! same on this machine and at a worker of a hub.

use super::Whole;
use crate::rig::{Ran, Rig, not_tried, python};

/// What its first word says: reserves far more than it uses, has threads with large stacks, shares its memory with
/// children, or takes as many bytes as its second word says.
const PROGRAM: &str = "
import mmap, os, sys, threading, time
what = sys.argv[1]
if what == 'reserve':
    area = mmap.mmap(-1, 100 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
    area[0] = 1
elif what == 'threads':
    threading.stack_size(64 << 20)
    threads = [threading.Thread(target=time.sleep, args=(1,)) for _ in range(40)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
elif what == 'share':
    block = bytearray(b'x') * (80 << 20)
    children = []
    for _ in range(4):
        pid = os.fork()
        if pid == 0:
            sum(block[::4096])
            time.sleep(1)
            os._exit(0)
        children.append(pid)
    [os.waitpid(pid, 0) for pid in children]
else:
    block = bytearray(b'x') * int(sys.argv[2])
    print('took it', flush=True)
    if len(sys.argv) < 4:
        time.sleep(600)
";

const TAKEN: &str = "400000000";

fn prints(ran: &Ran, text: &str) {
    assert_eq!(ran.expect(0).out(), text);
}

fn ways() -> [Vec<&'static str>; 2] {
    [vec!["run", "-k"], vec!["submit", "--wait"]]
}

#[test]
fn memory_that_is_only_reserved_or_shared_is_not_taken() {
    let whole = Whole::new();
    whole.rig.write("memory.py", PROGRAM);
    let python = python();
    let python = python.to_str().unwrap();
    for way in ways() {
        let words = [
            "--memory",
            "200M",
            "--",
            python,
            "memory.py",
            "{}",
            ":::",
            "reserve",
            "threads",
            "share",
        ];
        whole.run(&[&way[..], &words].concat()).expect(0);
        let is_there = std::process::Command::new("java").arg("-version").output();
        match is_there.is_ok_and(|ran| ran.status.success()) {
            true => {
                let words = ["--memory", "1G", "--", "java", "-version"];
                whole.run(&[&way[..], &words].concat()).expect(0);
            }
            false => not_tried("java under a limit of memory: it is not installed"),
        }
    }
}

#[test]
fn a_task_that_takes_more_memory_than_it_asked_for_is_ended_with_the_figure() {
    let whole = Whole::new();
    whole.rig.write("memory.py", PROGRAM);
    let python = python();
    let python = python.to_str().unwrap();
    for way in ways() {
        let words = ["--memory", "100M", "--", python, "memory.py", "take", TAKEN];
        whole.run(&[&way[..], &words].concat()).expect(1);
    }
    let words = ["run", "--fresh", "--memory", "100M", "--", python, "memory.py", "take", TAKEN];
    whole.run(&words).expect(1).says("too much memory").says("and asked for 100.0 MiB");
    let shown = whole.run(&["show", "--hub", "1/1", "--json"]).expect(0).out();
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let attempt = &shown["attempts"][0];
    assert_eq!(attempt["outcome"]["kind"], "memory", "{shown}");
    assert!(shown["message"].as_str().unwrap().contains("and asked for 100.0 MiB"), "{shown}");
    assert!(attempt["used"]["peak_memory_bytes"].as_u64().unwrap() > 100 << 20, "{shown}");
}

#[test]
fn memory_counts_wherever_a_process_of_the_task_takes_it() {
    let rig = Rig::new();
    rig.write("memory.py", PROGRAM);
    let line = format!("setsid {} memory.py take {TAKEN} & wait", python().display());
    rig.write("jobs.txt", line);
    rig.run(["--memory", "100M", "jobs.txt"]).expect(1).says("too much memory");
}

#[test]
fn nobody_looks_at_memory_where_that_is_not_wanted() {
    let rig = Rig::new();
    rig.write("memory.py", PROGRAM);
    let python = python();
    let words = ["--", python.to_str().unwrap(), "memory.py", "take", TAKEN, "once"];
    rig.run([&["--memory", "100M", "--limits", "none"][..], &words].concat()).expect(0);
    let ran = rig
        .run([&["--fresh", "--memory", "100M", "--limits", "address-space"][..], &words].concat());
    ran.expect(1).says("MemoryError");
}

#[test]
fn a_command_before_that_of_a_task_gets_it_as_arguments() {
    let whole = Whole::new();
    prints(
        &whole.run(&["run", "-kq", "--wrap", "env A={}", "--", "echo $A", ":::", "x", "y"]),
        "x x\ny y\n",
    );
    let flow = "[[task]]\nname = \"t\"\nwrap = [\"env\", \"A=b c\"]\ncommand = \"echo $A\"\n";
    whole.rig.write("flow.toml", flow);
    prints(&whole.run(&["run", "-kq", "flow.toml"]), "b c\n");
    whole.run(&["submit", "--wait", "flow.toml"]).expect(0);
    prints(&whole.run(&["logs", "--hub", "t"]), "b c\n");
    assert!(
        whole.run(&["show", "--hub", "t"]).expect(0).out().contains("wrapped in env 'A=b c'\n")
    );
    whole.run(&["run", "--wrap", "sh -c 'x'", "--", "true"]).expect(2).says("not a plain command");
}

#[test]
fn a_task_hears_a_signal_before_its_time_is_over() {
    let whole = Whole::new();
    let line = "trap 'echo warned; exit 0' USR1; while :; do sleep 0.05; done";
    let words = ["--timeout", "100s", "--signal", "USR1@99500ms", "--", line];
    prints(&whole.run(&[&["run", "-kq"][..], &words].concat()), "warned\n");
    whole.run(&[&["submit", "--wait"][..], &words].concat()).expect(0);
    prints(&whole.run(&["logs", "--hub", "1/1"]), "warned\n");
    for way in ways() {
        let refused = |words: &[&str]| whole.run(&[&way[..], words].concat());
        // What a hub refuses has a status of its own.
        let status = if way[0] == "run" { 2 } else { 4 };
        refused(&["--signal", "USR1@5s", "--", "true"]).expect(status).says("give a timeout");
        let late = ["--timeout", "5s", "--signal", "USR1@5s", "--", "true"];
        refused(&late).expect(status).says("before the task starts");
        refused(&["--signal", "KILL@5s", "--", "true"]).expect(2).says("is not a signal");
    }
}
