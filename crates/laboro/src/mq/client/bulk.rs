//! Many requests of one kind, so many at once, and how many came back.

use super::talk::Talk;
use crate::run::Signals;
use laboro_dialects::rrmq::{Answer, example};
use serde_json::{Value, json};
use std::io::Write;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct Bulk {
    pub(super) kind: BulkKind,
    pub(super) count: u64,
    pub(super) at_once: u64,
    pub(super) has_marks: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BulkKind {
    Ping,
    Stream { ones: u32 },
}

impl BulkKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            BulkKind::Ping => "PING",
            BulkKind::Stream { .. } => "STREAM",
        }
    }
}

#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) kind: BulkKind,
    /// Answered, or given up.
    pub(super) total: u64,
    pub(super) successes: u64,
    pub(super) took: Duration,
    /// The first one.
    pub(super) failure: Option<String>,
    pub(super) is_interrupted: bool,
}

/// Marks in a whole test.
const MARKS: u64 = 50;

/// Asked in one go, so that answers are read between.
const ASKS_A_TURN: u64 = 10_000;

impl Bulk {
    /// To its end, or as far as it comes before somebody interrupts it.
    pub(super) async fn run(
        &self,
        talk: &mut Talk,
        signals: &mut Signals,
    ) -> anyhow::Result<Outcome> {
        let (mut asked, mut answered, mut successes) = (0, 0, 0);
        let (mut failure, mut is_interrupted) = (None, false);
        let mut answers = Vec::new();
        let began = Instant::now();
        while answered < self.count && !is_interrupted {
            let room = self.at_once - (asked - answered);
            let more = room.min(self.count - asked).min(ASKS_A_TURN);
            (0..more).for_each(|_| self.ask(talk));
            asked += more;
            tokio::select! {
                () = talk.turn(&mut answers) => {}
                () = signals.next() => is_interrupted = true,
            }
            for answer in answers.drain(..) {
                answered += 1;
                match self.judge(&answer) {
                    Ok(()) => successes += 1,
                    Err(why) => drop(failure.get_or_insert(why)),
                }
                self.mark(answered)?;
            }
        }
        if is_interrupted && self.has_marks {
            // The marks stand on a line of their own.
            std::io::stdout().lock().write_all(b"\n")?;
        }
        let (kind, took) = (self.kind, began.elapsed());
        Ok(Outcome { kind, total: answered, successes, took, failure, is_interrupted })
    }

    fn ask(&self, talk: &mut Talk) {
        match self.kind {
            BulkKind::Ping => talk.ask_ping(),
            BulkKind::Stream { ones } => talk.ask_data(ones),
        }
    }

    fn judge(&self, answer: &Answer) -> Result<(), String> {
        match (self.kind, answer) {
            (BulkKind::Ping, Answer::Ponged(_)) => Ok(()),
            (BulkKind::Stream { ones }, Answer::Data(_, data)) => match example::ones(data) {
                Some(got) if got == u64::from(ones) => Ok(()),
                Some(got) => Err(format!("{got} ones came instead of {ones}")),
                None => Err("the data are not ones".to_owned()),
            },
            (_, Answer::Failed(_, why)) => Err(why.to_string()),
            (_, other) => Err(format!("another answer: {other:?}")),
        }
    }

    fn mark(&self, answered: u64) -> std::io::Result<()> {
        if !self.has_marks {
            return Ok(());
        }
        let mut out = std::io::stdout().lock();
        if answered.is_multiple_of(self.count.div_ceil(MARKS).max(1)) {
            out.write_all(b".")?;
        }
        if answered == self.count {
            out.write_all(b"\n")?;
        }
        out.flush()
    }
}

impl Outcome {
    pub(super) fn table(&self) -> String {
        format!(
            "{:<8} {:>10} {:>10}\n{:<8} {:>10} {:>10}",
            "type",
            "total",
            "successes",
            self.kind.name(),
            self.total,
            self.successes
        )
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "type": self.kind.name(),
            "total": self.total,
            "successes": self.successes,
            "ms": (self.took.as_secs_f64() * 1e6).round() / 1e3,
            "failure": self.failure,
        })
    }
}
