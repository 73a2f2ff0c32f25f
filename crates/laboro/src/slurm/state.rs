//! States of jobs in Slurm's words, long and short, and those that people may ask for.

use super::Fault;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JobState {
    Pending,
    Running,
    Completed,
    Failed,
    Cancelled,
    TimedOut,
    OutOfMemory,
    NodeFail,
}

impl JobState {
    pub(super) const ALL: [JobState; 8] = [
        JobState::Pending,
        JobState::Running,
        JobState::Completed,
        JobState::Failed,
        JobState::Cancelled,
        JobState::TimedOut,
        JobState::OutOfMemory,
        JobState::NodeFail,
    ];

    pub(super) fn long(self) -> &'static str {
        match self {
            JobState::Pending => "PENDING",
            JobState::Running => "RUNNING",
            JobState::Completed => "COMPLETED",
            JobState::Failed => "FAILED",
            JobState::Cancelled => "CANCELLED",
            JobState::TimedOut => "TIMEOUT",
            JobState::OutOfMemory => "OUT_OF_MEMORY",
            JobState::NodeFail => "NODE_FAIL",
        }
    }

    pub(super) fn short(self) -> &'static str {
        match self {
            JobState::Pending => "PD",
            JobState::Running => "R",
            JobState::Completed => "CD",
            JobState::Failed => "F",
            JobState::Cancelled => "CA",
            JobState::TimedOut => "TO",
            JobState::OutOfMemory => "OOM",
            JobState::NodeFail => "NF",
        }
    }

    pub(super) fn is_over(self) -> bool {
        !matches!(self, JobState::Pending | JobState::Running)
    }
}

/// States that a job cannot have here.
const OTHERS: [&str; 24] = [
    "CONFIGURING",
    "CF",
    "COMPLETING",
    "CG",
    "SUSPENDED",
    "S",
    "PREEMPTED",
    "PR",
    "BOOT_FAIL",
    "BF",
    "DEADLINE",
    "DL",
    "RESIZING",
    "RS",
    "REQUEUED",
    "RQ",
    "REVOKED",
    "RV",
    "SPECIAL_EXIT",
    "SE",
    "STAGE_OUT",
    "SO",
    "STOPPED",
    "ST",
];

/// Words for states, as in `-t pd,running`. `None`: all.
pub(super) fn states(words: &[&str]) -> Result<Option<Vec<JobState>>, Fault> {
    let mut found = Vec::new();
    for word in words {
        let word = word.to_ascii_uppercase();
        if word == "ALL" {
            return Ok(None);
        }
        let is_it = |state: &JobState| state.long() == word || state.short() == word;
        match JobState::ALL.into_iter().find(is_it) {
            Some(state) => found.push(state),
            None if OTHERS.contains(&word.as_str()) => {}
            None => return Err(Fault::from(format!("Invalid job state specified: {word}"))),
        }
    }
    Ok(Some(found))
}
