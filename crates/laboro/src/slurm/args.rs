//! What can be typed after `laboro slurm`. Only shapes and help texts.

use clap::{Args as ClapArgs, Subcommand};
use std::path::PathBuf;

#[derive(Debug, ClapArgs)]
pub(crate) struct Slurm {
    #[command(subcommand)]
    pub(crate) what: SlurmCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SlurmCommand {
    /// Make links named sbatch, squeue, sacct, scancel, srun, scontrol and sinfo to this program.
    Install(SlurmInstall),
    /// Run the script of a task that came by sbatch; workers call this.
    #[command(hide = true)]
    Step(Step),
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Example:
  laboro slurm install ~/.local/share/laboro/slurm
  export PATH=~/.local/share/laboro/slurm:$PATH
  sbatch --array=1-10 job.sh

The commands speak to the hub that `laboro jobs` would speak to ($LABORO_ACCESS, $LABORO_DIR).")]
pub(crate) struct SlurmInstall {
    /// The directory for the links; made if it is not there.
    pub(crate) dir: PathBuf,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Step {
    /// Where the script lies.
    pub(crate) script: PathBuf,
    /// The index of an array's element.
    pub(crate) value: Option<String>,
}
