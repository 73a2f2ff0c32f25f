//! A real process, really killed.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use super::*;

const DIR: &str = "LABORO_TEST_CRASH_DIR";
const NAME: &str = "outputs::tests::crash::a_killed_writer_loses_nothing_it_had_flushed";

#[test]
fn a_killed_writer_loses_nothing_it_had_flushed() {
    // This test starts itself once more: the child writes until it is killed.
    if let Ok(dir) = std::env::var(DIR) {
        write_until_killed(Path::new(&dir));
    }
    let dir = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", NAME, "--nocapture"])
        .env(DIR, dir.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let flushed = lines.filter_map(|line| line.strip_prefix("flushed ")?.parse().ok());
    let flushed: u32 = flushed.take(300).last().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();

    let writer = Writer::open(dir.path(), small_segments()).unwrap();
    let reader = Reader::open(dir.path()).unwrap();
    let mut written = 0;
    for index in 0..7 {
        let found = stream_of(&reader, key(1, index), Streams::Both);
        let lines = String::from_utf8(found).unwrap();
        let numbers: Vec<u32> = lines.lines().map(|line| line.parse().unwrap()).collect();
        let expected = (0..).filter(|number| number % 7 == index).take(numbers.len());
        assert!(expected.eq(numbers.iter().copied()), "task {index}");
        written += numbers.len() as u32;
    }
    assert!(written >= flushed, "{written} of {flushed}");
    assert_eq!(reader.damage().count(), 0);
    assert_eq!(writer.running().count(), 7);
}

fn write_until_killed(dir: &Path) -> ! {
    let mut writer = Writer::open(dir, small_segments()).unwrap();
    for number in 0.. {
        writer
            .append(key(1, number % 7), Stream::Stdout, format!("{number}\n").as_bytes())
            .unwrap();
        if number % 10 == 9 {
            writer.flush().unwrap();
            println!("flushed {}", number + 1);
        }
    }
    unreachable!("killed long before the numbers are used up")
}
