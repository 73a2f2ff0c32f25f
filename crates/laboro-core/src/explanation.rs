//! Why a task is where it is: data, with a sentence. What a person could do about it is said by the program that speaks
//! to one.

use crate::fields::Fields;
use crate::id::{JobId, Name, Time};
use crate::resources::{Amount, Request};
use crate::task::{Outcome, WorkKind};
use std::fmt;

/// Why a task is where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Explanation {
    Running {
        worker: Name,
        since_ms: u64,
        is_away: bool,
    },
    Done,
    Cancelled,
    Failed {
        outcome: Option<Outcome>,
        /// In the words of its worker.
        why: Option<Box<str>>,
        worker: Option<Name>,
    },
    Held {
        reason: Option<Box<str>>,
    },
    /// Its last attempt failed; the next one starts after this time.
    Delayed {
        wait_ms: u64,
    },
    Waiting {
        before: Before,
        /// What failed or was cancelled, where it will not run because of that.
        failed: Option<Before>,
    },
    Blocked(Before),
    JobHeld(JobId),
    /// It was submitted for a later time.
    JobBegins {
        job: JobId,
        begin: Time,
        wait_ms: u64,
    },
    /// Too many of its tasks failed.
    JobStopped {
        job: JobId,
        failures: u32,
    },
    /// It runs as many tasks as it may.
    JobFull {
        job: JobId,
        most: u32,
    },
    /// Its owner has as many slots in use in this group as it may.
    OwnerFull {
        owner: Option<Name>,
        most: u64,
        used: u64,
        wanted: u64,
    },
    GroupPaused(Name),
    Ready {
        group: Name,
        prospect: Prospect,
        /// It was lost with its worker so often that it runs only where nothing else does.
        lost: Option<u16>,
    },
}

/// The first few tasks that stand before one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Before {
    pub names: Vec<Name>,
    /// How many there are beside these.
    pub more: u32,
    /// Tasks of other groups, which not everybody may know of.
    pub hidden: u32,
}

impl Before {
    /// Are there none, because they are forgotten?
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.hidden == 0
    }
}

/// Which workers a ready task waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Prospect {
    NoWorker,
    Lacking(Shortfall),
    /// All that could run it leave before it would be over.
    TooLate {
        workers: u32,
    },
    /// All that could run it are on hold, ejected or draining.
    Barred {
        workers: u32,
    },
    Busy {
        workers: u32,
    },
    /// It takes several workers, and there are only so many that could be among them.
    TooFew {
        wanted: u32,
        workers: u32,
    },
    /// Its workers are chosen, and some of them still run something else.
    Gathering {
        wanted: u32,
        free: u32,
    },
}

/// No worker has what a task needs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Shortfall {
    /// How many were looked at.
    pub workers: u32,
    /// The one that lacks least.
    pub closest: Name,
    /// What that one lacks, at least one thing.
    pub lacks: Vec<Lack>,
    /// No worker has the first of these.
    pub is_general: bool,
}

/// Something that a worker has not, or not enough of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Lack {
    Slots { wanted: u32, has: u32 },
    Memory { wanted: u64, has: u64 },
    Resource { name: Name, wanted: Request, has: Amount },
    Tag(Name),
    Kind(WorkKind),
    Fields(Fields),
}

impl Lack {
    /// The same thing, whatever there is of it.
    pub(crate) fn is_of(&self, other: &Lack) -> bool {
        match (self, other) {
            (Lack::Slots { .. }, Lack::Slots { .. })
            | (Lack::Memory { .. }, Lack::Memory { .. })
            | (Lack::Kind(_), Lack::Kind(_))
            | (Lack::Fields(_), Lack::Fields(_)) => true,
            (Lack::Resource { name, .. }, Lack::Resource { name: other, .. })
            | (Lack::Tag(name), Lack::Tag(other)) => name == other,
            _ => false,
        }
    }

    /// How much of it is there, in thousandths of what is wanted.
    pub(crate) fn permille(&self) -> u64 {
        let share = |has: u128, wanted: u128| (has * 1000 / wanted.max(1)) as u64;
        match self {
            Lack::Slots { wanted, has } => share((*has).into(), (*wanted).into()),
            Lack::Memory { wanted, has } => share((*has).into(), (*wanted).into()),
            Lack::Resource { wanted: Request::Some(wanted), has, .. } => {
                share(has.parts().into(), wanted.parts().into())
            }
            Lack::Resource { .. } | Lack::Tag(_) | Lack::Kind(_) | Lack::Fields(_) => 0,
        }
    }

