//! What tasks print: kept, copied, shown, in order, in any amount and of any kind.

use crate::rig::Rig;
use std::ffi::OsStr;
use std::process::Command;

#[test]
fn output_comes_in_the_order_of_the_input_also_after_a_resume() {
    let rig = Rig::new();
    // The first is done last; the second fails until it is mended.
    rig.write(
        "jobs.txt",
        "until [ -e two ]; do :; done; echo 1\ntouch two; echo 2; test -e mended\necho 3\necho 4 >&2\n",
    );
    let ran = rig.run(["-k", "-j2", "jobs.txt"]);
    assert_eq!(ran.expect(1).out(), "1\n2\n3\n");
    ran.says("4\n");
    rig.write("mended", "");
    let again = rig.run(["-k", "jobs.txt", "--retry-failed"]);
    assert_eq!(again.expect(0).out(), "1\n2\n3\n");
    let nothing = rig.run(["-k", "jobs.txt"]);
    assert_eq!(nothing.expect(0).out(), "1\n2\n3\n");
    nothing.says("nothing to do");
}

#[test]
fn lines_are_shown_as_they_come_with_the_name_before_them() {
    let rig = Rig::new();
    let live = rig
        .laboro([
            "run",
            "--tee",
            "--",
            "echo now; until [ -e go ]; do :; done; printf end; echo bad >&2",
        ])
        .start();
    crate::rig::until("the first line is shown while the task runs", || live.out() == "1: now\n");
    rig.write("go", "");
    let ran = live.wait();
    assert_eq!(ran.expect(0).out(), "1: now\n1: end\n");
    ran.says("1: bad\n");
}

#[test]
fn lines_of_two_tasks_never_run_into_each_other() {
    let rig = Rig::new();
    let line = "for i in 1 2 3 4 5 6 7 8 9; do printf begin; printf '%s' $i; echo end; done; : {}";
    let ran = rig.run(["--tee", "-j4", "--", line, ":::", "a", "b", "c", "d"]);
    let out = ran.expect(0).out();
    assert_eq!(out.lines().count(), 36);
    assert!(out.lines().all(|line| line[1..].starts_with(": begin") && line.ends_with("end")));
}

#[test]
fn control_characters_do_not_reach_the_terminal_by_way_of_tee() {
    let rig = Rig::new();
    let ran = rig.run(["--tee", "--", "printf", "\\033[2J\\r\\n"]);
    assert_eq!(ran.expect(0).out(), "1: \\u{1b}[2J\n");
}

#[test]
fn files_hold_what_each_task_printed_in_its_last_attempt() {
    let rig = Rig::new();
    rig.write(
        "flow.toml",
        r#"
        [[task]]
        name = "with space & quote's"
        foreach = ["x"]
        command = "echo out {}; echo err >&2"
        [[task]]
        name = "a/b"
        command = "echo slash"
        [[task]]
        name = "a%2Fb"
        command = "echo percent"
        [[task]]
        name = "twice"
        attempts = 2
        command = "test $LABORO_ATTEMPT = 2 || { echo first; exit 1; }"
        "#,
    );
    rig.run(["--output-dir", "made/here", "flow.toml"]).expect(0);
    assert_eq!(rig.read("made/here/with space & quote's.1.out"), "out x\n");
    assert_eq!(rig.read("made/here/with space & quote's.1.err"), "err\n");
    assert_eq!(rig.read("made/here/a%2Fb.out"), "slash\n");
    assert_eq!(rig.read("made/here/a%252Fb.out"), "percent\n");
    assert_eq!(rig.read("made/here/twice.out"), "");
    assert!(rig.at("made/here/twice.out").exists());
}

#[test]
fn binary_data_comes_back_byte_for_byte() {
    let rig = Rig::new();
    let all: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    rig.write("data", &all);
    let ran = rig.run(["-k", "--output-dir", "copies", "--", "cat", "data"]);
    assert!(ran.expect(0).out == all);
    assert!(rig.laboro(["logs", "1"]).run().out == all);
    assert!(std::fs::read(rig.at("copies/1.out")).unwrap() == all);
}

