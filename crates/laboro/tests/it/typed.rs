//! Lines as people type them, and what is printed: the tables in `typed/`. A case is a line after `$`, what it
//! prints on standard output, `! words` that stand in what it says on standard error, and `? N`, its exit status if
//! that is not 0. Each runs in a directory of its own, in a shell, with `laboro` in the path.

use crate::rig::Rig;
use std::path::Path;
use std::process::Command;

struct Case<'a> {
    line: &'a str,
    out: String,
    says: Vec<&'a str>,
    status: i32,
}

fn cases(table: &str) -> Vec<Case<'_>> {
    let mut cases: Vec<Case<'_>> = Vec::new();
    for line in table.lines().filter(|line| !line.starts_with("# ")) {
        if let Some(line) = line.strip_prefix("$ ") {
            cases.push(Case { line, out: String::new(), says: Vec::new(), status: 0 });
        } else if let Some(case) = cases.last_mut() {
            match line.split_at_checked(2) {
                Some(("! ", words)) => case.says.push(words),
                Some(("? ", status)) => case.status = status.parse().unwrap(),
                _ if line.is_empty() => {}
                _ => case.out.extend([line, "\n"]),
            }
        }
    }
    cases
}

/// The program first.
fn path() -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_laboro")).parent().unwrap();
    format!("{}:{}", program.display(), std::env::var("PATH").unwrap())
}

fn hold(table: &str) {
    let mut wrong = Vec::new();
    for case in cases(table) {
        let rig = Rig::new();
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(case.line).env("PATH", path());
        let ran = rig.call(shell).run();
        let is_said = case.says.iter().all(|words| ran.err().contains(words));
        if ran.out() != case.out || ran.status.code() != Some(case.status) || !is_said {
            let (status, out, err) = (ran.status.code(), ran.out(), ran.err());
            wrong.push(format!("$ {}\n{out}! {err}? {status:?}\n", case.line));
        }
    }
    assert!(wrong.is_empty(), "not as in the table:\n{}", wrong.join("\n"));
}

#[test]
fn placeholders_mean_what_was_typed() {
    hold(include_str!("typed/placeholders.txt"));
}

#[test]
fn only_files_of_commands_are_read_as_commands() {
    hold(include_str!("typed/files.txt"));
}

#[test]
fn standard_input_is_read_only_where_the_command_says_so() {
    hold(include_str!("typed/stdin.txt"));
}

#[test]
fn standard_output_that_takes_nothing_is_an_error() {
    hold(include_str!("typed/stdout.txt"));
}

#[test]
fn habits_of_other_programs_work_or_are_answered() {
    hold(include_str!("typed/habits.txt"));
}

#[test]
fn the_same_lines_print_the_same_with_gnu_parallel() {
    let is_there = Command::new("parallel").arg("--version").output();
    if !is_there.is_ok_and(|ran| ran.stdout.starts_with(b"GNU parallel")) {
        return crate::rig::not_tried("lines compared with GNU parallel: it is not installed");
    }
    let rig = Rig::new();
    rig.write("nums", "1\n2\n3\n");
    rig.write("lines", "a b\nc\n");
    rig.write("t.csv", "x,1\ny,2\n");
    rig.write("h.tsv", "name1\tn2\nv1\tv2\n");
    rig.write("zero", "a\0b c\0");
    let shell = |line: String| {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(line).env("PATH", path());
        rig.call(shell).run()
    };
    let cases = include_str!("typed/parallel.txt").lines().filter(|line| !line.starts_with("# "));
    for case in cases {
        let dashes = if case.starts_with('-') { "" } else { "-- " };
        let ours = shell(format!("laboro run -kq --fresh {dashes}{case}"));
        let theirs = shell(format!("parallel --plus -k {dashes}{case}"));
        assert_eq!(ours.expect(0).out(), theirs.expect(0).out(), "{case}");
    }
}
