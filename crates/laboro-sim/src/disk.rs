//! What a power cut leaves of a directory. The journal's own code writes real files; before and after a write
//! that was not acknowledged they are looked at, and something in between is put in their place: sectors of
//! one or the other, new names that were not yet durable, old ones that were not yet gone.

use crate::dice::Dice;
use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

/// The files of a directory with what is in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Files(BTreeMap<String, Vec<u8>>);

const SECTOR: usize = 512;

/// Of a segment, before its first record, with room to spare.
const HEAD_BYTES: usize = 256;

impl Files {
    pub fn read(dir: &Path) -> io::Result<Files> {
        let mut files = BTreeMap::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name != "lock" {
                files.insert(name, fs::read(entry.path())?);
            }
        }
        Ok(Files(files))
    }

    /// Puts these files in place of whatever is there.
    pub fn write(&self, dir: &Path) -> io::Result<()> {
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            if !self.0.contains_key(&*entry.file_name().to_string_lossy())
                && entry.file_name() != "lock"
            {
                fs::remove_file(entry.path())?;
            }
        }
        for (name, bytes) in &self.0 {
            fs::write(dir.join(name), bytes)?;
        }
        Ok(())
    }

    /// The newest segment loses its last quarter: what a disk does that lies about its syncs.
    pub fn without_tail(mut self) -> Files {
        let newest = self.0.iter_mut().rfind(|(name, _)| name.ends_with(".log"));
        if let Some((_, bytes)) = newest {
            let used = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
            let from = used - used.saturating_sub(HEAD_BYTES) / 4;
            bytes[from..].fill(0);
        }
        self
    }

    /// Something between this and what would have been `after`.
    pub fn torn(&self, after: &Files, dice: &mut Dice) -> (Files, &'static str) {
        let mut left = BTreeMap::new();
        let mut what = "as it was";
        // Names are made durable after what they name, and old ones go after that.
        let fresh = |name: &String| !self.0.contains_key(name) && !name.ends_with(".tmp");
        let is_named = dice.percent(60) || !after.0.keys().any(fresh);
        for (name, new) in &after.0 {
            match self.0.get(name) {
                Some(old) if old == new => drop(left.insert(name.clone(), old.clone())),
                Some(old) => {
                    let (mixed, how) = mix(old, new, dice);
                    what = how;
                    left.insert(name.clone(), mixed);
                }
                None if name.ends_with(".tmp") => {
                    left.insert(name.clone(), mix(&[], new, dice).0);
                }
                None if is_named => {
                    what = "with a new file";
                    left.insert(name.clone(), new.clone());
                }
                None => {
                    what = "with a file that has no name yet";
                    left.insert("blank.tmp".to_owned(), mix(&[], new, dice).0);
                }
            }
        }
        for (name, old) in &self.0 {
            if !after.0.contains_key(name) && (!is_named || dice.one_in(2)) {
                left.insert(name.clone(), old.clone());
            }
        }
        (Files(left), what)
    }
}

/// Sectors of the one or the other; a file that was not there may have any length.
fn mix(old: &[u8], new: &[u8], dice: &mut Dice) -> (Vec<u8>, &'static str) {
    let mut mixed = new.to_vec();
    let changed: Vec<usize> = (0..new.len().div_ceil(SECTOR))
        .filter(|&sector| part(new, sector) != part(old, sector))
        .collect();
    let mut revert = |sector: usize| {
        let at = sector * SECTOR;
        for (offset, byte) in mixed[at..].iter_mut().take(SECTOR).enumerate() {
            *byte = old.get(at + offset).copied().unwrap_or(0);
        }
    };
    let what = match dice.below(5) {
        0 => {
            changed.iter().for_each(|&sector| revert(sector));
            "with none of the last write"
        }
        1 => "with all of the last write",
        2 => {
            let kept = dice.index(changed.len() + 1);
            changed[kept..].iter().for_each(|&sector| revert(sector));
            "with the beginning of the last write"
        }
        3 => {
            for &sector in &changed {
                if dice.one_in(2) {
                    revert(sector);
                }
            }
            "with some sectors of the last write"
        }
        _ => {
            // Inside a sector, as disks without a promise about them do.
            if let Some(at) = dice.pick(&changed) {
                let from = at * SECTOR + dice.index(SECTOR);
                for (offset, byte) in mixed.iter_mut().enumerate().skip(from) {
                    *byte = old.get(offset).copied().unwrap_or(0);
                }
            }
            "with a torn sector"
        }
    };
    (mixed, what)
}

fn part(bytes: &[u8], sector: usize) -> &[u8] {
    let from = (sector * SECTOR).min(bytes.len());
    &bytes[from..(from + SECTOR).min(bytes.len())]
}
