//! What tasks print is there to be read, also by those who wait for it.

use super::housekeeping::gaps;
use super::*;
use bytes::Bytes;
use laboro_core::{JobId, Name, Report, TaskResult, Time, WorkerId, WorkerRef};
use laboro_dialects::session::{AttemptEnd, Ends, Stream as Said};
use laboro_dialects::worker::Used;
use tempfile::TempDir;

fn task(index: u32) -> TaskId {
    TaskId::new(JobId(1), index)
}

fn key(index: u32, attempt: u16) -> Key {
    Key { job: 1, index, attempt }
}

fn chunk(index: u32, attempt: u16, text: &str) -> Chunk {
    Chunk {
        task: task(index),
        lease: LeaseNo::new(1, u64::from(attempt)),
        attempt,
        stream: Said::Out,
        offset: None,
        bytes: Bytes::copy_from_slice(text.as_bytes()),
    }
}

fn report(index: u32, attempt: u16, outcome: Outcome) -> Vec<(u64, Command)> {
    let lease = LeaseRef::Number { task: task(index), lease: LeaseNo::new(1, attempt.into()) };
    let result = TaskResult { lease, outcome, message: None, memo: None };
    let worker = WorkerRef::Name { group: Name::from("g"), name: Name::from("w") };
    vec![(1, Command::Report(Report { worker, results: vec![result] }))]
}

/// A piece that says where it belongs.
fn placed(index: u32, life: u32, offset: u64, text: &str) -> Chunk {
    let lease = LeaseNo::new(life, 1);
    Chunk { offset: Some(offset), lease, ..chunk(index, 1, text) }
}

fn ends(index: u32, attempt: u16, life: u32) -> Vec<Ends> {
    let lease = LeaseNo::new(life, attempt.into());
    let (task, outcome, ended) = (task(index), Outcome::Exit(3), Time(5_000));
    let used = Used { wall_us: 2_000_000, user_us: 5, system_us: 6, peak_kib: 7 };
    let end = AttemptEnd { task, lease, attempt, outcome, ended, used };
    vec![Ends { worker: WorkerId(4), name: Name::from("node"), ends: vec![end] }]
}

async fn all(outputs: &Outputs, key: Key) -> String {
    let mut cursor = outputs.cursor(key, Streams::Both).await.unwrap();
    let mut text = Vec::new();
    loop {
        let piece = cursor.next().await.unwrap();
        if piece.is_empty() {
            return String::from_utf8(text).unwrap();
        }
        text.extend_from_slice(&piece);
    }
}

/// A store for one test, closed at its end.
async fn with_store<F: AsyncFnOnce(Outputs)>(dir: &TempDir, test: F) {
    with_store_in_life(1, dir, test).await;
}

async fn with_store_in_life<F: AsyncFnOnce(Outputs)>(life: u32, dir: &TempDir, test: F) {
    let keeper =
        Keeper::open(dir.path(), outputs::Config::default(), life, OnWriteError::Wait).unwrap();
    test(keeper.outputs()).await;
    tokio::task::spawn_blocking(move || keeper.close()).await.unwrap();
}

#[tokio::test]
async fn what_was_kept_can_be_read_at_once_and_ends_with_its_result() {
    let dir = TempDir::new().unwrap();
    with_store(&dir, async |outputs| {
        outputs
            .keep(vec![chunk(1, 1, "one "), chunk(2, 1, "other"), chunk(1, 1, "two")])
            .await
            .unwrap();
        assert_eq!(all(&outputs, key(1, 1)).await, "one two");
        assert_eq!(outputs.size(key(1, 1), Streams::Stdout).await.unwrap(), 7);
        assert_eq!(outputs.end(key(1, 1)).await.unwrap(), None);
        outputs.note_results(&report(1, 1, Outcome::Exit(3))).await.unwrap();
        let end = outputs.end(key(1, 1)).await.unwrap().unwrap();
        assert_eq!((end.ending.kind, end.ending.code, end.stdout.kept), (0, 3, 7));
        assert_eq!(outputs.end(key(2, 1)).await.unwrap(), None, "the other goes on");
    })
    .await;
}

#[tokio::test]
async fn whoever_follows_gets_the_rest_as_it_comes_and_then_the_end() {
    let dir = TempDir::new().unwrap();
    with_store(&dir, async |outputs| {
        outputs.keep(vec![chunk(1, 1, "first")]).await.unwrap();
        let mut cursor = outputs.cursor(key(1, 1), Streams::Both).await.unwrap();
        let follow = tokio::spawn(async move {
            let mut pieces = Vec::new();
            loop {
                pieces.push(cursor.next().await.unwrap());
                if cursor.is_over() {
                    return pieces.concat();
                }
                cursor.news().await.unwrap();
            }
        });
        for word in [" second", " third"] {
            outputs.keep(vec![chunk(1, 1, word)]).await.unwrap();
            outputs.flush_all().await.unwrap();
        }
        outputs.note_results(&report(1, 1, Outcome::Success)).await.unwrap();
        assert_eq!(follow.await.unwrap(), b"first second third");
    })
    .await;
}

