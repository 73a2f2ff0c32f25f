//! Reports on their way to the runner, gathered into packets. Never waits: what the runner does
//! not take stays here, at most two small reports a task.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{SendFlags, send};

use crate::wire::{PACKET_BYTES_MAX, Report, write_report};

/// News of a start waits this long for company: a task that short needs one packet, not two, and
/// wakes the runner once. The report carries its own time.
const START_HELD: Duration = Duration::from_millis(2);

/// The longest report, a message of 8 KiB.
const REPORT_BYTES_MAX: usize = 9 * 1024;

#[derive(Default)]
pub(super) struct Outbox {
    packets: VecDeque<Vec<u8>>,
    state: State,
}

#[derive(Clone, Copy, Default)]
enum State {
    #[default]
    Empty,
    /// Only starts so far.
    Held(Instant),
    Urgent,
    /// The socket is full.
    Blocked,
}

impl Outbox {
    pub fn push(&mut self, report: &Report) {
        let packet = match self.packets.pop_back() {
            Some(last) if last.len() + REPORT_BYTES_MAX <= PACKET_BYTES_MAX => last,
            full => {
                self.packets.extend(full);
                Vec::with_capacity(256)
            }
        };
        self.packets.push_back(write_report(packet, report));
        self.state = match (self.state, report) {
            (State::Empty, Report::Started { .. }) => State::Held(Instant::now() + START_HELD),
            (State::Blocked, _) => State::Blocked,
            (State::Held(until), Report::Started { .. }) => State::Held(until),
            (State::Empty | State::Held(_) | State::Urgent, _) => State::Urgent,
        };
    }

    /// When `flush` should be called, if nothing else happens.
    pub fn due(&self) -> Option<Instant> {
        match self.state {
            State::Empty | State::Blocked => None,
            State::Held(until) => Some(until),
            State::Urgent => Some(Instant::now()),
        }
    }

    pub fn is_blocked(&self) -> bool {
        matches!(self.state, State::Blocked)
    }

    pub fn flush(&mut self, socket: &OwnedFd, now: Instant) -> io::Result<()> {
        if matches!(self.state, State::Held(until) if until > now) {
            return Ok(());
        }
        while let Some(packet) = self.packets.front() {
            match send(socket, packet, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(_) => drop(self.packets.pop_front()),
                Err(Errno::AGAIN) => {
                    self.state = State::Blocked;
                    return Ok(());
                }
                Err(Errno::INTR) => {}
                Err(Errno::PIPE | Errno::CONNRESET) => {
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.state = State::Empty;
        Ok(())
    }
}
