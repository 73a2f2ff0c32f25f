//! What can be typed to change something at a hub: jobs and tasks, workers, groups. Only shapes and help texts.

use super::{AnswerArgs, HubArgs, ListArgs, SELECTOR_HELP};
use clap::{Args as ClapArgs, Subcommand};

/// Cancel, hold, release, retry and priority have the same shape.
#[derive(Debug, ClapArgs)]
#[command(after_help = SELECTOR_HELP)]
pub(crate) struct Control {
    /// Jobs or tasks: 12, last, 12/5, 12/failed, 4-8,12, all.
    #[arg(value_name = "JOB|TASK", required = true)]
    pub(crate) what: Vec<String>,

    /// With `all`, a state or a name with *: jobs of all owners, not only yours.
    #[arg(long)]
    pub(crate) all_owners: bool,

    /// The group of tasks that are given by their names.
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: Option<String>,

    #[command(flatten)]
    pub(crate) answer: AnswerArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct LimitArgs {
    /// How many tasks of a job run at once at most; `none` lifts the limit.
    #[arg(long, value_name = "N|none", value_parser = limit, required_unless_present = "max_fails")]
    pub(crate) max_running: Option<NewLimit>,

    /// Stop a job when more tasks than this have failed; `none` lifts the limit.
    #[arg(long, value_name = "N|none", value_parser = limit)]
    pub(crate) max_fails: Option<NewLimit>,

    #[command(flatten)]
    pub(crate) control: Control,
}

/// `None`: there is none any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NewLimit(pub(crate) Option<u32>);

fn limit(word: &str) -> Result<NewLimit, String> {
    match word {
        "none" => Ok(NewLimit(None)),
        number => match number.parse() {
            Ok(number) => Ok(NewLimit(Some(number))),
            Err(_) => Err("say a number, or `none`".to_owned()),
        },
    }
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Priority {
    /// Higher runs first; tasks have 0 by default.
    #[arg(allow_hyphen_values = true)]
    pub(crate) priority: i32,

    #[command(flatten)]
    pub(crate) control: Control,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Workers {
    #[command(subcommand)]
    pub(crate) command: Option<WorkersCommand>,

    /// Show everything about this worker, by name or number.
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Only of this group.
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: Option<String>,

    #[command(flatten)]
    pub(crate) list: ListArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorkersCommand {
    /// Start no more tasks on a worker; running ones finish.
    Drain(WorkerArgs),
    /// Take slots away from a worker: some, or all of them, which ends its tasks.
    Stop {
        /// Number of slots, free ones first. Default: all.
        #[arg(long, value_name = "N")]
        slots: Option<u32>,
        #[command(flatten)]
        worker: WorkerArgs,
    },
    /// Disconnect a worker and refuse it from now on; its tasks go to other workers.
    Eject {
        /// The reason, in words: it is shown with the worker.
        #[arg(long, default_value = "by hand")]
        reason: String,
        #[command(flatten)]
        worker: WorkerArgs,
    },
    /// Clear a worker's failure record.
    Pardon(WorkerArgs),
    /// Undo `drain` and `stop`: start tasks on a worker again.
    Lift(WorkerArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct WorkerArgs {
    /// The worker's name, or its number.
    #[arg(value_name = "WORKER")]
    pub(crate) name: String,

    /// The group it is in, when the name is not unique.
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: Option<String>,

    #[command(flatten)]
    pub(crate) hub: HubArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Groups {
    #[command(subcommand)]
    pub(crate) command: Option<GroupsCommand>,

    #[command(flatten)]
    pub(crate) list: ListArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GroupsCommand {
    /// Start no more tasks of a group; running ones continue.
    Pause(GroupArgs),
    /// Resume starting tasks of a group.
    Resume(GroupArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct GroupArgs {
    /// The group's name.
    #[arg(value_name = "GROUP")]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) hub: HubArgs,
}
