//! Where a run keeps its state: a directory of its own below `.laboro`, named after what is run, so that
//! the same command finds it again and another one does not get in its way.

use crate::files::make_dir;
use crate::output::say;
use crate::run::earlier::Store;
use crate::run::{JOB, Options, StoreOf};
use anyhow::{Context, anyhow, bail};
use laboro_core::{Ledger, TaskId};
use laboro_journal::log::{self, LogError};
use laboro_journal::outputs::{self, Writer};
use laboro_journal::{FileJournal, JournalError};
use laboro_plan::Plan;
use std::path::{Path, PathBuf};

pub(crate) struct RunDir {
    pub(crate) path: PathBuf,
    /// The runs of the same job, as it was before it was changed.
    pub(crate) store: Store,
    pub(crate) journal: FileJournal,
    pub(crate) ledger: Ledger,
    pub(crate) outputs: Writer,
}

/// The file with the mark of the processes of the run that has the lock, or was killed with it.
const RUNNER: &str = "runner";

/// The file that says which run was the latest.
const LATEST: &str = "latest";

impl RunDir {
    /// `runner` is the mark of this run's processes, for the next run to find should this one be killed.
    pub(crate) fn open(
        root: &Path,
        plan: &Plan,
        options: &Options,
        runner: &str,
    ) -> anyhow::Result<RunDir> {
        let id = id(root, plan)?;
        let path = root.join(&id);
        let mut store = Store::open(root, &store_id(root, plan, options)?);
        make_dir(&path)
            .context("no place for the state of this run; --state DIR puts it elsewhere")?;
        let open = || {
            let log_options = log::Options { durability: options.durability, ..Default::default() };
            FileJournal::open(&path.join("journal"), log_options)
        };
        let mut opened = open();
        if !matches!(&opened, Err(JournalError::Log(LogError::Locked { .. }))) {
            end_left_behind_in(&path);
        }
        if options.fresh && !matches!(&opened, Err(JournalError::Log(LogError::Locked { .. }))) {
            // Moved aside while its lock is held, so that nobody begins to use it; damaged or not.
            discard(&path).with_context(|| format!("{} cannot be emptied", path.display()))?;
            store.begin(&id, true).with_context(|| format!("{}", root.display()))?;
            drop(opened);
            opened = open();
        }
        let has_run = opened.as_ref().is_ok_and(|(_, ledger, _)| has_job(ledger));
        if has_run && !options.fresh && !store.is_newest(&id) && has_names(plan) {
            // Meanwhile the job ran with something else under its names: what it did before counts no more.
            let aside = move_aside(root, &id).with_context(|| format!("{}", path.display()))?;
            store.rename(&id, &aside).with_context(|| format!("{}", root.display()))?;
            drop(opened);
            make_dir(&path)?;
            opened = open();
        }
        let (journal, ledger, recovery) = opened.map_err(explain)?;
        for warning in &recovery.warnings {
            say(format_args!("laboro: {warning}"));
        }
        let limits =
            outputs::Config { stream_bytes_max: options.output_limit, ..Default::default() };
        let outputs = Writer::open(path.join("outputs"), limits)?;
        std::fs::write(path.join(RUNNER), runner)
            .with_context(|| format!("{} cannot be written", path.join(RUNNER).display()))?;
        let draft = path.join(LATEST);
        std::fs::write(&draft, &id)
            .and_then(|()| std::fs::rename(&draft, root.join(LATEST)))
            .with_context(|| {
                let root = root.display();
                format!("{root} cannot be written; --state DIR puts the state elsewhere")
            })?;
        Ok(RunDir { path, store, journal, ledger, outputs })
    }

    /// All processes of the run in this directory are gone.
    pub(crate) fn leaves_nothing(path: &Path) {
        let _ = std::fs::remove_file(path.join(RUNNER));
    }

    /// Whether a run was made there.
    pub(crate) fn is_in(root: &Path) -> bool {
        root.join(LATEST).exists()
    }

