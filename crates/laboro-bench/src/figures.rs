//! What a case came to, as a line of a table or of JSON. The words are the same for all doors.

use crate::exit::print;
use serde_json::json;
use std::time::Duration;

/// One measured case.
#[derive(Debug)]
pub(super) struct Figures {
    pub(super) case: String,
    pub(super) tasks: usize,
    pub(super) took: Duration,
    /// Of each request, in any order.
    pub(super) latencies: Vec<Duration>,
    /// What the hub's process used meanwhile, where that is known.
    pub(super) hub_cpu: Option<Duration>,
}

impl Figures {
    pub(super) fn show(&mut self, durability: &str, as_json: bool) -> std::io::Result<()> {
        self.latencies.sort_unstable();
        let per_s = self.tasks as f64 / self.took.as_secs_f64().max(1e-9);
        let (p50, p99) = (self.percentile(50), self.percentile(99));
        let cpu = self.hub_cpu.map(|cpu| micros(cpu) / self.tasks.max(1) as f64);
        if as_json {
            return print(json!({
                "case": self.case,
                "n": self.tasks,
                "tasks_per_s": per_s.round(),
                "p50_us": round(p50),
                "p99_us": round(p99),
                "hub_cpu_us_per_task": cpu.map(round),
                "durability": durability,
            }));
        }
        let cpu = cpu.map_or_else(|| "-".to_owned(), |cpu| format!("{cpu:.2}"));
        let case = &self.case;
        print(format_args!(
            "{case:<54} {:>9} {per_s:>11.0} {p50:>9.1} {p99:>9.1} {cpu:>9}",
            self.tasks
        ))
    }

    fn percentile(&self, percent: usize) -> f64 {
        let last = self.latencies.len().saturating_sub(1);
        self.latencies.get(last * percent / 100).map_or(0.0, |&took| micros(took))
    }
}

pub(super) fn show_memory(
    case: &str,
    tasks: usize,
    bytes: f64,
    as_json: bool,
) -> std::io::Result<()> {
    match as_json {
        true => print(json!({ "case": case, "n": tasks, "bytes_per_task": round(bytes) })),
        false => print(format_args!("{case:<34} {tasks:>9} {bytes:>8.1} bytes")),
    }
}

pub(super) fn heading() -> std::io::Result<()> {
    let words = ["case", "tasks", "tasks/s", "p50 us", "p99 us", "cpu us"];
    print(format_args!(
        "{:<54} {:>9} {:>11} {:>9} {:>9} {:>9}",
        words[0], words[1], words[2], words[3], words[4], words[5]
    ))
}

/// What so many tasks added to the hub's memory.
pub(super) fn weigh(
    case: &str,
    tasks: usize,
    before: Option<u64>,
    after: Option<u64>,
    as_json: bool,
) -> std::io::Result<()> {
    let (Some(before), Some(after)) = (before, after) else { return Ok(()) };
    let more = after.saturating_sub(before);
    if as_json {
        return print(
            json!({"case": case, "n": tasks, "memory_bytes": more, "empty_bytes": before}),
        );
    }
    print(format_args!(
        "{case:<54} {tasks:>9} {:>8.1} MB more than {:.1} MB",
        more as f64 / 1e6,
        before as f64 / 1e6
    ))
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Two digits behind the point are more than a measurement is good for.
fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}
