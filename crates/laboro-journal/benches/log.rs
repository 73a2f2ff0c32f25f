//! What a commit costs against the same bytes written with nothing around them and synced as
//! often. Two floors: `raw_append` lets the file grow, as a plain log does, and is the fair one;
//! `raw_overwrite` writes over zeros on the disk, the least any durable log can do.
//!
//! Alternating rounds, because disks have moods: `cargo bench -p laboro-journal --bench log`.
//! The directory is made under `LABORO_BENCH_DIR`, or the system's temporary directory.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use laboro_journal::log::{Durability, Log, Options};

const EVENT_BYTES: usize = 40;
const ROUNDS: usize = 7;

fn main() {
    compare(1000, 400);
    compare(100, 1000);
    compare(1, 1000);
    opening();
    divan::main();
}

/// Commits a payload so many times and says how long each took.
type Way = fn(&[u8], usize) -> Vec<Duration>;

/// Prints what each way takes and its ratio to the fair floor.
fn compare(events: usize, commits: usize) {
    let ways: [(&str, Way); 3] =
        [("raw_append", raw_append), ("raw_overwrite", raw_overwrite), ("log", log)];
    let payload = batch(events);
    let mut rounds: Vec<Vec<Vec<Duration>>> = vec![Vec::new(); ways.len()];
    for _ in 0..ROUNDS {
        for (taken, (_, way)) in rounds.iter_mut().zip(ways) {
            taken.push(way(&payload, commits));
        }
    }
    println!("batches of {events} events of {EVENT_BYTES} bytes, a sync each, {ROUNDS} rounds:");
    let (floor_p50, floor_mean) = (percentile(&rounds[0], 50), median(&rounds[0]));
    for (taken, (name, _)) in rounds.iter().zip(ways) {
        let (p50, p99, mean) = (percentile(taken, 50), percentile(taken, 99), median(taken));
        println!(
            "  {name:14} p50 {p50:>8.1?} ({:.2} of raw_append)  p99 {p99:>8.1?}  mean {mean:>8.1?} ({:.2})",
            p50.as_secs_f64() / floor_p50.as_secs_f64(),
            mean.as_secs_f64() / floor_mean.as_secs_f64(),
        );
    }
}

/// Over the commits of all rounds.
fn percentile(rounds: &[Vec<Duration>], percent: usize) -> Duration {
    let mut all: Vec<Duration> = rounds.iter().flatten().copied().collect();
    all.sort_unstable();
    all[all.len() * percent / 100]
}

/// The median over the rounds of a commit's mean time.
fn median(rounds: &[Vec<Duration>]) -> Duration {
    let mut means: Vec<Duration> =
        rounds.iter().map(|round| round.iter().sum::<Duration>() / round.len() as u32).collect();
    means.sort_unstable();
    means[means.len() / 2]
}

fn opening() {
    let mut times: Vec<[Duration; 2]> = (0..ROUNDS)
        .map(|_| {
            let dir = place();
            let begun = Instant::now();
            let mut log = open(&dir, Durability::Sync);
            let opened = begun.elapsed();
            log.commit(b"first").expect("the bench directory can be written");
            [opened, begun.elapsed()]
        })
        .collect();
    times.sort_unstable();
    let [opened, committed] = times[ROUNDS / 2];
    println!("a new log: open after {opened:.1?}, first commit durable after {committed:.1?}");
}

fn log(payload: &[u8], commits: usize) -> Vec<Duration> {
    let dir = place();
    let mut log = open(&dir, Durability::Sync);
    timed(commits, || {
        log.commit(payload).expect("the bench directory can be written");
    })
}

fn raw_append(payload: &[u8], commits: usize) -> Vec<Duration> {
    let dir = place();
    let mut file = create(&dir);
    timed(commits, || {
        file.write_all(payload).and_then(|()| file.sync_data()).expect("the file can be written");
    })
}

fn raw_overwrite(payload: &[u8], commits: usize) -> Vec<Duration> {
    let dir = place();
    let mut file = create(&dir);
    file.write_all(&vec![0; payload.len() * commits])
        .and_then(|()| file.sync_all())
        .expect("the file can be written");
    let mut at = 0;
    timed(commits, || {
        file.write_all_at(payload, at)
            .and_then(|()| file.sync_data())
            .expect("the file can be written");
        at += payload.len() as u64;
    })
}

fn timed(commits: usize, mut commit: impl FnMut()) -> Vec<Duration> {
    (0..commits)
        .map(|_| {
            let begun = Instant::now();
            commit();
            begun.elapsed()
        })
        .collect()
}

/// What a commit costs the processor, without the disk.
#[divan::bench(args = [1, 100, 1000])]
fn commit_to_the_system(bencher: divan::Bencher<'_, '_>, events: usize) {
    let dir = place();
    let (mut log, payload) = (open(&dir, Durability::Os), batch(events));
    bencher.bench_local(|| log.commit(&payload).expect("the bench directory can be written"));
}

fn batch(events: usize) -> Vec<u8> {
    (0..events * EVENT_BYTES).map(|at| (at * 31 % 251) as u8).collect()
}

fn open(dir: &tempfile::TempDir, durability: Durability) -> Log {
    let options = Options { durability, ..Options::default() };
    let (log, _) = Log::open(&dir.path().join("log"), options, None, &mut |_, _, _| Ok(()))
        .expect("a new log opens");
    log
}

fn create(dir: &tempfile::TempDir) -> File {
    File::create(dir.path().join("raw")).expect("the bench directory can be written")
}

fn place() -> tempfile::TempDir {
    let root = std::env::var_os("LABORO_BENCH_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    tempfile::tempdir_in(root).expect("the bench directory can be written")
}
