//! `laboro runexp`: a manager of a directory of scripts, for runners of ours and original ones, in place of the
//! original manager.

pub(crate) mod args;
pub(crate) mod config;
pub(crate) mod timings;

mod dashboard;
mod files;
mod journal;
mod manage;
mod recorder;
mod telling;

use crate::exit::Exit;
use args::{Runexp, RunexpCommand};

pub(crate) fn run(args: &Runexp) -> anyhow::Result<Exit> {
    match &args.what {
        RunexpCommand::Manage(manage) => manage::run(manage),
    }
}
