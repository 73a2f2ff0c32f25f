//! The packets between a runner and its guardian: requests one way, reports the other.
//! Both ends are the same program, so there are no versions; a packet that makes no sense is
//! `None`, never a panic.

use std::time::Duration;

use rustix::thread::CpuSet;

use crate::ending::{Reason, Usage};
use crate::{Limits, Warning};

/// The largest packet either side sends. Well under the default socket buffer of 208 KiB, so that
/// several fit; what is larger travels as a file in memory.
pub(crate) const PACKET_BYTES_MAX: usize = 32 * 1024;

/// The most file descriptors a request brings: three streams and a body.
pub(crate) const FDS_MAX: usize = 4;

/// A request as it is read, borrowing from the packet.
#[derive(Debug, PartialEq)]
pub(crate) enum Request<'a> {
    Launch(LaunchHead, Body<'a>),
    /// SIGTERM to the group, SIGKILL after the grace; at once if it was told before.
    Stop {
        seq: u64,
        grace: Duration,
    },
    /// What has not begun never does; what runs goes on.
    Recall,
    StopAll {
        grace: Duration,
    },
    Signal {
        seq: u64,
        signal: i32,
    },
    /// Nobody has the output of a task whose process has left any more.
    Release {
        seq: u64,
    },
}

/// The part of a launch that is numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LaunchHead {
    /// Counted by the runner, never reused: the name of an attempt between the two.
    pub seq: u64,
    pub timeout: Option<Duration>,
    pub warning: Option<Warning>,
    pub grace: Duration,
    pub nice: Option<i32>,
    pub umask: Option<u32>,
    pub cpus: Vec<u32>,
    pub limits: Limits,
    /// Which of stdin, stdout and stderr come as descriptors; the others are /dev/null.
    pub passed: [bool; 3],
    pub has_dir: bool,
    /// What its process leaves behind may go on until it is released.
    pub awaits_release: bool,
    pub argc: u32,
    pub envc: u32,
}

/// The part that is text: directory if there is one, arguments, environment, each ended by a NUL,
/// so that the guardian can point exec at it as it lies.
#[derive(Debug, PartialEq)]
pub(crate) enum Body<'a> {
    Inline(&'a [u8]),
    /// In the last descriptor, this many bytes.
    InMemory(u64),
}

/// What a guardian tells.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Report {
    Ready,
    Started {
        seq: u64,
        pid: u32,
        at: Duration,
    },
    NotStarted {
        seq: u64,
        reason: Reason,
        message: String,
    },
    /// Its process has ended and left others behind, which may go on until it is released.
    Left {
        seq: u64,
    },
    Ended {
        seq: u64,
        exit: Exit,
        usage: Usage,
    },
}

/// Why it ended, with the wait status where that still matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Code(i32),
    Signal(i32),
    TimedOut { killed: bool },
    Stopped { killed: bool },
}

pub(crate) fn launch_packet(head: &LaunchHead, body: &Body) -> Vec<u8> {
    let inline = if let Body::Inline(bytes) = body { bytes.len() } else { 0 };
    let mut out = Writer(Vec::with_capacity(160 + inline));
    out.u8(0);
    out.u64(head.seq);
    out.u64(head.timeout.map_or(NONE, nanos));
    let warning = head.warning.unwrap_or(Warning { signal: 0, before: Duration::ZERO });
    out.u64(u64::from(warning.signal.cast_unsigned()));
    out.u64(nanos(warning.before));
    out.u64(nanos(head.grace));
    out.u64(head.nice.map_or(NONE, |nice| u64::from(nice.cast_unsigned())));
    out.u64(head.umask.map_or(NONE, u64::from));
    out.u64(head.cpus.len() as u64);
    head.cpus.iter().for_each(|&cpu| out.u64(cpu.into()));
    let l = &head.limits;
    for limit in
        [l.address_space_bytes, l.cpu_seconds, l.file_size_bytes, l.open_files, l.core_bytes]
    {
        out.u64(limit.unwrap_or(NONE));
    }
    for flag in head.passed.into_iter().chain([head.has_dir, head.awaits_release]) {
        out.u8(flag.into());
    }
    out.u64(head.argc.into());
    out.u64(head.envc.into());
    match body {
        Body::Inline(bytes) => {
            out.u64(NONE);
            out.0.extend_from_slice(bytes);
        }
        Body::InMemory(len) => out.u64(*len),
    }
    out.0
}

