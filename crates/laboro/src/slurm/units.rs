//! Times, sizes and sets of numbers as Slurm writes them.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// A time limit in milliseconds: `minutes`, `minutes:seconds`, `hours:minutes:seconds`, `days-hours[:minutes[:seconds]]`.
/// `None`: there is no limit.
pub(super) fn time_limit(text: &str) -> Result<Option<u64>, String> {
    if ["unlimited", "infinite", "-1"].contains(&&*text.to_ascii_lowercase()) {
        return Ok(None);
    }
    let wrong = || format!("invalid time limit specification: {text}");
    let (days, rest) = match text.split_once('-') {
        Some((days, rest)) => (Some(days.parse::<u64>().map_err(|_| wrong())?), rest),
        None => (None, text),
    };
    let parts: Result<Vec<u64>, _> = rest.split(':').map(str::parse).collect();
    let parts = parts.map_err(|_| wrong())?;
    let seconds = match (days, &parts[..]) {
        (Some(_), [hours]) => hours * 3600,
        (Some(_), [hours, minutes]) => hours * 3600 + minutes * 60,
        (_, [hours, minutes, seconds]) => hours * 3600 + minutes * 60 + seconds,
        (None, [minutes]) => minutes * 60,
        (None, [minutes, seconds]) => minutes * 60 + seconds,
        _ => return Err(wrong()),
    };
    let seconds = days.unwrap_or(0) * 86_400 + seconds;
    Ok((seconds > 0).then_some(seconds * 1000))
}

/// In bytes; a number without a unit is in megabytes.
pub(super) fn memory(text: &str) -> Result<u64, String> {
    let wrong = || format!("invalid memory specification: {text}");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "K" | "KB" => 10,
        "" | "M" | "MB" => 20,
        "G" | "GB" => 30,
        "T" | "TB" => 40,
        _ => return Err(wrong()),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(1 << shift).ok_or_else(wrong)
}

/// `1-02:03:04`, as `squeue` has it: without leading zeros.
pub(super) fn elapsed(ms: u64) -> String {
    let (days, rest) = (ms / 86_400_000, ms / 1000 % 86_400);
    let (hours, minutes, seconds) = (rest / 3600, rest / 60 % 60, rest % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes}:{seconds:02}"),
        (0, _) => format!("{hours}:{minutes:02}:{seconds:02}"),
        _ => format!("{days}-{hours:02}:{minutes:02}:{seconds:02}"),
    }
}

/// The same as `sacct` has it.
pub(super) fn elapsed_full(ms: u64) -> String {
    let (days, rest) = (ms / 86_400_000, ms / 1000 % 86_400);
    let time = format!("{:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60);
    if days > 0 { format!("{days}-{time}") } else { time }
}

/// Local time.
pub(super) fn date(ms: Option<u64>, none: &str) -> String {
    let at = ms.and_then(|ms| Timestamp::from_millisecond(i64::try_from(ms).ok()?).ok());
    match at {
        Some(at) => {
            let at: Zoned = at.to_zoned(TimeZone::system());
            at.strftime("%Y-%m-%dT%H:%M:%S").to_string()
        }
        None => none.to_owned(),
    }
}

/// `0-9`, `1,3,5-7`, `0-15:4`, with `%4` for how many run at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Indices {
    /// First, last and step.
    ranges: Vec<(u32, u32, u32)>,
    pub(super) running_max: Option<u32>,
}

/// More than any scheduler has.
const INDICES_MAX: u64 = 10_000_000;