#[test]
fn a_hundred_megabytes_are_kept() {
    let rig = Rig::new();
    let line = "yes 0123456789abcde | head -c 100000000; echo the end >&2";
    rig.run(["--output-limit", "200M", "--", line]).expect(0);
    let mut count = Command::new("sh");
    count.args([
        "-c",
        "\"$0\" logs --stdout 1 | md5sum; yes 0123456789abcde | head -c 100000000 | md5sum",
    ]);
    count.arg(crate::rig::LABORO);
    let sums = rig.call(count).run().out();
    let sums: Vec<&str> = sums.lines().collect();
    assert_eq!(sums[0], sums[1]);
    assert_eq!(rig.laboro(["logs", "--stderr", "1"]).run().out(), "the end\n");
}

#[test]
fn in_order_everything_is_printed_however_much_it_is() {
    let rig = Rig::new();
    let ran = rig.run(["-k", "--", "head -c 70000000 /dev/zero; echo {}", ":::", "a", "b"]);
    assert_eq!(ran.expect(0).out.len(), 2 * 70_000_002);
    assert!(ran.out.ends_with(b"\0b\n"));
}

#[test]
fn what_is_printed_in_order_is_whole_or_the_status_says_that_it_is_not() {
    let rig = Rig::new();
    let line = "head -c 5000 /dev/zero | tr '\\0' x";
    let ran = rig.run(["-k", "-q", "--output-limit", "1K", "--", line]);
    assert_eq!(ran.expect(3).out(), "x".repeat(1024));
    ran.says("task 1: 3976 more bytes were not kept, and are missing here");
    ran.says("the output of 1 task was printed only in part");
    // What an earlier run cut cannot be brought back.
    rig.run(["-k", "--", line]).expect(3).says("missing here");
    assert_eq!(rig.run(["-k", "--fresh", "--", line]).expect(0).out(), "x".repeat(5000));
}

#[test]
fn more_than_the_limit_is_dropped_and_that_is_said() {
    let rig = Rig::new();
    let line = "head -c 5000 /dev/zero | tr '\\0' x; echo short >&2";
    let ran = rig.run(["--output-limit", "1K", "--", line]);
    ran.expect(0).says("cut off: 1 printed more than --output-limit keeps");
    ran.says("1 printed more than --output-limit keeps\n");
    let logs = rig.laboro(["logs", "1"]).run();
    assert_eq!(logs.expect(0).out(), "x".repeat(1024));
    logs.says("short\n").says("3976 more bytes were not kept; --output-limit");
    let record: serde_json::Value =
        serde_json::from_str(&rig.laboro(["logs", "--json", "1"]).run().out()).unwrap();
    assert_eq!(record["ended"]["truncated"], true);
}

#[test]
fn odd_names_are_found_again() {
    let rig = Rig::new();
    let names = ["with space", "quote's \"and\" more", "ünïcode", "-dash", "semi;colon", "a.1x"];
    let tasks: Vec<String> = names
        .iter()
        .map(|name| serde_json::json!({ "name": name, "command": ["echo", name] }).to_string())
        .collect();
    rig.write("tasks.jsonl", tasks.join("\n"));
    rig.run(["tasks.jsonl"]).expect(0);
    for name in names {
        let logs = rig.laboro(["logs", "--", name]).run();
        assert_eq!(logs.expect(0).out(), format!("{name}\n"));
    }
}

#[test]
fn a_reader_that_goes_away_does_not_stop_the_work() {
    for how in ["run -k jobs.txt | true", "run --json jobs.txt | true", "run jobs.txt 2>&1 | true"]
    {
        let rig = Rig::new();
        rig.write("jobs.txt", "echo x; echo y >&2; echo $LABORO_TASK >> ran; exit 1\n".repeat(50));
        let mut shell = Command::new("bash");
        let line = format!("set -o pipefail; \"$0\" {how}");
        shell.args([OsStr::new("-c"), OsStr::new(&line), OsStr::new(crate::rig::LABORO)]);
        rig.call(shell).run().expect(1);
        assert_eq!(rig.lines("ran").len(), 50, "{how}");
    }
}

#[test]
fn a_task_that_floods_both_streams_does_not_stand_still() {
    let rig = Rig::new();
    let line = "yes out | head -c 3000000 & yes err | head -c 3000000 >&2; wait";
    rig.run(["-j1", "--", line]).expect(0);
    let logs = rig.laboro(["logs", "1"]).run();
    assert_eq!((logs.out.len(), logs.err().len()), (3_000_000, 3_000_000));
}
