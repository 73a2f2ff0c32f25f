//! Runs the manual: every block of README.md and docs/*.md that says so is run as written, in order, in a
//! scratch directory a page, with the real program first in PATH. What the marks of a block mean is in
//! CONTRIBUTING.md. Not a test of the program: it tells whether the manual still says the truth.
#![allow(clippy::unwrap_used)] // A test may fail where it likes, also in the functions it calls.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[test]
fn the_readme_is_true() {
    run_page("README.md");
}

#[test]
fn the_page_about_run_is_true() {
    run_page("docs/run.md");
}

#[test]
fn the_page_about_job_files_is_true() {
    run_page("docs/job-files.md");
}

#[test]
fn the_page_about_the_state_is_true() {
    run_page("docs/state.md");
}

/// A page nobody runs would be the first to go stale.
#[test]
fn every_page_that_has_commands_to_run_is_run() {
    let tested = ["docs/job-files.md", "docs/run.md", "docs/state.md"];
    let mut pages = pages_in("docs");
    pages.retain(|page| blocks(page).iter().any(|block| !matches!(block.mark, Mark::Shown)));
    assert_eq!(pages, tested, "each has a test of its own above");
}

#[test]
fn links_within_the_repository_lead_somewhere() {
    let mut pages = Vec::new();
    for folder in ["", "docs", "spec", "spec/journal"] {
        pages.extend(pages_in(folder));
    }
    for page in ["README.md", "docs/run.md", "spec/journal/README.md"] {
        assert!(pages.iter().any(|found| found == page), "{page} was not found");
    }
    for page in pages {
        let path = repository().join(&page);
        let text = fs::read_to_string(&path).unwrap();
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.starts_with("https://")) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => path.clone(),
                file => path.parent().unwrap().join(file),
            };
            assert!(target.exists(), "{page}: {link} is not there");
            let is_found = heading.is_empty()
                || fs::read_to_string(target).unwrap().lines().any(|line| anchor(line) == heading);
            assert!(is_found, "{page}: {link} has no such heading");
        }
    }
}