#[tokio::test]
async fn a_new_attempt_ends_the_one_before_and_shuts_its_worker_up() {
    let dir = TempDir::new().unwrap();
    with_store(&dir, async |outputs| {
        outputs.keep(vec![chunk(1, 1, "lost"), chunk(1, 2, "new")]).await.unwrap();
        outputs.keep(vec![chunk(1, 1, " and late")]).await.unwrap();
        assert_eq!(outputs.attempts(task(1)).await.unwrap(), [1, 2]);
        assert_eq!(all(&outputs, key(1, 1)).await, "lost");
        assert_eq!(outputs.end(key(1, 1)).await.unwrap().unwrap().ending.kind, 5);
        assert_eq!(outputs.bytes_lost(), 9);
        outputs.note_results(&report(1, 1, Outcome::Success)).await.unwrap();
        assert_eq!(outputs.end(key(1, 2)).await.unwrap(), None, "that was another lease");
    })
    .await;
}

#[tokio::test]
async fn after_a_restart_an_attempt_goes_on_where_it_was() {
    let dir = TempDir::new().unwrap();
    with_store(&dir, async |outputs| outputs.keep(vec![chunk(1, 1, "before")]).await.unwrap())
        .await;
    with_store(&dir, async |outputs| {
        outputs.keep(vec![chunk(1, 1, " and after")]).await.unwrap();
        outputs.note_results(&report(1, 1, Outcome::Success)).await.unwrap();
        assert_eq!(all(&outputs, key(1, 1)).await, "before and after");
        assert_eq!(outputs.end(key(1, 1)).await.unwrap().unwrap().stdout.kept, 16);
    })
    .await;
}

#[tokio::test]
async fn what_an_attempt_used_is_found_by_its_task_also_if_it_printed_nothing() {
    let dir = TempDir::new().unwrap();
    with_store(&dir, async |outputs| {
        for index in [1, 2, 3, 7] {
            outputs.note_ends(&mut ends(index, 1, 1)).await.unwrap();
        }
        outputs.note_ends(&mut ends(2, 2, 1)).await.unwrap();
        let found = outputs.ends(vec![task(2), task(3), task(5), task(7)]).await.unwrap();
        let keys: Vec<_> = found.iter().map(|end| (end.key.index, end.key.attempt)).collect();
        assert_eq!(keys, [(2, 1), (2, 2), (3, 1), (7, 1)]);
        let worker = found[0].worker.as_ref().unwrap();
        assert_eq!((worker.number, worker.name.as_slice()), (4, b"node".as_slice()));
        let ending = found[0].end.ending;
        assert_eq!((ending.outcome(), ending.started_ms), (Outcome::Exit(3), 3_000));
        assert_eq!((ending.wall_us, ending.max_rss_kib), (2_000_000, 7));
    })
    .await;
}

#[tokio::test]
async fn many_ends_make_few_hand_overs_and_none_is_lost() {
    let dir = TempDir::new().unwrap();
    with_store(&dir, async |outputs| {
        let passing_on = tokio::spawn(pass_on_ends(outputs.clone()));
        let mut flushed = outputs.shared.flushed.subscribe();
        for round in 0..100 {
            let mut batch = ends(1, 1, 1);
            let end = batch[0].ends[0];
            batch[0].ends =
                (1..=500).map(|at| AttemptEnd { task: task(round * 500 + at), ..end }).collect();
            outputs.note_ends(&mut batch).await.unwrap();
        }
        // Written without anybody asking.
        flushed.changed().await.unwrap();
        passing_on.abort();
        let found = outputs.ends((1..=50_000).map(task).collect()).await.unwrap();
        assert_eq!(found.len(), 50_000);
        assert_eq!(outputs.shared.room.available_permits(), BYTES_MAX, "all room is given back");
    })
    .await;
}

#[tokio::test]
async fn a_piece_said_twice_is_kept_once() {
    let dir = TempDir::new().unwrap();
    with_store(&dir, async |outputs| {
        let (one, two) = (placed(1, 1, 0, "one "), placed(1, 1, 4, "two "));
        outputs.keep(vec![one.clone(), two.clone()]).await.unwrap();
        outputs.keep(vec![one.clone(), two, placed(1, 1, 6, "o three")]).await.unwrap();
        assert_eq!(all(&outputs, key(1, 1)).await, "one two three");
        outputs.note_ends(&mut ends(1, 1, 1)).await.unwrap();
        // The link was lost before the answer: everything is told again.
        outputs.keep(vec![one]).await.unwrap();
        outputs.note_ends(&mut ends(1, 1, 1)).await.unwrap();
        assert_eq!(all(&outputs, key(1, 1)).await, "one two three");
        assert_eq!(outputs.size(key(1, 1), Streams::Stdout).await.unwrap(), 13);
        assert_eq!(outputs.bytes_lost(), 0);
    })
    .await;
}

