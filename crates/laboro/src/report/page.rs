//! The page itself: what stands where.

use super::drawing::{self, took};
use super::facts::ReportFacts;
use super::html::{escape, section, table};
use crate::view::called;
use laboro_api::EndedAttempt;

const STYLE: &str = include_str!("style.css");

/// Nothing is fetched, nothing runs; only the style that stands in the page counts.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

pub(super) fn draw(facts: &ReportFacts) -> String {
    let job = &facts.job;
    let name = job.name.to_string();
    let title = if name.is_empty() { format!("job {}", job.job) } else { name };
    let past = &facts.past;
    let mut body = summary(facts);
    if past.durations.count > 0 {
        body += &section("Throughput", &drawing::rate(&past.rate));
        let d = &past.durations;
        let words = format!(
            "half within {}, 90% within {}, 99% within {}; {} to {}",
            took(d.p50_ms),
            took(d.p90_ms),
            took(d.p99_ms),
            took(d.min_ms),
            took(d.max_ms)
        );
        let drawn = drawing::histogram(d);
        body += &section("Durations", &format!("{drawn}<p class=\"soft\">{}</p>", escape(words)));
    }
    if past.spans.is_empty() {
        let words = "The hub has no history of the tasks of this job.";
        body += &section("Timeline", &format!("<p class=\"soft\">{words}</p>"));
    } else {
        let mut drawn = drawing::timeline(facts);
        if past.every > 1 {
            drawn += &format!("<p class=\"soft\">every {}th attempt is shown</p>", past.every);
        }
        body += &section("Timeline", &drawn);
    }
    body += &section("How tasks ended", &ends(facts));
    body += &section("Failures", &failures(facts));
    body += &section("Slowest", &slowest(facts));
    body += &section("Workers", &workers(facts));
    let title = escape(title);
    let made = crate::view::clock(facts.made_ms);
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"content-security-policy\" content=\"{POLICY}\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{title}</title><style>{STYLE}</style></head><body><main>\
         <h1>{title} <small class=\"state {state}\">{state}</small></h1>{body}\
         <footer>job {number} in {group}; made {made} by laboro {version}</footer></main></body></html>",
        state = job.state.word(),
        number = job.job,
        group = escape(&job.group),
        made = escape(made),
        version = env!("CARGO_PKG_VERSION"),
    )
}

fn summary(facts: &ReportFacts) -> String {
    let job = &facts.job;
    let counts = &job.counts;
    let end = job.ended_ms.unwrap_or(facts.made_ms);
    let mut cards = vec![
        ("Tasks", job.tasks.to_string()),
        ("Done", counts.done.to_string()),
        ("Failed", counts.failed.to_string()),
        ("Cancelled", counts.cancelled.to_string()),
        ("Took", took(end.saturating_sub(job.submitted_ms))),
        ("Submitted", crate::view::clock(job.submitted_ms)),
    ];
    if counts.unfinished() > 0 {
        cards.push(("Unfinished", counts.unfinished().to_string()));
    }
    if facts.past.again + facts.past.lost > 0 {
        cards.push((
            "Tried again",
            format!("{} failed, {} lost", facts.past.again, facts.past.lost),
        ));
    }
    let busy: u64 = facts.past.workers.iter().map(|share| share.busy_ms).sum();
    if busy > 0 {
        cards.push(("Time in tasks", took(busy)));
    }
    let cards: String = cards
        .iter()
        .map(|(name, value)| format!("<div><span>{name}</span><b>{}</b></div>", escape(value)))
        .collect();
    format!("<div class=\"cards\">{cards}</div>")
}

fn ends(facts: &ReportFacts) -> String {
    let counts = &facts.job.counts;
    let row = |how: String, count: u64| vec![escape(how), count.to_string()];
    let mut rows = Vec::new();
    if counts.done > 0 {
        rows.push(row("success".to_owned(), counts.done));
    }
    rows.extend(facts.job.failures.iter().map(|one| row(one.outcome.to_string(), one.count)));
    if counts.cancelled > 0 {
        rows.push(row("cancelled".to_owned(), counts.cancelled));
    }
    table(&["How", "Tasks"], &rows, "nothing has ended")
}

fn failures(facts: &ReportFacts) -> String {
    let rows: Vec<Vec<String>> = facts
        .failed
        .iter()
        .map(|failed| {
            let task = &failed.task;
            let how = facts.outcome(task).map_or(String::new(), |outcome| outcome.to_string());
            let mut words = escape(task.message.as_deref().unwrap_or_default());
            if !failed.words.trim().is_empty() {
                words += &format!("<pre>{}</pre>", escape(failed.words.trim_end()));
            }
            vec![task.task.to_string(), escape(called(task)), escape(how), words]
        })
        .collect();
    let mut shown = table(&["Task", "Name", "How", "Last words"], &rows, "none");
    let rest = facts.job.counts.failed.saturating_sub(facts.failed.len() as u64);
    if rest > 0 {
        shown += &format!("<p class=\"soft\">and {rest} more</p>");
    }
    shown
}

fn slowest(facts: &ReportFacts) -> String {
    let row = |span: &EndedAttempt| {
        vec![
            span.task.to_string(),
            escape(facts.worker(span.worker)),
            took(span.took_ms),
            escape(span.outcome),
        ]
    };
    let rows: Vec<Vec<String>> = facts.past.slowest.iter().map(row).collect();
    table(&["Task", "Worker", "Took", "How"], &rows, "no history")
}

fn workers(facts: &ReportFacts) -> String {
    let rows: Vec<Vec<String>> = facts
        .past
        .workers
        .iter()
        .map(|share| {
            let name = share.worker.map_or_else(|| "others".to_owned(), |n| facts.worker(n));
            let ended = (share.done + share.failed).max(1);
            vec![
                escape(name),
                share.done.to_string(),
                share.failed.to_string(),
                took(share.busy_ms),
                took(share.busy_ms / ended),
            ]
        })
        .collect();
    table(&["Worker", "Done", "Failed", "Busy", "A task"], &rows, "no history")
}
