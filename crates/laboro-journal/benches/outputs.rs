//! What the output store costs: by attempt when they are many and small, by byte when one is large,
//! and by question when somebody looks. Sizes on disk go to stderr once.

use std::sync::OnceLock;

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use laboro_journal::outputs::{Config, Ending, Key, Reader, Stream, Streams, Writer};
use tempfile::TempDir;

const ATTEMPTS: u32 = 200_000;

fn main() {
    print_sizes();
    divan::main();
    // A static is never dropped, and this one would leave half a gigabyte behind.
    if let Some(dir) = LARGE_STORE.get() {
        std::fs::remove_dir_all(dir.path()).expect("the store can be removed");
    }
}

fn key(index: u32) -> Key {
    Key { job: 1, index, attempt: 1 }
}

fn ending() -> Ending {
    Ending {
        kind: 1,
        code: 0,
        started_ms: 1_800_000_000_000,
        wall_us: 1_234_567,
        user_us: 800_000,
        sys_us: 12_000,
        max_rss_kib: 34_567,
    }
}

fn empty_store() -> (TempDir, Writer) {
    let dir = tempfile::tempdir().expect("a directory for the store");
    let config = Config { stream_bytes_max: 1 << 40, ..Config::default() };
    let writer = Writer::open(dir.path(), config).expect("a new store");
    (dir, writer)
}

fn write_tiny(writer: &mut Writer) {
    for index in 0..ATTEMPTS {
        writer.append(key(index), Stream::Stdout, b"result: 42\n").expect("append");
        writer.end(key(index), ending()).expect("end");
    }
    writer.flush().expect("flush");
}

fn write_silent(writer: &mut Writer) {
    for index in 0..ATTEMPTS {
        writer.end(key(index), ending()).expect("end");
    }
    writer.flush().expect("flush");
}

fn print_sizes() {
    for (name, write) in
        [("a line and an end", write_tiny as fn(&mut Writer)), ("an end only", write_silent)]
    {
        let (_dir, mut writer) = empty_store();
        write(&mut writer);
        let open = writer.bytes();
        writer.seal().expect("seal");
        let each = writer.bytes() as f64 / f64::from(ATTEMPTS);
        eprintln!("{ATTEMPTS} attempts, {name}: {open} bytes, {each:.1} each with the index");
    }
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn attempts_with_a_line(bencher: Bencher) {
    bencher.counter(ItemsCount::new(ATTEMPTS)).with_inputs(empty_store).bench_local_refs(
        |(_, writer)| {
            write_tiny(writer);
        },
    );
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn attempts_without_output(bencher: Bencher) {
    bencher.counter(ItemsCount::new(ATTEMPTS)).with_inputs(empty_store).bench_local_refs(
        |(_, writer)| {
            write_silent(writer);
        },
    );
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn seal_after_tiny_attempts(bencher: Bencher) {
    let filled = || {
        let (dir, mut writer) = empty_store();
        write_tiny(&mut writer);
        (dir, writer)
    };
    bencher.counter(ItemsCount::new(ATTEMPTS)).with_inputs(filled).bench_local_refs(
        |(_, writer)| {
            writer.seal().expect("seal");
        },
    );
}

#[divan::bench(args = [100, 64 * 1024], sample_count = 5, sample_size = 1)]
fn one_hundred_megabytes_written(bencher: Bencher, piece: usize) {
    let bytes = vec![b'x'; piece];
    let pieces = 100_000_000 / piece;
    bencher.counter(BytesCount::new(pieces * piece)).with_inputs(empty_store).bench_local_refs(
        |(_, writer)| {
            for _ in 0..pieces {
                writer.append(key(0), Stream::Stdout, &bytes).expect("append");
            }
            writer.flush().expect("flush");
        },
    );
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn one_hundred_megabytes_read(bencher: Bencher) {
    let (dir, mut writer) = empty_store();
    for _ in 0..100 {
        writer.append(key(0), Stream::Stdout, &vec![b'x'; 1_000_000]).expect("append");
    }
    writer.seal().expect("seal");
    let reader = Reader::open(dir.path()).expect("reader");
    bencher.counter(BytesCount::new(100_000_000_usize)).bench_local(|| {
        let chunks = reader.read(key(0), Streams::Both);
        chunks.map(|chunk| chunk.expect("a whole chunk").1.len()).sum::<usize>()
    });
}

static LARGE_STORE: OnceLock<TempDir> = OnceLock::new();

/// Five million attempts in sealed segments, and two hundred thousand in one that is not.
fn large_store() -> &'static TempDir {
    LARGE_STORE.get_or_init(|| {
        let (dir, mut writer) = empty_store();
        for index in 0..5_000_000 {
            writer.append(key(index), Stream::Stdout, b"result: 42\n").expect("append");
            writer.end(key(index), ending()).expect("end");
        }
        writer.seal().expect("seal");
        for index in 5_000_000..5_200_000 {
            writer.append(key(index), Stream::Stdout, b"result: 42\n").expect("append");
            writer.end(key(index), ending()).expect("end");
        }
        writer.flush().expect("flush");
        dir
    })
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn open_a_reader_on_five_million_attempts(bencher: Bencher) {
    let dir = large_store();
    bencher.bench_local(|| Reader::open(dir.path()).expect("reader"));
}

#[divan::bench(args = [1_234_567, 5_100_000])]
fn find_the_end_among_five_million(bencher: Bencher, index: u32) {
    let reader = Reader::open(large_store().path()).expect("reader");
    bencher.bench_local(|| reader.end(key(index)).expect("readable").expect("it ended"));
}

#[divan::bench(args = [1_234_567, 5_100_000])]
fn read_one_among_five_million(bencher: Bencher, index: u32) {
    let reader = Reader::open(large_store().path()).expect("reader");
    bencher.bench_local(|| reader.read(key(index), Streams::Both).count());
}

#[divan::bench]
fn poll_with_nothing_new(bencher: Bencher) {
    let mut reader = Reader::open(large_store().path()).expect("reader");
    let mut follow = reader.follow(key(9_999_999), Streams::Both);
    bencher.bench_local(|| follow.poll(&mut reader).is_none());
}
