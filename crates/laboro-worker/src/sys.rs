//! The few system calls rustix has no safe form of, each made safe here.
//! Spawning is apart, in the guardian.

use std::fs::{self, DirEntry};
use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::time::Duration;

use libc::{c_int, pid_t};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid,
};

/// Which children are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    AnyThread,
    /// Those the calling thread spawned, and those this process inherited if it is the main one.
    ThisThread,
}

/// Only for a process that has one thread: what others held would stay held in the child.
/// `None` in the child.
pub(crate) fn fork() -> io::Result<Option<pid_t>> {
    // SAFETY: the caller vouches that there are no other threads, so the child is whole.
    let pid = unsafe { libc::fork() };
    check(pid)?;
    Ok((pid != 0).then_some(pid))
}

/// A child that has ended and not been reaped; it stays so, and with it its pid and its group's
/// id stay taken. `Err` with ECHILD when there is no child at all.
pub(crate) fn next_ended_child(whose: Whose) -> io::Result<Option<pid_t>> {
    // SAFETY: siginfo is plain data for which all zeroes is valid; waitid fills it.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let only = if whose == Whose::ThisThread { libc::__WNOTHREAD } else { 0 };
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | only;
    // SAFETY: the pointer is to a live siginfo.
    check(unsafe { libc::waitid(libc::P_ALL, 0, &raw mut info, flags) })?;
    // SAFETY: after a successful waitid the pid is set, zero if no child had ended.
    let pid = unsafe { info.si_pid() };
    Ok((pid != 0).then_some(pid))
}

/// Waits until a child of the calling thread has ended, or is one no more, and leaves it unreaped.
pub(crate) fn wait_for_end(pid: pid_t) {
    let Ok(id) = libc::id_t::try_from(pid) else { return };
    let flags = libc::WEXITED | libc::WNOWAIT | libc::__WNOTHREAD;
    // SAFETY: siginfo is plain data for which all zeroes is valid.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live siginfo.
    while check(unsafe { libc::waitid(libc::P_PID, id, &raw mut info, flags) })
        .is_err_and(|error| error.kind() == io::ErrorKind::Interrupted)
    {}
}

/// Whether a process, ended or not, is a child of the calling thread: one it spawned, or one that
/// this process inherited if it is the main thread. Those that other threads spawned are not.
pub(crate) fn is_child_of_this_thread(pid: pid_t) -> bool {
    let Ok(id) = libc::id_t::try_from(pid) else { return false };
    // SAFETY: siginfo is plain data for which all zeroes is valid.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WNOTHREAD;
    // SAFETY: the pointer is to a live siginfo.
    unsafe { libc::waitid(libc::P_PID, id, &raw mut info, flags) == 0 }
}

/// How a child ended, by the kernel's count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reaped {
    pub status: c_int,
    pub user: Duration,
    pub system: Duration,
    pub max_rss_kib: u64,
}

/// Reaps one ended child.
pub(crate) fn reap(pid: pid_t) -> io::Result<Option<Reaped>> {
    let mut status = 0;
    // SAFETY: rusage is plain data for which all zeroes is valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live values.
    let reaped = unsafe { libc::wait4(pid, &raw mut status, libc::WNOHANG, &raw mut usage) };
    check(reaped)?;
    Ok((reaped != 0).then(|| Reaped {
        status,
        user: duration(usage.ru_utime),
        system: duration(usage.ru_stime),
        max_rss_kib: usage.ru_maxrss.try_into().unwrap_or(0),
    }))
}

/// Keeps this process small until [`shrink`]: memory comes in pages of ordinary size, not in huge ones.
pub(crate) fn stay_small() {
    allow_huge_pages(false);
}

/// Makes this process small, and lets its peak begin anew. The kernel counts the peak of whoever starts a program as
/// the program's own, so no task can seem smaller than the process that starts it. What is given back is read from
/// the file again when it is used. Nothing is lost where it cannot be done.
pub(crate) fn shrink() {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    for mapping in maps.lines().filter_map(Mapping::parse) {
        let advice = match mapping.kind {
            MappingKind::Text => libc::MADV_DONTNEED,
            MappingKind::Heap => libc::MADV_NOHUGEPAGE,
        };
        // SAFETY: the range was mapped a moment ago. Program text is private, never written to, and comes from a
        // file: the next access brings the same bytes back. The other advice changes no contents.
        unsafe { libc::madvise(mapping.first as *mut libc::c_void, mapping.length, advice) };
    }
    // Tasks would inherit it.
    allow_huge_pages(true);
    let _ = fs::write("/proc/self/clear_refs", "5");
}

fn allow_huge_pages(allow: bool) {
    let off = libc::c_ulong::from(!allow);
    // SAFETY: the call takes numbers only. Kernels that do not know it refuse it.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, off, 0, 0, 0) };
}

/// A line of `/proc/self/maps` that `shrink` has to do with.
#[derive(Debug, PartialEq, Eq)]
struct Mapping {
    first: usize,
    length: usize,
    kind: MappingKind,
}

#[derive(Debug, PartialEq, Eq)]
enum MappingKind {
    /// Code or constants of a file.
    Text,
    /// What threads allocate, and their stacks.
    Heap,
}