impl Indices {
    pub(super) fn parse(text: &str) -> Result<Indices, String> {
        let wrong = || format!("invalid job array specification: {text}");
        let (set, most) = match text.split_once('%') {
            Some((set, most)) => (set, Some(most.parse().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let mut ranges = Vec::new();
        for part in set.split(',') {
            let (span, step) = match part.split_once(':') {
                Some((span, step)) => (span, step.parse().map_err(|_| wrong())?),
                None => (part, 1),
            };
            let number = |text: &str| text.trim().parse::<u32>().map_err(|_| wrong());
            let (first, last) = match span.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(span)?, number(span)?),
            };
            if last < first || step == 0 {
                return Err(wrong());
            }
            ranges.push((first, last, step));
        }
        let indices = Indices { ranges, running_max: most.filter(|&most| most > 0) };
        if indices.count() > INDICES_MAX {
            return Err(wrong());
        }
        let mut seen = std::collections::HashSet::new();
        if indices.ranges.len() > 1 && !indices.all().all(|index| seen.insert(index)) {
            return Err(wrong());
        }
        Ok(indices)
    }

    pub(super) fn count(&self) -> u64 {
        let count = |&(first, last, step): &(u32, u32, u32)| u64::from((last - first) / step) + 1;
        self.ranges.iter().map(count).sum()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = u32> + '_ {
        self.ranges.iter().flat_map(|&(first, last, step)| (first..=last).step_by(step as usize))
    }

    /// Where all of it is one range.
    pub(super) fn range(&self) -> Option<(u32, u32, u32)> {
        match self.ranges[..] {
            [range] => Some(range),
            _ => None,
        }
    }

    /// Of the element that has this place, from 1.
    pub(super) fn index(&self, place: u32) -> Option<u32> {
        match self.range() {
            Some((first, _, step)) => Some(first + (place.checked_sub(1)?) * step),
            None => self.all().nth(place.checked_sub(1)? as usize),
        }
    }

    /// The place of this index, from 1.
    pub(super) fn place(&self, index: u32) -> Option<u32> {
        let at = self.all().position(|other| other == index)?;
        u32::try_from(at + 1).ok()
    }

    pub(super) fn min(&self) -> u32 {
        self.ranges.iter().map(|range| range.0).min().unwrap_or(0)
    }

    pub(super) fn max(&self) -> u32 {
        self.all().max().unwrap_or(0)
    }
}

/// `1,3-5`: a set of numbers, ascending.
pub(super) fn set(numbers: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            Some((_, last)) if number == *last + 1 => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let run = |&(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    runs.iter().map(run).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_read_as_slurm_reads_them() {
        for (text, seconds) in [
            ("5", 300),
            ("1:30", 90),
            ("2:00:00", 7200),
            ("1-0", 86_400),
            ("1-12:30", 131_400),
            ("0-0:0:5", 5),
        ] {
            assert_eq!(time_limit(text), Ok(Some(seconds * 1000)), "{text}");
        }
        assert_eq!(time_limit("UNLIMITED"), Ok(None));
        assert!(time_limit("soon").is_err() && time_limit("1:2:3:4").is_err());
        for (text, bytes) in
            [("100", 100 << 20), ("4G", 4 << 30), ("8KB", 8 << 10), ("1T", 1 << 40)]
        {
            assert_eq!(memory(text), Ok(bytes), "{text}");
        }
        assert!(memory("4X").is_err());
        assert_eq!((elapsed(62_000), elapsed(90_061_000)), ("1:02".into(), "1-01:01:01".into()));
        assert_eq!(elapsed_full(62_000), "00:01:02");
    }

    #[test]
    fn sets_of_indices_know_their_places() {
        let indices = Indices::parse("0-15:4,20,30-31%2").unwrap();
        assert_eq!(indices.all().collect::<Vec<_>>(), [0, 4, 8, 12, 20, 30, 31]);
        assert_eq!((indices.count(), indices.running_max), (7, Some(2)));
        assert_eq!((indices.index(5), indices.place(30)), (Some(20), Some(6)));
        assert_eq!((indices.min(), indices.max()), (0, 31));
        for wrong in ["", "5-1", "1,1", "a", "1-5:0", "1%x"] {
            assert!(Indices::parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(set(&[1, 2, 3, 7, 9, 10]), "1-3,7,9-10");
    }
}
