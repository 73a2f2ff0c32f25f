//! What is said while a job runs and when it is over, where there is no terminal.

use crate::rig::{Rig, events, of_kind, until};
use serde_json::json;

#[test]
fn quiet_says_nothing_of_tasks_and_leaves_it_to_the_exit_status() {
    let rig = Rig::new();
    rig.write("jobs.txt", "echo a\necho b >&2\n");
    let ran = rig.run(["-q", "jobs.txt"]);
    assert_eq!((ran.expect(0).out(), ran.err()), (String::new(), String::new()));
    let again = rig.run(["-q", "jobs.txt"]);
    assert_eq!((again.expect(0).out(), again.err()), (String::new(), String::new()));
    rig.write("bad.txt", "exit 3\n");
    let bad = rig.run(["-q", "bad.txt"]);
    assert_eq!((bad.expect(1).out(), bad.err()), (String::new(), String::new()));
}

#[test]
fn a_failure_is_shown_at_once_with_the_end_of_its_stderr() {
    let rig = Rig::new();
    rig.write(
        "jobs.txt",
        "seq 100 >&2; exit 5\nuntil [ -e go ]; do :; done\nkill -KILL $$; :\n/no/such/program\n",
    );
    let live = rig.laboro(["run", "-j2", "jobs.txt"]).start();
    until("it is shown while another task runs", || {
        live.err().contains("seq 100 >&2; exit 5 failed (exit code 5)")
    });
    until("so is the end of stderr", || {
        live.err().contains("    96\n    97\n    98\n    99\n    100\n")
    });
    assert!(!live.err().contains("    95\n"), "{}", live.err());
    until("a signal is one", || live.err().contains("kill -KILL $$; : failed (signal 9)"));
    until("a missing program is one", || live.err().contains("/no/such/program failed (error)"));
    rig.write("go", "");
    let ran = live.wait();
    ran.expect(1).says("/no/such/program").says("1 of 4 tasks done, 3 failed in ");
}

#[test]
fn the_summary_counts_and_says_what_took_long_and_how_to_go_on() {
    let rig = Rig::new();
    rig.write("jobs.txt", "sleep 0.3\ntrue\nexit 1\n");
    let ran = rig.run(["jobs.txt"]);
    ran.expect(1).says("2 of 3 tasks done, 1 failed in ").says(" of CPU, ").says("tasks/s");
    ran.says("slowest: sleep 0.3 ").says("failed:\n  exit 1  exit code 1\n");
    ran.says("see one: laboro logs 3").says("--retry-failed");
    rig.run(["jobs.txt"]).expect(1).says("resuming: 2 of 3 tasks already done, 1 failed");
    rig.run(["jobs.txt"]).expect(1).says("nothing to do: 2 of 3 tasks are done, 1 failed");
}

#[test]
fn nobody_guesses_a_speed_before_something_has_ended() {
    let rig = Rig::new();
    let live = rig.laboro(["run", "--", "until [ -e go ]; do sleep 0.01; done"]).start();
    until("progress is told", || live.err().contains("0 of 1 done, 0 failed, 1 running\n"));
    rig.write("go", "");
    live.wait().expect(0);
}

#[test]
fn without_a_terminal_a_line_comes_now_and_then() {
    let rig = Rig::new();
    rig.write("jobs.txt", "true\nuntil [ -e go ]; do sleep 0.01; done\ntrue\n");
    let live = rig.laboro(["run", "-j2", "jobs.txt"]).start();
    until("progress is told", || live.err().contains("2 of 3 done, 0 failed, 1 running, "));
    assert!(live.err().contains("/s, ") && live.err().contains(" left"), "{}", live.err());
    assert!(!live.err().contains('\r') && !live.err().contains('\u{1b}'));
    rig.write("go", "");
    live.wait().expect(0);
}

#[test]
fn json_is_one_event_a_line_and_nothing_else() {
    let rig = Rig::new();
    rig.write("jobs.txt", "echo a\nexit 2\nkill -TERM $$; :\nsleep 1000\n/no/such/program\n");
    let ran = rig.run(["--json", "--timeout", "1s", "--attempts", "2", "jobs.txt"]);
    let events = ran.expect(1).events();
    assert_eq!(ran.err(), "");
    assert_eq!(events[0]["event"], "begin");
    assert_eq!(events[0]["tasks"], 5);
    assert_eq!(of_kind(&events, "start").len(), 9);
    let ends = of_kind(&events, "end");
    assert_eq!(ends.len(), 9);
    let end = |task: u64, attempt: u64| {
        *ends.iter().find(|end| end["task"] == task && end["attempt"] == attempt).unwrap()
    };
    assert_eq!(end(1, 1)["outcome"], json!({"kind": "success"}));
    assert_eq!(end(2, 1)["outcome"], json!({"kind": "exit", "code": 2}));
    assert_eq!((&end(2, 1)["will_retry"], &end(2, 2)["will_retry"]), (&true.into(), &false.into()));
    assert_eq!(end(3, 2)["outcome"], json!({"kind": "signal", "code": 15}));
    assert_eq!(end(4, 2)["outcome"], json!({"kind": "timed_out"}));
    assert!(end(5, 2)["message"].as_str().unwrap().contains("/no/such/program"));
    let summary = events.last().unwrap();
    assert_eq!(summary["event"], "summary");
    assert_eq!(summary["counts"]["done"], 1);
    assert_eq!(summary["counts"]["failed"], 4);
    assert_eq!(summary["ok"], false);
}

#[test]
fn an_end_is_told_only_once_it_is_recorded() {
    let rig = Rig::new();
    rig.write("jobs.txt", "true\nuntil [ -e go ]; do :; done\n");
    let live = rig.laboro(["run", "--json", "-j2", "jobs.txt"]).start();
    until("the first has ended", || !of_kind(&events(&whole_lines(&live.out())), "end").is_empty());
    assert_eq!(rig.journal()["tasks"]["done"], 1);
    rig.write("go", "");
    live.wait().expect(0);
}

fn whole_lines(text: &str) -> String {
    text[..text.rfind('\n').map_or(0, |end| end + 1)].to_owned()
}