impl Mapping {
    fn parse(line: &str) -> Option<Mapping> {
        let mut words = line.split_ascii_whitespace();
        let (range, rights, offset) = (words.next()?, words.next()?, words.next()?);
        let file = words.nth(2).unwrap_or_default();
        // What was relocated is only read now too, and must stay; but it is never the beginning of its file.
        let is_first = offset.bytes().all(|digit| digit == b'0');
        let kind = match rights {
            "r-xp" if file.starts_with('/') => MappingKind::Text,
            "r--p" if file.starts_with('/') && is_first => MappingKind::Text,
            "rw-p" if file.is_empty() => MappingKind::Heap,
            _ => return None,
        };
        let (first, end) = range.split_once('-')?;
        let first = usize::from_str_radix(first, 16).ok()?;
        let length = usize::from_str_radix(end, 16).ok()?.checked_sub(first)?;
        Some(Mapping { first, length, kind })
    }
}

/// Waits until some child ends and reaps it; ECHILD when there is none.
pub(crate) fn reap_any_blocking() -> io::Result<pid_t> {
    // SAFETY: a null status is allowed.
    let pid = unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) };
    check(pid)?;
    Ok(pid)
}

/// Signals one process, and says whether we may: a process of another user is beyond us. Nobody
/// there is not an error worth having.
pub(crate) fn kill(pid: pid_t, signal: c_int) -> bool {
    assert!(pid > 1, "process {pid} is a group, or everybody's parent");
    // SAFETY: kill takes any numbers.
    let done = unsafe { libc::kill(pid, signal) };
    done == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::EPERM)
}

/// Kills a child that somebody else may reap at any time, so that the number alone proves nothing.
pub(crate) fn kill_child(pid: pid_t) {
    let Some(fd) = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
    else {
        return;
    };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    // It fails for all that is not our child.
    if waitid(WaitId::PidFd(fd.as_fd()), options).is_ok() {
        let _ = pidfd_send_signal(&fd, Signal::KILL);
    }
}

/// Signals a process group and says whether it has any member.
pub(crate) fn kill_group(pgid: pid_t, signal: c_int) -> bool {
    assert!(pgid > 1, "group {pgid} would be everybody");
    // SAFETY: kill takes any numbers.
    let done = unsafe { libc::kill(-pgid, signal) };
    done == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

/// Whether a process group has a living child of ours. Whoever else got its number has none.
pub(crate) fn has_child_in_group(pgid: pid_t) -> bool {
    let Ok(id) = libc::id_t::try_from(pgid) else { return false };
    // SAFETY: siginfo is plain data for which all zeroes is valid.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // Those that have ended have no more stops to tell of, and do not count.
    let flags = libc::WSTOPPED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the pointer is to a live siginfo.
    check(unsafe { libc::waitid(libc::P_PGID, id, &raw mut info, flags) }).is_ok()
}

/// Blocks SIGCHLD for this thread, and for those it starts from now on, and has it told by a
/// descriptor instead.
pub(crate) fn child_signals() -> io::Result<OwnedFd> {
    let mut set = empty_set();
    // SAFETY: the set is initialised and the signal number valid; the old mask is not wanted.
    unsafe {
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        check(libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()))?;
    }
    // SAFETY: the set is initialised.
    let fd = unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    check(fd)?;
    // SAFETY: signalfd just made it for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

pub(crate) fn ignore(signal: c_int) {
    // SAFETY: SIG_IGN runs no code of ours.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

pub(crate) fn empty_set() -> libc::sigset_t {
    // SAFETY: sigset is plain data, and sigemptyset initialises it.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        set
    }
}

/// The group a process is in; `None` if it is gone.
pub(crate) fn group_of(pid: pid_t) -> Option<pid_t> {
    // SAFETY: getpgid takes any number.
    let group = unsafe { libc::getpgid(pid) };
    (group > 0).then_some(group)
}

/// Closes every descriptor but the standard three: what a careless parent left open. Only for a
/// process that has opened none itself.
pub(crate) fn close_inherited() {
    close_from(3, close_range);
}

/// `range` says whether it has closed them.
fn close_from(first: c_int, range: impl FnOnce(c_int) -> bool) {
    if !range(first) {
        close_each(first);
    }
}

/// By its number: glibc has a name for it only since 2.34. Kernels before 5.9 do not know it, and
/// some containers forbid it.
fn close_range(first: c_int) -> bool {
    // SAFETY: the caller vouches that nobody owns what is closed.
    unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) == 0 }
}

fn close_each(first: c_int) {
    let number = |entry: io::Result<DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    let open: Vec<c_int> = match fs::read_dir("/proc/self/fd") {
        Ok(entries) => entries.filter_map(number).collect(),
        // Without /proc every number there can be.
        Err(_) => {
            let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
            (0..most.map_or(NUMBERS_MAX, |most| most.try_into().unwrap_or(NUMBERS_MAX))).collect()
        }
    };
    for fd in open.into_iter().filter(|&fd| fd >= first) {
        // SAFETY: the caller vouches that nobody owns it; that of the list itself is closed already.
        unsafe { libc::close(fd) };
    }
}

/// Nobody leaves more open by accident.
const NUMBERS_MAX: c_int = 1 << 16;

/// Whether the machine, or this user's share of it, has no room now: for another process, for
/// memory or for open files. That is not the fault of what was to be started, and passes.
pub fn is_shortage(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EAGAIN | libc::ENOMEM | libc::EMFILE | libc::ENFILE | libc::ENOBUFS)
            | Some(libc::ETOOMANYREFS)
    )
}

fn check(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let micros = u64::try_from(time.tv_usec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}

/// How much memory a page has.
pub(crate) fn page_bytes() -> u64 {
    // SAFETY: it only asks, and every system has an answer.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).unwrap_or(4096)
}

#[cfg(test)]
mod tests;