pub(crate) fn control_packet(request: &Request) -> Vec<u8> {
    let mut out = Writer(Vec::with_capacity(32));
    match request {
        Request::Launch(head, body) => return launch_packet(head, body),
        Request::Stop { seq, grace } => {
            out.u8(1);
            out.u64(*seq);
            out.u64(nanos(*grace));
        }
        Request::StopAll { grace } => {
            out.u8(2);
            out.u64(nanos(*grace));
        }
        Request::Signal { seq, signal } => {
            out.u8(3);
            out.u64(*seq);
            out.u64(u64::from(signal.cast_unsigned()));
        }
        Request::Recall => out.u8(4),
        Request::Release { seq } => {
            out.u8(5);
            out.u64(*seq);
        }
    }
    out.0
}

pub(crate) fn read_request(packet: &[u8]) -> Option<Request<'_>> {
    let mut from = Reader(packet);
    let request = match from.u8()? {
        0 => {
            let head = read_head(&mut from)?;
            let body = match from.u64()? {
                NONE => Body::Inline(std::mem::take(&mut from.0)),
                len => Body::InMemory(len),
            };
            Request::Launch(head, body)
        }
        1 => Request::Stop { seq: from.u64()?, grace: from.duration()? },
        2 => Request::StopAll { grace: from.duration()? },
        3 => Request::Signal { seq: from.u64()?, signal: from.i32()? },
        4 => Request::Recall,
        5 => Request::Release { seq: from.u64()? },
        _ => return None,
    };
    from.0.is_empty().then_some(request)
}

fn read_head(from: &mut Reader) -> Option<LaunchHead> {
    let seq = from.u64()?;
    let timeout = some(from.u64()?).map(Duration::from_nanos);
    let warning = Warning { signal: from.i32()?, before: from.duration()? };
    let warning = Some(warning).filter(|warning| warning.signal != 0);
    let grace = from.duration()?;
    let nice = match from.u64()? {
        NONE => None,
        value => Some(u32::try_from(value).ok()?.cast_signed()),
    };
    let umask = match from.u64()? {
        NONE => None,
        value => Some(u32::try_from(value).ok()?),
    };
    let cpus = match from.u64()? {
        count if count > CpuSet::MAX_CPU as u64 => return None,
        count => {
            (0..count).map(|_| u32::try_from(from.u64()?).ok()).collect::<Option<Vec<u32>>>()?
        }
    };
    let limits = Limits {
        address_space_bytes: some(from.u64()?),
        cpu_seconds: some(from.u64()?),
        file_size_bytes: some(from.u64()?),
        open_files: some(from.u64()?),
        core_bytes: some(from.u64()?),
    };
    let passed = [from.flag()?, from.flag()?, from.flag()?];
    let has_dir = from.flag()?;
    let awaits_release = from.flag()?;
    let argc = u32::try_from(from.u64()?).ok()?;
    let envc = u32::try_from(from.u64()?).ok()?;
    Some(LaunchHead {
        seq,
        timeout,
        warning,
        grace,
        nice,
        umask,
        cpus,
        limits,
        passed,
        has_dir,
        awaits_release,
        argc,
        envc,
    })
}

