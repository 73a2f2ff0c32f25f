//! Where a run keeps its state: a directory of its own below `.laboro`, named after what is run, so that
//! the same command finds it again and another one does not get in its way.

use crate::output::say;
use crate::run::Options;
use anyhow::{Context, anyhow, bail};
use laboro_core::Ledger;
use laboro_journal::log::{self, LogError};
use laboro_journal::outputs::{self, Writer};
use laboro_journal::{FileJournal, JournalError};
use laboro_plan::Plan;
use std::path::{Path, PathBuf};

pub(crate) struct RunDir {
    pub(crate) path: PathBuf,
    pub(crate) journal: FileJournal,
    pub(crate) ledger: Ledger,
    pub(crate) outputs: Writer,
}

/// The file that says which run was the latest.
const LATEST: &str = "latest";

impl RunDir {
    pub(crate) fn open(root: &Path, plan: &Plan, options: &Options) -> anyhow::Result<RunDir> {
        let id = &plan.fingerprint().to_string()[..16];
        let path = root.join(id);
        let make = || format!("{} cannot be made; --state DIR puts it elsewhere", path.display());
        std::fs::create_dir_all(&path).with_context(make)?;
        let open = || {
            let log_options = log::Options { durability: options.durability, ..Default::default() };
            FileJournal::open(&path.join("journal"), log_options)
        };
        let mut opened = open();
        if options.fresh && !matches!(&opened, Err(JournalError::Log(LogError::Locked { .. }))) {
            // Moved aside while its lock is held, so that nobody begins to use it; damaged or not.
            discard(&path).with_context(|| format!("{} cannot be emptied", path.display()))?;
            drop(opened);
            opened = open();
        }
        let (journal, ledger, recovery) = opened.map_err(explain)?;
        for warning in &recovery.warnings {
            say(format_args!("laboro: {warning}"));
        }
        let limits =
            outputs::Config { stream_bytes_max: options.output_limit, ..Default::default() };
        let outputs = Writer::open(path.join("outputs"), limits)?;
        std::fs::write(root.join(LATEST), id).with_context(make)?;
        Ok(RunDir { path, journal, ledger, outputs })
    }

    /// The directory of the latest run, or of the one whose id starts so.
    pub(crate) fn find(root: &Path, id: Option<&str>) -> anyhow::Result<PathBuf> {
        let missing =
            || format!("{}: no run was made here; --state DIR looks elsewhere", root.display());
        match id {
            None => {
                let latest = std::fs::read_to_string(root.join(LATEST)).with_context(missing)?;
                Ok(root.join(latest.trim()))
            }
            Some(id) => {
                let entries = std::fs::read_dir(root).with_context(missing)?;
                let mut found: Vec<PathBuf> = entries
                    .filter_map(|entry| Some(entry.ok()?.path()))
                    .filter(|path| path.is_dir())
                    .filter(|path| {
                        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(id))
                    })
                    .collect();
                match found.len() {
                    0 => bail!("no run in {} starts with {id}", root.display()),
                    1 => Ok(found.remove(0)),
                    _ => bail!("several runs in {} start with {id}", root.display()),
                }
            }
        }
    }
}

/// A directory that is being removed can no longer be mistaken for a run, whenever that is cut short.
fn discard(path: &Path) -> std::io::Result<()> {
    let aside = path.with_extension(format!("old-{}", std::process::id()));
    std::fs::rename(path, &aside)?;
    std::fs::create_dir_all(path)?;
    std::fs::remove_dir_all(&aside)
}

/// In the words of a run, not of a hub.
fn explain(error: JournalError) -> anyhow::Error {
    match error {
        JournalError::Log(LogError::Locked { dir, pid }) => {
            let by = pid.map(|pid| format!(" (process {pid})")).unwrap_or_default();
            anyhow!(
                "this job is already running{by}: wait for it or end it; --state DIR runs it \
                 beside the other one [{} is in use]",
                dir.display()
            )
        }
        other => other.into(),
    }
}
