//! A directory for each task, and the files of scripts. All of it below one directory of this worker's own,
//! which goes when the worker does; what a killed one left is removed by the next, and its tasks are ended.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::JoinHandle;

use crate::runner::end_left_behind;
use crate::scripts::Scripts;

const PREFIX: &str = "laboro-scratch-";
const LOCK: &str = "lock";
const RUNNER: &str = "runner";
const RESULTS: &str = "results";
const RUNNERS: &str = "runners";
const SCRIPTS: &str = "scripts";

/// Where directories and files for tasks are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScratchPlace {
    /// In a directory of this worker's own, which is made here beside those of others.
    Among(PathBuf),
    /// In this one, which nobody else uses. Who owns it looks after what a killed worker left.
    In(PathBuf),
}

impl ScratchPlace {
    pub(super) fn path(&self) -> &Path {
        match self {
            ScratchPlace::Among(path) | ScratchPlace::In(path) => path,
        }
    }
}

#[derive(Debug)]
pub(super) struct Scratch {
    path: PathBuf,
    pub(super) scripts: Scripts,
    /// Held as long as we live; whoever can take it knows that we do not. `None`: the directory is not ours.
    lock: Option<File>,
    cleaner: Option<Cleaner>,
}

impl Scratch {
    /// `runner` is the mark of this worker's processes, for the next one to find should this one be killed.
    pub(super) fn open(place: &ScratchPlace, runner: Option<&str>) -> io::Result<Scratch> {
        match place {
            ScratchPlace::Among(base) => Scratch::open_among(base, runner),
            ScratchPlace::In(path) => {
                let scripts = Scripts::in_dir(&path.join(SCRIPTS));
                fs::create_dir_all(path.join(RESULTS))?;
                Ok(Scratch { path: path.clone(), scripts, lock: None, cleaner: None })
            }
        }
    }

    fn open_among(base: &Path, runner: Option<&str>) -> io::Result<Scratch> {
        remove_abandoned(base);
        let nonce = RandomState::new().build_hasher().finish();
        let path = base.join(format!("{PREFIX}{}-{nonce:016x}", std::process::id()));
        // Under another name until it is locked, or a worker that starts now would take it for abandoned.
        let unlocked = base.join(format!(".laboro-{nonce:016x}"));
        // Nobody else's business, and never somebody else's directory: it fails if there is one.
        DirBuilder::new().mode(0o700).create(&unlocked)?;
        let lock = OpenOptions::new().create_new(true).write(true).open(unlocked.join(LOCK))?;
        lock.lock()?;
        if let Some(runner) = runner {
            fs::write(unlocked.join(RUNNER), runner)?;
        }
        fs::create_dir(unlocked.join(RESULTS))?;
        fs::rename(&unlocked, &path)?;
        let scripts = Scripts::in_dir(&path.join(SCRIPTS));
        Ok(Scratch { path, scripts, lock: Some(lock), cleaner: None })
    }

    /// Where a task may leave its result.
    pub(super) fn result_of(&self, key: u64) -> PathBuf {
        self.path.join(RESULTS).join(key.to_string())
    }

    /// Where a task finds which workers are its own.
    pub(super) fn nodes_of(&self, key: u64) -> PathBuf {
        self.path.join(RESULTS).join(format!("{key}.nodes"))
    }

    /// Where runners that stay have their pipes.
    pub(super) fn of_runners(&self) -> PathBuf {
        self.path.join(RUNNERS)
    }

    /// The mark of more processes.
    pub(super) fn add_runner(&self, runner: &str) -> io::Result<()> {
        let mut file = OpenOptions::new().append(true).create(true).open(self.path.join(RUNNER))?;
        file.write_all(format!("\n{runner}\n").as_bytes())
    }

    /// A new directory for this task.
    pub(super) fn make(&self, key: u64) -> io::Result<PathBuf> {
        let path = self.of(key);
        fs::create_dir(&path)?;
        Ok(path)
    }

    pub(super) fn of(&self, key: u64) -> PathBuf {
        self.path.join(key.to_string())
    }

    /// The task is over. Most leave nothing; what is left may be much, and is removed aside.
    pub(super) fn remove(&mut self, key: u64) {
        let path = self.of(key);
        match fs::remove_dir(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) => self.cleaner.get_or_insert_with(Cleaner::start).remove(path),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(self.cleaner.take());
        // What a task made unreadable stays, and costs nothing but room.
        let _ = match &self.lock {
            Some(_) => fs::remove_dir_all(&self.path),
            None => [SCRIPTS, RESULTS, RUNNERS].into_iter().try_for_each(|own| {
                let removed = fs::remove_dir_all(self.path.join(own));
                removed.or_else(|error| match error.kind() {
                    io::ErrorKind::NotFound => Ok(()),
                    _ => Err(error),
                })
            }),
        };
    }
}

/// A thread that removes directories. At most this many wait for it; then whoever brings more waits.
#[derive(Debug)]
struct Cleaner {
    paths: Option<mpsc::SyncSender<PathBuf>>,
    thread: Option<JoinHandle<()>>,
}

const WAITING_MAX: usize = 1024;

impl Cleaner {
    fn start() -> Cleaner {
        let (paths, waiting) = mpsc::sync_channel::<PathBuf>(WAITING_MAX);
        let thread = std::thread::Builder::new().name("scratch".into()).spawn(move || {
            for path in waiting {
                let _ = fs::remove_dir_all(path);
            }
        });
        // Without a thread the directories stay until the worker's own is removed.
        Cleaner { paths: Some(paths), thread: thread.ok() }
    }

    fn remove(&self, path: PathBuf) {
        if let Some(paths) = &self.paths {
            let _ = paths.send(path);
        }
    }
}

impl Drop for Cleaner {
    fn drop(&mut self) {
        drop(self.paths.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Directories whose worker is dead. Those of other users are not ours to open.
fn remove_abandoned(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let path = entry.path();
        let Ok(lock) = File::open(path.join(LOCK)) else { continue };
        match lock.try_lock() {
            Ok(()) => {
                // It was killed together with all that would have ended its tasks.
                if let Ok(runners) = fs::read_to_string(path.join(RUNNER)) {
                    let runners = runners.lines().filter(|runner| !runner.is_empty());
                    for runner in runners {
                        end_left_behind(runner.trim());
                    }
                }
                drop(fs::remove_dir_all(path));
            }
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => {}
        }
    }
}

#[cfg(test)]
mod tests;
