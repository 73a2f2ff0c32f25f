//! Reports on their way to the runner, gathered into packets. Never waits: what the runner does
//! not take stays here, at most three small reports a task.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{SendFlags, send};

use crate::wire::{PACKET_BYTES_MAX, Report, write_report};

/// News of a start waits this long for that of its end: a task that short needs one packet, not
/// two, its pipes are never watched, and it wakes the runner once. The report carries its own time.
pub(super) const START_HELD: Duration = Duration::from_millis(5);

/// News of an end waits this long while the guardian has enough to do.
const END_HELD: Duration = Duration::from_millis(2);

/// The longest report, a message of 8 KiB.
const REPORT_BYTES_MAX: usize = 9 * 1024;

#[derive(Default)]
pub(super) struct Outbox {
    /// Starts that are held, in the order in which they become due. Few, since none stays long.
    starts: VecDeque<Start>,
    packets: VecDeque<Vec<u8>>,
    /// When the packets are to leave.
    due: Option<Instant>,
    /// The socket is full.
    is_blocked: bool,
}

struct Start {
    seq: u64,
    due: Instant,
    report: Report,
}

impl Outbox {
    pub fn push_start(&mut self, seq: u64, report: Report, now: Instant) {
        self.starts.push_back(Start { seq, due: now + START_HELD, report });
    }

    /// The last that is said of a task, or of its process.
    pub fn push_end(&mut self, seq: u64, report: &Report, now: Instant) {
        if let Some(at) = self.starts.iter().position(|start| start.seq == seq)
            && let Some(start) = self.starts.remove(at)
        {
            self.write(&start.report);
        }
        self.write(report);
        self.due = self.due.or(Some(now + END_HELD));
    }

    /// Nothing but starts is held any longer.
    pub fn hurry(&mut self, now: Instant) {
        self.due = self.due.map(|due| due.min(now));
    }

    fn write(&mut self, report: &Report) {
        let packet = match self.packets.pop_back() {
            Some(last) if last.len() + REPORT_BYTES_MAX <= PACKET_BYTES_MAX => last,
            full => {
                self.packets.extend(full);
                Vec::with_capacity(256)
            }
        };
        self.packets.push_back(write_report(packet, report));
    }

    /// When `flush` should be called, if nothing else happens.
    pub fn due(&self) -> Option<Instant> {
        if self.is_blocked {
            return None;
        }
        let start = self.starts.front().map(|start| start.due);
        start.into_iter().chain(self.due).min()
    }

    pub fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    pub fn flush(&mut self, socket: &OwnedFd, now: Instant) -> io::Result<()> {
        let due = self.starts.iter().take_while(|start| start.due <= now).count();
        for start in self.starts.drain(..due).collect::<Vec<_>>() {
            self.write(&start.report);
            self.due = Some(now);
        }
        if self.due.is_none_or(|due| due > now) {
            return Ok(());
        }
        self.is_blocked = false;
        while let Some(packet) = self.packets.front() {
            match send(socket, packet, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(_) => drop(self.packets.pop_front()),
                Err(Errno::AGAIN) => {
                    self.is_blocked = true;
                    return Ok(());
                }
                Err(Errno::INTR) => {}
                Err(Errno::PIPE | Errno::CONNRESET) => {
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.due = None;
        Ok(())
    }
}