    /// The directory of the latest run, or of the one whose id starts so.
    pub(crate) fn find(root: &Path, id: Option<&str>) -> anyhow::Result<PathBuf> {
        let missing = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => anyhow!(
                "{}: no run was made here; --state DIR looks elsewhere, --hub asks a hub",
                root.display()
            ),
            _ => anyhow!("{}: {error}", root.display()),
        };
        match id {
            None => {
                let latest = std::fs::read_to_string(root.join(LATEST)).map_err(missing)?;
                Ok(root.join(latest.trim()))
            }
            Some(id) => {
                let entries = std::fs::read_dir(root).map_err(missing)?;
                if root.join(id).is_dir() {
                    return Ok(root.join(id));
                }
                let mut found: Vec<PathBuf> = entries
                    .filter_map(|entry| Some(entry.ok()?.path()))
                    .filter(|path| path.is_dir())
                    .filter(|path| {
                        let name = path.file_name().unwrap_or_default().to_string_lossy();
                        name.starts_with(id) && !name.contains(DISCARDED)
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

/// Names the run after what is run and where: typed in another directory, the same words do other things.
/// A directory that holds its own state may be moved.
pub(crate) fn id(root: &Path, plan: &Plan) -> anyhow::Result<String> {
    let plan = plan.fingerprint();
    let id = match elsewhere(root)? {
        None => plan,
        Some(here) => plan.within(&here),
    };
    Ok(id.to_string()[..16].to_owned())
}

/// The current directory, where the state is not in it.
fn elsewhere(root: &Path) -> anyhow::Result<Option<PathBuf>> {
    let here = std::env::current_dir()
        .and_then(|here| here.canonicalize())
        .context("the current directory no longer exists")?;
    let beside =
        root.parent().map(|dir| if dir.as_os_str().is_empty() { here.as_path() } else { dir });
    let is_here = beside.and_then(|dir| dir.canonicalize().ok()).is_some_and(|dir| dir == here);
    Ok((!is_here).then_some(here))
}

/// The store that the run belongs to: by its name, its job file, or what it runs. What was read once and is gone is a
/// store of its own.
pub(super) fn store_id(root: &Path, plan: &Plan, options: &Options) -> anyhow::Result<String> {
    let mut hash = blake3::Hasher::new();
    let mut add = |word: &[u8]| {
        hash.update(&(word.len() as u64).to_le_bytes());
        hash.update(word);
    };
    match &options.store {
        StoreOf::Name(name) => {
            add(b"name");
            add(name.as_bytes());
        }
        StoreOf::File(path) => {
            add(b"file");
            // Beside its state a file may be moved with it.
            let dir = path.parent().and_then(|dir| dir.canonicalize().ok());
            let is_beside = root.parent().and_then(|dir| dir.canonicalize().ok()) == dir;
            let path = if is_beside { path.file_name().map(Path::new) } else { None };
            let whole = match path {
                Some(name) => name.to_owned(),
                None => options.store.path().canonicalize().unwrap_or_default(),
            };
            add(whole.as_os_str().as_encoded_bytes());
        }
        StoreOf::Template => {
            add(b"template");
            add(plan.template().as_bytes());
        }
        StoreOf::Nothing => {
            add(b"plan");
            add(plan.fingerprint().as_bytes());
        }
    }
    if let Some(here) = elsewhere(root)? {
        add(here.as_os_str().as_encoded_bytes());
    }
    Ok(hash.finalize().to_hex()[..16].to_owned())
}

/// A run has one job, and that has a first task.
pub(super) fn has_job(ledger: &Ledger) -> bool {
    ledger.state_of(TaskId::new(JOB, 1)).is_some()
}

pub(super) fn has_names(plan: &Plan) -> bool {
    plan.parts.iter().any(|part| !part.name().is_empty())
}

/// Gives the id under which it is found from now on.
pub(super) fn move_aside(root: &Path, id: &str) -> std::io::Result<String> {
    let mut ids = (1..u32::MAX).map(|number| format!("{id}-{number}"));
    let aside = ids.find(|id| !root.join(id).exists()).expect("some number is free");
    std::fs::rename(root.join(id), root.join(&aside))?;
    Ok(aside)
}

/// A run that was killed together with all that would have ended its tasks leaves them running. Its lock is ours now, so
/// it is dead; they are ended before anything is run beside them.
fn end_left_behind_in(path: &Path) {
    let Ok(runner) = std::fs::read_to_string(path.join(RUNNER)) else { return };
    let ended = laboro_worker::end_left_behind(runner.trim());
    if ended > 0 {
        let processes = if ended == 1 { "process" } else { "processes" };
        say(format_args!("laboro: ended {ended} {processes} that a killed run of this job left"));
    }
}

/// In the name of a directory that is being removed.
const DISCARDED: &str = ".discarded-";

/// Renamed first, so that it can no longer be mistaken for a run, whenever the rest is cut short.
fn discard(path: &Path) -> std::io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned() + DISCARDED;
    let root = path.parent().unwrap_or(path);
    std::fs::rename(path, root.join(format!("{name}{}", std::process::id())))?;
    std::fs::create_dir_all(path)?;
    for entry in std::fs::read_dir(root)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(&name) {
            // Another run may be removing it too.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
    Ok(())
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
