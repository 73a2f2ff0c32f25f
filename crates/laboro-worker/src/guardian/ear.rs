//! Who hears the runner: the threads that have nothing to start, or the loop where there are none. A launch then wakes
//! the very thread that starts it, and nobody has to pass it on: whoever is woken by another may be put behind a task
//! on a busy core while the one beside it idles. Requests are taken off the socket under the lock, in their order.
//!
//! The loop sleeps on an epoll of its own for the socket, so that what it waits for can be changed without waking it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::net::{RecvFlags, recv};

pub(super) struct Ear {
    epoll: OwnedFd,
    wanted: EventFlags,
    /// Threads that listen. While there are some, the loop does not.
    listeners: usize,
    /// The runner is gone, or what it says makes no sense. Either way the loop ends everything.
    is_over: bool,
}

impl Ear {
    pub fn new(socket: impl AsFd) -> io::Result<Ear> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, socket, EventData::new_u64(0), EventFlags::RDHUP)?;
        Ok(Ear { epoll, wanted: EventFlags::RDHUP, listeners: 0, is_over: false })
    }

    /// Readable when [`Ear::heard`] has something to say.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    pub fn is_lent(&self) -> bool {
        self.listeners > 0
    }

    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// To one more thread. False: there is nothing more to hear.
    pub fn lend(&mut self, socket: impl AsFd) -> bool {
        if self.is_over {
            return false;
        }
        self.listeners += 1;
        self.want(socket, self.wanted - EventFlags::IN);
        true
    }

    pub fn give_back(&mut self, socket: impl AsFd) {
        self.listeners -= 1;
        if self.listeners == 0 {
            self.want(socket, self.wanted | EventFlags::IN);
        }
    }

    /// Sleeps until there is a request, or the runner is gone. One request wakes one thread.
    pub fn listen(socket: impl AsFd) {
        // Looked at without being taken, since others may be about to take it. Whatever is wrong, taking it tells.
        let _ = recv(socket, &mut [0_u8; 1][..], RecvFlags::PEEK);
    }

    /// Nobody listens any more.
    pub fn end(&mut self) {
        self.is_over = true;
    }

    /// What the loop sleeps for, beside the end of the runner.
    pub fn wait_for(&mut self, socket: impl AsFd, requests: bool, room: bool) {
        let mut wanted = EventFlags::RDHUP;
        wanted.set(EventFlags::IN, requests && !self.is_lent());
        wanted.set(EventFlags::OUT, room);
        self.want(socket, wanted);
    }

    /// What the socket is ready for, without waiting.
    pub fn heard(epoll: BorrowedFd) -> EventFlags {
        let mut events = Vec::<Event>::with_capacity(1);
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let spare = rustix::buffer::spare_capacity(&mut events);
        // What went wrong here shows again in the next turn.
        let _ = epoll::wait(epoll, spare, Some(&now));
        events.first().map_or(EventFlags::empty(), |event| event.flags)
    }

    fn want(&mut self, socket: impl AsFd, wanted: EventFlags) {
        if wanted != self.wanted {
            self.wanted = wanted;
            epoll::modify(&self.epoll, socket, EventData::new_u64(0), wanted)
                .expect("a socket that was added can be changed");
        }
    }
}
