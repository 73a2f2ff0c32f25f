//! What is remembered between runs, and what happens when it cannot be.

use crate::rig::{LABORO, Rig, until};
use laboro_core::{Ask, Hub, JobId, Selection, Time, Token, Which};
use laboro_journal::FileJournal;
use rustix::process::Signal;
use std::os::unix::process::CommandExt;
use std::process::Command;

#[test]
fn the_same_command_again_runs_nothing_twice() {
    let rig = Rig::new();
    rig.write("jobs.txt", "echo 1 >> ran\necho 2 >> ran; test -e mended\necho 3 >> ran\n");
    rig.run(["jobs.txt"]).expect(1);
    rig.run(["jobs.txt"]).expect(1).says("nothing to do");
    assert_eq!(rig.sorted_lines("ran"), ["1", "2", "3"]);
    rig.write("mended", "");
    rig.run(["--retry-failed", "jobs.txt"]).expect(0).says("3 of 3 tasks done");
    assert_eq!(rig.sorted_lines("ran"), ["1", "2", "2", "3"]);
    rig.run(["--retry-failed", "jobs.txt"]).expect(0).says("nothing to do");
}

#[test]
fn fresh_runs_everything_again() {
    let rig = Rig::new();
    rig.write("jobs.txt", "echo 1 >> ran\necho 2 >> ran\n");
    rig.run(["jobs.txt"]).expect(0);
    rig.run(["--fresh", "jobs.txt"]).expect(0).says("2 of 2 tasks done");
    assert_eq!(rig.sorted_lines("ran"), ["1", "1", "2", "2"]);
    rig.run(["jobs.txt"]).expect(0).says("nothing to do");
    assert_eq!(rig.journal()["jobs"], 1);
}

#[test]
fn fresh_helps_against_a_damaged_journal() {
    let rig = Rig::new();
    rig.write("jobs.txt", "true\n");
    rig.run(["jobs.txt"]).expect(0);
    let journal = rig.run_dir().join("journal");
    for entry in std::fs::read_dir(&journal).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "log") {
            let mut bytes = std::fs::read(&path).unwrap();
            // Past the head, in the middle of what was recorded.
            bytes[60..90].fill(0xaa);
            std::fs::write(&path, bytes).unwrap();
        }
    }
    rig.run(["jobs.txt"]).expect(3).says("laboro journal repair");
    rig.run(["--fresh", "jobs.txt"]).expect(0).says("1 of 1 tasks done");
}

#[test]
fn a_journal_that_is_gone_is_missed_and_going_on_without_it_is_a_decision() {
    let rig = Rig::new();
    rig.write("jobs.txt", "echo 1 >> ran\n");
    rig.run(["jobs.txt"]).expect(0);
    let journal = rig.run_dir().join("journal");
    std::fs::remove_file(journal.join("00000000000000000001.log")).unwrap();
    rig.run(["jobs.txt"]).expect(3).says("missing at its end: records 1 to").says("journal repair");
    assert_eq!(rig.lines("ran"), ["1"]);
    let journal = journal.to_str().unwrap();
    let checked = rig.laboro(["journal", "check", journal]).run();
    assert!(checked.expect(3).out().contains("wrong: "), "{}", checked.out());
    let repaired = rig.laboro(["journal", "repair", journal]).run();
    let text = repaired.expect(3).out();
    assert!(text.contains("nothing could be saved; lost "), "{text}");
    rig.run(["jobs.txt"]).expect(0).says("1 of 1 tasks done");
    let repaired = rig.laboro(["journal", "repair", journal]).run();
    assert!(repaired.expect(0).out().contains("nothing to repair"));
}

#[test]
fn a_journal_with_a_note_is_not_called_faultless() {
    let rig = Rig::new();
    rig.write("jobs.txt", "true\n");
    rig.run(["jobs.txt"]).expect(0);
    let journal = rig.run_dir().join("journal");
    let check = || rig.laboro(["journal", "check", journal.to_str().unwrap()]).run();
    assert!(check().expect(0).out().contains("1 job, 1 worker, 1 done\nnothing is wrong with it"));
    let log = std::fs::File::options().append(true).open(journal.join("00000000000000000001.log"));
    std::io::Write::write_all(&mut log.unwrap(), b"torn").unwrap();
    let checked = check();
    let text = checked.expect(0).out();
    assert!(text.contains("note: ") && text.contains("no record is missing"), "{text}");
    assert!(!text.contains("nothing is wrong"), "{text}");
}

