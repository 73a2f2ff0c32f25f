//! What goes to the guardian. Sent at once from the thread that asks; what there is no room for
//! waits in order, without pipes, and is sent as room comes.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use rustix::event::epoll::{self, EventFlags};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::pipe::{PipeFlags, pipe_with};

use super::prepare::{End, Prepared, Unsent, prepare};
use super::table::{LaunchedTask, RunnerState};
use crate::ending::{Ending, Reason};
use crate::sys;
use crate::wire::FDS_MAX;

impl RunnerState {
    /// Sends until all is sent, the guardian has as many as it shall have, or the socket is full;
    /// then the socket is watched for room. Orders go first: they are about what was sent before.
    pub fn send_waiting(&mut self, epoll: &OwnedFd) {
        loop {
            let sent = if let Some(packet) = self.orders.pop_front() {
                let sent = self.link.send(&packet, &[]);
                if sent == Err(Errno::AGAIN) {
                    self.orders.push_front(packet);
                }
                sent
            } else if self.has_room()
                && let Some(launch) = self.unsent.pop_front()
            {
                self.send_next(launch)
            } else {
                return self.link.watch_for_room(epoll, false);
            };
            match sent {
                Err(Errno::AGAIN) => return self.link.watch_for_room(epoll, true),
                Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => return,
                Ok(()) | Err(_) => {}
            }
        }
    }

    /// Takes back what was not sent yet, as a stop that cost nothing.
    pub fn stop_unsent(&mut self, which: impl Fn(u64) -> bool) {
        let mut ids = Vec::new();
        self.unsent.retain(|launch| {
            let is_stopped = which(launch.id());
            if is_stopped {
                ids.push(launch.id());
            }
            !is_stopped
        });
        for id in ids {
            self.end_unsent(id, Ending::Stopped { killed: false });
        }
    }

    fn send_next(&mut self, launch: Unsent) -> rustix::io::Result<()> {
        let launch = match launch {
            Unsent::Ready(launch) => launch,
            Unsent::Bare(bare, seq) => match prepare(&bare, seq, &self.nonce) {
                Ok(launch) => Box::new(launch),
                Err((Reason::Resources, why)) => {
                    self.unsent.push_front(Unsent::Bare(bare, seq));
                    self.no_room(why, Instant::now());
                    return Ok(());
                }
                Err((reason, message)) => {
                    self.refuse_unsent(bare.id, reason, message);
                    return Ok(());
                }
            },
        };
        let pipes = match make_pipes(&launch) {
            Ok(pipes) => pipes,
            Err(error) => {
                self.unsent.push_front(Unsent::Ready(launch));
                let why = format!("cannot make a pipe: {error}: raise the limit of open files");
                self.no_room(why, Instant::now());
                return Ok(());
            }
        };
        match self.send_launch(&launch, &pipes.theirs) {
            Ok(()) => {
                self.tasks
                    .insert(launch.seq, LaunchedTask::new(launch, pipes.ours, Instant::now()));
                Ok(())
            }
            // When it is lost, the loop will see it and decide what becomes of them.
            Err(error @ (Errno::AGAIN | Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN)) => {
                self.unsent.push_front(Unsent::Ready(launch));
                Err(error)
            }
            Err(error) if sys::is_shortage(&error.into()) => {
                self.unsent.push_front(Unsent::Ready(launch));
                self.no_room(format!("cannot hand it to the guardian: {error}"), Instant::now());
                Ok(())
            }
            Err(error) => {
                let message = format!("cannot hand it to the guardian: {error}");
                self.refuse_unsent(launch.id, Reason::Invalid, message);
                Ok(())
            }
        }
    }

    fn send_launch(&self, launch: &Prepared, theirs: &[OwnedFd]) -> rustix::io::Result<()> {
        let mut write_ends = theirs.iter();
        let mut fds: Vec<BorrowedFd> = Vec::with_capacity(FDS_MAX);
        for end in &launch.stdio {
            match end {
                End::Null => {}
                End::File(file) => fds.push(file.as_fd()),
                End::Pipe => fds.extend(write_ends.next().map(AsFd::as_fd)),
            }
        }
        fds.extend(launch.body.as_ref().map(AsFd::as_fd));
        self.link.send(&launch.packet, &fds)
    }
}

struct StreamPipes {
    /// For stdout and stderr.
    ours: [Option<OwnedFd>; 2],
    theirs: Vec<OwnedFd>,
}

fn make_pipes(launch: &Prepared) -> rustix::io::Result<StreamPipes> {
    let mut pipes = StreamPipes { ours: [None, None], theirs: Vec::with_capacity(2) };
    for (ours, _) in
        pipes.ours.iter_mut().zip(&launch.stdio[1..]).filter(|(_, end)| matches!(end, End::Pipe))
    {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        // Only our end: a task expects its output to block.
        fcntl_setfl(&read, OFlags::NONBLOCK)?;
        *ours = Some(read);
        pipes.theirs.push(write);
    }
    Ok(pipes)
}

pub(super) fn send_packet(
    socket: &OwnedFd,
    packet: &[u8],
    fds: &[BorrowedFd],
) -> rustix::io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(fds)), "there is room for four");
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    loop {
        match sendmsg(socket, &[IoSlice::new(packet)], &mut control, flags) {
            Err(Errno::INTR) => {}
            sent => return sent.map(drop),
        }
    }
}

pub(super) fn interest(room: bool) -> EventFlags {
    if room { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN }
}

pub(super) fn watch(epoll: &OwnedFd, socket: &OwnedFd, data: epoll::EventData, room: bool) {
    // It can only fail if the socket is not registered, and then it is lost already.
    let _ = epoll::modify(epoll, socket, data, interest(room));
}
