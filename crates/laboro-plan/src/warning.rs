//! A signal that a task gets some time before its limit, as people write it: `USR1@60s`. Sends nothing.

use std::fmt;
use std::time::Duration;

use crate::quantity::{parse_duration, show_duration};

/// A signal, and how long before the time limit it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Warning {
    /// Its number, as Linux has it.
    pub signal: u8,
    /// How long before.
    pub before: Duration,
}

/// As Linux numbers them. Those that end or stop whatever gets them are no warning.
const SIGNALS: [(&str, u8); 13] = [
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ABRT", 6),
    ("USR1", 10),
    ("USR2", 12),
    ("ALRM", 14),
    ("TERM", 15),
    ("CONT", 18),
    ("URG", 23),
    ("XCPU", 24),
    ("WINCH", 28),
    ("PWR", 30),
];

/// As Slurm has it where nothing is said.
const BEFORE: Duration = Duration::from_secs(60);

impl Warning {
    /// `USR1@60s`, `10@60s`, or `USR1` for 60 seconds.
    pub fn parse(text: &str) -> Result<Warning, String> {
        let (signal, before) = match text.split_once('@') {
            Some((signal, before)) => (signal, Some(before)),
            None => (text, None),
        };
        let before =
            before.map_or(Ok(BEFORE), parse_duration).map_err(|error| error.to_string())?;
        let upper = signal.to_ascii_uppercase();
        let name = upper.strip_prefix("SIG").unwrap_or(&upper);
        let known = SIGNALS.iter().find(|(known, number)| {
            *known == name || name.parse::<u8>().is_ok_and(|given| given == *number)
        });
        match known {
            Some(&(_, signal)) => Ok(Warning { signal, before }),
            None => {
                let names: Vec<&str> = SIGNALS.iter().map(|(name, _)| *name).collect();
                Err(format!(
                    "`{text}` is not a signal: write USR1@60s (60 seconds before the time limit), with one of {}",
                    names.join(" ")
                ))
            }
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match SIGNALS.iter().find(|(_, number)| *number == self.signal) {
            Some((name, _)) => f.write_str(name)?,
            None => write!(f, "{}", self.signal)?,
        }
        write!(f, "@{}", show_duration(self.before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names_and_numbers() {
        for (text, shown) in [
            ("USR1@60s", "USR1@1m"),
            ("sigusr2@250ms", "USR2@250ms"),
            ("10@5", "USR1@5s"),
            ("TERM", "TERM@1m"),
        ] {
            assert_eq!(Warning::parse(text).map(|warning| warning.to_string()), Ok(shown.into()));
        }
        for wrong in ["", "KILL@5s", "9@5s", "STOP", "USR1@", "USR1@x", "99@1s", "B:USR1@60"] {
            assert!(Warning::parse(wrong).is_err(), "{wrong}");
        }
    }
}