#[test]
fn of_a_job_that_was_changed_only_what_is_new_runs() {
    let rig = Rig::new();
    rig.write("jobs.txt", "echo a >> ran\necho c >> ran\n");
    rig.run(["jobs.txt"]).expect(0);
    rig.write("jobs.txt", "echo a >> ran\necho b >> ran\necho c >> ran\n");
    let foreseen = rig.run(["--dry-run", "jobs.txt"]);
    foreseen
        .expect(0)
        .says("would run: echo b >> ran (new")
        .says("2 of 3 tasks already done, 1 to run");
    rig.run(["jobs.txt"])
        .expect(0)
        .says("resuming: 2 of 3 tasks already done, 1 new")
        .says("3 of 3 tasks done");
    assert_eq!(rig.sorted_lines("ran"), ["a", "b", "c"]);
    // Comments and blank lines change nothing of what is run.
    rig.write("jobs.txt", "# a comment\necho a >> ran\n\necho b >> ran\necho c >> ran\n");
    rig.run(["jobs.txt"]).expect(0).says("nothing to do");
    // The same lines in another file are another job.
    rig.write("other.txt", "echo a >> ran\n");
    rig.run(["other.txt"]).expect(0).says("1 of 1 tasks done in");
    // Forgotten is forgotten, also where it was done by an earlier run.
    rig.run(["--fresh", "jobs.txt"]).expect(0).says("3 of 3 tasks done in");
    rig.write("jobs.txt", "echo b >> ran\necho d >> ran\n");
    rig.run(["jobs.txt"]).expect(0).says("resuming: 1 of 2 tasks already done, 1 new");
    assert_eq!(rig.sorted_lines("ran"), ["a", "a", "a", "b", "b", "c", "c", "d"]);
}

#[test]
fn one_more_value_runs_one_more_task_and_all_outputs_are_there_in_order() {
    let rig = Rig::new();
    let run = |values: &[&str]| {
        let words = ["-k", "--", "echo {} >> ran; echo {}", ":::"];
        rig.run(words.iter().chain(values)).expect(0).out()
    };
    assert_eq!(run(&["a", "b"]), "a\nb\n");
    assert_eq!(run(&["a", "x", "b"]), "a\nx\nb\n");
    assert_eq!(run(&["b", "x", "b"]), "b\nx\nb\n", "the second b is another task");
    assert_eq!(run(&["a", "b"]), "a\nb\n");
    assert_eq!(rig.sorted_lines("ran"), ["a", "b", "b", "x"]);
    assert_eq!(rig.laboro(["logs", "2"]).run().expect(0).out(), "b\n");
    let named = rig.run(["--name", "other", "-q", "--", "echo {} >> ran; echo {}", ":::", "a"]);
    named.expect(0);
    assert_eq!(rig.lines("ran").len(), 5, "another name is another job");
}

/// As if all of them had been run: ten million processes take too long for a test.
fn finish_all(rig: &Rig) {
    let (mut journal, ledger, _) =
        FileJournal::open(&rig.run_dir().join("journal"), Default::default()).unwrap();
    let now = Time(2_000_000_000_000);
    let (mut hub, first) = Hub::begin(ledger, Default::default(), now, 1);
    journal.commit_blocking(first).unwrap();
    let all = Selection { job: JobId(1), which: Which::Job };
    let ask = Ask { token: Token(1), command: laboro_core::Command::MarkDone(all) };
    let batch = hub.step(now, vec![ask]);
    journal.commit_blocking(batch).unwrap();
}

#[test]
fn of_ten_million_elements_only_the_new_one_runs() {
    let rig = Rig::new();
    let line = "touch ran; test {} -gt 10000000 || sleep 60";
    let live = rig.laboro(["run", "--array", "1-10000000", "--", line]).start();
    until("it runs", || rig.at("ran").exists());
    live.signal(Signal::INT);
    until("it is noticed", || live.err().contains("interrupt again to end now"));
    live.signal(Signal::INT);
    live.wait().expect(130);
    finish_all(&rig);
    let ran = rig.run(["--array", "1-10000001", "--", line]);
    ran.expect(0).says("resuming: 10000000 of 10000001 tasks already done, 1 new");
}