    /// What the closest worker has of it, where it has some.
    fn has(&self) -> Option<String> {
        match self {
            Lack::Slots { has, .. } if *has > 0 => Some(has.to_string()),
            Lack::Memory { has, .. } if *has > 0 => Some(mebibytes(*has)),
            Lack::Resource { has, .. } if *has > Amount::default() => Some(has.to_string()),
            _ => None,
        }
    }
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

fn are(count: u32) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

/// A number with its noun: `1 task`, `2 tasks`.
pub fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn workers(count: u32) -> String {
    counted(count, "worker")
}

pub(crate) fn times(count: u32) -> String {
    match count {
        1 => "once".into(),
        count => format!("{count} times"),
    }
}

/// What is wanted.
impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lack::Slots { wanted, .. } => f.write_str(&counted(*wanted, "slot")),
            Lack::Memory { wanted, .. } => write!(f, "{} of memory", mebibytes(*wanted)),
            Lack::Resource { name, wanted: Request::All, .. } => write!(f, "any {name}"),
            Lack::Resource { name, wanted, .. } => write!(f, "{wanted} {name}"),
            Lack::Tag(tag) => write!(f, "the tag {tag}"),
            Lack::Kind(kind) => f.write_str(match kind {
                WorkKind::Named => "a command for tasks known by name",
                WorkKind::Command => "a way to run commands",
                WorkKind::Script => "a way to run scripts",
                WorkKind::Indexed => "a way to run numbered tasks of a program",
                WorkKind::Call => "a way to run calls",
            }),
            // A worker without bash does not say that it understands the field.
            Lack::Fields(fields) if *fields != fields.without_shell() => f.write_str("bash"),
            Lack::Fields(fields) => {
                let words: Vec<&str> = fields.words().collect();
                write!(f, "support for a {} (newer workers have it)", words.join(", a "))
            }
        }
    }
}

impl fmt::Display for Before {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<String> = self.names.iter().map(ToString::to_string).collect();
        match self.hidden {
            0 => {}
            1 => names.push("a task of another group".into()),
            hidden => names.push(format!("{} of other groups", counted(hidden, "task"))),
        }
        f.write_str(&names.join(", "))?;
        if self.more > 0 { write!(f, " and {} more", self.more) } else { Ok(()) }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Explanation::Running { worker, since_ms, is_away } => {
                let away = match is_away {
                    true => {
                        ", which is disconnected: the task goes back to the queue if it does not return"
                    }
                    false => "",
                };
                write!(f, "it runs on {worker} for {:.1} s{away}", seconds(*since_ms))
            }
            Explanation::Done => f.write_str("it is done"),
            Explanation::Cancelled => f.write_str("it was cancelled"),
            Explanation::Failed { outcome: None, .. } => f.write_str("it failed"),
            Explanation::Failed { outcome: Some(outcome), why, worker } => {
                write!(f, "it failed ({outcome}")?;
                if let Some(why) = why {
                    write!(f, ": {why}")?;
                }
                match worker {
                    Some(worker) => write!(f, " on {worker})"),
                    None => f.write_str(")"),
                }
            }
            Explanation::Held { reason: Some(reason) } => write!(f, "it is held: {reason}"),
            Explanation::Held { reason: None } => f.write_str("it is held"),
            Explanation::Delayed { wait_ms } => write!(
                f,
                "its last attempt failed; the next one starts in {:.1} s",
                seconds(*wait_ms)
            ),
            Explanation::Waiting { before, failed } => {
                match before.is_empty() {
                    true => f.write_str("it waits for others")?,
                    false => write!(f, "it waits for {before}")?,
                }
                match failed {
                    Some(failed) => {
                        write!(f, ", and will not run: {failed} failed or was cancelled")
                    }
                    None => Ok(()),
                }
            }
            Explanation::Blocked(before) if before.is_empty() => {
                f.write_str("it is blocked: a task before it failed and was forgotten")
            }
            Explanation::Blocked(before) => {
                write!(f, "it is blocked: {before} failed or was cancelled")
            }
            Explanation::JobHeld(job) => write!(f, "job {job} is held"),
            Explanation::JobBegins { job, wait_ms, .. } => {
                write!(f, "job {job} begins in {}", Wait(*wait_ms))
            }
            Explanation::JobStopped { job, failures } => {
                let plural = if *failures == 1 { "" } else { "s" };
                write!(f, "job {job} was stopped after {failures} failure{plural}")
            }
            Explanation::JobFull { job, most } => {
                write!(f, "job {job} already runs as many tasks as it may ({most})")
            }
            Explanation::OwnerFull { owner, most, used, wanted } => {
                match owner {
                    Some(owner) => {
                        write!(f, "{owner} may use at most {} at once", counted(*most, "slot"))?;
                    }
                    None => {
                        write!(f, "its owner may use at most {} at once", counted(*most, "slot"))?;
                    }
                }
                match wanted > most {
                    true => write!(f, ", and the task needs {wanted}: it can never start"),
                    false => write!(f, ", and uses {used}"),
                }
            }
            Explanation::GroupPaused(group) => write!(f, "group {group} is paused"),
            Explanation::Ready { group, prospect, lost } => {
                prospect.say(group, f)?;
                match lost {
                    Some(lost) => write!(
                        f,
                        "; its worker was lost {}, so it runs only on a worker that has nothing else",
                        times((*lost).into())
                    ),
                    None => Ok(()),
                }
            }
        }
    }
}

