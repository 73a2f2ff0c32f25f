//! Drawings of a report: numbers over time, how long things took, which attempt ran where and when.

use super::facts::ReportFacts;
use super::html::escape;
use crate::output::duration;
use laboro_api::{Durations, EndedAttempt, OutcomeKind, Rate};
use std::collections::BTreeMap;
use std::time::Duration;

const WIDTH: f64 = 900.0;
const LEFT: f64 = 60.0;

pub(super) fn took(ms: u64) -> String {
    duration(Duration::from_millis(ms))
}

fn frame(height: f64, label: &str, content: &str) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">{content}</svg>",
        escape(label)
    )
}

fn tick(x: f64, y: f64, anchor: &str, words: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>", escape(words))
}

/// Attempts that ended, a bar for each step: done below, failed above.
pub(super) fn rate(rate: &Rate) -> String {
    const HEIGHT: f64 = 160.0;
    const PLOT: f64 = HEIGHT - 30.0;
    let steps: Vec<(u32, u32)> =
        rate.done.iter().zip(&rate.failed).map(|(&done, &failed)| (done, failed)).collect();
    let most = steps.iter().map(|step| step.0 + step.1).max().unwrap_or(0).max(1);
    let step = (WIDTH - LEFT) / steps.len().max(1) as f64;
    let tall = |count: u32| f64::from(count) / f64::from(most) * PLOT;
    let mut content = String::new();
    for (at, &(done, failed)) in steps.iter().enumerate() {
        let x = LEFT + at as f64 * step;
        let mut bar = |class: &str, count: u32, below: f64| {
            let (y, height) = (10.0 + PLOT - below - tall(count), tall(count));
            let width = (step - 0.5).max(0.5);
            content += &format!(
                "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
            );
        };
        bar("done", done, 0.0);
        bar("failed", failed, tall(done));
    }
    let a_second = f64::from(most) * 1000.0 / rate.width_ms.max(1) as f64;
    content += &tick(LEFT - 6.0, 16.0, "end", &format!("{a_second:.1}/s"));
    content += &tick(LEFT - 6.0, 10.0 + PLOT, "end", "0");
    content += &tick(LEFT, HEIGHT - 4.0, "start", "0");
    let whole = took(rate.width_ms * steps.len() as u64);
    content += &tick(WIDTH, HEIGHT - 4.0, "end", &whole);
    frame(HEIGHT, "attempts ended per second", &content)
}

pub(super) fn histogram(durations: &Durations) -> String {
    const HEIGHT: f64 = 170.0;
    const PLOT: f64 = HEIGHT - 30.0;
    let buckets = &durations.buckets;
    let most = buckets.iter().map(|bucket| bucket.count).max().unwrap_or(0).max(1);
    let step = ((WIDTH - LEFT) / buckets.len().max(1) as f64).min(60.0);
    let every = (90.0 / step).ceil().max(1.0) as usize;
    let mut content = String::new();
    for (at, bucket) in buckets.iter().enumerate() {
        let x = LEFT + at as f64 * step;
        let height = bucket.count as f64 / most as f64 * PLOT;
        let words =
            format!("{} took {} to {}", bucket.count, took(bucket.from_ms), took(bucket.to_ms));
        content += &format!(
            "<rect class=\"plain\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\"><title>{}</title></rect>",
            x + 1.0,
            10.0 + PLOT - height,
            (step - 2.0).max(0.5),
            escape(words)
        );
        if at % every == 0 {
            content += &tick(x, HEIGHT - 4.0, "start", &took(bucket.from_ms));
        }
    }
    content += &tick(LEFT - 6.0, 16.0, "end", &most.to_string());
    frame(HEIGHT, "how long attempts took", &content)
}

/// Rows beyond these are not drawn.
const ROWS_MAX: usize = 80;

/// A row for each slot of each worker, as far as they overlap, and a bar for each attempt.
pub(super) fn timeline(facts: &ReportFacts) -> String {
    const ROW: f64 = 13.0;
    const NAMES: f64 = 130.0;
    let spans = &facts.past.spans;
    let first = spans.iter().map(|span| span.started_ms).min().unwrap_or(0);
    let end = |span: &EndedAttempt| span.started_ms + span.took_ms;
    let last = spans.iter().map(end).max().unwrap_or(1).max(first + 1);
    let x = |at: u64| NAMES + (at - first) as f64 / (last - first) as f64 * (WIDTH - NAMES);
    let rows = rows(spans);
    let mut content = String::new();
    for (at, row) in rows.iter().take(ROWS_MAX).enumerate() {
        let y = at as f64 * ROW;
        if row.is_first {
            let name: String = facts.worker(row.worker).chars().take(20).collect();
            content += &tick(0.0, y + 10.0, "start", &name);
        }
        for span in &row.spans {
            let class = if span.outcome.kind == OutcomeKind::Success { "done" } else { "failed" };
            let (from, to) = (x(span.started_ms), x(end(span)));
            let words = format!("task {}: {}, {}", span.task, span.outcome, took(span.took_ms));
            content += &format!(
                "<rect class=\"{class}\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>{}</title></rect>",
                y + 1.0,
                (to - from - 0.4).max(0.8),
                ROW - 2.0,
                escape(words)
            );
        }
    }
    let height = rows.len().min(ROWS_MAX) as f64 * ROW + 18.0;
    content += &tick(NAMES, height - 4.0, "start", "0");
    content += &tick(WIDTH, height - 4.0, "end", &took(last - first));
    frame(height, "which attempt ran where and when", &content)
}

struct ChartRow<'a> {
    worker: u32,
    is_first: bool,
    spans: Vec<&'a EndedAttempt>,
    until: u64,
}

fn rows(spans: &[EndedAttempt]) -> Vec<ChartRow<'_>> {
    let mut sorted: Vec<&EndedAttempt> = spans.iter().collect();
    sorted.sort_by_key(|span| (span.started_ms, span.task));
    let mut workers: BTreeMap<u32, Vec<ChartRow<'_>>> = BTreeMap::new();
    for span in sorted {
        let rows = workers.entry(span.worker).or_default();
        let at = match rows.iter().position(|row| row.until <= span.started_ms) {
            Some(at) => at,
            None => {
                let (worker, is_first) = (span.worker, rows.is_empty());
                rows.push(ChartRow { worker, is_first, spans: Vec::new(), until: 0 });
                rows.len() - 1
            }
        };
        rows[at].until = span.started_ms + span.took_ms;
        rows[at].spans.push(span);
    }
    workers.into_values().flatten().collect()
}
