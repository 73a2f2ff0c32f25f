//! Durations and sizes as people write them: `90s`, `1h30m`, `2G`. No dates, no clock.

use std::time::Duration;

use thiserror::Error;

/// Why a text is not what it should be.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum QuantityError {
    #[error("`{0}` is not a duration: write 90s, 5m, 1h30m, 2d, 250ms or a number of seconds")]
    Duration(String),
    #[error("`{0}` is not a size: write 512M, 2G, 1.5T or a number of bytes")]
    Size(String),
    #[error("`{0}` is not an amount: write 2, 0.5 (at most four decimals) or all")]
    Amount(String),
}

/// What a task wants of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestedAmount {
    /// In ten-thousandths of one.
    Parts(u64),
    /// Whatever the worker has.
    All,
}

const PARTS: u64 = 10_000;
/// More than anybody counts; keeps every sum far from overflow.
const COUNT_MAX: u64 = 1_000_000_000_000;

/// `2`, `0.5` or `all`.
pub fn parse_amount(text: &str) -> Result<RequestedAmount, QuantityError> {
    let refused = || QuantityError::Amount(text.to_owned());
    if text == "all" {
        return Ok(RequestedAmount::All);
    }
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(decimals) || decimals.len() > 4 {
        return Err(refused());
    }
    let whole = whole.parse().ok().filter(|&whole: &u64| whole <= COUNT_MAX).ok_or_else(refused)?;
    let fraction: u64 = format!("{decimals:0<4}").parse().map_err(|_| refused())?;
    Ok(RequestedAmount::Parts(whole * PARTS + fraction))
}

impl std::fmt::Display for RequestedAmount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RequestedAmount::All => f.write_str("all"),
            RequestedAmount::Parts(parts) => match parts % PARTS {
                0 => write!(f, "{}", parts / PARTS),
                fraction => {
                    let digits = format!("{fraction:04}");
                    write!(f, "{}.{}", parts / PARTS, digits.trim_end_matches('0'))
                }
            },
        }
    }
}

/// Longer than any job; keeps every sum of durations far from overflow.
const SECONDS_MAX: f64 = 100.0 * 366.0 * 86_400.0;

const DURATION_UNITS: [(&str, f64); 5] =
    [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3_600.0), ("d", 86_400.0)];

/// `90s`, `1h30m`, or a number of seconds.
pub fn parse_duration(text: &str) -> Result<Duration, QuantityError> {
    let refused = || QuantityError::Duration(text.to_owned());
    let mut seconds = 0.0;
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(refused());
    }
    let mut parts = 0;
    while !rest.is_empty() {
        let (number, after) = split_number(rest).ok_or_else(refused)?;
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, tail) = after.split_at(letters);
        // A bare number is seconds only when it stands alone: `1h30` could mean two things.
        let known = DURATION_UNITS.iter().find(|(name, _)| *name == unit).map(|(_, scale)| *scale);
        let alone = unit.is_empty() && tail.is_empty() && parts == 0;
        seconds += number * known.or(alone.then_some(1.0)).ok_or_else(refused)?;
        rest = tail.trim_start();
        parts += 1;
    }
    seconds_to_duration(seconds).ok_or_else(refused)
}

pub(crate) fn seconds_to_duration(seconds: f64) -> Option<Duration> {
    // Rounded to milliseconds: the hub counts in those.
    let millis = (seconds * 1000.0).round();
    (0.0..=SECONDS_MAX).contains(&seconds).then(|| Duration::from_millis(millis as u64))
}

/// `512M`, `2G`, or a number of bytes.
pub fn parse_size(text: &str) -> Result<u64, QuantityError> {
    let refused = || QuantityError::Size(text.to_owned());
    let (number, unit) = split_number(text.trim()).ok_or_else(refused)?;
    let unit = unit.trim().to_ascii_uppercase();
    let unit = unit.strip_suffix('B').unwrap_or(&unit);
    let unit = unit.strip_suffix('I').unwrap_or(unit);
    let power = match unit {
        "" => 0,
        "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        _ => return Err(refused()),
    };
    let bytes = number * 1024_f64.powi(power);
    if bytes < (1_u64 << 60) as f64 { Ok(bytes.round() as u64) } else { Err(refused()) }
}

fn split_number(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    digits.starts_with(|c: char| c.is_ascii_digit()).then_some(())?;
    Some((digits.parse().ok()?, rest))
}

pub(crate) fn show_duration(duration: Duration) -> String {
    let (seconds, millis) = (duration.as_secs(), duration.subsec_millis());
    let mut shown = String::new();
    let units = [(seconds / 86_400, "d"), (seconds / 3_600 % 24, "h"), (seconds / 60 % 60, "m")];
    for (count, unit) in units.into_iter().chain([(seconds % 60, "s"), (u64::from(millis), "ms")]) {
        if count > 0 {
            shown += &format!("{count}{unit}");
        }
    }
    if shown.is_empty() { "0s".to_owned() } else { shown }
}

pub(crate) fn show_size(bytes: u64) -> String {
    let units = [(40, "T"), (30, "G"), (20, "M"), (10, "K")];
    match units.iter().find(|(shift, _)| bytes > 0 && bytes.is_multiple_of(1 << shift)) {
        Some((shift, unit)) => format!("{}{unit}", bytes >> shift),
        None => format!("{bytes}"),
    }
}
