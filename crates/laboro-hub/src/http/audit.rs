//! The log of who did what: JSON lines in `audit.jsonl`, with a few older files beside it. For people to look
//! back at; not synced, so a crash of the machine may cost the last lines. A hub and whoever makes tokens in its
//! directory write it at once, each under a lock of the file.

use laboro_api::{AuditEntry, AuditPage};
use laboro_core::Time;
use rustix::fs::{FlockOperation, flock};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

#[derive(Clone, Debug)]
pub struct AuditOptions {
    /// A new file is begun at this size.
    pub file_bytes: u64,
    /// How many older files are kept.
    pub files: u32,
}

impl Default for AuditOptions {
    fn default() -> AuditOptions {
        AuditOptions { file_bytes: 8 << 20, files: 7 }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", .path.display())]
pub struct AuditError {
    path: PathBuf,
    source: io::Error,
}

#[derive(Debug)]
pub struct Audit {
    dir: PathBuf,
    options: AuditOptions,
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    file: File,
    bytes: u64,
    next: u64,
}

impl Audit {
    /// Goes on where the log in this directory ends.
    pub fn open(dir: impl AsRef<Path>, options: AuditOptions) -> Result<Audit, AuditError> {
        let dir = dir.as_ref().to_owned();
        let (file, bytes) = open(&dir)?;
        let current = Mutex::new(Current { file, bytes, next: 1 });
        let audit = Audit { dir, options, current };
        let newest = audit.read(None, 1)?.entries.first().map_or(0, |entry| entry.number);
        audit.lock().next = newest + 1;
        Ok(audit)
    }

    /// Writes one line and gives it its number. A log that cannot be written is reported, and the hub goes on.
    pub fn write(&self, entry: AuditEntry) {
        let action = entry.action.clone();
        if let Err(error) = self.append(&mut self.lock(), entry) {
            tracing::error!(%error, action, "the audit log cannot be written");
        }
    }

    /// What somebody did in the hub's own directory, without asking the hub.
    pub fn note(dir: &Path, action: &str, detail: String, now: Time) -> Result<(), AuditError> {
        let audit = Audit::open(dir, AuditOptions::default())?;
        let entry = AuditEntry {
            number: 0,
            at_ms: now.0,
            token: format!("uid {}", rustix::process::getuid().as_raw()),
            owner: None,
            role: "admin".into(),
            peer: None,
            action: action.to_owned(),
            detail: Some(detail),
            status: 200,
        };
        audit.append(&mut audit.lock(), entry)
    }

    /// Entries before this number, newest first.
    pub fn read(&self, before: Option<u64>, most: usize) -> Result<AuditPage, AuditError> {
        let before = before.unwrap_or(u64::MAX);
        let mut page = AuditPage::default();
        for age in 0..=self.options.files {
            let path = path(&self.dir, age);
            let bytes = match std::fs::read(&path) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(source) => return Err(AuditError { path, source }),
            };
            for line in bytes.rsplit(|&byte| byte == b'\n') {
                // A torn or damaged line costs only itself.
                let Ok(entry) = serde_json::from_slice::<AuditEntry>(line) else { continue };
                if entry.number >= before {
                    continue;
                }
                if page.entries.len() == most {
                    page.next = page.entries.last().map(|entry| entry.number);
                    return Ok(page);
                }
                page.entries.push(entry);
            }
        }
        Ok(page)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append(&self, current: &mut Current, mut entry: AuditEntry) -> Result<(), AuditError> {
        let path = path(&self.dir, 0);
        let failed = |source: io::Error| AuditError { path: path.clone(), source };
        self.take(current)?;
        entry.number = current.next;
        current.next += 1;
        let mut line = serde_json::to_vec(&entry).map_err(|error| failed(error.into()))?;
        line.push(b'\n');
        if current.bytes > 0 && current.bytes + line.len() as u64 > self.options.file_bytes {
            self.rotate(current)?;
            self.take(current)?;
        }
        let written = current.file.write_all(&line);
        let unlocked = flock(&current.file, FlockOperation::Unlock);
        written.and(unlocked.map_err(Into::into)).map_err(failed)?;
        current.bytes += line.len() as u64;
        Ok(())
    }

    /// Takes the lock of the newest file, and goes on after what others have written meanwhile.
    fn take(&self, current: &mut Current) -> Result<(), AuditError> {
        let path = path(&self.dir, 0);
        let failed = |source| AuditError { path: path.clone(), source };
        loop {
            flock(&current.file, FlockOperation::LockExclusive)
                .map_err(|error| failed(error.into()))?;
            let own = current.file.metadata().map_err(failed)?;
            // Whoever had the lock before may have begun a new file.
            let is_newest = std::fs::metadata(&path).is_ok_and(|newest| newest.ino() == own.ino());
            if is_newest && own.len() == current.bytes {
                return Ok(());
            }
            if is_newest {
                let newest = self.read(None, 1)?.entries.first().map_or(0, |entry| entry.number);
                current.next = current.next.max(newest + 1);
                current.bytes = own.len();
                return Ok(());
            }
            // However much is in it, others have written it.
            (current.file, current.bytes) = (open(&self.dir)?.0, u64::MAX);
        }
    }

    fn rotate(&self, current: &mut Current) -> Result<(), AuditError> {
        for age in (0..self.options.files).rev() {
            let (from, to) = (path(&self.dir, age), path(&self.dir, age + 1));
            match std::fs::rename(&from, &to) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                renamed => renamed.map_err(|source| AuditError { path: from, source })?,
            }
        }
        if self.options.files == 0 {
            let gone = path(&self.dir, 0);
            std::fs::remove_file(&gone).map_err(|source| AuditError { path: gone, source })?;
        }
        (current.file, current.bytes) = open(&self.dir)?;
        Ok(())
    }
}

/// Who did what is nobody's business but the hub's owner's.
fn open(dir: &Path) -> Result<(File, u64), AuditError> {
    let path = path(dir, 0);
    let opened = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
    match opened.and_then(|file| file.metadata().map(|metadata| (file, metadata.len()))) {
        Ok(opened) => Ok(opened),
        Err(source) => Err(AuditError { path, source }),
    }
}

/// The newest is `audit.jsonl`, then `audit.1.jsonl` and so on.
fn path(dir: &Path, age: u32) -> PathBuf {
    match age {
        0 => dir.join("audit.jsonl"),
        age => dir.join(format!("audit.{age}.jsonl")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(action: &str) -> AuditEntry {
        AuditEntry { action: action.into(), ..AuditEntry::default() }
    }

    fn told(audit: &Audit) -> Vec<(u64, String)> {
        let page = audit.read(None, 100).unwrap();
        page.entries.into_iter().rev().map(|entry| (entry.number, entry.action)).collect()
    }

    #[test]
    fn two_who_write_at_once_use_no_number_twice() {
        let dir = tempfile::tempdir().unwrap();
        let audit = Audit::open(dir.path(), AuditOptions::default()).unwrap();
        audit.write(entry("cancel"));
        Audit::note(dir.path(), "token made", "ci".into(), Time(5)).unwrap();
        audit.write(entry("eject"));
        let all = [(1, "cancel"), (2, "token made"), (3, "eject")];
        assert_eq!(told(&audit), all.map(|(number, action)| (number, action.to_owned())));
    }

    #[test]
    fn a_file_that_somebody_else_began_is_gone_on_with() {
        let dir = tempfile::tempdir().unwrap();
        let small = AuditOptions { file_bytes: 1, files: 5 };
        let [one, other] = [(); 2].map(|()| Audit::open(dir.path(), small.clone()).unwrap());
        for (number, audit) in [&one, &other, &other, &one].into_iter().enumerate() {
            audit.write(entry(&format!("action {number}")));
        }
        let numbers: Vec<u64> = told(&one).into_iter().map(|(number, _)| number).collect();
        assert_eq!(numbers, [1, 2, 3, 4]);
    }
}
