//! What can be done to tasks and workers at a hub, and what tasks print, as words of its API.

use crate::output::counted;

/// What is done to tasks of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Cancel,
    Hold,
    Release,
    Retry,
    Priority(i32),
}

impl Verb {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Verb::Cancel => "cancel",
            Verb::Hold => "hold",
            Verb::Release => "release",
            Verb::Retry => "retry",
            Verb::Priority(_) => "priority",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WorkerVerb {
    Drain,
    /// So many slots, or all and at once.
    Stop(Option<u32>),
    Eject(String),
    Pardon,
    Lift,
}

impl WorkerVerb {
    pub(crate) fn word(&self) -> &'static str {
        match self {
            WorkerVerb::Drain => "drain",
            WorkerVerb::Stop(_) => "stop",
            WorkerVerb::Eject(_) => "eject",
            WorkerVerb::Pardon => "pardon",
            WorkerVerb::Lift => "lift",
        }
    }

    /// What is so once it was told.
    pub(crate) fn told(&self) -> String {
        match self {
            WorkerVerb::Drain => "starts no more tasks".to_owned(),
            WorkerVerb::Stop(None) => "is stopped; its tasks go back to the queue".to_owned(),
            WorkerVerb::Stop(Some(slots)) => {
                format!("gives up {}", counted(u64::from(*slots), "slot"))
            }
            WorkerVerb::Eject(_) => "is ejected".to_owned(),
            WorkerVerb::Pardon => "is pardoned".to_owned(),
            WorkerVerb::Lift => "accepts tasks again".to_owned(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Printed {
    Stdout,
    Stderr,
}

impl Printed {
    pub(super) fn word(self) -> &'static str {
        match self {
            Printed::Stdout => "out",
            Printed::Stderr => "err",
        }
    }
}
