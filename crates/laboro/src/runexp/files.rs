//! The result files of a manager. They are all it remembers: a result is in its place before its runner is told
//! that it was received. Paths are made of names of scripts that were found, never of what a runner says.

use super::timings::Timings;
use crate::files::make_dir;
use crate::run::results::{ResultTable, result_file};
use anyhow::{Context, bail};
use bytes::Bytes;
use laboro_core::Name;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

pub(super) struct ResultFiles {
    dir: PathBuf,
    /// By the number of its task, from 1.
    names: Vec<OsString>,
    table: ResultTable,
    /// Results that the hub is asked to count.
    handed_over: HashMap<DraftKey, Draft>,
    /// What happened since somebody last asked.
    news: Vec<ManagerNews>,
    /// So many are worth waking somebody for.
    news_awaited: usize,
    trouble: Option<anyhow::Error>,
    /// Where somebody wants to know.
    timings: Option<Timings>,
    /// As long as it is open no other manager writes here.
    lock: Option<File>,
}

/// The runner that brings a result, and the number of its task.
pub(super) type DraftKey = (Name, u32);

/// The files, for the conversations that fill them and the journal that puts them in place.
#[derive(Clone)]
pub(super) struct SharedFiles {
    files: Arc<Mutex<ResultFiles>>,
    /// Something happened that the manager wants to know.
    pub(super) news: Arc<Notify>,
}

impl SharedFiles {
    pub(super) fn new(files: ResultFiles) -> SharedFiles {
        SharedFiles { files: Arc::new(Mutex::new(files)), news: Arc::default() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, ResultFiles> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What people may want to know.
pub(super) enum ManagerNews {
    /// A job of this name, and whether it went well.
    Result(OsString, bool),
    Words(String),
}

/// A result that is on its way.
pub(super) struct Draft {
    /// Tells apart those who write at the same time.
    owner: u64,
    bytes: Vec<u8>,
    /// Where it goes when it is a long one.
    file: Option<(PathBuf, File)>,
}

/// A result of so many bytes, a page, is written to its place in one go. If the manager is killed just then, it is whole
/// or empty, and an empty one is none. A longer one that was cut short would count, since its first line tells what it
/// is; so that one takes its place only when all of it is there.
const WHOLE_MAX: usize = 4096;

/// How the names of results begin that are on their way; they end in `.new`, those of whole ones in `.res`.
const DRAFT: &str = ".runexp-draft-";

impl Draft {
    pub(super) fn new(owner: u64) -> Draft {
        Draft { owner, bytes: Vec::new(), file: None }
    }
}

impl ResultFiles {
    /// Changes nothing yet.
    pub(super) fn open(dir: &Path) -> anyhow::Result<ResultFiles> {
        let table = ResultTable::open(dir)?;
        let dir = dir.to_owned();
        let (names, news) = (Vec::new(), Vec::new());
        Ok(ResultFiles {
            dir,
            names,
            table,
            handed_over: HashMap::new(),
            news,
            news_awaited: 0,
            trouble: None,
            timings: None,
            lock: None,
        })
    }

    /// Takes the directory for this manager alone, and removes what one that was killed had not finished.
    pub(super) fn claim(&mut self) -> anyhow::Result<()> {
        let wrong = || format!("{} cannot be used", self.dir.display());
        make_dir(&self.dir)?;
        let lock = File::open(&self.dir).with_context(wrong)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                bail!("{} is in use by another manager", self.dir.display())
            }
            Err(TryLockError::Error(error)) => return Err(error).with_context(wrong),
        }
        for entry in std::fs::read_dir(&self.dir).with_context(wrong)? {
            let entry = entry.with_context(wrong)?;
            let name = entry.file_name();
            let name = name.as_encoded_bytes();
            if name.starts_with(DRAFT.as_bytes()) && name.ends_with(b".new") {
                std::fs::remove_file(entry.path()).with_context(wrong)?;
            }
        }
        self.lock = Some(lock);
        self.table.forget_the_lost();
        self.table.save()
    }

    /// Whether a manager was at work here, before this one claims it.
    pub(super) fn had_a_manager(&self) -> bool {
        self.table.was_there()
    }

    /// Whether anything is known of this script.
    pub(super) fn has_told(&self, name: &OsStr) -> bool {
        self.table.has(name)
    }

    pub(super) fn is_done(&self, name: &OsStr) -> bool {
        self.table.is_done(name)
    }

    /// From now on tasks are known by their numbers.
    pub(super) fn expect(&mut self, names: Vec<OsString>) {
        self.names = names;
    }

    pub(super) fn add(&mut self, draft: &mut Draft, bytes: &Bytes) {
        let added = self.try_add(draft, bytes);
        self.note(added);
    }

    fn try_add(&mut self, draft: &mut Draft, bytes: &Bytes) -> anyhow::Result<()> {
        if draft.file.is_none() && draft.bytes.len() + bytes.len() <= WHOLE_MAX {
            draft.bytes.extend_from_slice(bytes);
            return Ok(());
        }
        let path = self.dir.join(format!("{DRAFT}{}.new", draft.owner));
        let wrong = || format!("{} cannot be written", path.display());
        if draft.file.is_none() {
            let mut file = File::create(&path).with_context(wrong)?;
            file.write_all(&std::mem::take(&mut draft.bytes)).with_context(wrong)?;
            draft.file = Some((path.clone(), file));
        }
        let (_, file) = draft.file.as_mut().context("made just now")?;
        file.write_all(bytes).with_context(wrong)
    }

    /// A result that the hub is asked to count. One of the same runner that still waits was said before, on another
    /// connection.
    pub(super) fn hand_over(&mut self, key: DraftKey, draft: Draft) {
        if let Some(before) = self.handed_over.insert(key, draft) {
            self.discard(&before);
        }
    }

    /// It was not counted, if it is still there.
    pub(super) fn discard_handed_over(&mut self, key: &DraftKey, owner: u64) {
        if self.handed_over.get(key).is_some_and(|draft| draft.owner == owner)
            && let Some(draft) = self.handed_over.remove(key)
        {
            self.discard(&draft);
        }
    }

    /// The result counts: it takes its place.
    pub(super) fn place(&mut self, key: DraftKey, good: bool) {
        if let Some(draft) = self.handed_over.remove(&key) {
            let placed = self.try_place(&draft, key.1, good);
            self.note(placed);
        }
    }

    fn try_place(&mut self, draft: &Draft, task: u32, good: bool) -> anyhow::Result<()> {
        let at = task.checked_sub(1).and_then(|at| usize::try_from(at).ok());
        let name = at.and_then(|at| self.names.get(at)).cloned().context("a task of ours")?;
        let path = self.dir.join(result_file(&name));
        let wrong = || format!("{} cannot be written", path.display());
        let put = || match &draft.file {
            Some((draft, _)) => std::fs::rename(draft, &path),
            None => write_whole(&path, &draft.bytes),
        };
        let mut placed = put();
        // Nearly always its directory is there already.
        if placed.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound)
            && let Some(parent) = path.parent()
        {
            std::fs::create_dir_all(parent).with_context(wrong)?;
            placed = put();
        }
        placed.with_context(wrong)?;
        self.table.put(&name, good)?;
        self.news.push(ManagerNews::Result(name, good));
        Ok(())
    }