#[test]
fn an_edited_step_runs_again_with_all_that_comes_after_it() {
    let rig = Rig::new();
    let flow = "[[task]]\nname = \"prep\"\ncommand = \"echo prep >> ran\"\n\
                [[task]]\nname = \"fit\"\nforeach = [\"a\", \"b\"]\nafter = \"prep\"\n\
                command = \"echo fit {} >> ran\"\n[[task]]\nname = \"join\"\nafter = \"fit\"\n\
                command = \"echo join >> ran\"\n";
    let ran = |flow: &str| {
        rig.write("ran", "");
        rig.write("flow.toml", flow);
        rig.run(["-j1", "flow.toml"]).expect(0);
        rig.lines("ran").join(",")
    };
    assert_eq!(ran(flow), "prep,fit a,fit b,join");
    assert_eq!(ran(&flow.replace("\"b\"]", "\"b\", \"c\"]")), "fit c,join");
    assert_eq!(ran(&flow.replace("echo fit", "echo  fit")), "fit a,fit b,join");
    // What was run under a name later is what it stands for: going back is a change too.
    assert_eq!(ran(flow), "fit a,fit b,join");
    assert_eq!(ran(flow), "");
}

#[test]
fn a_changed_job_that_is_killed_while_it_begins_counts_what_was_done() {
    let rig = Rig::new();
    rig.run(["-q", "--array", "1-500", "--", "echo {} >> ran"]).expect(0);
    let more = ["run", "--array", "1-501", "--", "echo {} >> ran"];
    let live = rig.laboro(more).start();
    live.signal(Signal::KILL);
    live.wait();
    rig.laboro(more).run().expect(0);
    assert!(rig.lines("ran").len() <= 502, "only the last may have run twice");
    rig.laboro(more).run().expect(0).says("nothing to do: 501 of 501 tasks are done");
}

#[test]
fn a_job_goes_on_with_another_timeout_but_not_with_other_attempts_unnoticed() {
    let rig = Rig::new();
    rig.write("jobs.txt", "sleep 1000; :\n");
    rig.run(["--timeout", "100ms", "jobs.txt"]).expect(1).says("timed out");
    let again = ["--retry-failed", "--timeout", "200ms", "jobs.txt"];
    let ran = rig.run(again);
    assert!(!ran.expect(1).err().contains("stay what they were"), "{}", ran.err());
    let ran = rig.run(["--attempts", "5"].iter().chain(&again));
    ran.expect(1).says("stay what they were");
}

#[test]
fn two_runs_of_one_job_at_once_are_one_too_many() {
    let rig = Rig::new();
    rig.write("jobs.txt", "touch begun; until [ -e go ]; do :; done\n");
    let first = rig.laboro(["run", "jobs.txt"]).start();
    until("the first runs", || rig.at("begun").exists());
    let second = rig.run(["jobs.txt"]);
    second.expect(3).says(&format!("already running (process {})", first.pid())).says("--state");
    rig.run(["--fresh", "jobs.txt"]).expect(3).says("already running");
    // Elsewhere it may run, and so may another job here.
    rig.run(["--state", "elsewhere", "--timeout", "100ms", "jobs.txt"]).expect(1);
    rig.run(["--", "true"]).expect(0);
    rig.write("go", "");
    first.wait().expect(0).says("1 of 1 tasks done");
}

#[test]
fn the_state_is_beside_the_job_file_or_where_it_is_put() {
    let rig = Rig::new();
    rig.write("jobs/jobs.txt", "pwd > where\n");
    rig.run(["jobs/jobs.txt"]).expect(0);
    assert!(rig.at("jobs/.laboro").is_dir() && !rig.at(".laboro").exists());
    assert!(rig.at("where").exists(), "tasks run where the command was typed");
    rig.run(["--state", "s/t", "jobs/jobs.txt"]).expect(0).says("1 of 1 tasks done");
    let logs = rig.laboro(["logs", "--state", "s/t", "1"]).run();
    logs.expect(0);
    rig.laboro(["run", "/dev/stdin"]).input("true\n").run().expect(0);
    assert!(rig.at(".laboro").is_dir(), "what is read once has no place of its own");
}

