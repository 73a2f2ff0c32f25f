//! The guardian as the runner sees it: a process, a socket to it, and a thread that waits for its
//! end and then sees to the orphans.

use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, Shutdown, SocketFlags, SocketType, recv, shutdown, socketpair,
};

use super::orphans::{self, Guardians};
use super::outgoing::{interest, send_packet, watch};
use super::table::Token;
use super::{Options, RunnerError};
use crate::guardian;
use crate::sys::is_shortage;
use crate::wire::{Report, read_report};

#[derive(Debug)]
pub(super) struct GuardianLink {
    socket: OwnedFd,
    /// The guardian and all it left behind are gone.
    gone: Arc<AtomicBool>,
    watcher: Option<JoinHandle<()>>,
    watches_for_room: bool,
}

/// Far beyond what starting takes on a machine that is busy, and short enough to be waited for.
const ANSWER_TIME: Duration = Duration::from_secs(10);

impl GuardianLink {
    /// Starts a guardian and waits for its first word.
    pub fn start(
        options: &Options,
        nonce: &str,
        wake: &OwnedFd,
    ) -> Result<GuardianLink, RunnerError> {
        let program = &options.guardian;
        let failed = |source| match is_shortage(&source) {
            true => RunnerError::NoRoom(source),
            false => RunnerError::Guardian { program: program.clone(), source },
        };
        let (socket, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(|error| failed(error.into()))?;
        let mut command = Command::new(program);
        command
            .arg0("laboro-guardian")
            .arg(guardian::ARGUMENT)
            .arg(nonce)
            .arg(options.at_once.map_or(usize::MAX, NonZeroUsize::get).to_string())
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null());
        let (mut guardian, registered) = Guardians::spawn(&mut command).map_err(failed)?;
        // It holds the guardian's end of the socket, whose closing must be seen.
        drop(command);
        let pid = guardian.id().cast_signed();
        if let Err(error) = expect_ready(&socket, program) {
            // It has no tasks yet, so there is nothing more to end.
            let ended = wait_a_moment(&mut guardian);
            let _ = guardian.kill();
            let _ = guardian.wait();
            let had_no_room = ended.is_some_and(|code| code == guardian::NO_ROOM);
            return Err(if had_no_room { failed(Errno::AGAIN.into()) } else { error });
        }
        let gone = Arc::new(AtomicBool::new(false));
        let watcher = {
            let wake = wake.try_clone().map_err(failed)?;
            let (gone, nonce, which) = (Arc::clone(&gone), nonce.to_owned(), options.orphans);
            thread::Builder::new().name("guardian-watch".into()).spawn(move || {
                // Whatever wait says, there is no guardian any more.
                let _ = guardian.wait();
                drop(registered);
                orphans::kill(pid, &nonce, which);
                gone.store(true, Ordering::Release);
                let _ = rustix::io::write(&wake, &1_u64.to_ne_bytes());
            })
        };
        let watcher = Some(watcher.map_err(failed)?);
        Ok(GuardianLink { socket, gone, watcher, watches_for_room: false })
    }

    pub fn register(&self, epoll: &OwnedFd) -> io::Result<()> {
        Ok(epoll::add(epoll, &self.socket, Token::Guardian.data(), interest(false))?)
    }

    pub fn send(&self, packet: &[u8], fds: &[BorrowedFd]) -> rustix::io::Result<()> {
        send_packet(&self.socket, packet, fds)
    }

    /// The next packet; `None` if there is none now or will be none.
    pub fn receive<'a>(&self, into: &'a mut [u8], epoll: &OwnedFd) -> Option<&'a [u8]> {
        loop {
            match recv(&self.socket, &mut *into, RecvFlags::DONTWAIT) {
                Ok((len, _)) if len > 0 => return Some(&into[..len]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return None,
                Ok(_) | Err(_) => {
                    // The watcher's wake tells the rest; an ended socket would never be silent.
                    let _ = epoll::delete(epoll, &self.socket);
                    return None;
                }
            }
        }
    }

    pub fn watch_for_room(&mut self, epoll: &OwnedFd, room: bool) {
        if self.watches_for_room != room {
            self.watches_for_room = room;
            watch(epoll, &self.socket, Token::Guardian.data(), room);
        }
    }

    pub fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// The guardian takes this as its order to end everything.
    pub fn close(&self) {
        let _ = shutdown(&self.socket, Shutdown::Both);
    }

    pub fn take_watcher(&mut self) -> Option<JoinHandle<()>> {
        self.watcher.take()
    }
}

/// One that hangs up is about to say why by its status.
fn wait_a_moment(guardian: &mut Child) -> Option<i32> {
    for _ in 0..100 {
        match guardian.try_wait() {
            Ok(Some(status)) => return status.code(),
            Ok(None) => thread::sleep(Duration::from_millis(1)),
            Err(_) => return None,
        }
    }
    None
}

fn expect_ready(socket: &OwnedFd, program: &std::path::Path) -> Result<(), RunnerError> {
    let silent = || RunnerError::Silent(program.to_owned());
    let deadline = Instant::now() + ANSWER_TIME;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(silent());
        }
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => break,
            Err(error) => return Err(io::Error::from(error).into()),
        }
    }
    let mut packet = [0; 64];
    let (len, _) = recv(socket, &mut packet, RecvFlags::DONTWAIT).map_err(io::Error::from)?;
    match read_report(&mut &packet[..len]) {
        Some(Report::Ready) => Ok(()),
        _ => Err(silent()),
    }
}
