//! Small shared ways of showing things to people: durations, sizes, names that are safe on a terminal.

use std::time::Duration;

pub(crate) fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds >= 3600 {
        format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60)
    } else if seconds >= 60 {
        format!("{}m{:02}s", seconds / 60, seconds % 60)
    } else if seconds >= 10 {
        format!("{:.1}s", time.as_secs_f64())
    } else {
        format!("{:.2}s", time.as_secs_f64())
    }
}

pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// Text from a task or a file as it may go to a terminal: no control characters but tabs.
pub(crate) fn safe(text: &str) -> String {
    let shown = |c: char| -> String {
        if c.is_control() && c != '\t' { c.escape_default().to_string() } else { c.to_string() }
    };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_read_well() {
        assert_eq!(duration(Duration::from_millis(1234)), "1.23s");
        assert_eq!(duration(Duration::from_secs(75)), "1m15s");
        assert_eq!(duration(Duration::from_secs(7384)), "2h03m");
        assert_eq!(bytes(17), "17 B");
        assert_eq!(bytes(1536), "1.5 KiB");
    }

    #[test]
    fn terminal_escapes_are_not_passed_on() {
        assert_eq!(safe("a\u{1b}[2Jb\tc\n"), "a\\u{1b}[2Jb\tc\\n");
    }
}
