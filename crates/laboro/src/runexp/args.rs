//! What can be typed after `laboro runexp`. Only shapes and help texts.

use super::dashboard::parse_address;
use crate::args::Success;
use clap::{Args as ClapArgs, Subcommand};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

#[derive(Debug, ClapArgs)]
pub(crate) struct Runexp {
    #[command(subcommand)]
    pub(crate) what: RunexpCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunexpCommand {
    /// Dispatch the scripts below DIR/runs to runners, and write their results to DIR/outputs.
    Manage(Manage),
}

const HELP: &str = "\
Examples:
  laboro runexp manage exp --port 7001                     then, on this machine:
  laboro worker --from runexp://127.0.0.1:7001 -j 8
  laboro runexp manage exp --port 7001 --listen 0.0.0.0    for runners on other machines
  laboro runexp manage exp --print-jobs                    what is left to do
  laboro runexp manage exp --port 7001 --dashboard=7911    with a dashboard

Started again, it resumes: a script is done when its result file is there and was good.
~/.runexp may hold a line `port=7001`, without blanks if original programs read it, too.

Exit status: 0 all done, 1 some failed, 2 wrong usage, 3 a problem with files, 130 interrupted.";

#[derive(Debug, ClapArgs)]
#[command(after_help = HELP)]
pub(crate) struct Manage {
    /// The directory with runs/ and outputs/ in it.
    #[arg(default_value = ".")]
    pub(crate) base: PathBuf,

    /// Where the scripts are, below BASE unless it begins with a slash.
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(crate) runs: PathBuf,

    /// Where results go, below BASE unless it begins with a slash.
    #[arg(long, value_name = "DIR", default_value = "outputs")]
    pub(crate) outputs: PathBuf,

    /// The port to listen on. Default: that of ~/.runexp, else a free one, which is printed.
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,

    /// The address to listen on. Runners are not asked for any secret: widen it with care.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) listen: IpAddr,

    /// Runners must be in this group.
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: Option<String>,

    /// Dispatch scripts in the order of their names. This is always so here; the original needs the option.
    #[arg(long)]
    pub(crate) sort: bool,

    /// List what is left to do, and exit.
    #[arg(long)]
    pub(crate) print_jobs: bool,

    /// Show how far it is.
    #[arg(long)]
    pub(crate) progress: bool,

    /// Say the name of each script that has ended, and how.
    #[arg(long)]
    pub(crate) shownames: bool,

    /// Serve a dashboard for browsers on this machine, and print its link. Without a port, a free one is taken.
    #[arg(long, value_name = "PORT", num_args = 0..=1, require_equals = true,
        default_missing_value = "0", value_parser = parse_address)]
    pub(crate) dashboard: Option<SocketAddr>,

    /// Put runners on hold that fail too often, and eject them if they keep failing.
    #[arg(long)]
    pub(crate) ban: bool,

    /// How often a script that failed is tried again.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) retries: u16,

    /// What makes a run good.
    #[arg(long, value_enum, default_value_t = Success::ResLine)]
    pub(crate) success: Success,

    /// Write to this file how long everything took.
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) timings: Option<PathBuf>,
}