pub(crate) fn write_report(out: Vec<u8>, report: &Report) -> Vec<u8> {
    let mut out = Writer(out);
    match report {
        Report::Ready => out.u8(0),
        Report::Started { seq, pid, at } => {
            out.u8(1);
            out.u64(*seq);
            out.u64((*pid).into());
            out.u64(nanos(*at));
        }
        Report::NotStarted { seq, reason, message } => {
            out.u8(2);
            out.u64(*seq);
            out.u8(REASONS.iter().position(|r| r == reason).expect("every reason is listed") as u8);
            // A path may be 4 KiB and a PATH more; a message is for reading.
            let message = &message.as_bytes()[..message.len().min(8 * 1024)];
            out.u64(message.len() as u64);
            out.0.extend_from_slice(message);
        }
        Report::Ended { seq, exit, usage } => {
            out.u8(3);
            out.u64(*seq);
            let (kind, value) = match *exit {
                Exit::Code(code) => (0, code),
                Exit::Signal(signal) => (1, signal),
                Exit::TimedOut { killed } => (2, killed.into()),
                Exit::Stopped { killed } => (3, killed.into()),
            };
            out.u8(kind);
            out.u64(u64::from(value.cast_unsigned()));
            out.u64(nanos(usage.wall));
            out.u64(nanos(usage.user));
            out.u64(nanos(usage.system));
            out.u64(usage.max_rss_kib);
        }
        Report::Left { seq } => {
            out.u8(4);
            out.u64(*seq);
        }
    }
    out.0
}

/// The next report of a packet, taken off its front.
pub(crate) fn read_report(packet: &mut &[u8]) -> Option<Report> {
    let mut from = Reader(packet);
    let report = match from.u8()? {
        0 => Report::Ready,
        1 => Report::Started {
            seq: from.u64()?,
            pid: u32::try_from(from.u64()?).ok()?,
            at: from.duration()?,
        },
        2 => {
            let seq = from.u64()?;
            let reason = *REASONS.get(usize::from(from.u8()?))?;
            let len = usize::try_from(from.u64()?).ok()?;
            let message = from.take(len)?;
            let message = String::from_utf8_lossy(message).into_owned();
            Report::NotStarted { seq, reason, message }
        }
        3 => {
            let seq = from.u64()?;
            let kind = from.u8()?;
            let value = from.i32()?;
            let exit = match kind {
                0 => Exit::Code(value),
                1 => Exit::Signal(value),
                2 => Exit::TimedOut { killed: value != 0 },
                3 => Exit::Stopped { killed: value != 0 },
                _ => return None,
            };
            let usage = Usage {
                wall: from.duration()?,
                user: from.duration()?,
                system: from.duration()?,
                max_rss_kib: from.u64()?,
            };
            Report::Ended { seq, exit, usage }
        }
        4 => Report::Left { seq: from.u64()? },
        _ => return None,
    };
    *packet = from.0;
    Some(report)
}

const REASONS: [Reason; 7] = [
    Reason::ProgramMissing,
    Reason::NotExecutable,
    Reason::Directory,
    Reason::TooLarge,
    Reason::Redirect,
    Reason::Resources,
    Reason::Invalid,
];

/// Stands for "not given" where a number is expected.
const NONE: u64 = u64::MAX;

fn some(value: u64) -> Option<u64> {
    (value != NONE).then_some(value)
}

/// Five hundred years are as good as forever.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(NONE - 1).min(NONE - 1)
}

struct Writer(Vec<u8>);

impl Writer {
    fn u8(&mut self, value: u8) {
        self.0.push(value);
    }
    fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(head)
    }
    fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }
    fn flag(&mut self) -> Option<bool> {
        self.u8().map(|value| value != 0)
    }
    fn u64(&mut self) -> Option<u64> {
        self.take(8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight were taken")))
    }
    fn i32(&mut self) -> Option<i32> {
        u32::try_from(self.u64()?).ok().map(u32::cast_signed)
    }
    fn duration(&mut self) -> Option<Duration> {
        self.u64().map(Duration::from_nanos)
    }
}

#[cfg(test)]
mod tests;
