//! When a job is to begin, as a person writes it. What could mean two moments is refused with both spellings. Nothing
//! here reads the clock: the moment and the time zone are arguments.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};
use laboro_plan::parse_duration;

/// The moment now, where this program runs.
pub(crate) fn now() -> Zoned {
    Timestamp::now().to_zoned(TimeZone::system())
}

/// `+2h`, `18:00`, `tomorrow`, `tomorrow 18:00`, `2026-12-01`, `2026-12-01T18:00`, also with `Z` or an offset. A time
/// of day is the next one: tomorrow's where today's is past.
pub(crate) fn parse(text: &str, now: &Zoned) -> Result<Timestamp, String> {
    let text = text.trim();
    if text == "now" {
        return Ok(now.timestamp());
    }
    if let Some(wait) = text.strip_prefix('+') {
        return after(wait, now).ok_or_else(|| unknown(text));
    }
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Ok(moment);
    }
    let (day, time) = match text.split_once(['T', ' ']) {
        Some((day, time)) => (Some(day), Some(time.trim())),
        None if text.contains(':') => (None, Some(text)),
        None => (Some(text), None),
    };
    let time = time.map(|time| time_of_day(time).ok_or_else(|| unknown(text))).transpose()?;
    let day = match (day, time) {
        (Some(day), _) => date(day, now).ok_or_else(|| unknown(text))?,
        (None, Some(time)) if time <= now.time() => {
            now.date().tomorrow().map_err(|_| unknown(text))?
        }
        (None, _) => now.date(),
    };
    at(day, time.unwrap_or(Time::midnight()), now, text)
}

fn after(wait: &str, now: &Zoned) -> Option<Timestamp> {
    // A bare number could be seconds, as elsewhere, or minutes or hours.
    let has_unit = wait.ends_with(|last: char| last.is_ascii_alphabetic());
    let wait = parse_duration(wait).ok().filter(|_| has_unit)?;
    now.timestamp().checked_add(wait).ok()
}

fn date(day: &str, now: &Zoned) -> Option<Date> {
    match day {
        "today" => Some(now.date()),
        "tomorrow" => now.date().tomorrow().ok(),
        // Only with four digits of a year and all of them: 12-01-2026 could be in December or in January.
        _ if day.len() == 10 => day.parse().ok(),
        _ => None,
    }
}

fn time_of_day(time: &str) -> Option<Time> {
    let parts: Vec<&str> = time.split(':').collect();
    let is_number = |part: &&str| part.len() <= 2 && part.bytes().all(|byte| byte.is_ascii_digit());
    if !(2..=3).contains(&parts.len()) || !parts.iter().all(is_number) {
        return None;
    }
    let mut numbers = parts.iter().map(|part| part.parse::<i8>().ok());
    let (hour, minute) = (numbers.next()??, numbers.next()??);
    let second = numbers.next().map_or(Some(0), |second| second)?;
    Time::new(hour, minute, second, 0).ok()
}

/// Where clocks are changed an hour comes twice or never: then it is not known which is meant.
fn at(day: Date, time: Time, now: &Zoned, text: &str) -> Result<Timestamp, String> {
    let civil = DateTime::from_parts(day, time);
    let ambiguous = now.time_zone().to_ambiguous_timestamp(civil);
    if ambiguous.is_ambiguous() {
        return Err(format!(
            "{text}: clocks are changed then; say it with an offset, as in {civil}+01:00"
        ));
    }
    ambiguous.compatible().map_err(|error| format!("{text}: {error}"))
}

fn unknown(text: &str) -> String {
    let hint = match parse_duration(text.trim_start_matches('+')) {
        Ok(_) if text.ends_with(|last: char| last.is_ascii_digit()) => {
            let number = text.trim_start_matches('+');
            format!(
                "say +{number}s, +{number}m or +{number}h for a time from now, {number}:00 for a time of day"
            )
        }
        Ok(_) => format!("say +{text} for a time from now"),
        Err(_) => "say +2h, 18:00, tomorrow, 2026-12-01 or 2026-12-01T18:00".to_owned(),
    };
    format!("{text:?} is not a time to begin: {hint}")
}

