//! A disk that keeps only what was synced. The journal's own code writes real files; what it does to them is
//! seen on its way to the kernel (`syscalls`), so it is known which bytes and names were made durable. After a
//! power cut everything else may be there or not, sector by sector and name by name. The disk also refuses
//! when told to, and forgets what a failed sync was about, as Linux does.

mod files;
mod syscalls;

#[cfg(test)]
mod tests;

use crate::dice::Dice;
use files::{Files, mix, sectors_changed};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{io, mem};

/// The files of one directory. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Disk(Arc<Mutex<DiskStore>>);

#[derive(Debug)]
struct DiskStore {
    dir: PathBuf,
    /// Names that are durable, with the inodes they stand for.
    names: BTreeMap<String, u64>,
    /// What is durable of each inode.
    contents: BTreeMap<u64, Vec<u8>>,
    /// Sectors whose sync failed: a later sync says nothing about them, unless they are written again.
    forgotten: BTreeMap<u64, BTreeSet<usize>>,
    is_lying: bool,
    armed: Option<Armed>,
    /// What there was when the power went, or the process.
    left: Option<Left>,
}

/// Something that happens after so many more operations.
#[derive(Debug)]
struct Armed {
    operations: u64,
    what: What,
}

#[derive(Debug)]
enum What {
    End(Ending, Dice),
    /// Operations fail from then on.
    Refuse(Refusal),
}

/// What ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The process alone: what it has written is there.
    Process,
    /// The machine: what was synced is there, and any part of the rest.
    Power,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    NoSpace,
    Failure,
}

#[derive(Debug)]
struct Left {
    files: Files,
    /// Which inodes they were, where those are still the truth.
    inodes: BTreeMap<String, u64>,
    ending: Ending,
}

/// What goes on: a write, a sync, a change of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Go,
    Fail(Refusal),
}

/// Made by a thread of the journal ahead of its need, so that nobody can say when. It is never read.
const BLANK: &str = "blank.tmp";
const LOCK: &str = "lock";

impl Disk {
    /// Watches over what happens in this directory, until the disk is dropped.
    pub fn over(dir: &Path) -> Disk {
        let store = DiskStore {
            dir: dir.to_owned(),
            names: BTreeMap::new(),
            contents: BTreeMap::new(),
            forgotten: BTreeMap::new(),
            is_lying: false,
            armed: None,
            left: None,
        };
        let disk = Disk(Arc::new(Mutex::new(store)));
        syscalls::watch(dir, &disk.0);
        disk
    }

    fn store(&self) -> MutexGuard<'_, DiskStore> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The end comes after so many more operations, or when `restore` is called.
    pub fn end_after(&self, operations: u64, ending: Ending, dice: Dice) {
        self.store().armed = Some(Armed { operations, what: What::End(ending, dice) });
    }

    pub fn refuse_after(&self, operations: u64, refusal: Refusal) {
        self.store().armed = Some(Armed { operations, what: What::Refuse(refusal) });
    }

    pub fn recover(&self) {
        self.store().armed = None;
    }

    /// Nobody writes any more: the files become what the end left of them.
    pub fn restore(&self) -> io::Result<()> {
        let mut store = self.store();
        if let Some(Armed { what: What::End(ending, mut dice), .. }) = store.armed.take()
            && store.left.is_none()
        {
            store.end(ending, &mut dice)?;
        }
        match store.left.take() {
            Some(left) => store.put(&left),
            None => Ok(()),
        }
    }

    /// From now on it says that it has synced, and has not.
    pub fn lie(&self) {
        self.store().is_lying = true;
    }
}

impl DiskStore {
    /// Something is about to happen. Work ahead of need is not counted, since it may happen at any time.
    fn operation(&mut self, is_ahead: bool) -> Verdict {
        let Some(armed) = self.armed.as_mut().filter(|_| !is_ahead) else { return Verdict::Go };
        if armed.operations > 0 {
            armed.operations -= 1;
            return Verdict::Go;
        }
        if let What::Refuse(refusal) = armed.what {
            return Verdict::Fail(refusal);
        }
        if let Some(Armed { what: What::End(ending, mut dice), .. }) = self.armed.take() {
            // What cannot be read here is missed when the files are restored.
            let _ = self.end(ending, &mut dice);
        }
        Verdict::Go
    }

    /// A process does not notice its end here, and goes on; nothing of that reaches the disk.
    fn is_over(&self) -> bool {
        self.left.is_some()
    }

    fn wrote(&mut self, inode: u64, from: u64, len: usize) {
        if self.is_over() {
            return;
        }
        if let Some(forgotten) = self.forgotten.get_mut(&inode) {
            let first = from as usize / files::SECTOR;
            let last = (from as usize + len.max(1) - 1) / files::SECTOR;
            forgotten.retain(|sector| !(first..=last).contains(sector));
        }
    }

