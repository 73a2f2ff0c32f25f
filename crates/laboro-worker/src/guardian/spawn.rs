//! Starts one process with posix_spawn, which shares memory with its child until the exec instead
//! of copying page tables. What posix_spawn cannot set is set right after, from outside.

use std::cell::Cell;
use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;

use libc::{c_char, c_int, pid_t};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, Resource, Rlimit, prlimit, setpriority_pgrp};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::Limits;
use crate::sys;

/// The attributes every task is spawned with: its own process group, and no signal blocked or
/// ignored, whatever the guardian blocks and ignores.
pub(super) struct Spawner {
    attributes: libc::posix_spawnattr_t,
    /// How a child enters its directory, where the system's library knows that.
    add_chdir: Option<AddChdir>,
    /// Where the guardian is.
    home: OwnedFd,
}

type AddChdir = unsafe extern "C" fn(*mut libc::posix_spawn_file_actions_t, *const c_char) -> c_int;

impl Spawner {
    pub fn new() -> io::Result<Spawner> {
        Spawner::with(add_chdir())
    }

    fn with(add_chdir: Option<AddChdir>) -> io::Result<Spawner> {
        let home = open(".", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let mut attr = MaybeUninit::<libc::posix_spawnattr_t>::uninit();
        let mut all = sys::empty_set();
        let none = sys::empty_set();
        let flags = libc::POSIX_SPAWN_SETPGROUP
            | libc::POSIX_SPAWN_SETSIGDEF
            | libc::POSIX_SPAWN_SETSIGMASK;
        // SAFETY: the attributes are initialised first and every pointer is to a live value.
        unsafe {
            libc::sigfillset(&raw mut all);
            check(libc::posix_spawnattr_init(attr.as_mut_ptr()))?;
            let attr = attr.as_mut_ptr();
            check(libc::posix_spawnattr_setflags(attr, flags as _))?;
            check(libc::posix_spawnattr_setpgroup(attr, 0))?;
            check(libc::posix_spawnattr_setsigdefault(attr, &raw const all))?;
            check(libc::posix_spawnattr_setsigmask(attr, &raw const none))?;
        }
        // SAFETY: posix_spawnattr_init succeeded.
        let attributes = unsafe { attr.assume_init() };
        Ok(Spawner { attributes, add_chdir, home })
    }

    /// The directory is entered first, so a relative program is relative to it.
    pub fn spawn(
        &self,
        program: &CStr,
        argv: &Pointers,
        env: &Pointers,
        dir: Option<&CStr>,
        stdio: [BorrowedFd; 3],
    ) -> io::Result<pid_t> {
        let mut actions = Actions::new()?;
        for (target, fd) in (0..).zip(stdio) {
            actions.dup2(fd, target)?;
        }
        // Until the child is there, which begins where its parent is.
        let mut _visit = None;
        match (dir, self.add_chdir) {
            (Some(dir), Some(add_chdir)) => actions.chdir(dir, add_chdir)?,
            (Some(dir), None) => _visit = Some(Visit::enter(dir, &self.home)?),
            (None, _) => {}
        }
        let mut pid = 0;
        // SAFETY: strings are NUL-terminated, the arrays end in null (see Pointers), and actions
        // and attributes are initialised; none of them is changed.
        check(unsafe {
            libc::posix_spawn(
                &raw mut pid,
                program.as_ptr(),
                &raw const actions.0,
                &raw const self.attributes,
                argv.0.as_ptr().cast(),
                env.0.as_ptr().cast(),
            )
        })?;
        Ok(pid)
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        // SAFETY: initialised in new, destroyed once.
        unsafe { libc::posix_spawnattr_destroy(&raw mut self.attributes) };
    }
}

/// Looked up when the program runs, so that it also starts with a glibc before 2.29, which has no
/// such function.
fn add_chdir() -> Option<AddChdir> {
    let name = c"posix_spawn_file_actions_addchdir_np";
    // SAFETY: the name is a string, and what has this name has this type, in every library that has it.
    unsafe {
        let found = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
        (!found.is_null()).then(|| std::mem::transmute::<*mut libc::c_void, AddChdir>(found))
    }
}

/// This thread in another directory than the others, until it is dropped.
struct Visit<'a> {
    home: &'a OwnedFd,
}

