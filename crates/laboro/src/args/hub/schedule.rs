//! What can be typed about schedules.

use super::HubArgs;
use clap::{Args as ClapArgs, Subcommand};

#[derive(Debug, ClapArgs)]
pub(crate) struct ScheduleArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ScheduleCommand>,

    /// Print JSON, an object per schedule and line.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) hub: HubArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ScheduleCommand {
    /// List schedules, with their next and last times.
    List {
        /// Print JSON, an object per schedule and line.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        hub: HubArgs,
    },
    /// Show all about one schedule.
    Show(ScheduleName),
    /// Submit the job of a schedule now.
    RunNow(ScheduleName),
    /// Submit nothing until `resume`.
    Pause(ScheduleName),
    /// Undo `pause`; planned times that passed meanwhile are left out.
    Resume(ScheduleName),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ScheduleName {
    /// The schedule's name in hub.toml.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) hub: HubArgs,
}
