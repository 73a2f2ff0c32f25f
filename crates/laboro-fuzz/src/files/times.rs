//! Times as people write them: when a job begins, and the lines of schedules.

#[allow(dead_code)] // The program has other uses for it.
#[path = "../../../laboro/src/begin.rs"]
mod begin;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use laboro_hub::schedules::Cron;

/// Clocks go back and forward there.
fn zone() -> TimeZone {
    TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").expect("it is a time zone")
}

/// A moment that a job begins at is one that can be written and read.
pub(crate) fn begin(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let now: Zoned = Timestamp::from_second(1_795_000_000).expect("a time").to_zoned(zone());
    for parse in [begin::parse, begin::parse_slurm] {
        if let Ok(moment) = parse(text, &now) {
            let again = begin::parse(&moment.to_string(), &now);
            assert_eq!(again, Ok(moment), "{text:?}");
        }
    }
}

/// Each time is later than the one before it.
pub(crate) fn cron(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(cron) = Cron::parse(text) else { return };
    // In the hours around which clocks are set, and at no time in particular.
    for second in [1_774_742_400, 1_792_886_400, 0] {
        let mut at = Timestamp::from_second(second).expect("a time");
        for _ in 0..5 {
            let Some(next) = cron.next(at, &zone()) else { break };
            assert!(next > at, "{text:?}: {next} comes after {at}");
            at = next;
        }
    }
}
