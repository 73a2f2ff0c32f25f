//! What can be typed to draw what comes after what.

use super::hub;
use clap::{Args as ClapArgs, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, ClapArgs)]
pub(crate) struct Graph {
    /// A job file; or a job of a run or a hub: its number, or `last`, if there is no such file.
    #[arg(value_name = "FILE|JOB", default_value = "last")]
    pub(crate) file: PathBuf,

    /// How to draw it; the ending of --output decides where it is given.
    #[arg(long, value_enum, default_value_t = GraphFormat::Text)]
    pub(crate) format: GraphFormat,

    /// Write to this file; .svg and .dot choose the format. - is standard output, the default.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) place: hub::WhereArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    Text,
    Svg,
    Dot,
}
