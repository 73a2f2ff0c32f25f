//! Finds the program a task names, and says in words why a spawn failed.
//! posix_spawnp is of no use here: it looks in the PATH of its caller.

use std::ffi::{CStr, CString, OsStr};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Access, AtFlags, CWD, accessat};

use crate::ending::Reason;
use crate::sys;

/// Looks for programs, and remembers the last for a moment: most tasks name the one of the task before them, and
/// a PATH is long. As a shell does, but not for so long that somebody who installs another one would notice.
#[derive(Default)]
pub(super) struct Finder {
    last: Option<Found>,
    /// The last answer was not looked for.
    was_remembered: bool,
}

struct Found {
    name: CString,
    path: Vec<u8>,
    file: CString,
    at: Instant,
}

const KEPT: Duration = Duration::from_secs(1);

impl Finder {
    pub fn find(&mut self, name: &CStr, path: &[u8], dir: Option<&CStr>) -> Option<CString> {
        let is_it = |found: &&Found| {
            *found.name == *name && found.path == path && found.at.elapsed() < KEPT
        };
        let remembered = self.last.as_ref().filter(is_it);
        self.was_remembered = remembered.is_some();
        if let Some(found) = remembered {
            return Some(found.file.clone());
        }
        let file = find(name, path, dir)?;
        // Elsewhere it may depend on where the task runs.
        let is_kept =
            file != *name && path.split(|&byte| byte == b':').all(|dir| dir.starts_with(b"/"));
        self.last = is_kept.then(|| Found {
            name: name.to_owned(),
            path: path.to_owned(),
            file: file.clone(),
            at: Instant::now(),
        });
        Some(file)
    }

    /// The last answer was of no use. Says whether the next may be another.
    pub fn forget(&mut self) -> bool {
        self.last = None;
        std::mem::take(&mut self.was_remembered)
    }
}

/// What exec would be given: the name itself if it has a slash, else the first executable of that
/// name in the task's PATH. `None` if there is none.
fn find(name: &CStr, path: &[u8], dir: Option<&CStr>) -> Option<CString> {
    let bytes = name.to_bytes();
    if bytes.contains(&b'/') {
        return Some(name.to_owned());
    }
    if bytes.is_empty() {
        return None;
    }
    for entry in path.split(|&byte| byte == b':') {
        // An empty entry is the directory the task runs in, by old custom.
        let entry: &[u8] = if entry.is_empty() { b"." } else { entry };
        let candidate = [entry, b"/", bytes].concat();
        if is_executable_file(&within(dir, &candidate)) {
            return CString::new(candidate).ok();
        }
    }
    None
}

/// Whether what `find` gave can be executed, as far as can be seen from here.
pub(super) fn is_there(file: &CStr, dir: Option<&CStr>) -> bool {
    is_executable_file(&within(dir, file.to_bytes()))
}

fn is_executable_file(path: &Path) -> bool {
    accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS).is_ok()
        && fs::metadata(path).is_ok_and(|found| found.is_file())
}

/// Why it did not start. Looks again at what exec saw, so it is a best guess, made only now.
pub(super) fn explain(
    error: &io::Error,
    program: &CStr,
    dir: Option<&CStr>,
    bytes: usize,
) -> (Reason, String) {
    if let Some(dir) = dir.map(path_of)
        && let Err(why) = can_enter(dir)
    {
        return (Reason::Directory, format!("directory {}: {}", dir.display(), words(&why)));
    }
    let shown = path_of(program).display();
    let file = within(dir, program.to_bytes());
    let found = fs::metadata(&file);
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENOTDIR) if found.is_ok() => (
            Reason::ProgramMissing,
            format!("program {shown} is there, but the interpreter it names is not"),
        ),
        Some(libc::ENOENT | libc::ENOTDIR) => {
            (Reason::ProgramMissing, format!("program {shown} not found"))
        }
        Some(libc::EACCES) => {
            let why = match found {
                Ok(found) if found.is_dir() => "is a directory".to_owned(),
                Ok(found) if found.permissions().mode() & 0o111 == 0 => {
                    format!("is not executable (mode {:o}): chmod +x it", found.mode() & 0o7777)
                }
                _ => "may not be executed: permission denied".to_owned(),
            };
            (Reason::NotExecutable, format!("program {shown} {why}"))
        }
        Some(libc::E2BIG) => (
            Reason::TooLarge,
            format!(
                "arguments and environment of {shown} are too large for the system ({bytes} bytes \
                 in all; one of them may have 131072): put them in a file"
            ),
        ),
        _ if sys::is_shortage(error) => {
            (Reason::Resources, format!("no room to start {shown} now: {}", words(error)))
        }
        _ => (Reason::NotExecutable, format!("program {shown}: {}", words(error))),
    }
}

fn can_enter(dir: &Path) -> io::Result<()> {
    if !fs::metadata(dir)?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    Ok(accessat(CWD, dir, Access::EXEC_OK, AtFlags::EACCESS)?)
}

/// The system's words without the number std appends.
fn words(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    text.to_lowercase()
}

fn path_of(text: &CStr) -> &Path {
    Path::new(OsStr::from_bytes(text.to_bytes()))
}

fn within(dir: Option<&CStr>, path: &[u8]) -> PathBuf {
    dir.map_or(Path::new(""), path_of).join(OsStr::from_bytes(path))
}
