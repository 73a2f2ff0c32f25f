//! Cron lines and the times that they mean.

use super::cron::Cron;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The first times after one, in a zone.
fn times(line: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
    let cron = Cron::parse(line).unwrap();
    let zone = TimeZone::get(zone).unwrap();
    let mut at: Timestamp = after.parse().unwrap();
    let mut all = Vec::new();
    for _ in 0..count {
        at = cron.next(at, &zone).unwrap();
        all.push(at.to_string());
    }
    all
}

#[test]
fn a_line_means_these_times() {
    let table: &[(&str, &str, &str, &[&str])] = &[
        (
            "0 3 * * *",
            "UTC",
            "2026-11-18T02:59:59Z",
            &["2026-11-18T03:00:00Z", "2026-11-19T03:00:00Z"],
        ),
        ("0 3 * * *", "UTC", "2026-11-18T03:00:00Z", &["2026-11-19T03:00:00Z"]),
        (
            "*/20 8-9 * * 1-5",
            "UTC",
            "2026-11-20T09:30:00Z",
            &["2026-11-20T09:40:00Z", "2026-11-23T08:00:00Z"],
        ),
        (
            "0 0 29 2 *",
            "UTC",
            "2026-01-01T00:00:00Z",
            &["2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"],
        ),
        // Both days are restricted: one is enough.
        (
            "0 0 1 * mon",
            "UTC",
            "2026-11-20T00:00:00Z",
            &["2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z", "2026-12-01T00:00:00Z"],
        ),
        ("0 12 * jan,JUL 7", "UTC", "2026-11-18T00:00:00Z", &["2027-01-03T12:00:00Z"]),
        ("@hourly", "UTC", "2026-12-31T23:10:00Z", &["2027-01-01T00:00:00Z"]),
        ("0 3 * * *", "Asia/Kolkata", "2026-11-18T00:00:00Z", &["2026-11-18T21:30:00Z"]),
        // Clocks go forward at 2:00: half past two is an hour later, once.
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2026-03-28T12:00:00Z",
            &["2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z"],
        ),
        // Clocks go back at 3:00: half past two comes twice and counts once.
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2026-10-24T12:00:00Z",
            &["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"],
        ),
    ];
    for (line, zone, after, expected) in table {
        assert_eq!(times(line, zone, after, expected.len()), *expected, "{line} after {after}");
    }
}

#[test]
fn a_line_that_means_nothing_is_refused() {
    let wrong = [
        "",
        "* * * *",
        "60 * * * *",
        "* 24 * * *",
        "5-1 * * * *",
        "*/0 * * * *",
        "* * * * mo",
        "0 0 31 2 *",
        "@often",
    ];
    for line in wrong {
        assert!(Cron::parse(line).is_err(), "{line:?}");
    }
}
