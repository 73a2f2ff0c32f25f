//! Torn tails, flipped bytes and lost files: errors in the right place, and never wrong bytes.

use std::fs;

use proptest::prelude::*;

use super::*;

/// A store with a known history: after each record, where the file ended.
struct History {
    dir: TempDir,
    ends_at: Vec<usize>,
    bytes: Vec<u8>,
}

const KEYS: u32 = 3;

/// Twelve chunks, four for each of three attempts, each of which then ends.
fn history() -> History {
    let (dir, mut writer) = store();
    let mut ends_at = Vec::new();
    for number in 0..12 {
        writer.append(key(1, number % KEYS), Stream::Stdout, chunk(number).as_bytes()).unwrap();
        writer.flush().unwrap();
        ends_at.push(writer.active.bytes() as usize);
    }
    for index in 0..KEYS {
        writer.end(key(1, index), Ending::default()).unwrap();
        writer.flush().unwrap();
        ends_at.push(writer.active.bytes() as usize);
    }
    let bytes = fs::read(segment::path(dir.path(), 1)).unwrap();
    History { dir, ends_at, bytes }
}

fn chunk(number: u32) -> String {
    format!("chunk {number} {}\n", "=".repeat(number as usize))
}

impl History {
    fn replace_with(&self, bytes: &[u8]) {
        fs::write(segment::path(self.dir.path(), 1), bytes).unwrap();
    }

    /// What an attempt had written when the first `records` were there.
    fn text(&self, index: u32, records: usize) -> String {
        (0..12).take(records).filter(|number| number % KEYS == index).map(chunk).collect()
    }
}

#[test]
fn a_tail_torn_at_any_byte_costs_only_the_torn_record() {
    let history = history();
    let dir = history.dir.path();
    for length in segment::HEAD_BYTES..history.bytes.len() {
        history.replace_with(&history.bytes[..length]);
        let whole = history.ends_at.iter().filter(|end| **end <= length).count();

        let mut early = Reader::open(dir).unwrap();
        let mut writer = Writer::open(dir, Config::default()).unwrap();
        writer.append(key(2, 0), Stream::Stderr, b"after the crash").unwrap();
        writer.flush().unwrap();
        early.refresh().unwrap();
        for reader in [early, Reader::open(dir).unwrap()] {
            for index in 0..KEYS {
                let found = stream_of(&reader, key(1, index), Streams::Both);
                assert_eq!(found, history.text(index, whole).as_bytes(), "cut at {length}");
                let ended = reader.end(key(1, index)).unwrap().is_some();
                assert_eq!(ended, whole > 12 + index as usize, "cut at {length}");
            }
            assert_eq!(stream_of(&reader, key(2, 0), Streams::Both), b"after the crash");
            assert_eq!(reader.damage().count(), 0);
        }
    }
}

#[test]
fn a_tail_of_zeros_or_noise_is_cut() {
    let history = history();
    for tail in [vec![0; 5000], (0..5000_u32).map(|n| ((n * n) >> 3) as u8).collect()] {
        history.replace_with(&[&history.bytes[..], &tail].concat());
        let reader = Reader::open(history.dir.path()).unwrap();
        assert_eq!(stream_of(&reader, key(1, 0), Streams::Both), history.text(0, 12).as_bytes());
        drop(Writer::open(history.dir.path(), Config::default()).unwrap());
        assert!(fs::read(segment::path(history.dir.path(), 1)).unwrap() == history.bytes);
    }
}

/// Reads all that can be read, and says whether anything was reported.
fn read_what_is_left(reader: &Reader, key: Key) -> (Vec<u8>, Vec<Error>) {
    let (mut found, mut errors) = (Vec::new(), Vec::new());
    for chunk in reader.read(key, Streams::Both) {
        match chunk {
            Ok((_, bytes)) => found.extend(bytes),
            Err(error) => errors.push(error),
        }
    }
    (found, errors)
}

