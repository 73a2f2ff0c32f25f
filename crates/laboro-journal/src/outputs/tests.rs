//! What the store promises, one promise a test. Random histories and damage have files of their own.

use std::path::Path;

use tempfile::TempDir;

use super::jobs::Jobs;
use super::*;

mod crash;
mod damage;
mod model;

fn key(job: u32, index: u32) -> Key {
    Key { job, index, attempt: 1 }
}

fn small_segments() -> Config {
    Config { segment_bytes: 4096, ..Config::default() }
}

fn store() -> (TempDir, Writer) {
    store_with(Config::default())
}

fn store_with(config: Config) -> (TempDir, Writer) {
    let dir = tempfile::tempdir().unwrap();
    let writer = Writer::open(dir.path(), config).unwrap();
    (dir, writer)
}

/// Everything an attempt wrote, with neighbours of the same stream joined: where a chunk ends is
/// nobody's business.
fn everything(reader: &Reader, key: Key) -> Vec<(Stream, Vec<u8>)> {
    let mut runs = Vec::new();
    for chunk in reader.read(key, Streams::Both) {
        let (stream, bytes) = chunk.unwrap();
        join(&mut runs, stream, &bytes);
    }
    runs
}

fn join(runs: &mut Vec<(Stream, Vec<u8>)>, stream: Stream, bytes: &[u8]) {
    match runs.last_mut() {
        Some((last, run)) if *last == stream => run.extend_from_slice(bytes),
        _ => runs.push((stream, bytes.to_vec())),
    }
}

fn stream_of(reader: &Reader, key: Key, streams: Streams) -> Vec<u8> {
    reader.read(key, streams).flat_map(|chunk| chunk.unwrap().1).collect()
}

fn files(dir: &Path, extension: &str) -> usize {
    segment::numbers(dir, extension).unwrap().len()
}

#[test]
fn a_result_is_that_of_the_attempt_that_decided() {
    let config = Config { segment_bytes: 4096, sync_results: true, ..Config::default() };
    let (dir, mut writer) = store_with(config);
    let at = |index, attempt| Key { job: 1, index, attempt };
    let end = |writer: &mut Writer, key, outcome| {
        writer.end(key, Ending::of(outcome)).unwrap();
    };
    let large = vec![7; 300_000];
    writer.append(at(1, 1), Stream::Result, b"first").unwrap();
    writer.append(at(1, 1), Stream::Stdout, b"printed").unwrap();
    end(&mut writer, at(1, 1), Outcome::Exit(1));
    writer.append(at(1, 2), Stream::Result, b"second").unwrap();
    end(&mut writer, at(1, 2), Outcome::Success);
    // Tried again by a person, attempts of an element are counted anew.
    writer.append(at(2, 2), Stream::Result, b"old").unwrap();
    end(&mut writer, at(2, 2), Outcome::Exit(1));
    writer.append(at(2, 1), Stream::Result, b"new").unwrap();
    end(&mut writer, at(2, 1), Outcome::Success);
    writer.append(at(3, 1), Stream::Result, &large).unwrap();
    end(&mut writer, at(3, 1), Outcome::Success);
    end(&mut writer, at(4, 1), Outcome::Success);
    writer.append(at(5, 1), Stream::Result, b"cut").unwrap();
    writer.lose(at(5, 1), Stream::Result, 9);
    end(&mut writer, at(5, 1), Outcome::Success);
    writer.append(at(90, 1), Stream::Result, b"without an end").unwrap();
    writer.flush().unwrap();
    let reader = Reader::open(dir.path()).unwrap();
    let wanted = |index, succeeded| Wanted { index, succeeded };
    let all = [(1, true), (2, true), (3, true), (4, true), (5, true), (90, true)];
    let all = all.map(|(index, succeeded)| wanted(index, succeeded));
    let bytes = |bytes: &[u8]| KeptResult::Bytes(bytes.to_vec());
    let expected = [
        bytes(b"second"),
        bytes(b"new"),
        bytes(&large),
        KeptResult::Nothing,
        KeptResult::Incomplete,
        bytes(b"without an end"),
    ];
    assert_eq!(reader.results(1, &all, usize::MAX).unwrap(), expected);
    assert_eq!(reader.results(1, &all, 10).unwrap(), expected[..3]);
    assert_eq!(reader.results(1, &[wanted(1, false)], 1).unwrap(), [bytes(b"first")]);
    assert_eq!(stream_of(&reader, at(1, 1), Streams::Both), b"printed");
    assert_eq!(stream_of(&reader, at(3, 1), Streams::Result), large);
    drop(writer);
    // What is there of a result is known to the next writer.
    let mut writer = Writer::open(dir.path(), Config::default()).unwrap();
    assert_eq!(writer.amount(at(90, 1), Stream::Result).kept, 14);
    writer.seal().unwrap();
    drop(writer);
    let writer = Writer::open(dir.path(), Config::default()).unwrap();
    assert_eq!(writer.amount(at(90, 1), Stream::Result).kept, 14);
}

