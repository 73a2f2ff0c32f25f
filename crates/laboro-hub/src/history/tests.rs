//! Sums that stay right in bounded room.

use super::durations::Durations;
use super::history_file::{HistoryFile, Step};
use super::job::{JobPast, Span};
use super::note_queue::NoteQueue;
use super::observe::{Note, Notes};
use super::recorder::Past;
use super::series::Folding;
use laboro_api as api;
use laboro_core::{Counts, GroupId, GroupView, JobId, Outcome, TaskId, Time, WorkerId};
use std::time::Duration;

fn durations(took: impl IntoIterator<Item = u64>) -> api::Durations {
    let mut durations = Durations::default();
    took.into_iter().for_each(|took_ms| durations.add(took_ms));
    durations.view()
}

#[test]
fn every_duration_is_in_the_bucket_that_holds_it() {
    let times = (0..70).chain((0..50).map(|power| 1u64 << power)).chain([u64::MAX / 2]);
    for took_ms in times {
        let view = durations([took_ms]);
        let bucket = view.buckets.last().unwrap();
        assert_eq!(bucket.count, 1, "{took_ms}");
        // The last bucket takes all that is longer.
        let is_beyond = took_ms >= 1 << 34;
        assert!(bucket.from_ms <= took_ms, "{took_ms} in {bucket:?}");
        assert!(took_ms < bucket.to_ms || is_beyond, "{took_ms} in {bucket:?}");
    }
}

#[test]
fn quantiles_are_as_exact_as_buckets() {
    let view = durations(1..=1000);
    assert_eq!((view.count, view.min_ms, view.max_ms), (1000, 1, 1000));
    assert!((500..600).contains(&view.p50_ms), "{}", view.p50_ms);
    assert!((900..=1000).contains(&view.p90_ms), "{}", view.p90_ms);
    assert_eq!(view.buckets.iter().map(|bucket| bucket.count).sum::<u64>(), 1000);
}

#[test]
fn a_long_life_folds_into_wider_steps_and_loses_no_count() {
    let mut rate = Folding::new(5000);
    for second in 0..100_000 {
        rate.add(5000 + second * 1000, second % 10 != 0);
    }
    let view = rate.view();
    assert!(view.done.len() <= 120 && view.width_ms >= 512_000, "{}", view.width_ms);
    assert_eq!(view.done.iter().sum::<u32>(), 90_000);
    assert_eq!(view.failed.iter().sum::<u32>(), 10_000);
}

#[test]
fn the_picture_of_a_large_job_is_spread_evenly() {
    let mut past = JobPast::new(0, true);
    for task in 1..=10_000 {
        let outcome = if task % 1000 == 0 { Outcome::Exit(3) } else { Outcome::Success };
        let (started_ms, took_ms) = (u64::from(task), u64::from(task % 77));
        past.add(Span { job: 1, task, worker: task % 4, started_ms, took_ms, outcome });
    }
    let view = past.view(1);
    assert!((512..=1024).contains(&view.spans.len()), "{}", view.spans.len());
    assert_eq!(view.spans[1].task - view.spans[0].task, u32::try_from(view.every).unwrap());
    assert!(view.spans.last().unwrap().task > 9900);
    assert_eq!(view.slowest.len(), 20);
    assert!(view.slowest.iter().all(|span| span.took_ms == 76));
    assert_eq!(view.failures[0].task, 10_000);
    assert_eq!(view.workers.iter().map(|share| share.done + share.failed).sum::<u64>(), 10_000);
}

fn batch(at: u64, list: Vec<Note>) -> Notes {
    Notes { at: Time(at), list }
}

#[test]
fn a_retried_task_counts_as_two_attempts_and_one_failure() {
    let (job, worker) = (JobId(1), WorkerId(7));
    let task = TaskId::new(job, 1);
    let start = || Note::Started { task, worker };
    let end = |outcome, is_final| Note::Ended { task, worker, outcome, is_final };
    let mut past = Past::default();
    past.take(&batch(10, vec![Note::Made { job, group: GroupId(1) }, start()]));
    past.take(&batch(20, vec![end(Outcome::Exit(1), false)]));
    past.take(&batch(30, vec![start()]));
    past.take(&batch(70, vec![Note::Back { task, is_lost: true }, start()]));
    past.take(&batch(90, vec![end(Outcome::Exit(1), true)]));
    let view = past.job(job).unwrap();
    assert_eq!((view.started, view.done, view.failed, view.again, view.lost), (3, 0, 1, 1, 1));
    let took: Vec<u64> = view.spans.iter().map(|span| span.took_ms).collect();
    assert_eq!(took, [10, 40, 20]);
    assert_eq!(past.failures(Some(GroupId(1))).len(), 3);
    assert!(past.failures(Some(GroupId(2))).is_empty());
}

#[test]
fn of_very_many_jobs_the_last_ones_heard_of_are_known() {
    let mut past = Past::default();
    for job in 1..=2000 {
        past.take(&batch(job.into(), vec![Note::Made { job: JobId(job), group: GroupId(1) }]));
    }
    assert!(past.job(JobId(1)).is_none());
    assert!(past.job(JobId(2000)).is_some());
}

/// A minute and a bit of a hub with one group, from this second on.
fn lives(past: &mut Past, file: &mut HistoryFile, from_s: u64) {
    let (job, worker) = (JobId(1), WorkerId(7));
    let task = TaskId::new(job, 1);
    let group = GroupView {
        group: GroupId(3),
        name: "g".into(),
        counts: Counts::default(),
        paused: false,
        ever_used: true,
    };
    for second in from_s..from_s + 70 {
        let end = Note::Ended { task, worker, outcome: Outcome::Success, is_final: true };
        let made = Note::Made { job, group: group.group };
        past.take(&batch(second * 1000, vec![made, Note::Started { task, worker }, end]));
        let minutes = past.sample(second * 1000, std::slice::from_ref(&group));
        file.add(past, &minutes, false).unwrap();
    }
}

