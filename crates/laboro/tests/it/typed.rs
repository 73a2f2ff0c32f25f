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

fn hold(table: &str) {
    let program = Path::new(env!("CARGO_BIN_EXE_laboro")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut wrong = Vec::new();
    for case in cases(table) {
        let rig = Rig::new();
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(case.line).env("PATH", &path);
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
fn habits_of_other_programs_work_or_are_answered() {
    hold(include_str!("typed/habits.txt"));
}