    pub(super) fn discard(&mut self, draft: &Draft) {
        if let Some((path, _)) = &draft.file {
            // It is written over when there is a next one.
            let _ = std::fs::remove_file(path);
        }
    }

    /// Nothing more comes.
    pub(super) fn save(&mut self) -> anyhow::Result<()> {
        for (_, draft) in std::mem::take(&mut self.handed_over) {
            self.discard(&draft);
        }
        self.table.save()
    }

    pub(super) fn keep_timings(&mut self) {
        self.timings = Some(Timings::default());
    }

    pub(super) fn note_time(&mut self, time: Duration) {
        if let Some(timings) = &mut self.timings {
            timings.note(time);
        }
    }

    pub(super) fn timings(&self) -> Option<&Timings> {
        self.timings.as_ref()
    }

    /// Whoever asks wants to be woken when there is so much news, or trouble. False: there is already.
    pub(super) fn await_news(&mut self, enough: usize) -> bool {
        self.news_awaited = enough;
        !self.is_worth_a_word()
    }

    pub(super) fn is_worth_a_word(&self) -> bool {
        self.news.len() >= self.news_awaited || self.trouble.is_some()
    }

    pub(super) fn tell(&mut self, words: String) {
        self.news.push(ManagerNews::Words(words));
    }

    pub(super) fn take_news(&mut self) -> Vec<ManagerNews> {
        std::mem::take(&mut self.news)
    }

    /// The first thing that went wrong.
    pub(super) fn take_trouble(&mut self) -> Option<anyhow::Error> {
        self.trouble.take()
    }

    pub(super) fn has_trouble(&self) -> bool {
        self.trouble.is_some()
    }

    fn note<T>(&mut self, result: anyhow::Result<T>) -> Option<T> {
        result.map_err(|error| self.trouble.get_or_insert(error)).ok()
    }
}

/// What does not get there in one go is not left there.
fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    let trouble = match file.write(bytes) {
        Ok(written) if written == bytes.len() => return Ok(()),
        Ok(_) => ErrorKind::StorageFull.into(),
        Err(error) => error,
    };
    let _ = std::fs::remove_file(path);
    Err(trouble)
}
