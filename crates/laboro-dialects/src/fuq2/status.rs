//! How tasks end in the words of the originals, which are those of Go: written by our workers, read by our
//! foreman. Words that are not known are kept as they are.

use laboro_core::Outcome;

/// What Go calls the signals that end processes.
const SIGNALS: [(i32, &str); 10] = [
    (1, "hangup"),
    (2, "interrupt"),
    (3, "quit"),
    (4, "illegal instruction"),
    (6, "aborted"),
    (8, "floating point exception"),
    (9, "killed"),
    (11, "segmentation fault"),
    (13, "broken pipe"),
    (15, "terminated"),
];

/// The words for how a task ended.
pub fn status_of(outcome: Outcome, message: Option<&str>) -> String {
    match outcome {
        Outcome::Success => "done".into(),
        Outcome::Exit(code) => format!("error encountered: exit status {code}"),
        Outcome::Signal(signal) => match SIGNALS.iter().find(|(number, _)| *number == signal) {
            Some((_, name)) => format!("error encountered: signal: {name}"),
            None => format!("error encountered: signal: signal {signal}"),
        },
        other => match message {
            Some(words) => format!("error encountered: {words}"),
            None => format!("error encountered: {other}"),
        },
    }
}

/// The outcome, and the words if they say more than `done`.
pub fn outcome_of(success: bool, status: &[u8]) -> (Outcome, Option<Box<str>>) {
    if success {
        return (Outcome::Success, None);
    }
    let words = String::from_utf8_lossy(status);
    let cause = words.strip_prefix("error encountered: ").unwrap_or(&words);
    let code = cause.strip_prefix("exit status ").and_then(|code| code.parse().ok());
    let signal = cause.strip_prefix("signal: ").and_then(signal_number);
    let outcome = match (code, signal) {
        (Some(code), _) => Outcome::Exit(code),
        (None, Some(signal)) => Outcome::Signal(signal),
        (None, None) => Outcome::Error,
    };
    (outcome, Some(words.into()))
}

fn signal_number(words: &str) -> Option<i32> {
    let words = words.strip_suffix(" (core dumped)").unwrap_or(words);
    let known = SIGNALS.iter().find(|(_, name)| *name == words).map(|(number, _)| *number);
    known.or_else(|| words.strip_prefix("signal ")?.parse().ok())
}
