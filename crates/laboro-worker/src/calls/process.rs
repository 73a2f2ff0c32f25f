//! One runner: its two pipes, what was sent to it, and what it has not answered. Starting and ending it is not done
//! here.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use laboro_core::{Runner, Setting, Work};
use laboro_dialects::worker::{Assignment, Key};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tokio::net::unix::pipe;

use super::frame::{self, Answer, BadAnswer, Call};

/// What a process was started with: calls that need the same can go to it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Need {
    pub(super) setting: Arc<Setting>,
    pub(super) slots: u32,
    pub(super) memory: u64,
    pub(super) resources: Vec<(String, Vec<u32>)>,
}

impl Need {
    pub(super) fn of(assignment: &Assignment) -> Need {
        Need {
            setting: assignment.work.setting().cloned().unwrap_or_default(),
            slots: assignment.slots,
            memory: assignment.memory,
            resources: assignment.resources.clone(),
        }
    }

    pub(super) fn fits(&self, assignment: &Assignment) -> bool {
        let is_same = assignment.work.setting().is_some_and(|setting| {
            Arc::ptr_eq(setting, &self.setting) || **setting == *self.setting
        });
        is_same
            && self.slots == assignment.slots
            && self.memory == assignment.memory
            && self.resources == assignment.resources
    }

    pub(super) fn runner(&self) -> Option<&Runner> {
        self.setting.runner.as_deref()
    }
}

#[derive(Debug)]
pub(super) struct RunnerProcess {
    pub(super) need: Need,
    pipes: CallPipes,
    /// Not taken by the pipe yet.
    unsent: BytesMut,
    heard: BytesMut,
    /// Sent last; a call is for it.
    payload: Option<Arc<[u8]>>,
    /// In the order in which they were sent, which is that in which they are answered.
    pub(super) calls: VecDeque<Sent>,
    /// How many calls beyond the one under way it takes. `None`: it is not ready.
    pub(super) ahead: Option<u32>,
    pub(super) pid: Option<u32>,
    pub(super) taken: u32,
    /// Since then it has nothing to do, or is being started.
    pub(super) since: Instant,
    /// How long its calls take, in seconds.
    pub(super) mean: Option<f64>,
    pub(super) memory: Memory,
    /// It gets no more calls.
    pub(super) ending: Option<EndReason>,
}

/// Why a process has to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EndReason {
    /// Nothing is wrong with its calls.
    Retired,
    /// The call under way took too long.
    TimedOut,
    /// The call under way is not wanted any more.
    Cancelled,
    /// The worker leaves.
    Stopped,
    /// It took too much memory.
    TookTooMuch(String),
    /// It broke the protocol.
    Broken(String),
}

/// A call that was sent and is not answered.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) assignment: Box<Assignment>,
    /// It is under way.
    pub(super) begun: Option<Instant>,
    pub(super) is_cancelled: bool,
}

/// What it takes, looked at now and then.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) resident_bytes: u64,
    looked: Option<Instant>,
}

const LOOK_EVERY: Duration = Duration::from_millis(100);

impl Memory {
    pub(super) fn look(&mut self, pid: Option<u32>, now: Instant) {
        let is_fresh = self.looked.is_some_and(|at| now.duration_since(at) < LOOK_EVERY);
        if let Some(pid) = pid.filter(|_| !is_fresh) {
            self.looked = Some(now);
            self.resident_bytes = resident_bytes(pid).unwrap_or(self.resident_bytes);
        }
    }
}

