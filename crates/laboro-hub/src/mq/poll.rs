//! Which sockets have something to say or room to be told: the system's epoll, which tells again until it is
//! so no longer, and a bell that other threads ring.

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// Sockets that one turn looks at. More wait for the next, which comes at once.
const EVENTS_A_TURN: usize = 1024;

/// Keys of sockets that are not peers. Peers have lower ones.
pub(super) const BELL: u64 = u64::MAX;
pub(super) const LISTENER: u64 = u64::MAX - 1;

#[derive(Debug)]
pub(super) struct Poll {
    epoll: OwnedFd,
    bell: Arc<PollBell>,
}

/// Room for what one turn brings. It stays with the thread that waits.
pub(super) struct PollTurn(Vec<Event>);

impl PollTurn {
    pub fn new() -> PollTurn {
        PollTurn(Vec::with_capacity(EVENTS_A_TURN))
    }

    pub fn ready(&self) -> impl Iterator<Item = Ready> {
        self.0.iter().map(|event| {
            let flags = event.flags;
            Ready {
                key: event.data.u64(),
                is_readable: flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR),
                is_writable: flags.contains(EventFlags::OUT),
            }
        })
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Ready {
    pub key: u64,
    /// Also when the other side is gone: reading tells.
    pub is_readable: bool,
    pub is_writable: bool,
}

impl Poll {
    pub fn new() -> io::Result<Poll> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let bell = Arc::new(PollBell(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?));
        epoll::add(&epoll, &bell.0, EventData::new_u64(BELL), EventFlags::IN)?;
        Ok(Poll { epoll, bell })
    }

    pub fn bell(&self) -> Arc<PollBell> {
        Arc::clone(&self.bell)
    }

    pub fn add(&self, socket: impl AsFd, key: u64) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, socket, EventData::new_u64(key), EventFlags::IN)?)
    }

    /// From now on it is told of these.
    pub fn change(&self, socket: impl AsFd, key: u64, wanted: Wanted) -> io::Result<()> {
        let flags = match wanted {
            Wanted::Nothing => EventFlags::empty(),
            Wanted::Input => EventFlags::IN,
            Wanted::InputAndRoom => EventFlags::IN | EventFlags::OUT,
        };
        Ok(epoll::modify(&self.epoll, socket, EventData::new_u64(key), flags)?)
    }

    /// Waits so long at most. `None`: until something happens.
    pub fn wait(&self, timeout: Option<Duration>, turn: &mut PollTurn) -> io::Result<()> {
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        });
        turn.0.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut turn.0), timeout.as_ref()) {
            // A signal is nobody's news here.
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Nothing,
    Input,
    InputAndRoom,
}

#[derive(Debug)]
pub(super) struct PollBell(OwnedFd);

impl PollBell {
    pub fn ring(&self) {
        // It fails only when it has been rung 2^64 times unheard.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    pub fn hush(&self) {
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}
