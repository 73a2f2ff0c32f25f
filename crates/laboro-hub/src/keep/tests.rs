//! What tasks print is there to be read, also by those who wait for it.

use super::housekeeping::gaps;
use super::*;
use bytes::Bytes;
use laboro_core::{JobId, Name, Report, TaskResult, WorkerRef};
use laboro_dialects::session::Stream as Said;
use laboro_journal::outputs::Stream;
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
        bytes: Bytes::copy_from_slice(text.as_bytes()),
    }
}

fn report(index: u32, attempt: u16, outcome: Outcome) -> Vec<(u64, Command)> {
    let lease = LeaseRef::Number { task: task(index), lease: LeaseNo::new(1, attempt.into()) };
    let result = TaskResult { lease, outcome, message: None, memo: None };
    let worker = WorkerRef::Name { group: Name::from("g"), name: Name::from("w") };
    vec![(1, Command::Report(Report { worker, results: vec![result] }))]
}

async fn all(outputs: &Outputs, key: Key) -> String {
    let mut cursor = outputs.cursor(key, Streams::Both).await.unwrap();
    let mut text = Vec::new();
    while let Some((stream, piece)) = cursor.next().await.unwrap() {
        assert_eq!(stream, Stream::Stdout);
        text.extend_from_slice(&piece);
    }
    String::from_utf8(text).unwrap()
}

/// A store for one test, closed at its end.
async fn with_store<F: AsyncFnOnce(Outputs)>(dir: &TempDir, test: F) {
    let keeper = Keeper::open(dir.path(), outputs::Config::default()).unwrap();
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
            while let Some((_, piece)) = cursor.more().await.unwrap() {
                pieces.push(piece);
            }
            pieces.concat()
        });
        for word in [" second", " third"] {
            outputs.keep(vec![chunk(1, 1, word)]).await.unwrap();
            outputs.settle().await.unwrap();
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
    let keeper = Keeper::open(dir.path(), outputs::Config::default()).unwrap();
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