#[test]
fn what_a_worker_measured_counts_more_than_hand_out_and_result() {
    let (job, worker) = (JobId(1), WorkerId(7));
    let task = |index| TaskId::new(job, index);
    let end = |index| {
        let (task, outcome) = (task(index), Outcome::Success);
        Note::Ended { task, worker, outcome, is_final: true }
    };
    let mut past = Past::default();
    let begun = [1, 2].map(|index| Note::Started { task: task(index), worker });
    past.take(&batch(1000, begun.into()));
    let measured = Note::Measured { task: task(1), ended: Time(1900), wall_us: 3_400 };
    past.take(&batch(1900, vec![measured]));
    past.take(&batch(2000, vec![end(1), end(2)]));
    let spans = past.job(job).unwrap().spans;
    let times: Vec<(u64, u64)> = spans.iter().map(|span| (span.started_ms, span.took_ms)).collect();
    assert_eq!(times, [(1896, 4), (1000, 1000)]);
}

#[test]
fn what_was_cancelled_ends_without_a_duration_and_nothing_else_does() {
    let task = |job, index| TaskId { job: JobId(job), index };
    let tasks = [task(1, 3), task(2, 1), task(2, 2), task(2, 3), task(2, 9), task(3, 3)];
    let worker = WorkerId(1);
    let mut past = Past::default();
    let started = tasks.map(|task| Note::Started { task, worker });
    past.take(&batch(1000, started.into()));
    let ranges = vec![(2, 3), (5, 7), (9, 9)];
    past.take(&batch(2000, vec![Note::Cancelled { job: JobId(2), ranges }]));
    let outcome = Outcome::Success;
    let ended = tasks.map(|task| Note::Ended { task, worker, outcome, is_final: true });
    past.take(&batch(3000, ended.into()));
    let spans = |job| past.job(JobId(job)).unwrap().spans.into_iter().map(|span| span.task);
    assert_eq!(spans(1).collect::<Vec<u32>>(), [3]);
    assert_eq!(spans(2).collect::<Vec<u32>>(), [1]);
    assert_eq!(spans(3).collect::<Vec<u32>>(), [3]);
}

fn done(past: &Past, step: Step, group: Option<GroupId>) -> Vec<u64> {
    past.samples(step).filter(|(of, _)| *of == group).map(|(_, sample)| sample.done).collect()
}

#[test]
fn charts_outlive_a_restart_and_what_is_too_old_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("charts.jsonl");
    let mut past = Past::default();
    let mut file = HistoryFile::open(path.clone(), &mut past, Time(0)).unwrap();
    lives(&mut past, &mut file, 1000);
    file.finish(&past).unwrap();

    // What a hub leaves that was killed, and what somebody wrote by hand.
    let mut text = std::fs::read(&path).unwrap();
    text.extend_from_slice(b"{}\n[1]\n\xff\n{\"at_ms\":1069000,\"do");
    std::fs::write(&path, text).unwrap();
    let mut again = Past::default();
    let mut file = HistoryFile::open(path.clone(), &mut again, Time(1_080_000)).unwrap();
    for group in [None, Some(GroupId(3))] {
        assert_eq!(done(&again, Step::Minute, group), [60], "{group:?}");
        assert_eq!(done(&again, Step::Second, group), [1; 70], "{group:?}");
    }
    lives(&mut again, &mut file, 1080);
    drop(file);

    let mut killed = Past::default();
    HistoryFile::open(path.clone(), &mut killed, Time(1_200_000)).unwrap();
    assert_eq!(done(&killed, Step::Minute, None), [60, 60]);
    assert!(done(&killed, Step::Second, None).is_empty(), "only an orderly end keeps these");

    let mut tomorrow = Past::default();
    let day_ms = 24 * 3_600_000;
    HistoryFile::open(path.clone(), &mut tomorrow, Time(1_100_000 + day_ms)).unwrap();
    assert_eq!(done(&tomorrow, Step::Minute, None), [60], "the second of them");
    let mut set_back = Past::default();
    HistoryFile::open(path, &mut set_back, Time(500)).unwrap();
    assert!(done(&set_back, Step::Minute, None).is_empty());
}

#[test]
fn the_file_of_the_charts_does_not_grow_for_ever() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("charts.jsonl");
    let mut past = Past::default();
    let mut file = HistoryFile::open(path.clone(), &mut past, Time(0)).unwrap();
    for minute in 0..50_000 {
        let sample = api::Sample { at_ms: minute * 60_000, ..api::Sample::default() };
        past.restore(None, Step::Minute, sample.clone(), Time(minute * 60_000));
        file.add(&past, &[(None, sample)], false).unwrap();
    }
    let bytes = std::fs::metadata(&path).unwrap().len();
    assert!(bytes < 2_000_000, "{bytes}");
    let mut again = Past::default();
    HistoryFile::open(path, &mut again, Time(50_000 * 60_000)).unwrap();
    assert_eq!(again.samples(Step::Minute).count(), 1440);
}

#[tokio::test]
async fn the_recorder_sleeps_only_while_nothing_changes() {
    // Longer than a test may take: each sleep below is cut short.
    const LONG: Duration = Duration::from_secs(3600);
    let queue = NoteQueue::default();
    let seen = queue.changes();
    queue.ring();
    queue.sleep(seen, LONG).await;

    tokio::join!(queue.sleep(queue.changes(), LONG), async { queue.ring() });
    queue.sleep(queue.changes(), Duration::from_millis(1)).await;
}