fn resident_bytes(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

/// Two named pipes, so that a runner in any language can open them as files.
#[derive(Debug)]
pub(super) struct CallPipes {
    calls: pipe::Sender,
    answers: pipe::Receiver,
    dir: PathBuf,
}

pub(super) const CALLS: &str = "calls";
pub(super) const ANSWERS: &str = "answers";

impl CallPipes {
    pub(super) fn make(dir: &Path) -> io::Result<CallPipes> {
        std::fs::create_dir(dir)?;
        let made = [CALLS, ANSWERS].map(|name| {
            let path = dir.join(name);
            mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).map(|()| path)
        });
        let [calls, answers] = made;
        // Opened for both, so that neither opening nor writing depends on whether the other side is there.
        let mut options = pipe::OpenOptions::new();
        options.read_write(true);
        Ok(CallPipes {
            calls: options.open_sender(calls?)?,
            answers: options.open_receiver(answers?)?,
            dir: dir.to_owned(),
        })
    }

    /// Both sides have them open: nobody needs their names any more.
    fn unname(&self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

impl Drop for CallPipes {
    fn drop(&mut self) {
        self.unname();
    }
}

/// Read at once.
const READ_BYTES: usize = 256 << 10;

impl RunnerProcess {
    pub(super) fn new(need: Need, pipes: CallPipes) -> RunnerProcess {
        RunnerProcess {
            need,
            pipes,
            unsent: BytesMut::new(),
            heard: BytesMut::new(),
            payload: None,
            calls: VecDeque::new(),
            ahead: None,
            pid: None,
            taken: 0,
            since: Instant::now(),
            mean: None,
            memory: Memory::default(),
            ending: None,
        }
    }

    pub(super) fn key(&self) -> Option<Key> {
        self.calls.front().map(|sent| sent.assignment.key)
    }

    /// It may be given calls.
    pub(super) fn takes(&self, assignment: &Assignment) -> bool {
        let calls_max = self.need.runner().and_then(|runner| runner.calls_max);
        self.ending.is_none()
            && calls_max.is_none_or(|most| self.taken < most)
            && self.need.fits(assignment)
    }

    /// Room for one more behind those that it has. Only where calls are short: what waits here could run elsewhere.
    pub(super) fn has_room_behind(&self) -> bool {
        let deep = match self.mean {
            Some(mean) if mean < 0.001 => 8,
            Some(mean) if mean < 0.010 => 1,
            _ => 0,
        };
        self.calls.len() <= self.ahead.unwrap_or(0).min(deep) as usize
    }

    pub(super) fn send(&mut self, assignment: Box<Assignment>) {
        let Work::Call(call) = &*assignment.work else { return };
        let is_same = self.payload.as_ref().is_some_and(|payload| {
            Arc::ptr_eq(payload, &call.payload) || **payload == *call.payload
        });
        if !is_same {
            frame::write_payload(&mut self.unsent, &call.payload);
            self.payload = Some(Arc::clone(&call.payload));
        }
        let value = assignment.value.as_ref();
        let index = value.map_or(assignment.index, |value| value.position.saturating_add(1));
        frame::write_call(
            &mut self.unsent,
            &Call {
                id: assignment.key.0,
                job: u32::try_from(assignment.job).unwrap_or(u32::MAX),
                task: assignment.index,
                index,
                attempt: assignment.attempt.into(),
                name: &assignment.name,
                value: value.map(|value| &value.bytes[..]),
            },
        );
        self.taken = self.taken.saturating_add(1);
        self.calls.push_back(Sent { assignment, begun: None, is_cancelled: false });
        self.flush();
    }

    /// It shall not begin; whether it has is for the runner to say.
    pub(super) fn skip(&mut self, key: Key) {
        frame::write_skip(&mut self.unsent, key.0);
        self.flush();
    }

    /// As much as the pipe takes now.
    fn flush(&mut self) {
        while !self.unsent.is_empty() {
            match self.pipes.calls.try_write(&self.unsent) {
                Ok(0) | Err(_) => return,
                Ok(written) => drop(self.unsent.split_to(written)),
            }
        }
    }

    /// Carries bytes both ways. Ready when there is something to take.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while !self.unsent.is_empty() && self.pipes.calls.poll_write_ready(cx).is_ready() {
            match self.pipes.calls.try_write(&self.unsent) {
                Ok(written) => drop(self.unsent.split_to(written)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // We hold both ends, so this is not how a runner's death shows.
                Err(_) => break,
            }
        }
        let mut is_news = false;
        while self.pipes.answers.poll_read_ready(cx).is_ready() {
            self.heard.reserve(READ_BYTES);
            match self.pipes.answers.try_read_buf(&mut self.heard) {
                Ok(read) if read > 0 => is_news = true,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(_) | Err(_) => break,
            }
        }
        if is_news { Poll::Ready(()) } else { Poll::Pending }
    }

    pub(super) fn next_answer(&mut self) -> Result<Option<Answer>, BadAnswer> {
        let answer = frame::take_answer(&mut self.heard)?;
        if let Some(Answer::Ready { .. }) = &answer {
            self.pipes.unname();
        }
        Ok(answer)
    }

    /// What its runner said before it died.
    pub(super) fn drain(&mut self) {
        while matches!(self.pipes.answers.try_read_buf(&mut self.heard), Ok(read) if read > 0) {}
    }

    pub(super) fn took(&mut self, wall: Duration) {
        let wall = wall.as_secs_f64();
        self.mean = Some(self.mean.map_or(wall, |mean| mean + (wall - mean) / 8.0));
    }
}
