//! Real processes, really killed or really out of room. Each test starts itself once more: the
//! child, told so by its environment, writes until that happens.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};

use super::*;

const DIR: &str = "LABORO_TEST_CRASH_DIR";

#[test]
fn a_killed_writer_loses_nothing_it_had_flushed() {
    if let Ok(dir) = std::env::var(DIR) {
        let error = write_until_an_error(Path::new(&dir), small_segments());
        panic!("killed before any error: {error}");
    }
    let dir = tempfile::tempdir().unwrap();
    let (mut child, lines) = start(
        "outputs::tests::crash::a_killed_writer_loses_nothing_it_had_flushed",
        dir.path(),
        "exec \"$0\" \"$@\"",
    );
    let flushed = lines.map(Result::unwrap).filter_map(flushed_in).take(300).last().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    check_numbers(dir.path(), flushed);
}

#[test]
fn a_full_disk_is_an_error_and_spares_what_was_there() {
    if let Ok(dir) = std::env::var(DIR) {
        let error = write_until_an_error(Path::new(&dir), Config::default());
        println!("stopped by {error}");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    // The kernel refuses to let files grow beyond some 32 blocks, much as a full disk would.
    let (mut child, lines) = start(
        "outputs::tests::crash::a_full_disk_is_an_error_and_spares_what_was_there",
        dir.path(),
        "trap '' XFSZ; ulimit -f 32; exec \"$0\" \"$@\"",
    );
    let lines: Vec<_> = lines.map(Result::unwrap).collect();
    assert!(child.wait().unwrap().success());
    let flushed = lines.iter().cloned().filter_map(flushed_in).next_back().unwrap();
    let error = lines.iter().find_map(|line| line.strip_prefix("stopped by ")).unwrap();
    assert!(error.contains("0000000001.out: File too large"), "{error}");
    check_numbers(dir.path(), flushed);
}

fn start(test: &str, dir: &Path, script: &str) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut child = Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(DIR, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines)
}

fn flushed_in(line: String) -> Option<u32> {
    line.strip_prefix("flushed ")?.parse().ok()
}

const TASKS: u32 = 7;

/// Numbers from zero on, one a line, each to the next task.
fn write_until_an_error(dir: &Path, config: Config) -> Error {
    let mut writer = Writer::open(dir, config).unwrap();
    for number in 0.. {
        let line = format!("{number}\n");
        writer.append(key(1, number % TASKS), Stream::Stdout, line.as_bytes()).unwrap();
        if number % 10 == 9 {
            if let Err(error) = writer.flush() {
                return error;
            }
            println!("flushed {}", number + 1);
        }
    }
    unreachable!("killed or stopped long before the numbers are used up")
}

fn check_numbers(dir: &Path, flushed: u32) {
    let writer = Writer::open(dir, small_segments()).unwrap();
    let reader = Reader::open(dir).unwrap();
    let mut written = 0;
    for index in 0..TASKS {
        let found = stream_of(&reader, key(1, index), Streams::Both);
        let lines = String::from_utf8(found).unwrap();
        let numbers: Vec<u32> = lines.lines().map(|line| line.parse().unwrap()).collect();
        let expected = (0..).filter(|number| number % TASKS == index).take(numbers.len());
        assert!(expected.eq(numbers.iter().copied()), "task {index}");
        written += numbers.len() as u32;
    }
    assert!(written >= flushed, "{written} of {flushed}");
    assert_eq!(reader.damage().count(), 0);
    assert_eq!(writer.running().count(), TASKS as usize);
}
