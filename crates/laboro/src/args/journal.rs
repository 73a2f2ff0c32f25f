//! What can be typed about a journal on the disk or in NATS.

use clap::{Args as ClapArgs, Subcommand};
use std::path::PathBuf;

#[derive(Debug, ClapArgs)]
pub(crate) struct Journal {
    #[command(subcommand)]
    pub(crate) command: JournalCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum JournalCommand {
    /// Read all of a journal, and print what is in it and whether it is damaged. Changes nothing; a hub
    /// may be running.
    Check {
        /// The journal's directory, or nats://HOST:PORT,... .
        dir: PathBuf,
        /// What was found as one JSON object.
        #[arg(long)]
        json: bool,
        /// A hub's settings, with its login at NATS.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        #[command(flatten)]
        nats: crate::nats::NatsArgs,
    },
    /// Move a journal to another place: from a directory to NATS, or back. No hub may have it open.
    Copy {
        /// A hub's directory, or nats://HOST:PORT,... .
        from: PathBuf,
        /// A hub's directory without a journal, or nats://HOST:PORT,... without one of this name.
        to: PathBuf,
        /// A hub's settings, with its login at NATS.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        #[command(flatten)]
        nats: crate::nats::NatsArgs,
    },
    /// Make a consistent copy, also of a running hub's journal.
    Backup {
        /// The journal's directory, or that of the hub or run it belongs to.
        dir: PathBuf,
        /// A directory that does not exist yet.
        to: PathBuf,
    },
    /// Ask an older laboro whether it could go on with this journal: it reads a copy, and what it finds is compared.
    /// Exits with 3 if it could not. Changes nothing; a hub may be running.
    DowngradeCheck {
        /// The journal's directory, or that of the hub or run it belongs to.
        dir: PathBuf,
        /// The older program.
        older: PathBuf,
        /// A hub's settings, which the older program is to understand, too.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// After damage: save what can be saved and print what was lost. Exits with 3 if anything was.
    Repair {
        /// The journal's directory, or that of the hub or run it belongs to.
        dir: PathBuf,
    },
}