#[test]
fn what_was_written_is_read_back_in_order_of_arrival() {
    let (dir, mut writer) = store();
    writer.append(key(1, 0), Stream::Stdout, b"one ").unwrap();
    writer.append(key(1, 1), Stream::Stdout, b"other").unwrap();
    writer.append(key(1, 0), Stream::Stderr, b"oops ").unwrap();
    writer.append(key(1, 0), Stream::Stdout, b"two").unwrap();
    writer.flush().unwrap();
    let reader = Reader::open(dir.path()).unwrap();
    let expected = [
        (Stream::Stdout, b"one ".to_vec()),
        (Stream::Stderr, b"oops ".to_vec()),
        (Stream::Stdout, b"two".to_vec()),
    ];
    assert_eq!(everything(&reader, key(1, 0)), expected);
    assert_eq!(stream_of(&reader, key(1, 0), Streams::Stdout), b"one two");
    assert_eq!(stream_of(&reader, key(1, 0), Streams::Stderr), b"oops ");
    assert_eq!(everything(&reader, key(1, 2)), []);
}

#[test]
fn an_end_says_all_it_was_told_and_how_much_was_kept() {
    let (dir, mut writer) = store();
    let ending = Ending {
        kind: 7,
        code: -15,
        started_ms: 1_800_000_000_000,
        wall_us: u64::MAX,
        user_us: 2,
        sys_us: 3,
        max_rss_kib: 1 << 40,
    };
    writer.append(key(1, 0), Stream::Stderr, b"four").unwrap();
    let end = writer.end(key(1, 0), ending).unwrap();
    writer.flush().unwrap();
    let reader = Reader::open(dir.path()).unwrap();
    assert_eq!(reader.end(key(1, 0)).unwrap(), Some(end));
    assert_eq!((end.ending, end.stderr.kept, end.stdout.kept), (ending, 4, 0));
    assert!(!end.truncated());
    assert_eq!(reader.end(key(1, 1)).unwrap(), None);
}

#[test]
fn an_attempt_without_output_takes_at_most_64_bytes() {
    let (_dir, mut writer) = store();
    writer.seal().unwrap();
    let before = writer.active.bytes();
    let month_us = 31 * 24 * 3600 * 1_000_000;
    let ending = Ending {
        kind: 1,
        code: 255,
        started_ms: 1_800_000_000_000,
        wall_us: month_us,
        user_us: month_us,
        sys_us: month_us,
        max_rss_kib: 1 << 30,
    };
    writer.end(key(u32::MAX, u32::MAX), ending).unwrap();
    assert!(writer.active.bytes() - before <= 64, "{}", writer.active.bytes() - before);
}

