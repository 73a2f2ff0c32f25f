//! Files by their names, and mixtures of an old and a new state of one.

use crate::dice::Dice;
use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Files(BTreeMap<String, Vec<u8>>);

pub(super) const SECTOR: usize = 512;

impl Files {
    pub fn insert(&mut self, name: String, bytes: Vec<u8>) {
        self.0.insert(name, bytes);
    }

    pub fn get(&self, name: &str) -> Option<&Vec<u8>> {
        self.0.get(name)
    }

    /// Puts these files in place of whatever is there.
    pub fn write(&self, dir: &Path) -> io::Result<()> {
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let name = entry.file_name();
            if name != super::LOCK && !self.0.contains_key(&*name.to_string_lossy()) {
                // Not by the standard library's way, which would tell the disk.
                rustix::fs::unlink(entry.path())?;
            }
        }
        for (name, bytes) in &self.0 {
            let path = dir.join(name);
            if fs::read(&path).ok().as_ref() != Some(bytes) {
                fs::write(path, bytes)?;
            }
        }
        Ok(())
    }
}

pub(super) fn sectors_changed(old: &[u8], new: &[u8]) -> Vec<usize> {
    let count = new.len().max(old.len()).div_ceil(SECTOR);
    (0..count).filter(|&sector| part(new, sector) != part(old, sector)).collect()
}

/// This sector is the old one again.
pub(super) fn revert(bytes: &mut [u8], old: &[u8], sector: usize) {
    let at = (sector * SECTOR).min(bytes.len());
    for (offset, byte) in bytes[at..].iter_mut().take(SECTOR).enumerate() {
        *byte = old.get(at + offset).copied().unwrap_or(0);
    }
}

/// What was written since the last sync is there in part: none of it, all of it, a beginning, some sectors,
/// or up to the middle of one, as disks without a promise about sectors leave it.
pub(super) fn mix(old: &[u8], new: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut mixed = new.to_vec();
    let changed = sectors_changed(old, new);
    if changed.is_empty() {
        return mixed;
    }
    match dice.below(5) {
        0 => changed.iter().for_each(|&sector| revert(&mut mixed, old, sector)),
        1 => {}
        2 => {
            let kept = dice.index(changed.len() + 1);
            changed[kept..].iter().for_each(|&sector| revert(&mut mixed, old, sector));
        }
        3 => {
            for &sector in &changed {
                if dice.one_in(2) {
                    revert(&mut mixed, old, sector);
                }
            }
        }
        _ => {
            let at = changed[dice.index(changed.len())];
            let from = at * SECTOR + dice.index(SECTOR);
            for (offset, byte) in mixed.iter_mut().enumerate().skip(from) {
                *byte = old.get(offset).copied().unwrap_or(0);
            }
        }
    }
    mixed
}

fn part(bytes: &[u8], sector: usize) -> &[u8] {
    let from = (sector * SECTOR).min(bytes.len());
    &bytes[from..(from + SECTOR).min(bytes.len())]
}