/// As `sbatch --begin` takes it: also `now+1hour`, `midnight`, `noon`, `teatime` and seconds without a unit.
pub(crate) fn parse_slurm(text: &str, now: &Zoned) -> Result<Timestamp, String> {
    let refused = || format!("Invalid time specification: {text}");
    let next = |hour: i8| parse(&format!("{hour:02}:00"), now);
    if let Some(wait) = text.strip_prefix("now+") {
        let end = wait.find(|c: char| !c.is_ascii_digit()).unwrap_or(wait.len());
        let count: i64 = wait[..end].parse().map_err(|_| refused())?;
        let unit = wait[end..].trim_end_matches('s');
        let seconds = match unit {
            "" | "second" => 1,
            "minute" => 60,
            "hour" => 3600,
            "day" => 86_400,
            "week" => 7 * 86_400,
            _ => return Err(refused()),
        };
        let span = count.checked_mul(seconds).filter(|all| *all < 100 * 366 * 86_400);
        let span = span.ok_or_else(refused)?.seconds();
        return now.timestamp().checked_add(span).map_err(|_| refused());
    }
    match text {
        "midnight" => next(0),
        "noon" => next(12),
        "fika" => next(15),
        "teatime" => next(16),
        _ if text.starts_with('+') => Err(refused()),
        _ => parse(text, now).map_err(|_| refused()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Wednesday afternoon in Berlin.
    fn afternoon() -> Zoned {
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        "2026-11-18T15:30:00Z".parse::<Timestamp>().unwrap().to_zoned(zone)
    }

    #[test]
    fn a_begin_is_the_moment_that_is_meant() {
        for (text, moment) in [
            ("now", "2026-11-18T15:30:00Z"),
            ("+2h", "2026-11-18T17:30:00Z"),
            ("+1h30m", "2026-11-18T17:00:00Z"),
            ("+90s", "2026-11-18T15:31:30Z"),
            ("18:00", "2026-11-18T17:00:00Z"),
            ("18:00:30", "2026-11-18T17:00:30Z"),
            // Past today.
            ("16:30", "2026-11-19T15:30:00Z"),
            ("9:05", "2026-11-19T08:05:00Z"),
            ("tomorrow", "2026-11-18T23:00:00Z"),
            ("tomorrow 18:00", "2026-11-19T17:00:00Z"),
            ("today 08:00", "2026-11-18T07:00:00Z"),
            ("2026-12-01", "2026-11-30T23:00:00Z"),
            ("2026-12-01T18:00", "2026-12-01T17:00:00Z"),
            ("2026-12-01 18:00:01", "2026-12-01T17:00:01Z"),
            ("2026-12-01T18:00:00Z", "2026-12-01T18:00:00Z"),
            ("2027-07-01T18:00", "2027-07-01T16:00:00Z"),
            ("2020-01-01", "2019-12-31T23:00:00Z"),
        ] {
            assert_eq!(
                parse(text, &afternoon()).map(|at| at.to_string()),
                Ok(moment.into()),
                "{text}"
            );
        }
    }

    #[test]
    fn what_could_be_two_moments_is_refused() {
        for (text, words) in [
            ("2h", "say +2h"),
            ("18", "18:00 for a time of day"),
            ("+2", "+2m"),
            ("6pm", "18:00"),
            ("12/01/26", "2026-12-01"),
            ("01-12-2026", "2026-12-01"),
            ("25:00", "18:00"),
            ("18:00pm", "18:00"),
            ("monday", "tomorrow"),
            ("", "tomorrow"),
            ("2027-10-31T02:30", "an offset"),
            ("2027-03-28T02:30", "an offset"),
        ] {
            let told = parse(text, &afternoon()).unwrap_err();
            assert!(told.contains(words), "{text}: {told}");
        }
    }

    #[test]
    fn what_sbatch_takes_is_taken() {
        for (text, moment) in [
            ("now+1hour", "2026-11-18T16:30:00Z"),
            ("now+60", "2026-11-18T15:31:00Z"),
            ("now+2days", "2026-11-20T15:30:00Z"),
            ("16:00", "2026-11-19T15:00:00Z"),
            ("noon", "2026-11-19T11:00:00Z"),
            ("midnight", "2026-11-18T23:00:00Z"),
            ("2030-01-20T12:34:00", "2030-01-20T11:34:00Z"),
        ] {
            let at = parse_slurm(text, &afternoon()).map(|at| at.to_string());
            assert_eq!(at, Ok(moment.into()), "{text}");
        }
        for text in ["+2h", "now+3moons", "now+", "2h", "now+99999999999999days"] {
            assert!(parse_slurm(text, &afternoon()).is_err(), "{text}");
        }
    }
}