#[test]
fn a_flipped_byte_anywhere_is_reported_and_spares_the_rest() {
    let history = history();
    let dir = history.dir.path();
    for sealed in [false, true] {
        if sealed {
            Writer::open(dir, Config::default()).unwrap().seal().unwrap();
        }
        for at in segment::HEAD_BYTES..history.bytes.len() {
            let mut bytes = history.bytes.clone();
            bytes[at] ^= 0x10;
            history.replace_with(&bytes);
            let reader = Reader::open(dir).unwrap();
            let hit = history.ends_at.iter().filter(|end| **end <= at).count();
            for index in 0..KEYS {
                let (found, errors) = read_what_is_left(&reader, key(1, index));
                let ended = reader.end(key(1, index));
                let mut expected: Vec<_> = (0..12).filter(|n| n % KEYS == index).collect();
                if hit < 12 && hit as u32 % KEYS == index {
                    expected.retain(|number| *number as usize != hit);
                    assert_eq!(errors.len(), 1, "flipped {at}: {errors:?}");
                    assert!(ended.unwrap().is_some(), "flipped {at}");
                } else if hit == 12 + index as usize {
                    // The header of an end that was never indexed leaves no trace to report.
                    assert!(!matches!(ended, Ok(Some(_))), "flipped {at}");
                } else {
                    assert!(errors.is_empty(), "flipped {at}: {errors:?}");
                    assert!(ended.unwrap().is_some(), "flipped {at}");
                }
                let expected: String = expected.into_iter().map(chunk).collect();
                assert_eq!(String::from_utf8(found).unwrap(), expected, "flipped {at}");
            }
        }
        history.replace_with(&history.bytes);
    }
}

#[test]
fn an_error_names_the_file_and_the_offset() {
    let history = history();
    let mut bytes = history.bytes.clone();
    let offset = history.ends_at[4];
    bytes[offset + record::HEADER_BYTES] ^= 1;
    history.replace_with(&bytes);
    let reader = Reader::open(history.dir.path()).unwrap();
    let (_, errors) = read_what_is_left(&reader, key(1, 2));
    let message = errors[0].to_string();
    let expected = format!("0000000001.out: checksum mismatch in the record at {offset}");
    assert!(message.ends_with(&expected), "{message}");
}

#[test]
fn damage_before_valid_records_is_not_cut_off() {
    let history = history();
    let dir = history.dir.path();
    let mut bytes = history.bytes.clone();
    bytes[history.ends_at[4]] ^= 1;
    history.replace_with(&bytes);
    let mut writer = Writer::open(dir, Config::default()).unwrap();
    assert_eq!(writer.active.bytes(), bytes.len() as u64);
    writer.seal().unwrap();
    let reader = Reader::open(dir).unwrap();
    let (found, errors) = read_what_is_left(&reader, key(1, 2));
    assert_eq!(String::from_utf8(found).unwrap(), chunk(2) + &chunk(8) + &chunk(11));
    let message = errors[0].to_string();
    assert_eq!(message, "job 1 task 2 attempt 1 stdout: bytes 11 to 25 are missing from the store");
}

#[test]
fn a_copy_of_a_segment_in_an_output_is_not_taken_for_records() {
    let history = history();
    let dir = history.dir.path();
    let mut writer = Writer::open(dir, Config::default()).unwrap();
    let copy_at = writer.active.bytes();
    writer.append(key(2, 0), Stream::Stdout, &history.bytes).unwrap();
    writer.append(key(2, 1), Stream::Stdout, b"x").unwrap();
    writer.flush().unwrap();
    let end = writer.active.bytes();
    drop(writer);
    let mut bytes = fs::read(segment::path(dir, 1)).unwrap();
    bytes[copy_at as usize] ^= 1;
    history.replace_with(&bytes);
    let reader = Reader::open(dir).unwrap();
    let damage: Vec<_> = reader.damage().map(|damage| (damage.from, damage.to)).collect();
    assert_eq!(damage, [(copy_at, end - 1 - record::HEADER_BYTES as u64)]);
}

#[test]
fn an_index_is_rebuilt_when_lost_and_doubted_when_damaged() {
    let history = history();
    let dir = history.dir.path();
    let index = segment::index_path(dir, 1);
    Writer::open(dir, Config::default()).unwrap().seal().unwrap();
    let good = fs::read(&index).unwrap();

    for at in 0..good.len() {
        let mut bytes = good.clone();
        bytes[at] ^= 0x10;
        fs::write(&index, bytes).unwrap();
        let reader = Reader::open(dir).unwrap();
        match reader.read(key(1, 1), Streams::Both).collect::<Result<Vec<_>, _>>() {
            Ok(chunks) => assert_eq!(chunks.len(), 4, "flipped {at}"),
            Err(error) => assert!(error.to_string().contains("0000000001.idx"), "{error}"),
        }
    }
    for length in 0..good.len() {
        fs::write(&index, &good[..length]).unwrap();
        let reader = Reader::open(dir).unwrap();
        assert_eq!(stream_of(&reader, key(1, 1), Streams::Both), history.text(1, 12).as_bytes());
    }
    fs::remove_file(&index).unwrap();
    drop(Writer::open(dir, Config::default()).unwrap());
    assert_eq!(fs::read(&index).unwrap(), good);
}