/// The pages of a folder of the repository, without those of the folders in it.
fn pages_in(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(repository().join(folder)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut pages: Vec<String> = names
        .filter(|name| name.ends_with(".md"))
        .map(|name| if folder.is_empty() { name } else { format!("{folder}/{name}") })
        .collect();
    pages.sort();
    pages
}

/// What a heading is called in links; nothing for other lines.
fn anchor(line: &str) -> String {
    let heading = line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#'));
    let kept =
        heading.unwrap_or_default().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn run_page(page: &str) {
    let dir = tempfile::tempdir().unwrap();
    copy(&repository().join("crates/laboro/tests/manual"), dir.path());
    copy(&repository().join("examples"), &dir.path().join("examples"));
    let mut printed: Option<String> = None;
    for block in blocks(page) {
        let place = format!("{page}:{}", block.line);
        match block.mark {
            Mark::Shown => {}
            Mark::File(name) => fs::write(dir.path().join(name), block.text).unwrap(),
            Mark::Run { status } => {
                let (code, output) = run(dir.path(), &block.text);
                assert_eq!(code, Some(status), "{place}: status; it printed:\n{output}");
                printed = Some(output);
            }
            Mark::Prints(numbers) => {
                let output = printed.as_deref().expect("what is printed follows what is run");
                check_lines(&place, &block.text, output, numbers);
            }
        }
    }
}

/// What a person would see: both streams, in order. Stops at the first command that fails.
fn run(dir: &Path, commands: &str) -> (Option<i32>, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_laboro"));
    let mut path = program.parent().unwrap().as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    let seen = tempfile::NamedTempFile::new().unwrap();
    let to = || Stdio::from(File::options().append(true).open(seen.path()).unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", commands]).current_dir(dir).env("PATH", path).env("LC_ALL", "C.UTF-8");
    let status = shell.stdin(Stdio::null()).stdout(to()).stderr(to()).status().unwrap();
    (status.code(), String::from_utf8_lossy(&fs::read(seen.path()).unwrap()).into_owned())
}

/// Each line shown must be among those printed, in this order. `…` in it stands for anything.
fn check_lines(place: &str, shown: &str, printed: &str, numbers: Numbers) {
    let mut rest = printed.lines();
    for line in shown.lines().filter(|line| !line.trim().is_empty() && line.trim() != "…") {
        let found =
            rest.any(|candidate| matches(&steady(line, numbers), &steady(candidate, numbers)));
        assert!(found, "{place}: `{line}` was not printed, or not in this order:\n{printed}");
    }
}

fn matches(shown: &str, printed: &str) -> bool {
    let mut parts = shown.trim_end().split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = printed.trim_end().strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, between)) = parts.split_last() else { return rest.is_empty() };
    for part in between {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// What differs from run to run becomes a `~`: times, rates and sizes, which have a point or a unit, and the
/// numbers of processes and moments and the ids of runs, which are long; or every number.
fn steady(line: &str, numbers: Numbers) -> String {
    let mut steady = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(|c: char| c.is_ascii_hexdigit()) {
        steady.push_str(&rest[..at]);
        rest = &rest[at..];
        let word = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let is_id = word == 16 && rest[..word].bytes().all(|byte| byte.is_ascii_hexdigit());
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let number = number.trim_end_matches('.');
        let varies = number.contains('.')
            || number.len() > 8
            || number.len() == digits && UNITS.iter().any(|unit| after.starts_with(unit))
            || numbers == Numbers::Any && !number.is_empty();
        let taken = match (is_id, number.len()) {
            (true, _) => word,
            (false, 0) => 1,
            (false, length) => length,
        };
        steady.push_str(if is_id || varies { "~" } else { &rest[..taken] });
        rest = &rest[taken..];
    }
    steady + rest
}

const UNITS: [&str; 3] = ["/s", " tasks/s", "s left"];

struct Block {
    line: usize,
    mark: Mark,
    text: String,
}

enum Mark {
    Run { status: i32 },
    Prints(Numbers),
    File(String),
    Shown,
}

/// Which numbers must be as shown.
#[derive(Clone, Copy, PartialEq)]
enum Numbers {
    Counts,
    /// Each may be another one.
    Any,
}

/// The fenced blocks of a page.
fn blocks(page: &str) -> Vec<Block> {
    let text = fs::read_to_string(repository().join(page)).unwrap();
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_inside = false;
    for (at, line) in text.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(_) if is_inside => is_inside = false,
            Some(info) => {
                is_inside = true;
                let mark = mark(info).unwrap_or_else(|| panic!("{page}:{}: ```{info}", at + 1));
                blocks.push(Block { line: at + 1, mark, text: String::new() });
            }
            None if is_inside => {
                let block = blocks.last_mut().expect("pushed when its fence was read");
                block.text.push_str(line);
                block.text.push('\n');
            }
            None => {}
        }
    }
    assert!(!is_inside, "{page}: the last block has no end");
    blocks
}

/// The words after the language; `None` if they mean nothing, so that a slip is not a block left out.
fn mark(info: &str) -> Option<Mark> {
    let words: Vec<&str> = info.split_whitespace().skip(1).collect();
    match words.as_slice() {
        [] => Some(Mark::Shown),
        ["run"] => Some(Mark::Run { status: 0 }),
        ["run", status] => {
            let status = status.strip_prefix("status=")?.parse().ok()?;
            Some(Mark::Run { status })
        }
        ["prints"] => Some(Mark::Prints(Numbers::Counts)),
        ["like"] => Some(Mark::Prints(Numbers::Any)),
        [file] => Some(Mark::File(file.strip_prefix("file=")?.to_owned())),
        _ => None,
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap();
        // What somebody ran in the examples is no part of them.
        if name == ".laboro" {
            continue;
        }
        let to = to.join(name);
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).unwrap();
        }
    }
}