#[tokio::test]
async fn a_piece_said_again_to_the_next_life_of_the_hub_is_kept_once() {
    let dir = TempDir::new().unwrap();
    with_store(&dir, async |outputs| {
        outputs.keep(vec![placed(1, 1, 0, "over"), placed(2, 1, 0, "half ")]).await.unwrap();
        outputs.note_ends(&mut ends(1, 1, 1)).await.unwrap();
    })
    .await;
    with_store_in_life(2, &dir, async |outputs| {
        outputs.keep(vec![placed(1, 1, 0, "over")]).await.unwrap();
        outputs.note_ends(&mut ends(1, 1, 1)).await.unwrap();
        let again = [placed(2, 1, 0, "half "), placed(2, 1, 5, "whole")];
        // And something that never arrived lies before the last one.
        outputs.keep(again.into_iter().chain([placed(2, 1, 100, "!")]).collect()).await.unwrap();
        outputs.keep(vec![placed(2, 1, 100, "!"), placed(2, 1, 101, "?")]).await.unwrap();
        assert_eq!(all(&outputs, key(1, 1)).await, "over");
        assert_eq!(outputs.size(key(1, 1), Streams::Both).await.unwrap(), 4);
        assert_eq!(all(&outputs, key(2, 1)).await, "half whole!?");
        outputs.note_ends(&mut ends(2, 1, 1)).await.unwrap();
        let end = outputs.end(key(2, 1)).await.unwrap().unwrap();
        assert_eq!((end.lost(), outputs.attempts_with_loss()), (90, 1), "what is missing is told");
    })
    .await;
}

#[tokio::test]
async fn more_than_memory_should_hold_is_kept_all_the_same() {
    let dir = TempDir::new().unwrap();
    with_store(&dir, async |outputs| {
        let megabyte = "x".repeat(1 << 20);
        for _ in 0..40 {
            outputs.keep(vec![chunk(1, 1, &megabyte)]).await.unwrap();
        }
        let huge = vec![chunk(2, 1, &megabyte.repeat(20))];
        outputs.keep(huge).await.unwrap();
        assert_eq!(outputs.size(key(1, 1), Streams::Stdout).await.unwrap(), 40 << 20);
        assert_eq!(outputs.size(key(2, 1), Streams::Stdout).await.unwrap(), 20 << 20);
    })
    .await;
}

#[tokio::test]
async fn a_closed_store_says_so() {
    let dir = TempDir::new().unwrap();
    let keeper =
        Keeper::open(dir.path(), outputs::Config::default(), 1, OnWriteError::Wait).unwrap();
    let outputs = keeper.outputs();
    tokio::task::spawn_blocking(move || keeper.close()).await.unwrap();
    let told = outputs.keep(vec![chunk(1, 1, "x")]).await.unwrap_err();
    assert_eq!(told.to_string(), "the store of outputs is closed");
}

#[test]
fn jobs_that_are_missing_between_others_were_forgotten() {
    let found = |from, jobs: &[u32]| -> Vec<RangeInclusive<u32>> {
        gaps(JobId(from), jobs.iter().map(|&job| JobId(job))).collect()
    };
    assert_eq!(found(1, &[1, 2, 3]), []);
    assert_eq!(found(1, &[4, 5, 9]), [1..=3, 6..=8]);
    assert_eq!(found(10, &[10, 12]), [11..=11]);
    assert_eq!(found(1, &[]), []);
}

#[test]
fn what_will_be_forgotten_is_told_before_once() {
    use super::retention::Notice;
    use laboro_core::Retention;
    use std::time::{Duration, Instant};
    let (mut told, now) = (Notice::default(), Instant::now());
    let hour = Duration::from_secs(3600);
    let kept = |finished, soon| Retention { finished, most: 100, soon, first: Some(JobId(4)) };
    assert!(told.words(&kept(89, 0), now).is_empty());
    let near = told.words(&kept(90, 0), now);
    assert!(near[0].starts_with("90 of 100 finished jobs are kept"), "{near:?}");
    assert!(told.words(&kept(100, 0), now).is_empty(), "it is told once");
    let old = told.words(&kept(100, 2), now);
    assert!(old[0].starts_with("2 finished jobs will be forgotten") && old[0].contains("job 4"));
    assert!(told.words(&kept(100, 2), now + hour).is_empty());
    assert_eq!(told.words(&kept(100, 2), now + 25 * hour).len(), 1, "and the next day again");
    assert!(told.words(&kept(50, 0), now + 26 * hour).is_empty());
    assert_eq!(told.words(&kept(95, 0), now + 26 * hour).len(), 1, "it is near again");
}