#[test]
fn the_head_of_a_stream_is_kept_up_to_its_limit() {
    let (dir, mut writer) = store_with(Config { stream_bytes_max: 10, ..Config::default() });
    for part in [b"0123456", b"789abcd", b"efghijk"] {
        writer.append(key(1, 0), Stream::Stdout, part).unwrap();
    }
    writer.append(key(1, 0), Stream::Stderr, b"why").unwrap();
    let end = writer.end(key(1, 0), Ending::default()).unwrap();
    writer.flush().unwrap();
    let reader = Reader::open(dir.path()).unwrap();
    assert_eq!(stream_of(&reader, key(1, 0), Streams::Stdout), b"0123456789");
    assert_eq!(stream_of(&reader, key(1, 0), Streams::Stderr), b"why");
    assert_eq!(end.stdout, Amount { kept: 10, dropped: 11, lost: 0 });
    assert_eq!(end.stderr, Amount { kept: 3, dropped: 0, lost: 0 });
    assert!(end.truncated());
}

#[test]
fn a_full_store_keeps_ends_and_no_more_output() {
    let total = 10_000;
    let (dir, mut writer) = store_with(Config { total_bytes_max: Some(total), ..small_segments() });
    for index in 0..100 {
        writer.append(key(1, index), Stream::Stdout, &[b'x'; 500]).unwrap();
    }
    assert!(writer.bytes() <= total);
    let end = writer.end(key(1, 99), Ending::default()).unwrap();
    assert_eq!(end.stdout, Amount { kept: 0, dropped: 0, lost: 500 });
    writer.flush().unwrap();
    let reader = Reader::open(dir.path()).unwrap();
    assert_eq!(stream_of(&reader, key(1, 0), Streams::Both).len(), 500);
    assert_eq!(reader.end(key(1, 99)).unwrap(), Some(end));
}

