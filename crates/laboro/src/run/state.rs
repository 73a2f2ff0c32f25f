//! Where a run keeps its state: a directory of its own below `.laboro`, named after what is run, so that
//! the same command finds it again and another one does not get in its way.

use crate::run::Options;
use anyhow::{Context, bail};
use laboro_core::Ledger;
use laboro_journal::outputs::{self, Writer};
use laboro_journal::{FileJournal, log};
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
        let (mut journal, mut ledger, mut recovery) = open()?;
        if options.fresh {
            // Only with its lock in hand is it sure that nobody else uses it.
            drop(journal);
            std::fs::remove_dir_all(&path)
                .and_then(|()| std::fs::create_dir_all(&path))
                .with_context(|| format!("{} cannot be emptied", path.display()))?;
            (journal, ledger, recovery) = open()?;
        }
        for warning in &recovery.warnings {
            eprintln!("laboro: {warning}");
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
