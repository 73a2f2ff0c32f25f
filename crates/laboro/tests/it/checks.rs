//! What is said without running anything: mistakes, previews, drawings, wrong usage.

use crate::rig::Rig;
use std::time::{Duration, Instant};

const WRONG: &str = "[[task]]\nname = \"a\"\ncomand = \"x\"\n\n[[task]]\nname = \"b\"\ncommand = \"x\"\nafter = [\"nobody\"]\n";

#[test]
fn a_check_names_each_mistake_with_line_and_column() {
    let rig = Rig::new();
    rig.write("wrong.toml", WRONG);
    let ran = rig.run(["--check", "wrong.toml"]);
    ran.expect(2).says("wrong.toml:3:1: unknown key `comand`").says("did you mean `command`?");
    ran.says("wrong.toml:8:10: unknown task `nobody`");
    assert!(ran.err().ends_with("^\n"), "nothing follows the mark: {}", ran.err());
    // A run says the same and starts nothing.
    rig.run(["wrong.toml"]).expect(2).says("wrong.toml:3:1");
    assert!(!rig.at(".laboro").exists());
}

#[test]
fn mistakes_of_every_form_are_usage() {
    let rig = Rig::new();
    rig.write("circle.toml", "[[task]]\nname = \"a\"\nafter = [\"a\"]\ncommand = \"x\"\n");
    rig.write("bad.jsonl", "{\"command\": \"x\"}\n{\"command\": }\n");
    rig.write("open.txt", "echo a\necho b \\\n");
    rig.write("empty.txt", "# nothing\n");
    for (file, words) in [
        ("circle.toml", "circle.toml:3"),
        ("bad.jsonl", "bad.jsonl:2"),
        ("open.txt", "open.txt:2"),
        ("empty.txt", "no command"),
        ("missing.txt", "missing.txt: cannot be read"),
    ] {
        rig.run(["--check", file]).expect(2).says(words);
    }
}

#[test]
fn files_are_known_by_their_names_whatever_editor_wrote_them() {
    let rig = Rig::new();
    rig.write("A.TOML", "\u{feff}[[task]]\nname = \"a\"\ncommand = \"true\"\n");
    rig.write("b.JSONL", "\u{feff}{\"name\": \"a\", \"command\": \"true\"}\n{\"name\": \"b\", \"command\": \"true\"}\n");
    rig.run(["--check", "A.TOML"]).expect(0).says("A.TOML: 1 task,");
    rig.run(["--check", "b.JSONL"]).expect(0).says("b.JSONL: 2 tasks");
    let picture = rig.laboro(["graph", "A.TOML", "-o", "a.png"]).run();
    picture.expect(2).says("a .png cannot be drawn");
    assert!(!rig.at("a.png").exists());
    rig.laboro(["graph", "A.TOML", "-o", "a.SVG"]).run().expect(0);
    assert!(rig.read("a.SVG").starts_with("<svg"));
}

#[test]
fn a_good_job_passes_its_check_and_nothing_runs() {
    let rig = Rig::new();
    rig.write("jobs.txt", "touch ran\n");
    rig.run(["--check", "jobs.txt"]).expect(0).says("jobs.txt: 1 task, nothing wrong");
    let ran = rig.run(["--dry-run", "jobs.txt"]);
    assert!(ran.expect(0).out().contains("touch ran"), "{}", ran.out());
    assert!(!rig.at("ran").exists() && !rig.at(".laboro").exists());
}

#[test]
fn wrong_usage_says_what_to_type() {
    let rig = Rig::new();
    rig.write("jobs.txt", "true\n");
    rig.run([""; 0]).expect(2).says("laboro run -- echo {} ::: a b c");
    rig.run(["-j0", "jobs.txt"]).expect(2).says("at least one slot");
    rig.run(["--attempts", "0", "jobs.txt"]).expect(2).says("tried at least once");
    rig.run(["--timeout", "soon", "jobs.txt"]).expect(2).says("--timeout: `soon`");
    rig.run(["--memory-free", "lots", "jobs.txt"]).expect(2).says("--memory-free: `lots`");
    rig.run(["--output-limit", "x", "jobs.txt"]).expect(2).says("--output-limit: `x`");
    rig.run(["--resource", "gpu", "jobs.txt"]).expect(2).says("gpu=0.5");
    rig.run(["--nice", "50", "jobs.txt"]).expect(2).says("50 is not in -20..=19");
    rig.run(["--zip", "--", "echo", ":::", "a", "b", ":::", "c"]).expect(2).says("the same number");
    rig.run(["--array", "1-3", "jobs.txt"]).expect(2).says("--array");
    rig.run(["--no-such-option"]).expect(2);
    rig.run(["--", "echo", ":::"]).expect(2).says("no values");
    rig.laboro(["nonsense"]).run().expect(2);
    rig.laboro(["logs", "1"]).run().expect(3).says("no run was made here");
    assert!(!rig.at(".laboro").exists());
}

#[test]
fn a_graph_is_drawn_in_three_formats() {
    let rig = Rig::new();
    rig.write(
        "flow.toml",
        "[[task]]\nname = \"a\"\nforeach = \"1-3\"\ncommand = \"x {}\"\n[[task]]\nname = \"b<\"\nafter = [\"a\"]\ncommand = \"x\"\n",
    );
    let text = rig.laboro(["graph", "flow.toml"]).run();
    assert!(text.expect(0).out().contains("a [3]"), "{}", text.out());
    let dot = rig.laboro(["graph", "--format", "dot", "flow.toml"]).run();
    assert!(dot.expect(0).out().starts_with("digraph"), "{}", dot.out());
    rig.laboro(["graph", "flow.toml", "-o", "flow.svg"]).run().expect(0);
    let svg = rig.read("flow.svg");
    assert!(svg.starts_with("<svg") && svg.contains("b&lt;"), "{svg}");
    rig.write("wrong.toml", WRONG);
    rig.laboro(["graph", "wrong.toml"]).run().expect(2).says("wrong.toml:3:1");
}

#[test]
fn a_hundred_thousand_lines_are_read_in_no_time() {
    let rig = Rig::new();
    let lines: String = (0..100_000).map(|i| format!("echo line {i} > out/{i}\n")).collect();
    rig.write("jobs.txt", lines);
    let started = Instant::now();
    rig.run(["--check", "jobs.txt"]).expect(0).says("100000 tasks");
    let ran = rig.run(["--dry-run", "jobs.txt"]);
    assert!(ran.expect(0).out().contains("echo line 0 "));
    // A fiftieth of this on an idle machine.
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let rig = Rig::new();
    let lines: String = (0..20_000).map(|i| format!("echo line {i}\n")).collect();
    rig.write("jobs.txt", lines);
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "\"$0\" run --dry-run jobs.txt | head -n 1", crate::rig::LABORO]);
    let ran = rig.call(shell).run();
    assert_eq!(ran.expect(0).err(), "");
}