/// From here on this thread has a current directory and a umask of its own.
fn set_apart() -> io::Result<()> {
    thread_local! {
        static IS_APART: Cell<bool> = const { Cell::new(false) };
    }
    if !IS_APART.get() {
        // SAFETY: directory, root and umask are this thread's own now, and nothing else.
        if unsafe { libc::unshare(libc::CLONE_FS) } != 0 {
            return Err(io::Error::last_os_error());
        }
        IS_APART.set(true);
    }
    Ok(())
}

/// This thread with another umask than the others, until it is dropped: a child begins with that of its parent.
pub(super) struct Mask(Mode);

impl Mask {
    pub fn set(umask: u32) -> io::Result<Mask> {
        set_apart()?;
        Ok(Mask(rustix::process::umask(Mode::from_raw_mode(umask))))
    }
}

impl Drop for Mask {
    fn drop(&mut self) {
        rustix::process::umask(self.0);
    }
}

/// This thread on some processors only, until it is dropped: a child begins with those of its parent.
pub(super) struct Pinned(CpuSet);

impl Pinned {
    pub fn set(cpus: &[u32]) -> io::Result<Pinned> {
        let before = sched_getaffinity(None)?;
        let mut set = CpuSet::new();
        for &cpu in cpus.iter().filter(|&&cpu| (cpu as usize) < CpuSet::MAX_CPU) {
            set.set(cpu as usize);
        }
        sched_setaffinity(None, &set)?;
        Ok(Pinned(before))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // What it was may be set again.
        let _ = sched_setaffinity(None, &self.0);
    }
}

impl Visit<'_> {
    fn enter<'a>(dir: &CStr, home: &'a OwnedFd) -> io::Result<Visit<'a>> {
        set_apart()?;
        rustix::process::chdir(dir)?;
        Ok(Visit { home })
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        // A directory that was there when the guardian began can be entered again.
        let _ = rustix::process::fchdir(self.home);
    }
}

/// A null-ended array of strings for exec. The strings live elsewhere, hence the lifetime.
pub(super) struct Pointers<'a>(Vec<*const c_char>, std::marker::PhantomData<&'a CStr>);

impl<'a> Pointers<'a> {
    pub fn new(strings: impl Iterator<Item = &'a CStr>) -> Pointers<'a> {
        let ends = strings.map(CStr::as_ptr).chain([ptr::null()]).collect();
        Pointers(ends, std::marker::PhantomData)
    }
}

/// Priority and limits, on a process that runs already. It is our unreaped child, so its pid is
/// its own. What the system refuses (a raised limit, a lower nice) is left as it was.
pub(super) fn restrain(pid: pid_t, nice: Option<i32>, limits: &Limits) {
    let Some(pid) = Pid::from_raw(pid) else { return };
    if let Some(nice) = nice {
        // The group, because the process may have forked already.
        let _ = setpriority_pgrp(Some(pid), nice);
    }
    for (resource, limit) in [
        (Resource::As, limits.address_space_bytes),
        (Resource::Cpu, limits.cpu_seconds),
        (Resource::Fsize, limits.file_size_bytes),
        (Resource::Nofile, limits.open_files),
        (Resource::Core, limits.core_bytes),
    ] {
        if limit.is_some() {
            let _ = prlimit(Some(pid), resource, Rlimit { current: limit, maximum: limit });
        }
    }
}

struct Actions(libc::posix_spawn_file_actions_t);

impl Actions {
    fn new() -> io::Result<Actions> {
        let mut actions = MaybeUninit::uninit();
        // SAFETY: init fills it, and it is used only if init succeeded.
        unsafe {
            check(libc::posix_spawn_file_actions_init(actions.as_mut_ptr()))?;
            Ok(Actions(actions.assume_init()))
        }
    }

    fn dup2(&mut self, fd: BorrowedFd, target: c_int) -> io::Result<()> {
        // SAFETY: the actions are initialised.
        check(unsafe {
            libc::posix_spawn_file_actions_adddup2(&raw mut self.0, fd.as_raw_fd(), target)
        })
    }

    fn chdir(&mut self, dir: &CStr, add_chdir: AddChdir) -> io::Result<()> {
        // SAFETY: the actions are initialised, and the path is copied.
        check(unsafe { add_chdir(&raw mut self.0, dir.as_ptr()) })
    }
}

impl Drop for Actions {
    fn drop(&mut self) {
        // SAFETY: initialised in new, destroyed once.
        unsafe { libc::posix_spawn_file_actions_destroy(&raw mut self.0) };
    }
}

/// The spawn family returns its error instead of setting errno.
fn check(errno: c_int) -> io::Result<()> {
    if errno == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(errno)) }
}

#[cfg(test)]
mod tests;