#[test]
fn a_segment_without_a_head_is_set_aside() {
    let history = history();
    let dir = history.dir.path();
    for head in [&b""[..], b"LABOUT", &[0; 4096]] {
        history.replace_with(head);
        let mut old = Reader::open(dir).unwrap();
        let mut writer = Writer::open(dir, Config::default()).unwrap();
        let job = head.len() as u32;
        writer.append(key(job, 0), Stream::Stdout, b"new").unwrap();
        writer.flush().unwrap();
        old.refresh().unwrap();
        assert_eq!(stream_of(&old, key(job, 0), Streams::Both), b"new");
        assert_eq!(old.damage().count(), 1);
    }
}

#[test]
fn strange_files_in_the_directory_do_no_harm() {
    let (dir, writer) = store();
    drop(writer);
    for name in ["4294967295.out", "x.out", "0000000009.idx", "0000000007.tmp", ".out", "1.2.out"] {
        fs::write(dir.path().join(name), b"noise").unwrap();
    }
    let mut writer = Writer::open(dir.path(), Config::default()).unwrap();
    writer.append(key(1, 0), Stream::Stdout, b"x").unwrap();
    writer.seal().unwrap();
    let reader = Reader::open(dir.path()).unwrap();
    assert_eq!(stream_of(&reader, key(1, 0), Streams::Both), b"x");
    assert_eq!((files(dir.path(), "idx"), files(dir.path(), "tmp")), (1, 0));
}

#[test]
fn a_damaged_list_of_forgotten_jobs_is_an_error() {
    let (dir, mut writer) = store();
    writer.forget(7..=9).unwrap();
    drop(writer);
    let path = dir.path().join("forgotten");
    fs::write(&path, fs::read_to_string(&path).unwrap() + "12 eggs\n").unwrap();
    let error = Writer::open(dir.path(), Config::default()).unwrap_err().to_string();
    assert!(error.ends_with("forgotten: no range of jobs at 4"), "{error}");
}

#[derive(Clone, Debug)]
enum Blow {
    Flip(u8),
    Zero(usize),
    Remove(usize),
    Insert(Vec<u8>),
    Cut,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn no_damage_makes_the_store_panic_or_invent(
        blows in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), blow()), 1..6),
    ) {
        let (dir, mut writer) = store_with(small_segments());
        for number in 0..200 {
            writer.append(key(1, number % KEYS), Stream::Stdout, chunk(number).as_bytes()).unwrap();
            writer.flush().unwrap();
        }
        drop(writer);
        let mut paths: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().path()).collect();
        paths.sort();
        for (file, place, blow) in blows {
            strike(&paths[file.index(paths.len())], &place, blow);
        }

        check_nothing_is_invented(&Reader::open(dir.path()).unwrap());
        let mut writer = Writer::open(dir.path(), small_segments()).unwrap();
        writer.append(key(2, 0), Stream::Stdout, b"life goes on").unwrap();
        writer.flush().unwrap();
        let reader = Reader::open(dir.path()).unwrap();
        check_nothing_is_invented(&reader);
        prop_assert_eq!(stream_of(&reader, key(2, 0), Streams::Both), b"life goes on");
    }
}

fn check_nothing_is_invented(reader: &Reader) {
    for index in 0..KEYS {
        let mut numbers = (0..200).filter(|number| number % KEYS == index);
        for (_, bytes) in reader.read(key(1, index), Streams::Both).flatten() {
            assert!(numbers.any(|number| chunk(number).as_bytes() == bytes), "{bytes:?}");
        }
        // Whatever these say, they must say it without a panic.
        let _ = reader.tail(key(1, index), Stream::Stdout, 100);
        let _ = reader.end(key(1, index));
    }
}

fn strike(path: &Path, place: &prop::sample::Index, blow: Blow) {
    let mut bytes = fs::read(path).unwrap();
    let at = place.index(bytes.len() + 1);
    let up_to = |length: usize| at..bytes.len().min(at + length);
    match blow {
        Blow::Flip(bits) => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= bits),
        Blow::Zero(length) => {
            let range = up_to(length);
            bytes[range].fill(0);
        }
        Blow::Remove(length) => {
            let range = up_to(length);
            bytes.drain(range);
        }
        Blow::Insert(new) => {
            bytes.splice(at..at, new);
        }
        Blow::Cut => bytes.truncate(at),
    }
    fs::write(path, bytes).unwrap();
}

fn blow() -> impl Strategy<Value = Blow> {
    prop_oneof![
        4 => (1..=255_u8).prop_map(Blow::Flip),
        1 => (1..5000_usize).prop_map(Blow::Zero),
        1 => (1..500_usize).prop_map(Blow::Remove),
        1 => prop::collection::vec(any::<u8>(), 1..200).prop_map(Blow::Insert),
        1 => Just(Blow::Cut),
    ]
}
