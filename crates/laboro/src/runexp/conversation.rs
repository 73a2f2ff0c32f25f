//! Drives one conversation with one runner, on a thread of its own that sleeps in the kernel until the runner says
//! something. A runner and its manager speak in turn, four times for each job, so what one turn costs is what a job
//! costs: nothing stands here between the socket and the session.

use super::direct::DirectHub;
use bytes::BytesMut;
use laboro_core::Time;
use laboro_dialects::session::{Delivery, HangUp, Output, Session};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use std::io::{ErrorKind, Read};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// Read at a time.
const READ_BYTES: usize = 64 << 10;

/// How long a peer may take nothing of what is said to it.
const DEAF: Duration = Duration::from_secs(60);

/// How often it is looked whether something is due that is not due soon.
const LOOK_EVERY: Duration = Duration::from_secs(1);

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

/// To its end, whatever that is. The hub hears of it.
pub(super) fn converse(stream: &TcpStream, mut session: impl Session, hub: &DirectHub) -> Parting {
    let mut talk = Talk { stream, hub, out: Output::default(), answers: Vec::new() };
    let parting = talk.run(&mut session);
    // Whoever sees that the connection is closed finds its job free.
    session.close(hub.now(), &mut talk.out);
    hub.ask_all(hub.now(), &mut talk.out.ask, &mut talk.answers);
    // Closing with unread bytes would take our last words away from the peer, so they are read.
    if matches!(parting, Parting::HungUp(_)) && stream.shutdown(Shutdown::Write).is_ok() {
        talk.read_leftovers();
    }
    parting
}

struct Talk<'a> {
    stream: &'a TcpStream,
    hub: &'a DirectHub,
    out: Output,
    answers: Vec<Delivery>,
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
            if !self.wait_for(session.deadline()) {
                session.tick(self.hub.now(), &mut self.out);
            } else {
                match self.stream.read(&mut buffer) {
                    Ok(0) => return Parting::Left,
                    Ok(count) => {
                        input.extend_from_slice(&buffer[..count]);
                        session.receive(self.hub.now(), &mut input, &mut self.out);
                    }
                    Err(error) => match error.kind() {
                        ErrorKind::WouldBlock | ErrorKind::Interrupted => {}
                        _ => return Parting::Left,
                    },
                }
            }
            if let Some(parting) = self.settle(session) {
                return parting;
            }
        }
    }

    /// True: what comes next is to be read. False: something is due before that.
    fn wait_for(&self, deadline: Option<Time>) -> bool {
        let Some(deadline) = deadline else { return true };
        let left = self.hub.clock().until(deadline);
        if left > LOOK_EVERY {
            return true;
        }
        // Whatever is wrong with the socket, reading tells.
        self.is_ready_for(PollFlags::IN, left)
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
        while !self.out.ask.is_empty() {
            let now = self.hub.now();
            self.hub.ask_all(now, &mut self.out.ask, &mut self.answers);
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