impl Prospect {
    fn say(&self, group: &Name, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Prospect::NoWorker => {
                write!(f, "it is ready, but no worker is connected to group {group}")
            }
            Prospect::Lacking(shortfall) => shortfall.say(group, f),
            Prospect::TooLate { workers: count } => write!(
                f,
                "it is ready, but {} that could run it {} before its time is over",
                workers(*count),
                if *count == 1 { "leaves" } else { "leave" }
            ),
            Prospect::Barred { workers: count } => write!(
                f,
                "it is ready, but {} that could run it {} on hold, ejected or draining",
                workers(*count),
                are(*count)
            ),
            Prospect::TooFew { wanted, workers: count } => write!(
                f,
                "it is ready, but takes {} at once, and group {group} has {count} that could take it",
                counted(*wanted, "worker")
            ),
            Prospect::Gathering { wanted, free } => write!(
                f,
                "it is ready, and {} {} kept for it, of which {} still busy with others",
                workers(*wanted),
                are(*wanted),
                match wanted.saturating_sub(*free) {
                    1 => "1 is".to_owned(),
                    busy => format!("{busy} are"),
                },
            ),
            Prospect::Busy { workers: count } => write!(
                f,
                "it is ready and waits its turn: {} can run it and {} busy with others",
                workers(*count),
                are(*count)
            ),
        }
    }
}

impl Shortfall {
    fn say(&self, group: &Name, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shortfall { closest, lacks, is_general, .. } = self;
        match &lacks[..] {
            [lack] if *is_general => {
                write!(f, "it is ready, but no worker in group {group} has {lack}")?;
                match lack.has() {
                    Some(has) => write!(f, " (largest: {has}, on {closest})"),
                    None => Ok(()),
                }
            }
            lacks => {
                let words: Vec<String> = (lacks.iter())
                    .map(|lack| match lack.has() {
                        Some(has) => format!("{lack} (has {has})"),
                        None => lack.to_string(),
                    })
                    .collect();
                let words = words.join(", ");
                write!(
                    f,
                    "it is ready, but no worker in group {group} has all it needs: \
                     the closest, {closest}, lacks {words}"
                )
            }
        }
    }
}

/// A time to wait in its two largest units: `2 h 5 min`.
struct Wait(u64);

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.div_ceil(1000);
        match seconds {
            0..60 => write!(f, "{seconds} s"),
            60..3600 => write!(f, "{} min {} s", seconds / 60, seconds % 60),
            3600..86_400 => write!(f, "{} h {} min", seconds / 3600, seconds / 60 % 60),
            _ => write!(f, "{} d {} h", seconds / 86_400, seconds / 3600 % 24),
        }
    }
}

fn seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}
