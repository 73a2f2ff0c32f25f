//! Who takes requests off the socket: the loop, or a thread that has nothing to start. A launch then wakes the very
//! thread that starts it, and nobody has to pass it on. One at a time; whose turn it is stands under the lock.
//!
//! The loop sleeps on an epoll of its own for the socket, so that what it waits for can be changed without waking it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};

pub(super) struct Ear {
    epoll: OwnedFd,
    wanted: EventFlags,
    /// A thread listens, so the loop does not.
    is_lent: bool,
    /// The runner is gone, or what it says makes no sense. Either way the loop ends everything.
    is_over: bool,
}

impl Ear {
    pub fn new(socket: impl AsFd) -> io::Result<Ear> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, socket, EventData::new_u64(0), EventFlags::RDHUP)?;
        Ok(Ear { epoll, wanted: EventFlags::RDHUP, is_lent: false, is_over: false })
    }

    /// Readable when [`Ear::heard`] has something to say.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    pub fn is_lent(&self) -> bool {
        self.is_lent
    }

    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// False: somebody listens already, or there is nothing more to hear.
    pub fn lend(&mut self, socket: impl AsFd) -> bool {
        if self.is_lent || self.is_over {
            return false;
        }
        self.is_lent = true;
        self.want(socket, self.wanted - EventFlags::IN);
        true
    }

    pub fn give_back(&mut self, socket: impl AsFd) {
        self.is_lent = false;
        self.want(socket, self.wanted | EventFlags::IN);
    }

    /// Nobody listens any more.
    pub fn end(&mut self) {
        self.is_over = true;
    }

    /// What the loop sleeps for, beside the end of the runner.
    pub fn wait_for(&mut self, socket: impl AsFd, requests: bool, room: bool) {
        let mut wanted = EventFlags::RDHUP;
        wanted.set(EventFlags::IN, requests && !self.is_lent);
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
