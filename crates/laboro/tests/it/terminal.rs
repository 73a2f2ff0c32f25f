//! What a person sees on a terminal, through a real one that Python makes.

use crate::rig::{LABORO, Live, Rig, until};
use std::fs::File;
use std::io::Write;
use std::process::Command;

/// Runs its arguments on a terminal of 120 columns and passes on what appears there. A line read from
/// standard input is typed.
pub const TERMINAL: &str = r#"
import fcntl, os, pty, select, struct, sys, termios
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
watched = [fd, 0]
while True:
    ready, _, _ = select.select(watched, [], [])
    if 0 in ready:
        typed = os.read(0, 100)
        if typed: os.write(fd, typed)
        else: watched.remove(0)
    if fd in ready:
        try: shown = os.read(fd, 65536)
        except OSError: break
        if not shown: break
        os.write(1, shown)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;

fn on_a_terminal(rig: &Rig, arguments: &[&str]) -> crate::rig::Call {
    let mut python = Command::new("python3");
    python.args(["-c", TERMINAL, LABORO]).args(arguments).env("TERM", "xterm-256color");
    rig.call(python)
}

/// The same, and what is typed there. A pipe with a name, because the rig writes all of an input at once.
fn with_a_keyboard(rig: &Rig, arguments: &[&str]) -> (Live, File) {
    assert!(Command::new("mkfifo").arg(rig.at("keyboard")).status().unwrap().success());
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec python3 -c \"$0\" \"$@\" < keyboard", TERMINAL, LABORO]);
    shell.args(arguments).env("TERM", "xterm-256color");
    let live = rig.call(shell).start();
    let keyboard = File::options().write(true).open(rig.at("keyboard")).unwrap();
    (live, keyboard)
}

#[test]
fn a_bar_shows_done_failed_running_rate_and_what_is_left() {
    let rig = Rig::new();
    rig.write(
        "jobs.txt",
        "true\necho why >&2; exit 1\nuntil [ -e go ]; do sleep 0.01; done\ntrue\n",
    );
    let live = on_a_terminal(&rig, &["run", "-j2", "jobs.txt"]).start();
    until("the bar has it all", || {
        let shown = live.out();
        let last = shown.rsplit('\r').find(|part| part.contains("left")).unwrap_or("").to_owned();
        last.contains("3/4") && last.contains("1 running, 1 failed, ") && last.contains("/s")
    });
    until("the failure stands above it", || live.out().contains("exit 1 failed (exit code 1)"));
    rig.write("go", "");
    let ran = live.wait();
    ran.expect(1);
    let end = ran.out();
    let end = &end[end.rfind("3 of 4 tasks done").expect("there is a summary")..];
    assert!(!end.contains("running"), "the bar is gone: {end:?}");
}

#[test]
fn what_tasks_print_never_shares_a_line_with_the_bar() {
    for how in ["-k", "--tee"] {
        let rig = Rig::new();
        rig.write("jobs.txt", "echo printed; sleep 0.3\n".repeat(4));
        let ran = on_a_terminal(&rig, &["run", how, "-j2", "jobs.txt"]).run();
        let shown = ran.expect(0).out().replace("\u{1b}[2K", "");
        let lines = shown.split(['\r', '\n']).filter(|line| line.contains("printed"));
        // The summary says what took longest.
        let lines = lines.filter(|line| !line.starts_with("slowest: "));
        let lines: Vec<&str> =
            lines.map(|line| line.trim_start_matches("echo printed; sleep 0.3: ")).collect();
        assert_eq!(lines, ["printed"; 4], "{shown:?}");
    }
}

#[test]
fn control_c_typed_at_a_terminal_waits_for_the_tasks() {
    let rig = Rig::new();
    // Had the terminal's signal reached it, it would end otherwise.
    rig.write("jobs.txt", "touch begun; until [ -e go ]; do sleep 0.01; done; touch ended\ntrue\n");
    let (live, mut keyboard) = with_a_keyboard(&rig, &["run", "-j1", "jobs.txt"]);
    until("the task runs", || rig.at("begun").exists());
    keyboard.write_all(b"\x03").unwrap();
    until("it is noticed", || live.out().contains("stopping: waiting for 1 running task"));
    rig.write("go", "");
    live.wait().expect(130);
    assert!(rig.at("ended").exists());
}

#[test]
fn a_console_lets_lines_be_edited_and_remembers_them() {
    let rig = Rig::new();
    let server = ["mq", "server", "--listen", "127.0.0.1:0", "--console", "-d", "0"];
    let (live, mut keyboard) = with_a_keyboard(&rig, &server);
    let tables = || live.out().matches("0 workers, 0 requests wait").count();
    until("it asks", || live.out().contains("server> "));
    // A letter is put in where it was left out.
    keyboard.write_all(b"wokers\x1b[D\x1b[D\x1b[D\x1b[Dr\r").unwrap();
    until("the table is there", || tables() == 1);
    keyboard.write_all(b"\x1b[A\r").unwrap();
    until("the table is there again", || tables() == 2);
    keyboard.write_all(b"\x04").unwrap();
    live.wait().expect(0);
}
