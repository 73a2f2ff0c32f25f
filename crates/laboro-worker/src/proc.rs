//! Reads /proc: who a process's parent and session are, what its environment says it belongs to.
//! A process may go away between any two lines; what cannot be read is simply not there.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::process;

use libc::pid_t;

use crate::sys;

/// One line of the process table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub pid: pid_t,
    pub parent: pid_t,
    pub group: pid_t,
    pub session: pid_t,
    /// Ended and waiting to be reaped by its parent.
    pub is_zombie: bool,
    /// In clock ticks since the boot: with its number the name of a process that no other has.
    pub born: u64,
    /// What of its memory is in the machine's, shared or not.
    pub resident_pages: u64,
}

/// Every process there is.
pub(crate) fn processes() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(process).collect()
}

/// One of them, if it is there.
pub(crate) fn process(pid: pid_t) -> Option<Process> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse_stat(pid, &stat)
}

/// The name in the second field may hold anything, brackets and newlines too; the fields that
/// matter follow its last bracket.
fn parse_stat(pid: pid_t, stat: &[u8]) -> Option<Process> {
    let name_end = stat.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(&stat[name_end + 1..]).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let is_zombie = matches!(fields.next()?, "Z" | "X");
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let session = fields.next()?.parse().ok()?;
    let born = fields.nth(15)?.parse().ok()?;
    let resident_pages = fields.nth(1)?.parse().ok()?;
    Some(Process { pid, parent, group, session, is_zombie, born, resident_pages })
}

/// The memory of a process in bytes; what it shares with others counts in part, so that all shares are the whole.
/// That takes a walk through all of it. `None` where the kernel does not tell.
pub(crate) fn proportional_bytes(pid: pid_t) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kib.checked_mul(1024)
}

/// Whether a process runs this same program.
pub(crate) fn is_this_program(pid: pid_t) -> bool {
    let file = |process: &str| {
        let about = fs::metadata(format!("/proc/{process}/exe")).ok()?;
        Some((about.dev(), about.ino()))
    };
    let own = file("self");
    own.is_some() && file(&pid.to_string()) == own
}

/// The children of this process, read from open files: a few microseconds while they are few.
/// The kernel may leave one out while others come and go.
#[derive(Debug)]
pub(crate) struct Children {
    /// One a thread. Kernels without CONFIG_PROC_CHILDREN have none; then the whole table is read.
    lists: Vec<File>,
    is_of_all_threads: bool,
    text: Vec<u8>,
}

impl Children {
    /// Of the main thread, which is to read them: those this process inherited, but not those that
    /// other threads spawned.
    pub fn of_main_thread() -> Children {
        let list = File::open(format!("/proc/self/task/{}/children", process::id()));
        Children {
            lists: list.into_iter().collect(),
            is_of_all_threads: false,
            text: vec![0; 8192],
        }
    }

    /// Of the threads there are now.
    pub fn of_all_threads() -> Children {
        let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        let lists = threads.filter_map(|thread| File::open(thread.path().join("children")).ok());
        Children { lists: lists.collect(), is_of_all_threads: true, text: vec![0; 8192] }
    }

    pub fn read(&mut self, into: &mut Vec<pid_t>) {
        into.clear();
        let all_read = self.lists.iter().all(|list| {
            let Some(text) = read_list(list, &mut self.text) else { return false };
            let words = text.split(u8::is_ascii_whitespace);
            let words = words.filter_map(|word| std::str::from_utf8(word).ok());
            into.extend(words.filter_map(|word| word.parse::<pid_t>().ok()));
            true
        });
        if self.lists.is_empty() || !all_read {
            into.clear();
            let me = process::id().cast_signed();
            into.extend(processes().iter().filter(|p| p.parent == me).map(|p| p.pid));
            into.retain(|&pid| self.is_of_all_threads || sys::is_child_of_this_thread(pid));
        }
    }
}

fn read_list<'a>(list: &File, text: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    let mut len = 0;
    loop {
        let read = list.read_at(&mut text[len..], len as u64).ok()?;
        len += read;
        // The kernel gives a page at a time, so half of one is all there is.
        if read < 2048 {
            return Some(&text[..len]);
        }
        text.resize(len + 8192, 0);
    }
}

/// The value of a variable in a process's first environment, if it starts with `prefix`: what
/// follows the prefix. The process may have overwritten it; other users' is closed to us.
pub(crate) fn environment_mark(pid: pid_t, prefix: &[u8]) -> Option<Vec<u8>> {
    let file = File::open(format!("/proc/{pid}/environ")).ok()?;
    find_mark(file, prefix)
}

/// A mark is short; what is longer is not ours.
const MARK_BYTES_MAX: usize = 128;

/// Reads in pieces, since an environment may have megabytes and the mark stand anywhere.
fn find_mark(mut from: impl Read, prefix: &[u8]) -> Option<Vec<u8>> {
    let mut piece = [0; 4096];
    let mut entry = Vec::new();
    loop {
        let len = match from.read(&mut piece) {
            Ok(0) => break,
            Ok(len) => len,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return None,
        };
        for &byte in &piece[..len] {
            if byte == 0 {
                if let Some(value) = entry.strip_prefix(prefix) {
                    return Some(value.to_vec());
                }
                entry.clear();
            } else if entry.len() <= MARK_BYTES_MAX {
                entry.push(byte);
            }
        }
    }
    entry.strip_prefix(prefix).map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests;