#[test]
fn a_hundred_megabytes_of_binary_come_back_as_they_were() {
    let config = Config { stream_bytes_max: 1 << 30, segment_bytes: 16 << 20, ..Config::default() };
    let (dir, mut writer) = store_with(config);
    let block: Vec<u8> =
        (0..1_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for number in 0..100_u8 {
        writer.append(key(1, 0), Stream::Stdout, &[number]).unwrap();
        writer.append(key(1, 0), Stream::Stdout, &block[1..]).unwrap();
    }
    let end = writer.end(key(1, 0), Ending::default()).unwrap();
    writer.flush().unwrap();
    assert_eq!(end.stdout.kept, 100_000_000);
    assert!(files(dir.path(), "out") > 3);

    let reader = Reader::open(dir.path()).unwrap();
    let mut seen = 0;
    for chunk in reader.read(key(1, 0), Streams::Stdout) {
        let (_, bytes) = chunk.unwrap();
        for byte in bytes {
            let expected = match seen % block.len() {
                0 => (seen / block.len()) as u8,
                at => block[at],
            };
            assert!(byte == expected, "byte {seen}");
            seen += 1;
        }
    }
    assert_eq!(seen, 100_000_000);
}

#[test]
fn lines_of_one_task_share_a_record() {
    let (_dir, mut writer) = store();
    for _ in 0..1000 {
        writer.append(key(1, 0), Stream::Stdout, b"a line\n").unwrap();
    }
    assert_eq!(writer.active.entries.len(), 1);
}

#[test]
fn the_tail_is_the_last_bytes_of_one_stream_over_segments() {
    let (dir, mut writer) = store_with(small_segments());
    for number in 0..400 {
        writer.append(key(1, 0), Stream::Stderr, format!("{number:04}\n").as_bytes()).unwrap();
        writer.append(key(1, 0), Stream::Stdout, b"noise").unwrap();
        writer.append(key(1, 1), Stream::Stderr, b"other").unwrap();
    }
    writer.flush().unwrap();
    let reader = Reader::open(dir.path()).unwrap();
    let all = stream_of(&reader, key(1, 0), Streams::Stderr);
    assert_eq!(reader.tail(key(1, 0), Stream::Stderr, 12).unwrap(), b"7\n0398\n0399\n");
    for bytes in [0, 1, 999, all.len(), usize::MAX] {
        let tail = reader.tail(key(1, 0), Stream::Stderr, bytes).unwrap();
        assert_eq!(tail, all[all.len().saturating_sub(bytes)..]);
    }
    assert_eq!(reader.tail(key(9, 9), Stream::Stderr, 10).unwrap(), b"");
}

#[test]
fn following_sees_what_is_new_and_then_the_end() {
    let (dir, mut writer) = store_with(small_segments());
    let mut reader = Reader::open(dir.path()).unwrap();
    let mut follow = reader.follow(key(1, 0), Streams::Both);
    assert!(follow.poll(&mut reader).is_none());
    for number in 0..300 {
        let line = format!("line {number}");
        writer.append(key(1, 0), Stream::Stdout, line.as_bytes()).unwrap();
        writer.append(key(1, 1), Stream::Stdout, &[b'n'; 100]).unwrap();
        writer.flush().unwrap();
        let (stream, bytes) = follow.poll(&mut reader).unwrap().unwrap();
        assert_eq!((stream, bytes), (Stream::Stdout, line.into_bytes()));
        assert!(follow.poll(&mut reader).is_none());
        assert_eq!(follow.end(), None);
    }
    let end = writer.end(key(1, 0), Ending::default()).unwrap();
    writer.seal().unwrap();
    assert!(follow.poll(&mut reader).is_none());
    assert_eq!(follow.end(), Some(&end));
}

#[test]
fn the_attempts_of_a_task_can_be_listed() {
    let (dir, mut writer) = store_with(small_segments());
    for attempt in [3, 1, 2] {
        let key = Key { job: 5, index: 7, attempt };
        writer.append(key, Stream::Stdout, &[b'x'; 3000]).unwrap();
        writer.end(key, Ending::default()).unwrap();
        writer.end(Key { index: 8, ..key }, Ending::default()).unwrap();
    }
    writer.flush().unwrap();
    let reader = Reader::open(dir.path()).unwrap();
    assert_eq!(reader.attempts(5, 7).unwrap(), [1, 2, 3]);
    assert_eq!(reader.attempts(5, 9).unwrap(), []);
}

#[test]
fn a_second_writer_is_refused() {
    let (dir, writer) = store();
    let error = Writer::open(dir.path(), Config::default()).unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    drop(writer);
    Writer::open(dir.path(), Config::default()).unwrap();
}

#[test]
fn an_attempt_goes_on_after_the_writer_came_back() {
    let (dir, mut writer) = store_with(Config { stream_bytes_max: 11, ..small_segments() });
    writer.append(key(1, 0), Stream::Stdout, b"before ").unwrap();
    writer.seal().unwrap();
    writer.end(key(1, 1), Ending::default()).unwrap();
    drop(writer);
    let mut writer =
        Writer::open(dir.path(), Config { stream_bytes_max: 11, ..small_segments() }).unwrap();
    assert_eq!(writer.running().collect::<Vec<_>>(), [key(1, 0)]);
    writer.append(key(1, 0), Stream::Stdout, b"after").unwrap();
    let end = writer.end(key(1, 0), Ending::default()).unwrap();
    writer.sync().unwrap();
    assert_eq!(end.stdout, Amount { kept: 11, dropped: 1, lost: 0 });
    let reader = Reader::open(dir.path()).unwrap();
    assert_eq!(stream_of(&reader, key(1, 0), Streams::Both), b"before afte");
}

#[test]
fn a_segment_goes_when_all_its_jobs_are_forgotten() {
    let (dir, mut writer) = store();
    for job in [1, 2] {
        writer.append(key(job, 0), Stream::Stdout, &[b'x'; 1000]).unwrap();
    }
    writer.seal().unwrap();
    writer.append(key(3, 0), Stream::Stdout, &[b'x'; 1000]).unwrap();
    writer.seal().unwrap();

    assert_eq!(writer.forget(2..=2).unwrap(), 0);
    assert_eq!(files(dir.path(), "out"), 3);
    assert!(writer.forget(1..=1).unwrap() > 2000);
    assert_eq!((files(dir.path(), "out"), files(dir.path(), "idx")), (2, 1));
    let reader = Reader::open(dir.path()).unwrap();
    assert_eq!(stream_of(&reader, key(1, 0), Streams::Both), b"");
    assert_eq!(stream_of(&reader, key(3, 0), Streams::Both).len(), 1000);
}

#[test]
fn a_forgotten_job_takes_no_output_even_after_a_restart() {
    let (dir, mut writer) = store();
    writer.append(key(4, 0), Stream::Stdout, b"x").unwrap();
    writer.forget(3..=5).unwrap();
    drop(writer);
    let mut writer = Writer::open(dir.path(), Config::default()).unwrap();
    assert_eq!(writer.running().count(), 0);
    let error = writer.append(key(4, 0), Stream::Stdout, b"y").unwrap_err();
    assert_eq!(error.to_string(), "job 4 was forgotten and takes no more output");
    assert!(matches!(writer.end(key(5, 0), Ending::default()), Err(Error::Forgotten { job: 5 })));
    writer.append(key(6, 0), Stream::Stdout, b"y").unwrap();
}

#[test]
fn a_reader_from_before_survives_segments_that_go() {
    let (dir, mut writer) = store();
    let mut reader = Reader::open(dir.path()).unwrap();
    for job in 1..=3 {
        writer.append(key(job, 0), Stream::Stdout, &[b'x'; 1000]).unwrap();
        writer.end(key(job, 0), Ending::default()).unwrap();
        writer.seal().unwrap();
    }
    let late = Reader::open(dir.path()).unwrap();
    writer.forget(1..=2).unwrap();
    reader.refresh().unwrap();
    for reader in [&reader, &late] {
        assert_eq!(everything(reader, key(2, 0)), []);
        assert_eq!(reader.end(key(2, 0)).unwrap(), None);
        assert_eq!(stream_of(reader, key(3, 0), Streams::Both).len(), 1000);
    }
}

#[test]
fn a_reader_keeps_up_with_a_writer_beside_it() {
    let (dir, mut writer) = store_with(Config { segment_bytes: 32 << 10, ..Config::default() });
    let mut reader = Reader::open(dir.path()).unwrap();
    let mut follows: Vec<_> =
        (0..8).map(|index| (reader.follow(key(1, index), Streams::Both), Vec::new())).collect();
    let (flushed, news) = std::sync::mpsc::channel();
    let writing = std::thread::spawn(move || {
        for number in 0..20_000_u32 {
            let line = format!("{number} {}\n", "x".repeat(number as usize % 97));
            writer.append(key(1, number % 8), Stream::Stdout, line.as_bytes()).unwrap();
            if number % 50 == 0 {
                writer.flush().unwrap();
                flushed.send(()).unwrap();
            }
        }
        for index in 0..8 {
            writer.end(key(1, index), Ending::default()).unwrap();
        }
    });
    let mut look = || {
        for (follow, seen) in &mut follows {
            while let Some(chunk) = follow.poll(&mut reader) {
                seen.extend_from_slice(&chunk.unwrap().1);
            }
        }
    };
    news.iter().for_each(|()| look());
    writing.join().unwrap();
    look();
    for (index, (follow, seen)) in (0..8).zip(follows) {
        let lines = (0..20_000).filter(|number| number % 8 == index);
        let expected: String =
            lines.map(|n| format!("{n} {}\n", "x".repeat(n as usize % 97))).collect();
        assert!(seen == expected.as_bytes(), "task {index}");
        assert_eq!(follow.end().unwrap().stdout.kept, expected.len() as u64);
    }
}

#[test]
fn a_set_of_jobs_merges_what_touches() {
    let mut jobs = Jobs::default();
    for range in [5..=6, 1..=2, 9..=9, 3..=3, u32::MAX..=u32::MAX, 0..=0] {
        jobs.insert(range);
    }
    assert_eq!(jobs.ranges(), [0..=3, 5..=6, 9..=9, u32::MAX..=u32::MAX]);
    assert!(jobs.contains(3) && !jobs.contains(4) && !jobs.contains(10));
    assert!(jobs.covers(&[1, 2, 9].into_iter().collect()));
    assert!(!jobs.covers(&[3, 4].into_iter().collect()));
    jobs.insert(4..=u32::MAX - 1);
    assert_eq!(jobs.ranges(), [0..=u32::MAX]);
}

#[test]
fn who_ran_an_attempt_is_found_with_those_of_its_neighbours() {
    let (dir, mut writer) = store_with(small_segments());
    let ending = |wall_us| Ending { wall_us, max_rss_kib: 7, ..Ending::of(Outcome::Exit(3)) };
    for index in 1..=300 {
        writer.end_by(key(1, index), ending(index.into()), (9, b"node")).unwrap();
    }
    writer.end(key(2, 1), ending(1)).unwrap();
    let late = Key { attempt: 2, ..key(1, 7) };
    writer.end_by(late, ending(70), (10, &[b'x'; 300])).unwrap();
    writer.end_by(key(1, 8), ending(80), (9, b"node")).unwrap();
    writer.flush().unwrap();
    let reader = Reader::open(dir.path()).unwrap();
    assert!(files(dir.path(), "idx") > 1);
    let ends = reader.ends(key(1, 6), Key { attempt: u16::MAX, ..key(1, 8) }).unwrap();
    let shown: Vec<_> = ends
        .iter()
        .map(|ended| {
            let worker = ended.worker.as_ref().unwrap();
            (ended.key.index, ended.key.attempt, ended.end.ending.wall_us, worker.name.len())
        })
        .collect();
    assert_eq!(shown, [(6, 1, 6, 4), (7, 1, 7, 4), (7, 2, 70, 255), (8, 1, 80, 4)]);
    assert_eq!(ends[0].end.ending.outcome(), Outcome::Exit(3));
    assert_eq!(reader.ends(key(2, 1), key(2, 1)).unwrap()[0].worker, None);
}

#[test]
fn an_outcome_comes_back_as_it_was_told() {
    let all = [
        Outcome::Success,
        Outcome::Exit(7),
        Outcome::Signal(9),
        Outcome::TimedOut,
        Outcome::Error,
        Outcome::Lost,
    ];
    all.into_iter().for_each(|outcome| assert_eq!(Ending::of(outcome).outcome(), outcome));
}

#[test]
fn of_an_attempt_that_ran_twice_the_last_run_is_read() {
    let (dir, mut writer) = store_with(small_segments());
    let (one, filler) = (key(1, 1), vec![b'x'; 3000]);
    for text in ["first", "second", "third"] {
        writer.append(one, Stream::Stdout, text.as_bytes()).unwrap();
        writer.append(key(1, 2), Stream::Stdout, &filler).unwrap();
        writer.flush().unwrap();
        let mut reader = Reader::open(dir.path()).unwrap();
        let mut follow = reader.follow(one, Streams::Both);
        assert_eq!(follow.poll(&mut reader).unwrap().unwrap().1, text.as_bytes());
        writer.end(one, Ending::default()).unwrap();
        // Said twice, as after a lost link.
        writer.end(one, Ending::default()).unwrap();
        writer.flush().unwrap();
        assert!(follow.poll(&mut reader).is_none() && follow.end().is_some());
        let reader = Reader::open(dir.path()).unwrap();
        assert_eq!(stream_of(&reader, one, Streams::Both), text.as_bytes());
    }
    assert!(files(dir.path(), "idx") > 1);
}
