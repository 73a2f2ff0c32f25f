//! What can be typed to a hub: how it is found, and what many commands share. Only shapes and help texts, as in `args`.

mod control;
mod hooks;
mod look;
mod schedule;
mod submit;

pub(crate) use control::{
    Control, GroupArgs, Groups, GroupsCommand, LimitArgs, NewLimit, Priority, WorkerArgs, Workers,
    WorkersCommand,
};
pub(crate) use hooks::{Hooks, HooksCommand};
pub(crate) use look::{
    Audit, Dashboard, Doctor, Events, Explain, Export, ExportFormat, Jobs, Report, Show, Status,
    Tasks, Top, Wait,
};
pub(crate) use schedule::{ScheduleArgs, ScheduleCommand, ScheduleName};
pub(crate) use submit::Submit;

use crate::exit::usage;
use clap::Args as ClapArgs;
use std::path::PathBuf;

/// How the hub is found.
#[derive(Debug, Clone, Default, ClapArgs)]
#[command(next_help_heading = "Which hub")]
pub(crate) struct HubArgs {
    /// The hub's access file. Default: $LABORO_ACCESS, else that of --dir.
    #[arg(long, value_name = "FILE")]
    pub(crate) access: Option<PathBuf>,

    /// The hub's directory. Default: $LABORO_DIR, else ~/.local/state/laboro/hub.
    #[arg(long, value_name = "DIR", conflicts_with = "access")]
    pub(crate) dir: Option<PathBuf>,
}

impl HubArgs {
    /// What was said here, else what was said before a subcommand.
    pub(crate) fn or<'a>(&'a self, before: &'a HubArgs) -> &'a HubArgs {
        if self.access.is_some() || self.dir.is_some() { self } else { before }
    }
}

/// A run here, or a hub.
#[derive(Debug, Clone, Default, ClapArgs)]
#[command(next_help_heading = "Which run or hub")]
pub(crate) struct WhereArgs {
    /// A run in .laboro here: the latest, or the one whose id starts so. Default, if there is one and no hub is named.
    #[arg(long, value_name = "ID", num_args = 0..=1, conflicts_with_all = ["ask_hub", "access", "dir"])]
    pub(crate) run: Option<Option<String>>,

    /// Where runs keep their state, if not in .laboro here.
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,

    /// Use the hub even if there is a run here.
    #[arg(long = "hub")]
    pub(crate) ask_hub: bool,

    #[command(flatten)]
    pub(crate) hub: HubArgs,
}

impl WhereArgs {
    /// Whether the person said that a hub is meant, or that it is not.
    pub(crate) fn says_hub(&self) -> anyhow::Result<Option<bool>> {
        let says_hub = self.ask_hub || self.hub.access.is_some() || self.hub.dir.is_some();
        match (says_hub, self.state.is_some() || self.run.is_some()) {
            (true, true) => Err(usage(
                "--state says where runs keep their state: leave it out, or --hub, --access and --dir",
            )),
            (true, false) => Ok(Some(true)),
            (false, is_run) => Ok(is_run.then_some(false)),
        }
    }
}

/// Whom to ask, and how the answer is printed.
#[derive(Debug, ClapArgs)]
pub(crate) struct AnswerArgs {
    /// Print JSON, one object per line.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) place: WhereArgs,
}

/// How a list is printed.
#[derive(Debug, ClapArgs)]
pub(crate) struct RowArgs {
    /// One JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,

    /// Maximum number of rows; 0 for all. Default: 50 in a table, all with --json.
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) limit: Option<u64>,
}

/// What lists have in common.
#[derive(Debug, ClapArgs)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) rows: RowArgs,

    #[command(flatten)]
    pub(crate) place: WhereArgs,
}

impl ListArgs {
    /// What is for lists is not said to `verb`, which prints none.
    pub(crate) fn refuse_with(&self, verb: &str) -> anyhow::Result<()> {
        let said = [("--json", self.rows.json), ("--limit", self.rows.limit.is_some())];
        match said.into_iter().find(|(_, is_said)| *is_said) {
            Some((option, _)) => {
                Err(usage(format!("{option} goes with a list, not with `{verb}`")))
            }
            None => Ok(()),
        }
    }
}

pub(crate) const SELECTOR_HELP: &str = "\
Which tasks: JOB is a number, a name or `last`.
  12                 the whole job
  12/5               its fifth task
  12/1-100,200       several
  12/failed          all in a state: waiting, blocked, ready, delayed, held, running, done, failed, cancelled
  fit.3, 12/fit.3    a task by its name
  12/fit*            tasks and arrays by a name with * or ?
Several jobs:
  9,10  4-8          by their numbers
  all, mine          all of yours that it can be done to
  failed, held …     yours in a state
  night*             yours by a name with * or ?";
