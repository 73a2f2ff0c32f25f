//! Text stays text.

use super::html::{escape, table};
use super::remembered::remembered;
use laboro_api::Task;
use serde_json::json;

#[test]
fn no_text_becomes_markup() {
    let nasty = "<script>alert('1')</script> & \"quoted\" \u{1b}[31m";
    let escaped = escape(nasty);
    assert!(!escaped.contains(['<', '>', '"', '\'', '\u{1b}']), "{escaped}");
    assert!(escaped.contains("&lt;script&gt;") && escaped.contains("&amp; &quot;"), "{escaped}");
}

#[test]
fn a_table_of_nothing_is_a_sentence() {
    assert_eq!(table(&["a"], &[], "none < some"), "<p class=\"soft\">none &lt; some</p>");
}

#[test]
fn without_a_history_tasks_tell_how_they_went() {
    let attempt = |worker: u32, end: Option<u64>, kind: &str| json!({"worker": worker, "started_ms": 100, "ended_ms": end, "outcome": {"kind": kind}});
    let tasks = json!([
        {"job": 1, "task": 1, "state": "done", "attempts": [
            attempt(4, Some(150), "lost"), attempt(5, Some(400), "success")]},
        {"job": 1, "task": 2, "state": "running", "attempts": [attempt(4, None, "success")]},
        {"job": 1, "task": 3, "state": "done"},
    ]);
    let tasks: Vec<Task> = serde_json::from_value(tasks).unwrap();
    let past = remembered(1, &tasks);
    let took: Vec<u64> = past.spans.iter().map(|span| span.took_ms).collect();
    assert_eq!(took, [50, 300]);
    assert_eq!(past.slowest[0].took_ms, 300);
    let shares: Vec<(u64, u64)> =
        past.workers.iter().map(|share| (share.done, share.failed)).collect();
    assert_eq!(shares, [(0, 1), (1, 0)]);
    let durations = &past.durations;
    assert_eq!((durations.p50_ms, durations.p99_ms, durations.max_ms), (50, 300, 300));
    let holds = |ms: u64| durations.buckets.iter().any(|b| (b.from_ms..b.to_ms).contains(&ms));
    assert!(holds(50) && holds(300), "{durations:?}");
    assert_eq!((past.rate.done.as_slice(), past.rate.failed.as_slice()), (&[1][..], &[1][..]));
    assert_eq!(remembered(1, &[]).durations.count, 0);
}
