//! Where a conversation finds an answer that was not there when it asked. It sleeps in the kernel until then, together
//! with its connection.

use laboro_dialects::session::Delivery;
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

#[derive(Debug)]
pub(super) struct Mailbox {
    letters: Mutex<Vec<Delivery>>,
    /// Readable when something is there. Without it, which is where no more files may be open, one has to look.
    bell: Option<OwnedFd>,
}

impl Default for Mailbox {
    fn default() -> Mailbox {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Mailbox { letters: Mutex::default(), bell: eventfd(0, flags).ok() }
    }
}

impl Mailbox {
    pub(super) fn put(&self, letter: Delivery) {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner).push(letter);
        if let Some(bell) = &self.bell {
            let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
        }
    }

    pub(super) fn take_all(&self) -> Vec<Delivery> {
        if let Some(bell) = &self.bell {
            let _ = rustix::io::read(bell, &mut [0; 8]);
        }
        std::mem::take(&mut *self.letters.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn bell(&self) -> Option<BorrowedFd<'_>> {
        self.bell.as_ref().map(AsFd::as_fd)
    }
}
