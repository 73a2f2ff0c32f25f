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

#[test]
fn what_a_full_disk_does_not_take_is_given_up_and_told_with_the_end() {
    let Ok(dir) = std::env::var(DIR) else {
        let dir = tempfile::tempdir().unwrap();
        let (mut child, _lines) = start(
            "outputs::tests::crash::what_a_full_disk_does_not_take_is_given_up_and_told_with_the_end",
            dir.path(),
            "trap '' XFSZ; ulimit -f 32; exec \"$0\" \"$@\"",
        );
        assert!(child.wait().unwrap().success());
        return;
    };
    let mut writer = Writer::open(&dir, Config::default()).unwrap();
    let mut early = Reader::open(&dir).unwrap();
    let (before, whole, cut, running) = (key(1, 0), key(1, 1), key(1, 2), key(1, 3));
    writer.append(before, Stream::Stdout, b"before").unwrap();
    writer.end(before, Ending::default()).unwrap();
    writer.append(whole, Stream::Stderr, b"whole").unwrap();
    writer.append(cut, Stream::Stdout, &[b'x'; 50_000]).unwrap();
    writer.end(cut, Ending::default()).unwrap();
    writer.append(running, Stream::Stdout, b"of one that runs").unwrap();
    let error = writer.flush().unwrap_err();
    assert!(error.to_string().contains("File too large"), "{error}");
    // What a reader may have seen stays, and so does its place.
    early.refresh().unwrap();
    assert_eq!(stream_of(&early, whole, Streams::Both), b"whole");
    writer.discard().unwrap();
    assert!(writer.has_lost());
    // It would fit now, but what is kept is the head of a stream.
    writer.append(running, Stream::Stdout, b" on").unwrap();
    for key in [whole, running] {
        writer.end_by(key, Ending::default(), (7, b"node")).unwrap();
    }
    writer.flush().unwrap();
    early.refresh().unwrap();
    for reader in [early, Reader::open(&dir).unwrap()] {
        let lost = |key| reader.end(key).unwrap().unwrap().lost();
        assert_eq!([before, whole, cut, running].map(lost), [0, 0, 50_000, 19]);
        assert_eq!(stream_of(&reader, cut, Streams::Both), b"");
        let ends = reader.ends(before, running).unwrap();
        let workers: Vec<bool> = ends.iter().map(|ended| ended.worker.is_some()).collect();
        assert_eq!(workers, [false, true, false, true]);
        assert_eq!(reader.damage().count(), 0);
    }
}

#[test]
fn what_was_lost_of_a_running_attempt_is_carried_to_the_next_segment() {
    let (dir, mut writer) = store();
    writer.append(key(1, 0), Stream::Stdout, b"kept").unwrap();
    writer.lose(key(1, 0), Stream::Stderr, 77);
    writer.seal().unwrap();
    drop(writer);
    let mut writer = Writer::open(dir.path(), Config::default()).unwrap();
    assert!(writer.has_lost());
    assert_eq!(writer.end(key(1, 0), Ending::default()).unwrap().lost(), 77);
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
