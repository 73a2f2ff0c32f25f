//! Stands between this program and the system's library for the few calls by which files become durable: a
//! symbol of the program itself goes before the library's. Calls about other files go through untouched.
//! Nothing here decides anything; it tells the disk of the directory, and does what that says.

use super::{BLANK, DiskStore, Refusal, Verdict};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The directories that are watched.
static WATCHED: Mutex<BTreeMap<PathBuf, Weak<Mutex<DiskStore>>>> = Mutex::new(BTreeMap::new());

pub(super) fn watch(dir: &Path, store: &Arc<Mutex<DiskStore>>) {
    let mut watched = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
    watched.retain(|_, store| store.strong_count() > 0);
    watched.insert(dir.to_owned(), Arc::downgrade(store));
}

fn store_of(dir: &Path) -> Option<Arc<Mutex<DiskStore>>> {
    WATCHED.lock().unwrap_or_else(PoisonError::into_inner).get(dir).and_then(Weak::upgrade)
}

/// The path that was opened, and the disk it is on: its own if it is a directory, else that around it.
fn place(fd: c_int) -> Option<(PathBuf, Arc<Mutex<DiskStore>>)> {
    let path = std::fs::read_link(format!("/proc/self/fd/{fd}")).ok()?;
    let store = store_of(&path).or_else(|| store_of(path.parent()?))?;
    Some((path, store))
}

/// Tells the disk, unless it is about a file that is prepared ahead of its need.
fn operation(path: &Path, store: &Mutex<DiskStore>) -> Verdict {
    let is_ahead = path.file_name() == Some(OsStr::new(BLANK))
        && std::thread::current().name() == Some("journal-spare");
    store.lock().unwrap_or_else(PoisonError::into_inner).operation(is_ahead)
}

fn fail(refusal: Refusal) -> c_int {
    passed(Err(match refusal {
        Refusal::NoSpace => Errno::NOSPC,
        Refusal::Failure => Errno::IO,
    }))
}

/// As the system's library says it.
fn passed(result: Result<(), Errno>) -> c_int {
    unsafe extern "C" {
        fn __errno_location() -> *mut c_int;
    }
    match result {
        Ok(()) => 0,
        Err(errno) => {
            // SAFETY: the place of this thread's errno is always valid.
            unsafe { *__errno_location() = errno.raw_os_error() };
            -1
        }
    }
}

fn sync(fd: c_int) -> c_int {
    let Some((path, store)) = place(fd) else {
        // SAFETY: whoever calls has this file open; it is not closed here.
        return passed(rustix::fs::fdatasync(unsafe { BorrowedFd::borrow_raw(fd) }));
    };
    let verdict = operation(&path, &store);
    let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
    if path == store.dir {
        return match verdict {
            Verdict::Fail(refusal) => fail(refusal),
            Verdict::Go => {
                store.synced_names();
                0
            }
        };
    }
    // It has no name if it was removed meanwhile: then nobody will read it either.
    let (Ok(bytes), Ok(metadata)) = (std::fs::read(&path), std::fs::metadata(&path)) else {
        return 0;
    };
    match verdict {
        Verdict::Fail(refusal) => {
            store.sync_failed(metadata.ino(), &bytes);
            fail(refusal)
        }
        Verdict::Go => {
            store.synced(metadata.ino(), bytes);
            0
        }
    }
}

/// # Safety
/// As for the system's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdatasync(fd: c_int) -> c_int {
    sync(fd)
}

/// # Safety
/// As for the system's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fsync(fd: c_int) -> c_int {
    sync(fd)
}

/// # Safety
/// As for the system's own: `from` points to `count` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwrite64(
    fd: c_int,
    from: *const c_void,
    count: usize,
    offset: i64,
) -> isize {
    // SAFETY: the caller promises this.
    let mut bytes = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), count) };
    if let Some((path, store)) = place(fd) {
        match operation(&path, &store) {
            // Half of it was written before there was trouble.
            Verdict::Fail(refusal) if bytes.len() < 2 => return fail(refusal) as isize,
            Verdict::Fail(_) => bytes = &bytes[..bytes.len() / 2],
            Verdict::Go => {}
        }
        if let Ok(metadata) = std::fs::metadata(&path) {
            let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
            store.wrote(metadata.ino(), offset as u64, bytes.len());
        }
    }
    // SAFETY: whoever calls has this file open; it is not closed here.
    let file = unsafe { BorrowedFd::borrow_raw(fd) };
    match rustix::io::pwrite(file, bytes, offset as u64) {
        Ok(written) => written as isize,
        Err(errno) => passed(Err(errno)) as isize,
    }
}

/// # Safety
/// As for the system's own: both are paths that end with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    // SAFETY: the caller promises this.
    let (from, to) = unsafe { (CStr::from_ptr(from), CStr::from_ptr(to)) };
    let path = Path::new(OsStr::from_bytes(to.to_bytes()));
    if let Some(store) = path.parent().and_then(store_of)
        && let Verdict::Fail(refusal) = operation(path, &store)
    {
        return fail(refusal);
    }
    passed(rustix::fs::rename(from, to))
}

/// # Safety
/// As for the system's own: a path that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    // SAFETY: the caller promises this.
    let name = unsafe { CStr::from_ptr(path) };
    let path = Path::new(OsStr::from_bytes(name.to_bytes()));
    // Blank files go when a journal is dropped, which is after its end.
    if path.file_name() != Some(OsStr::new(BLANK))
        && let Some(store) = path.parent().and_then(store_of)
        && let Verdict::Fail(refusal) = operation(path, &store)
    {
        return fail(refusal);
    }
    passed(rustix::fs::unlink(name))
}
