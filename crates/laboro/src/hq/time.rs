//! Times as `hq` takes them: `90s`, `1h 30min`, `2days`, or `HH:MM:SS`.

/// In milliseconds.
pub(super) fn parse(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a time: write 90s, 1h 30min or HH:MM:SS");
    if text.contains(':') {
        let parts: Result<Vec<u64>, _> = text.split(':').map(str::parse).collect();
        let Ok([hours, minutes, seconds]) = <[u64; 3]>::try_from(parts.map_err(|_| wrong())?)
        else {
            return Err(wrong());
        };
        let seconds = hours.checked_mul(3600).and_then(|s| s.checked_add(minutes * 60 + seconds));
        return seconds.and_then(|s| s.checked_mul(1000)).ok_or_else(wrong);
    }
    let (mut total, mut rest) = (0_u64, text.trim());
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let letters = after.trim_start();
        let end = letters.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(letters.len());
        let (unit, tail) = letters.split_at(end);
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let part = number.checked_mul(unit_ms(unit).ok_or_else(wrong)?);
        total = part.and_then(|part| total.checked_add(part)).ok_or_else(wrong)?;
        rest = tail.trim_start();
    }
    Ok(total)
}

fn unit_ms(unit: &str) -> Option<u64> {
    Some(match unit {
        "ms" | "msec" | "millis" => 1,
        "s" | "sec" | "secs" | "second" | "seconds" => 1000,
        "m" | "min" | "mins" | "minute" | "minutes" => 60_000,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600_000,
        "d" | "day" | "days" => 86_400_000,
        "w" | "week" | "weeks" => 604_800_000,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn times_are_read_in_every_form() {
        for (text, ms) in [
            ("90s", 90_000),
            ("86400sec", 86_400_000),
            ("1h 30min", 5_400_000),
            ("1h30m", 5_400_000),
            ("2 days", 172_800_000),
            ("01:00:05", 3_605_000),
        ] {
            assert_eq!(parse(text), Ok(ms), "{text}");
        }
        for wrong in ["", "90", "h", "1:30", "1x", "99999999999999999999s", "x:1:2", "-1s"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
