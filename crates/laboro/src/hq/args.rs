//! What can be typed after `laboro hq`. Only shapes and help texts.

use clap::{Args as ClapArgs, Subcommand};
use std::path::PathBuf;

#[derive(Debug, ClapArgs)]
pub(crate) struct Hq {
    #[command(subcommand)]
    pub(crate) what: What,
}

#[derive(Debug, Subcommand)]
pub(crate) enum What {
    /// Make a link named hq to this program, for Nextflow's executor `hq` and for aiida-hyperqueue.
    Install(HqInstall),
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Example:
  laboro hq install ~/.local/share/laboro/hq
  export PATH=~/.local/share/laboro/hq:$PATH
  nextflow run main.nf -process.executor hq

It speaks to the hub that `laboro jobs` would speak to ($LABORO_ACCESS, $LABORO_DIR).")]
pub(crate) struct HqInstall {
    /// The directory for the link; made if it is not there.
    pub(crate) dir: PathBuf,
}
