//! `--dependency`: what must be over before a job starts, and what must have become of it.

use super::slip::{Condition, Must};

/// One job, or one element of an array, that comes before.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Before {
    pub(super) job: u32,
    /// As it is called, not its place.
    pub(super) index: Option<u32>,
    pub(super) kind: DependencyKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DependencyKind {
    /// Begun.
    After,
    Any,
    Ok,
    NotOk,
    /// Element by element.
    Corr,
}

#[derive(Debug, Default, PartialEq)]
pub(super) struct Dependencies {
    pub(super) before: Vec<Before>,
    /// After all jobs of the same name.
    pub(super) singleton: bool,
}

impl Dependencies {
    pub(super) fn parse(text: &str) -> Result<Dependencies, String> {
        let wrong = || format!("invalid dependency: {text}");
        if text.contains('?') {
            return Err(format!(
                "--dependency={text} cannot be honoured: one of several jobs (`?`)"
            ));
        }
        let mut found = Dependencies::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            if part == "singleton" {
                found.singleton = true;
                continue;
            }
            let (kind, jobs) = match part.split_once(':') {
                Some((kind, jobs)) => (kind_of(kind).ok_or_else(wrong)?, jobs),
                // A bare number is `afterany` of it.
                None if part.bytes().all(|b| b.is_ascii_digit()) => (DependencyKind::Any, part),
                None => return Err(wrong()),
            };
            for job in jobs.split(':') {
                if job.contains('+') {
                    return Err(format!("--dependency={part} cannot be honoured: a delay (`+`)"));
                }
                let (job, index) = match job.split_once('_') {
                    Some((job, "*")) => (job, None),
                    Some((job, index)) => (job, Some(index.parse().map_err(|_| wrong())?)),
                    None => (job, None),
                };
                let job = job.parse().map_err(|_| wrong())?;
                found.before.push(Before { job, index, kind });
            }
        }
        Ok(found)
    }

    /// Whether the hub's own rule, that what comes before must have succeeded, is all that is asked.
    pub(super) fn is_plain(&self) -> bool {
        !self.singleton
            && self
                .before
                .iter()
                .all(|before| matches!(before.kind, DependencyKind::Ok | DependencyKind::Corr))
    }
}

impl Before {
    pub(super) fn condition(&self, task: Option<u32>) -> Option<Condition> {
        let must = match self.kind {
            DependencyKind::Ok | DependencyKind::Corr => Must::Succeed,
            DependencyKind::NotOk => Must::Fail,
            DependencyKind::After | DependencyKind::Any => return None,
        };
        Some(Condition { job: self.job, task, must })
    }
}

fn kind_of(word: &str) -> Option<DependencyKind> {
    Some(match word {
        "after" => DependencyKind::After,
        "afterany" => DependencyKind::Any,
        "afterok" => DependencyKind::Ok,
        "afternotok" => DependencyKind::NotOk,
        "aftercorr" => DependencyKind::Corr,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read() {
        let found = Dependencies::parse("afterok:1:2_7,afternotok:3,singleton").unwrap();
        let of = |job, index, kind| Before { job, index, kind };
        assert_eq!(
            found.before,
            [
                of(1, None, DependencyKind::Ok),
                of(2, Some(7), DependencyKind::Ok),
                of(3, None, DependencyKind::NotOk)
            ]
        );
        assert!(found.singleton && !found.is_plain());
        assert!(Dependencies::parse("afterok:1,aftercorr:2").unwrap().is_plain());
        assert_eq!(Dependencies::parse("17").unwrap().before, [of(17, None, DependencyKind::Any)]);
        for wrong in ["before:1", "afterok", "afterok:x", "afterok:1?afterok:2", "after:1+5"] {
            assert!(Dependencies::parse(wrong).is_err(), "{wrong}");
        }
    }
}
