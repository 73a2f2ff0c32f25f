//! Takes a request off the socket, and starts what a launch asks for. When and on which thread is
//! decided elsewhere.

use std::ffi::{CStr, CString};
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use libc::pid_t;
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use super::program::{self, Finder};
use super::spawn::{Mask, Pinned, Pointers, Spawner, restrain};
use crate::Limits;
use crate::ending::Reason;
use crate::wire::{Body, FDS_MAX, LaunchHead};

/// The next packet and the descriptors that came with it, if there is one.
pub(super) fn receive<'a>(
    socket: &OwnedFd,
    packet: &'a mut [u8],
) -> io::Result<Option<(&'a [u8], Vec<OwnedFd>)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let received = match recvmsg(socket, &mut [IoSliceMut::new(packet)], &mut control, flags) {
        Ok(received) if received.bytes > 0 => received,
        Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
        Ok(_) | Err(Errno::CONNRESET) => return Err(io::ErrorKind::BrokenPipe.into()),
        Err(error) => return Err(error.into()),
    };
    let fds = control.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => fds.collect(),
        _ => Vec::new(),
    });
    let fds = fds.collect();
    Ok(Some((&packet[..received.bytes], fds)))
}

/// A launch in full, to be started now or later.
pub(super) struct Waiting {
    pub head: LaunchHead,
    text: io::Result<Vec<u8>>,
    fds: Vec<OwnedFd>,
    /// Sent to it before there was room for it.
    pub signals: Vec<i32>,
}

impl Waiting {
    pub fn new(head: LaunchHead, body: &Body, fds: Vec<OwnedFd>) -> Waiting {
        Waiting { head, text: read_body(body, &fds), fds, signals: Vec::new() }
    }

    /// Closes its descriptors.
    pub fn into_head(self) -> LaunchHead {
        self.head
    }

    /// Returns once the program runs. Standard descriptors that were not passed become `null`.
    pub fn start(
        &self,
        spawner: &Spawner,
        finder: &mut Finder,
        null: BorrowedFd,
    ) -> Result<pid_t, (Reason, String)> {
        let Waiting { head, text, fds, .. } = self;
        let text = text
            .as_ref()
            .map_err(|error| (Reason::Resources, format!("cannot read its arguments: {error}")))?;
        let strings = Strings::split(head, text)
            .ok_or_else(|| (Reason::Invalid, "a launch whose text does not add up".to_owned()))?;
        let mut passed = fds.iter();
        let mut stdio = [null; 3];
        for (slot, _) in stdio.iter_mut().zip(head.passed).filter(|(_, passed)| *passed) {
            *slot =
                passed.next().ok_or_else(|| (Reason::Resources, OUT_OF_FDS.to_owned()))?.as_fd();
        }
        let name = strings.argv[0];
        let path = strings.path();
        let Some(file) = finder.find(name, path, strings.dir) else {
            let message = format!(
                "program {} not found in PATH {}",
                name.to_string_lossy(),
                String::from_utf8_lossy(path)
            );
            return Err((Reason::ProgramMissing, message));
        };
        let mask = head.umask.map(Mask::set).transpose();
        let _mask = mask.map_err(|error| (Reason::Resources, format!("its umask: {error}")))?;
        let cpus = (!head.cpus.is_empty()).then(|| Pinned::set(&head.cpus)).transpose();
        let _cpus =
            cpus.map_err(|error| (Reason::Resources, format!("its processors: {error}")))?;
        let rest = &strings.argv[1..];
        let env = Pointers::new(strings.env.iter().copied());
        // What cannot be executed fails without a shell, which would only say so in its own words.
        let line = limiting_line(&head.limits).filter(|_| program::is_there(&file, strings.dir));
        let mut spawned = match line {
            Some(line) => {
                let shell = [SHELL, c"-c", &line, SHELL, &file];
                let argv = Pointers::new(shell.into_iter().chain(rest.iter().copied()));
                spawner.spawn(SHELL, &argv, &env, strings.dir, stdio)
            }
            None => {
                let argv = Pointers::new(strings.argv.iter().copied());
                spawner.spawn(&file, &argv, &env, strings.dir, stdio)
            }
        };
        if spawned.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::ENOEXEC)) {
            let argv = Pointers::new([SHELL, &file].into_iter().chain(rest.iter().copied()));
            spawned = spawner.spawn(SHELL, &argv, &env, strings.dir, stdio);
        }
        if spawned.is_err() && finder.forget() {
            return self.start(spawner, finder, null);
        }
        let pid =
            spawned.map_err(|error| program::explain(&error, &file, strings.dir, text.len()))?;
        restrain(pid, head.nice, &head.limits);
        Ok(pid)
    }
}

const SHELL: &CStr = c"/bin/sh";

/// A line for a shell that becomes the task, if its memory is limited: posix_spawn knows no limits, and what a
/// task forks before they are set from outside would have none. What the system refuses is left as it was.
fn limiting_line(limits: &Limits) -> Option<CString> {
    let kib = (limits.address_space_bytes? / 1024).max(1);
    CString::new(format!("ulimit -v {kib} 2>/dev/null; exec \"$@\"")).ok()
}

/// The text of a launch, wherever it came.
fn read_body(body: &Body, fds: &[OwnedFd]) -> io::Result<Vec<u8>> {
    match *body {
        Body::Inline(text) => Ok(text.to_vec()),
        Body::InMemory(len) => {
            let file = fds.last().ok_or_else(|| io::Error::other("a launch came without body"))?;
            let len = usize::try_from(len).map_err(io::Error::other)?;
            let mut text = vec![0; len];
            let mut done = 0;
            while done < len {
                match rustix::io::pread(file, &mut text[done..], done as u64)? {
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    read => done += read,
                }
            }
            Ok(text)
        }
    }
}

/// The kernel drops descriptors that the receiver has no room for.
const OUT_OF_FDS: &str = "the guardian is out of file descriptors: raise the limit of open files";

/// The strings of a launch, pointing into its text.
struct Strings<'a> {
    dir: Option<&'a CStr>,
    argv: Vec<&'a CStr>,
    env: Vec<&'a CStr>,
}

impl<'a> Strings<'a> {
    /// `None` unless there are exactly as many as were promised, and at least a program.
    fn split(head: &LaunchHead, text: &'a [u8]) -> Option<Strings<'a>> {
        let mut strings = text
            .split_inclusive(|&byte| byte == 0)
            .map(|string| CStr::from_bytes_with_nul(string).ok());
        let dir = if head.has_dir { Some(strings.next()??) } else { None };
        let mut take = |count: u32| -> Option<Vec<&'a CStr>> {
            let taken: Option<Vec<_>> = strings.by_ref().take(count as usize).collect();
            taken.filter(|taken| taken.len() == count as usize)
        };
        let argv = take(head.argc).filter(|argv| !argv.is_empty())?;
        let env = take(head.envc)?;
        strings.next().is_none().then_some(Strings { dir, argv, env })
    }

    fn path(&self) -> &'a [u8] {
        let value = self.env.iter().find_map(|entry| entry.to_bytes().strip_prefix(b"PATH="));
        value.unwrap_or(b"/usr/local/bin:/usr/bin:/bin")
    }
}
