//! Whether what a page shows is what was printed.

use crate::page::Numbers;

/// Each line shown must be among those printed, in this order. `…` in it stands for anything.
pub fn check_lines(place: &str, shown: &str, printed: &str, numbers: Numbers) {
    let mut rest = printed.lines();
    for line in shown.lines().filter(|line| !line.trim().is_empty() && line.trim() != "…") {
        let found =
            rest.any(|candidate| matches(&steady(line, numbers), &steady(candidate, numbers)));
        assert!(found, "{place}: `{line}` was not printed, or not in this order:\n{printed}");
    }
}
fn matches(shown: &str, printed: &str) -> bool {
    let mut parts = shown.trim_end().split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = printed.trim_end().strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, between)) = parts.split_last() else { return rest.is_empty() };
    for part in between {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// What differs from run to run becomes a `~`: times, rates and sizes, which have a point or a unit, and the
/// numbers of processes and moments and the ids of runs, which are long; or every number.
fn steady(line: &str, numbers: Numbers) -> String {
    let mut steady = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(|c: char| c.is_ascii_hexdigit()) {
        steady.push_str(&rest[..at]);
        rest = &rest[at..];
        let word = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let is_id = word == 16 && rest[..word].bytes().all(|byte| byte.is_ascii_hexdigit());
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let number = number.trim_end_matches('.');
        let varies = number.contains('.')
            || number.len() > 8
            || number.len() == digits && UNITS.iter().any(|unit| after.starts_with(unit))
            || numbers == Numbers::Any && !number.is_empty();
        let taken = match (is_id, number.len()) {
            (true, _) => word,
            (false, 0) => 1,
            (false, length) => length,
        };
        steady.push_str(if is_id || varies { "~" } else { &rest[..taken] });
        rest = &rest[taken..];
    }
    steady + rest
}

const UNITS: [&str; 3] = ["/s", " tasks/s", "s left"];
