//! Cron lines: five fields, or a word such as `@daily`, and the next time that fits one in a time zone.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

/// A bit for each minute, hour, day, month and weekday that fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Where both are restricted, one of them is enough.
    is_any_day: bool,
    is_any_weekday: bool,
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// Some dates come only in leap years, one of which may be left out at the end of a century.
const YEARS_AHEAD: i16 = 9;

impl Cron {
    pub fn parse(text: &str) -> Result<Cron, String> {
        let line = match text.trim() {
            "@hourly" => "0 * * * *",
            "@daily" | "@midnight" => "0 0 * * *",
            "@weekly" => "0 0 * * 0",
            "@monthly" => "0 0 1 * *",
            "@yearly" | "@annually" => "0 0 1 1 *",
            line => line,
        };
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields[..] else {
            return Err(format!(
                "{text:?} has {} fields: write minute, hour, day, month and weekday, such as 30 3 * * 1-5",
                fields.len()
            ));
        };
        let bad = |name: &str, why: String| format!("{text:?}: {name}: {why}");
        let of = |name, text, first, last, names| {
            field(text, first, last, names).map_err(|why| bad(name, why))
        };
        let weekday_bits = of("weekday", weekdays, 0, 7, &WEEKDAYS[..])?;
        let cron = Cron {
            minutes: of("minute", minutes, 0, 59, &[])?,
            hours: of("hour", hours, 0, 23, &[])?,
            days: of("day", days, 1, 31, &[])?,
            months: of("month", months, 1, 12, &MONTHS[..])?,
            // Sunday is 0 and 7.
            weekdays: weekday_bits | weekday_bits >> 7 & 1,
            is_any_day: days.starts_with('*'),
            is_any_weekday: weekdays.starts_with('*'),
        };
        match cron.next(Timestamp::UNIX_EPOCH, &TimeZone::UTC) {
            Some(_) => Ok(cron),
            None => Err(format!("{text:?}: there is no such day")),
        }
    }

    /// The first time after this one. A time that is left out when clocks go forward comes an hour later, one that comes twice
    /// when they go back counts once.
    pub fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let local = after.to_zoned(zone.clone()).datetime();
        let last = local.year().saturating_add(YEARS_AHEAD);
        let mut date = local.date();
        let mut is_first = true;
        while date.year() <= last {
            if self.fits_day(date) {
                let from = if is_first { local.time() } else { Time::midnight() };
                for at in self.times(date, from) {
                    let time = zone.to_ambiguous_timestamp(at).compatible().ok()?;
                    if time > after {
                        return Some(time);
                    }
                }
            }
            date = date.checked_add(1.day()).ok()?;
            is_first = false;
        }
        None
    }

    fn fits_day(&self, date: Date) -> bool {
        let day = self.days >> date.day() & 1 == 1;
        let weekday = self.weekdays >> date.weekday().to_sunday_zero_offset() & 1 == 1;
        let fits = match (self.is_any_day, self.is_any_weekday) {
            (false, false) => day || weekday,
            _ => day && weekday,
        };
        fits && self.months >> date.month() & 1 == 1
    }

    /// Of one day, from about this time on.
    fn times(&self, date: Date, from: Time) -> impl Iterator<Item = DateTime> {
        // Clocks may have been set back within this hour.
        let first = (from.hour() - 1).max(0);
        let hours = (first..24).filter(|hour| self.hours >> hour & 1 == 1);
        hours.flat_map(move |hour| {
            let minutes = (0..60).filter(|minute| self.minutes >> minute & 1 == 1);
            minutes.map(move |minute| date.at(hour, minute, 0, 0))
        })
    }
}

/// `*`, `5`, `1-5`, `*/10`, `10-40/5`, names, and lists of them.
fn field(text: &str, first: u64, last: u64, names: &[&str]) -> Result<u64, String> {
    let mut bits = 0;
    for item in text.split(',') {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => {
                let step = step.parse().ok().filter(|step: &u64| (1..=last).contains(step));
                (range, step.ok_or_else(|| format!("{item:?} is not a range and a step"))?)
            }
            None => (item, 1),
        };
        let number = |text: &str| {
            let named = names.iter().position(|name| name.eq_ignore_ascii_case(text));
            // Months are counted from 1, weekdays from 0.
            let named = named.map(|at| at as u64 + first);
            let number = named.or_else(|| text.parse().ok());
            number
                .filter(|number| (first..=last).contains(number))
                .ok_or_else(|| format!("{text:?} is not {first} to {last}"))
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (first, last),
            Some((from, to)) => (number(from)?, number(to)?),
            None if item.contains('/') => (number(range)?, last),
            None => (number(range)?, number(range)?),
        };
        if from > to {
            return Err(format!("{range:?} runs backwards"));
        }
        (from..=to).step_by(step as usize).for_each(|at| bits |= 1 << at);
    }
    Ok(bits)
}