    fn synced(&mut self, inode: u64, mut bytes: Vec<u8>) {
        if self.is_lying || self.is_over() {
            return;
        }
        let old = self.contents.get(&inode).map_or(&[][..], Vec::as_slice);
        for &sector in self.forgotten.get(&inode).into_iter().flatten() {
            files::revert(&mut bytes, old, sector);
        }
        self.contents.insert(inode, bytes);
    }

    /// Linux takes the pages for clean after a failed sync.
    fn sync_failed(&mut self, inode: u64, bytes: &[u8]) {
        if self.is_over() {
            return;
        }
        let old = self.contents.get(&inode).map_or(&[][..], Vec::as_slice);
        let changed = sectors_changed(old, bytes);
        self.forgotten.entry(inode).or_default().extend(changed);
    }

    fn synced_names(&mut self) {
        if !self.is_lying
            && !self.is_over()
            && let Ok((_, inodes)) = self.current()
        {
            self.names = inodes;
        }
    }

    /// The files as readers see them, and their inodes.
    fn current(&self) -> io::Result<(Files, BTreeMap<String, u64>)> {
        let (mut files, mut inodes) = (Files::default(), BTreeMap::new());
        for entry in std::fs::read_dir(&self.dir)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name == LOCK || name == BLANK {
                continue;
            }
            inodes.insert(name.clone(), entry.metadata()?.ino());
            files.insert(name, std::fs::read(entry.path())?);
        }
        Ok((files, inodes))
    }

    fn end(&mut self, ending: Ending, dice: &mut Dice) -> io::Result<()> {
        let (current, inodes) = self.current()?;
        self.left = Some(match ending {
            Ending::Process => Left { files: current, inodes, ending },
            Ending::Power => {
                let files = self.after_power_cut(&current, &inodes, dice);
                Left { files, inodes: BTreeMap::new(), ending }
            }
        });
        Ok(())
    }

    /// Each inode has its durable name or its present one; its sectors are the durable or the present ones.
    fn after_power_cut(
        &self,
        current: &Files,
        inodes: &BTreeMap<String, u64>,
        dice: &mut Dice,
    ) -> Files {
        let mut left = Files::default();
        let name_of = |names: &BTreeMap<String, u64>, wanted: u64| {
            names.iter().find(|(_, inode)| **inode == wanted).map(|(name, _)| name.clone())
        };
        // In the order of names: the numbers of inodes are the system's.
        let all: BTreeMap<&String, u64> =
            self.names.iter().chain(inodes).map(|(name, &inode)| (name, inode)).collect();
        let mut seen = BTreeSet::new();
        for inode in all.into_values().filter(|&inode| seen.insert(inode)) {
            let (old, new) = (name_of(&self.names, inode), name_of(inodes, inode));
            let name = if old == new || dice.one_in(2) { new.clone() } else { old };
            let Some(name) = name else { continue };
            let present = new.as_ref().and_then(|name| current.get(name));
            let bytes = match (self.contents.get(&inode), present) {
                (Some(durable), Some(present)) => mix(durable, present, dice),
                (Some(durable), None) => durable.clone(),
                (None, Some(present)) => mix(&[], present, dice),
                (None, None) => continue,
            };
            left.insert(name, bytes);
        }
        left
    }

    fn put(&mut self, left: &Left) -> io::Result<()> {
        left.files.write(&self.dir)?;
        let (_, inodes) = self.current()?;
        match left.ending {
            // What was read from the disk after a power cut is on the disk.
            Ending::Power => {
                let durable = |(name, inode): (&String, &u64)| {
                    left.files.get(name).map(|bytes| (*inode, bytes.clone()))
                };
                self.contents = inodes.iter().filter_map(durable).collect();
                self.forgotten.clear();
                self.names = inodes;
            }
            // The same files, though some had to be made anew.
            Ending::Process => {
                let renumbered = self.renumbered(left, &inodes);
                let number = |inode: &u64| renumbered.get(inode).copied();
                let kept = |(inode, bytes)| Some((number(&inode)?, bytes));
                self.contents =
                    mem::take(&mut self.contents).into_iter().filter_map(kept).collect();
                let kept = |(inode, sectors)| Some((number(&inode)?, sectors));
                self.forgotten =
                    mem::take(&mut self.forgotten).into_iter().filter_map(kept).collect();
                let kept = |(name, inode)| Some((name, number(&inode)?));
                self.names = mem::take(&mut self.names).into_iter().filter_map(kept).collect();
            }
        }
        Ok(())
    }

    /// From the inodes of the process that ended to those that stand for the same files now. A file that it
    /// removed, and that a power cut may bring back, has none; its number must not be that of a new one.
    fn renumbered(&self, left: &Left, inodes: &BTreeMap<String, u64>) -> BTreeMap<u64, u64> {
        let present = left.inodes.iter().filter_map(|(name, was)| Some((*was, *inodes.get(name)?)));
        let mut renumbered: BTreeMap<u64, u64> = present.collect();
        let mut free = u64::MAX;
        for &was in self.names.values().chain(self.contents.keys()) {
            renumbered.entry(was).or_insert_with(|| {
                free -= 1;
                free
            });
        }
        renumbered
    }
}
