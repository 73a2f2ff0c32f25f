//! Drives one conversation with one runner, on a thread of its own that sleeps in the kernel until the runner says
//! something. A runner and its manager speak in turn, four times for each job, so what one turn costs is what a job
//! costs: nothing stands here between the socket and the session.

use super::direct::DirectHub;
use super::mailbox::Mailbox;
use bytes::BytesMut;
use laboro_core::Time;
use laboro_dialects::session::{Delivery, HangUp, Output, Session};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use std::io::{ErrorKind, Read};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// Read at a time.
const READ_BYTES: usize = 64 << 10;

/// How long a peer may take nothing of what is said to it.
const DEAF: Duration = Duration::from_secs(60);

/// How often it is looked whether something is due that is not due soon.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The same for a mailbox that does not ring.
const LOOK_FOR_LETTERS_EVERY: Duration = Duration::from_millis(50);

/// Read and thrown away after the last word.
const LEFTOVER_BYTES: usize = 1 << 20;

/// How it ended.
#[derive(Debug)]
pub(super) enum Parting {
    HungUp(HangUp),
    /// The peer closed the connection, or it broke.
    Left,
    Deaf,
}

/// To its end, whatever that is. The hub hears of it. Each has a number of its own, from 1.
pub(super) fn converse(
    number: u64,
    stream: &TcpStream,
    mut session: impl Session,
    hub: &DirectHub,
) -> Parting {
    let (out, answers) = (Output::default(), Vec::new());
    let mut talk = Talk { number, stream, hub, out, answers, mailbox: None };
    let parting = talk.run(&mut session);
    // Whoever sees that the connection is closed finds its job free.
    session.close(hub.now(), &mut talk.out);
    hub.ask_all(number, hub.now(), &mut talk.out.ask, &mut talk.answers);
    hub.close_mailbox(number);
    for answer in talk.answers.drain(..) {
        session.deliver(hub.now(), answer, &mut talk.out);
    }
    // Closing with unread bytes would take our last words away from the peer, so they are read.
    if matches!(parting, Parting::HungUp(_)) && stream.shutdown(Shutdown::Write).is_ok() {
        talk.read_leftovers();
    }
    parting
}

struct Talk<'a> {
    number: u64,
    stream: &'a TcpStream,
    hub: &'a DirectHub,
    out: Output,
    answers: Vec<Delivery>,
    /// While an answer is owed.
    mailbox: Option<Arc<Mailbox>>,
}

/// What ends a wait.
enum Awoken {
    /// The peer said something, or something is wrong with the connection: reading tells.
    Readable,
    Letters(Vec<Delivery>),
    Due,
}

impl Talk<'_> {
    fn run(&mut self, session: &mut impl Session) -> Parting {
        if self.stream.set_read_timeout(Some(LOOK_EVERY)).is_err() {
            return Parting::Left;
        }
        let mut buffer = vec![0; READ_BYTES];
        let mut input = BytesMut::new();
        session.open(self.hub.now(), &mut self.out);
        loop {
            match self.wait_for(session.deadline()) {
                Awoken::Due => session.tick(self.hub.now(), &mut self.out),
                Awoken::Letters(letters) => {
                    self.hub.close_mailbox(self.number);
                    self.mailbox = None;
                    self.answers.extend(letters);
                }
                Awoken::Readable => match self.stream.read(&mut buffer) {
                    Ok(0) => return Parting::Left,
                    Ok(count) => {
                        input.extend_from_slice(&buffer[..count]);
                        session.receive(self.hub.now(), &mut input, &mut self.out);
                    }
                    Err(error) => match error.kind() {
                        ErrorKind::WouldBlock | ErrorKind::Interrupted => {}
                        _ => return Parting::Left,
                    },
                },
            }
            if let Some(parting) = self.settle(session) {
                return parting;
            }
        }
    }

    fn wait_for(&self, deadline: Option<Time>) -> Awoken {
        let left = deadline.map_or(Duration::MAX, |deadline| self.hub.clock().until(deadline));
        if let Some(mailbox) = &self.mailbox {
            return self.wait_for_letters(mailbox, left);
        }
        if left > LOOK_EVERY || self.is_ready_for(PollFlags::IN, left) {
            return Awoken::Readable;
        }
        Awoken::Due
    }

    fn wait_for_letters(&self, mailbox: &Mailbox, left: Duration) -> Awoken {
        let mut left = left;
        loop {
            let letters = mailbox.take_all();
            if !letters.is_empty() {
                return Awoken::Letters(letters);
            }
            let most = if mailbox.bell().is_some() { LOOK_EVERY } else { LOOK_FOR_LETTERS_EVERY };
            let patience = left.min(most);
            let mut wanted: Vec<PollFd<'_>> = vec![PollFd::new(self.stream, PollFlags::IN)];
            wanted.extend(mailbox.bell().map(|bell| PollFd::from_borrowed_fd(bell, PollFlags::IN)));
            let _ = poll(&mut wanted, Some(&Timespec::try_from(patience).unwrap_or_default()));
            if !wanted[0].revents().is_empty() {
                return Awoken::Readable;
            }
            left = left.saturating_sub(patience);
            if left.is_zero() {
                return Awoken::Due;
            }
        }
    }

    /// False: not within this time.
    fn is_ready_for(&self, what: PollFlags, patience: Duration) -> bool {
        let mut wanted = [PollFd::new(self.stream, what)];
        let patience = Timespec::try_from(patience).unwrap_or_default();
        !matches!(poll(&mut wanted, Some(&patience)), Ok(0))
    }

    /// Waits as long as the peer takes some of it now and then.
    fn say(&self, mut words: &[u8]) -> Result<(), Parting> {
        while !words.is_empty() {
            match send(self.stream, words, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(count) => words = &words[count..],
                Err(Errno::AGAIN) if !self.is_ready_for(PollFlags::OUT, DEAF) => {
                    return Err(Parting::Deaf);
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => return Err(Parting::Left),
            }
        }
        Ok(())
    }

    /// What the session wants done: first what is asked, then what is said.
    fn settle(&mut self, session: &mut impl Session) -> Option<Parting> {
        while !self.out.ask.is_empty() || !self.answers.is_empty() {
            let now = self.hub.now();
            if !self.out.ask.is_empty() {
                let asks = &mut self.out.ask;
                let mailbox = self.hub.ask_all(self.number, now, asks, &mut self.answers);
                self.mailbox = mailbox.or(self.mailbox.take());
            }
            for answer in self.answers.drain(..) {
                session.deliver(now, answer, &mut self.out);
            }
        }
        let said = self.out.take_bytes();
        if let Err(parting) = self.say(&said) {
            return Some(parting);
        }
        self.out.hang_up.take().map(Parting::HungUp)
    }

    fn read_leftovers(&self) {
        let mut stream = self.stream;
        let mut buffer = vec![0; READ_BYTES];
        let mut left = LEFTOVER_BYTES;
        while left > 0 {
            match stream.read(&mut buffer) {
                Ok(count) if count > 0 => left = left.saturating_sub(count),
                _ => break,
            }
        }
    }
}