#[test]
fn the_same_words_in_another_directory_are_another_run() {
    let rig = Rig::new();
    rig.write("jobs.txt", "echo x >> ran\n");
    rig.write("a/.keep", "");
    rig.write("b/.keep", "");
    for dir in ["a", "b", "."] {
        let ran = || {
            let mut command = Command::new("sh");
            let line = format!("cd {dir} && exec \"$0\" run \"$1\"");
            command.args(["-c", &line, LABORO]).arg(rig.at("jobs.txt"));
            rig.call(command).run()
        };
        ran().expect(0).says("1 of 1 tasks done in");
        ran().expect(0).says("nothing to do");
        assert_eq!(rig.lines(&format!("{dir}/ran")), ["x"]);
    }
}

#[test]
fn a_directory_may_be_moved_with_its_state() {
    let rig = Rig::new();
    rig.write("old/jobs.txt", "true\n");
    let run = |dir: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("cd {dir} && exec \"$0\" run jobs.txt"), LABORO]);
        rig.call(command).run()
    };
    run("old").expect(0).says("1 of 1 tasks done in");
    std::fs::rename(rig.at("old"), rig.at("new")).unwrap();
    run("new").expect(0).says("nothing to do");
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let rig = Rig::new();
    rig.write("file", "");
    let ran = rig.run(["--state", "file/state", "--", "true"]);
    ran.expect(3).says("file/state").says("--state DIR puts it elsewhere");
}

#[test]
fn a_file_in_the_place_of_a_directory_is_named() {
    let rig = Rig::new();
    rig.write("file", "");
    rig.run(["--output-dir", "file", "--", "true"]).expect(3).says("file is not a directory");
}

#[test]
fn a_read_only_directory_is_named() {
    let rig = Rig::new();
    rig.write("jobs.txt", "true\n");
    let mut program = Command::new("./laboro");
    program.args(["run", "jobs.txt"]);
    std::fs::copy(LABORO, rig.at("laboro")).unwrap();
    if rustix::process::geteuid().is_root() {
        // Root may write everywhere, so somebody else has to try.
        program.uid(65534).gid(65534);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(rig.dir(), mode).unwrap();
    } else {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o555);
        std::fs::set_permissions(rig.dir(), mode).unwrap();
    }
    let ran = rig.call(program).run();
    ran.expect(3)
        .says("--state DIR puts it elsewhere")
        .says("cannot be created: Permission denied");
}

#[test]
fn a_task_that_was_stopped_counts_its_attempts_on() {
    let rig = Rig::new();
    rig.write("jobs.txt", "echo attempt $LABORO_ATTEMPT; touch begun; test -e go || sleep 1000\n");
    let live = rig.laboro(["run", "--grace", "100ms", "jobs.txt"]).start();
    until("it runs", || rig.at("begun").exists());
    live.signal(Signal::INT);
    until("it is noticed", || live.err().contains("interrupt again to end now"));
    live.signal(Signal::INT);
    live.wait().expect(130);
    rig.write("go", "");
    rig.run(["jobs.txt"]).expect(0);
    assert_eq!(rig.laboro(["logs", "1"]).run().out(), "attempt 2\n");
    assert_eq!(rig.laboro(["logs", "--attempt", "1", "1"]).run().out(), "attempt 1\n");
}

#[test]
fn what_failed_in_an_earlier_run_is_listed_again() {
    let rig = Rig::new();
    let flow = "[[task]]\nname = \"a\"\ncommand = \"exit 3\"\n[[task]]\nname = \"b\"\n\
                after = \"a\"\ncommand = \"true\"\n[[task]]\nname = \"c\"\nforeach = [1, 2]\n\
                command = \"test {} = 1\"\n";
    rig.write("f.toml", flow);
    rig.run(["f.toml"])
        .expect(1)
        .says("2 failed")
        .says("  a  exit code 3")
        .says("  c.2  exit code 1");
    let again = rig.run(["f.toml"]);
    again.expect(1).says("2 failed").says("  a  exit code 3").says("  c.2  ");
    again.says("laboro logs");
}

#[test]
fn events_that_cannot_be_written_are_trouble() {
    let rig = Rig::new();
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "exec \"$0\" run --json -- 'echo {} >> ran' ::: 1 2 > /dev/full", LABORO]);
    rig.call(shell).run().expect(3).says("standard output").says("No space left");
    assert_eq!(rig.sorted_lines("ran"), ["1", "2"], "the work is done all the same");
}
