//! What people hear while a hub cannot be reached: the reason at once, then again at growing intervals. Never each try.

use super::ConnectError;
use std::time::{Duration, Instant};

const FIRST: Duration = Duration::from_secs(60);
const MOST: Duration = Duration::from_secs(3600);

/// Since the hub was last there.
#[derive(Debug, Default)]
pub(super) struct Absence {
    /// When it began, when to speak of it again, and how long to be quiet then.
    told: Option<(Instant, Instant, Duration)>,
}

impl Absence {
    /// `None`: enough was said of it.
    pub fn words(&mut self, error: &ConnectError, now: Instant) -> Option<String> {
        let Some((since, again, pause)) = &mut self.told else {
            self.told = Some((now, now + FIRST, FIRST));
            return Some(format!("{error}; trying again"));
        };
        if now < *again {
            return None;
        }
        *pause = (*pause * 2).min(MOST);
        *again = now + *pause;
        let minutes = now.duration_since(*since).as_secs() / 60;
        Some(format!("{error}; still trying after {minutes} min"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_hub_is_told_of_at_once_and_then_less_and_less() {
        let error =
            ConnectError::Nowhere { tried: vec!["a:1 (refused)".into()], hint: "why".into() };
        let mut absence = Absence::default();
        let start = Instant::now();
        let told: Vec<(u64, String)> = (0..4 * 3600)
            .step_by(5)
            .filter_map(|second| {
                let words = absence.words(&error, start + Duration::from_secs(second))?;
                Some((second / 60, words))
            })
            .collect();
        assert_eq!(told[0].1, "no hub was found at a:1 (refused); why; trying again");
        assert!(told[1].1.ends_with("still trying after 1 min"), "{}", told[1].1);
        let minutes: Vec<u64> = told.iter().map(|(minute, _)| *minute).collect();
        assert_eq!(minutes, [0, 1, 3, 7, 15, 31, 63, 123, 183]);
    }
}
