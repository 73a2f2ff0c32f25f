//! When a run ends before all is done: GNU parallel's `--halt`. Reads it and says when the time has come; ending the
//! run is somebody else's.

/// `now,fail=1`, `soon,fail=30%`, `now,success=1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Halt {
    pub(crate) how: HaltHow,
    pub(crate) what: HaltWhat,
    limit: Limit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HaltHow {
    /// Nothing more starts, what runs is waited for.
    Soon,
    /// What runs is ended, and counts as not run.
    Now,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HaltWhat {
    Failed,
    Done,
    /// Done or failed.
    Ended,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limit {
    Count(u64),
    /// Of all tasks.
    Percent(u64),
    Never,
}

/// A share of failures means nothing before so many have failed.
const FAILED_MIN: u64 = 3;

const NEVER: Halt = Halt { how: HaltHow::Soon, what: HaltWhat::Ended, limit: Limit::Never };

const USAGE: &str = "write now or soon, and when: now,fail=1 or soon,fail=30% or now,success=1";

impl Halt {
    pub(crate) fn parse(text: &str) -> Result<Halt, String> {
        let text = match text {
            "never" | "0" => return Ok(NEVER),
            "1" => "soon,fail=1",
            "2" => "now,fail=1",
            text => text,
        };
        Halt::parts(text).ok_or_else(|| format!("{text} is not known: {USAGE}"))
    }

    fn parts(text: &str) -> Option<Halt> {
        let (how, when) = text.split_once(',')?;
        let (what, limit) = when.split_once('=')?;
        let number = |digits: &str| digits.parse::<u64>().ok().filter(|&number| number > 0);
        Some(Halt {
            how: match how {
                "soon" => HaltHow::Soon,
                "now" => HaltHow::Now,
                _ => return None,
            },
            what: match what {
                "fail" => HaltWhat::Failed,
                "success" => HaltWhat::Done,
                "done" => HaltWhat::Ended,
                _ => return None,
            },
            limit: match limit.strip_suffix('%') {
                Some(percent) => Limit::Percent(number(percent).filter(|&share| share <= 100)?),
                None => Limit::Count(number(limit)?),
            },
        })
    }

    /// So many tasks have ended in this run, of all that there are.
    pub(crate) fn is_reached(self, done: u64, failed: u64, all: u64) -> bool {
        let count = match self.what {
            HaltWhat::Failed => failed,
            HaltWhat::Done => done,
            HaltWhat::Ended => done + failed,
        };
        match self.limit {
            Limit::Never => false,
            Limit::Count(limit) => count >= limit,
            Limit::Percent(_) if self.what == HaltWhat::Failed && failed < FAILED_MIN => false,
            Limit::Percent(share) => {
                count > 0 && u128::from(count) * 100 >= u128::from(share) * u128::from(all)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_and_how_it_ends_are_told_apart() {
        let halt = |text: &str| Halt::parse(text).unwrap();
        assert!(!halt("never").is_reached(9, 9, 18));
        assert_eq!(halt("2"), halt("now,fail=1"));
        assert_eq!(halt("soon,success=2").how, HaltHow::Soon);
        assert!(halt("now,fail=1").is_reached(5, 1, 10));
        assert!(!halt("now,fail=2").is_reached(5, 1, 10));
        assert!(halt("now,success=5").is_reached(5, 1, 10));
        assert!(halt("soon,done=6").is_reached(5, 1, 10));
        assert!(!halt("soon,fail=10%").is_reached(0, 2, 10), "two are too few to tell");
        assert!(halt("soon,fail=30%").is_reached(0, 3, 10));
        assert!(!halt("soon,fail=50%").is_reached(0, 4, 10));
        for wrong in ["", "now", "now,fail", "now,fail=0", "later,fail=1", "now,fail=101%", "3"] {
            assert!(Halt::parse(wrong).is_err(), "{wrong}");
        }
    }
}
