//! Spans as a receiver gets them: which there are, whose children, and what is left out. No network: `it/traces.rs` has that.

use super::note::{JobTrace, Note, Notes};
use super::otlp::body;
use super::spans::Spans;
use super::*;
use laboro_core::{JobId, Outcome, ReturnReason, TaskId, Time, WorkerId};
use laboro_net::trace::TraceParent;

fn job() -> JobTrace {
    JobTrace { span: TraceParent::recorded(7, 9), before: 3 }
}

fn started(index: u32, attempt: u16) -> Note {
    let task = TaskId::new(JobId(1), index);
    Note::Started { task, name: "fit".into(), attempt, worker: WorkerId(4), trace: job() }
}

fn hear(spans: &mut Spans, at: u64, list: Vec<Note>) {
    spans.hear(Notes { at: Time(at), list });
}

#[test]
fn an_attempt_is_a_part_of_its_job_and_says_how_it_ended() {
    let counts = TraceCounts::default();
    let mut spans = Spans::new(10, counts.clone());
    let task = |index| TaskId::new(JobId(1), index);
    hear(&mut spans, 1000, vec![started(1, 1), started(2, 1), started(3, 1)]);
    let ends = vec![
        Note::Ended { task: task(1), outcome: Outcome::Exit(3) },
        Note::Back { task: task(2), why: ReturnReason::Lapsed },
    ];
    hear(&mut spans, 2000, ends);
    hear(
        &mut spans,
        3000,
        vec![started(1, 2), Note::Ended { task: task(1), outcome: Outcome::Success }],
    );
    hear(&mut spans, 4000, vec![Note::Cancelled { job: JobId(1), ranges: vec![(1, 9)] }]);
    let made = spans.take(10);
    let seen: Vec<_> = made.iter().map(|span| (span.end_ms, span.error.as_deref())).collect();
    let wanted = [
        (2000, Some("exit code 3")),
        (2000, Some("lost")),
        (3000, None),
        (4000, Some("cancelled")),
    ];
    assert_eq!(seen, wanted);
    assert!(made.iter().all(|span| span.trace == 7 && span.parent == 9 && span.start_ms < 4000));
    assert_eq!(made[0].span, job().span.of_attempt(1, 1).span);
    let text = body(&made, "h", "i");
    let json: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let one = &json["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
    assert_eq!(one["traceId"], "00000000000000000000000000000007");
    assert_eq!(one["parentSpanId"], "0000000000000009");
    assert_eq!(one["endTimeUnixNano"], "2000000000");
    assert_eq!(one["status"]["code"], 2);
    assert_eq!(counts.dropped(), 0);
}

#[test]
fn what_cannot_be_sent_has_an_end_and_is_counted() {
    let counts = TraceCounts::default();
    let mut spans = Spans::new(2, counts.clone());
    for index in 1..=5 {
        let task = TaskId::new(JobId(1), index);
        hear(
            &mut spans,
            1,
            vec![started(index, 1), Note::Ended { task, outcome: Outcome::Success }],
        );
    }
    assert_eq!(counts.dropped(), 3);
    let first = spans.take(1);
    let task = TaskId::new(JobId(1), 6);
    hear(&mut spans, 1, vec![started(6, 1), Note::Ended { task, outcome: Outcome::Success }]);
    spans.put_back(first.clone());
    assert_eq!(counts.dropped(), 4);
    assert_eq!(spans.take(9)[0], first[0]);
}

#[test]
fn notes_that_nobody_takes_are_counted() {
    let counts = TraceCounts::default();
    let (to, _kept) = TraceNotes::new(counts.clone());
    let ended = laboro_core::Event::Returned {
        task: TaskId::new(JobId(1), 1),
        why: ReturnReason::Left,
        preds: Vec::new(),
    };
    for _ in 0..300 {
        to.tell(TraceNotes::of(Time(1), std::slice::from_ref(&ended)), &[]);
    }
    assert_eq!(counts.dropped(), 300 - 256);
}
