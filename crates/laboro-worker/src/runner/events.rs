//! The loop: waits for the guardian and the pipes and turns what they say into events.
//! Runs on the thread of whoever wants the events, and only while it is asked for them.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::time::{Itimerspec, TimerfdTimerFlags, timerfd_settime};

use super::link::GuardianLink;
use super::table::{RunnerState, Token};
use super::{RunnerError, RunnerEvent, SharedRunner, Stream};
use crate::ending::{Ending, Reason, Usage};
use crate::wire::{Exit, PACKET_BYTES_MAX, Report, Request, control_packet, read_report};

/// What becomes of the tasks. Dropping it ends them all at once.
///
/// Its descriptor is readable when there is something to take, for those who have a loop already:
/// `wait` with a timeout of zero then takes it.
pub struct EventSource {
    shared: Arc<SharedRunner>,
    ready: Vec<epoll::Event>,
    buffer: Box<[u8]>,
    is_over: bool,
}

/// The most that is read at a time from one pipe: what a pipe holds.
const READ_BYTES: usize = 64 * 1024;

/// How many descriptors one turn looks at. With `READ_BYTES` it bounds a batch to 4 MiB, and some
/// at the end of a task.
const READY_MAX: usize = 64;

/// How much is read after the end from a pipe that somebody still holds: the most a pipe can hold.
const LEFT_BYTES_MAX: usize = 1 << 20;

const STREAMS: [Stream; 2] = [Stream::Stdout, Stream::Stderr];

impl EventSource {
    pub(super) fn new(shared: Arc<SharedRunner>) -> EventSource {
        let buffer = vec![0; READ_BYTES.max(PACKET_BYTES_MAX)].into_boxed_slice();
        EventSource { shared, ready: Vec::with_capacity(READY_MAX), buffer, is_over: false }
    }

    /// The next events: at least one, or none if the time is over first. `None` when the runner
    /// was shut down and all has been told. An error means that a lost guardian could not be
    /// replaced; the next call tries again.
    pub fn wait(
        &mut self,
        timeout: Option<Duration>,
    ) -> Result<Option<Vec<RunnerEvent>>, RunnerError> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut events = Vec::new();
        while !self.is_over {
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            self.ready.clear();
            match epoll::wait(&self.shared.epoll, spare(&mut self.ready), left.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(std::io::Error::from(error).into()),
            }
            self.turn(&mut events)?;
            if !events.is_empty() || deadline.is_some_and(|at| at <= Instant::now()) {
                return Ok(Some(events));
            }
        }
        Ok(None)
    }

    fn turn(&mut self, events: &mut Vec<RunnerEvent>) -> Result<(), RunnerError> {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        let mut turn =
            Turn { shared: &shared, state: &mut state, buffer: &mut self.buffer, events };
        for ready in &self.ready {
            match Token::of(ready.data) {
                Token::Guardian => turn.guardian(ready.flags),
                Token::Wake | Token::Timer => turn.clear(Token::of(ready.data)),
                Token::Pipe(seq, stream) => turn.pipe(seq, stream),
            }
        }
        turn.give_up_lingering();
        let mut result = Ok(());
        if turn.state.link.is_gone() {
            match turn.guardian_gone() {
                Ok(is_over) => self.is_over = is_over,
                Err(error) => result = Err(error),
            }
        }
        turn.state.probe(Instant::now());
        if !turn.state.unsent.is_empty() {
            // The ended have made room.
            turn.state.send_waiting(&shared.epoll);
        }
        if turn.state.shortage.is_some() {
            turn.set_timer();
        }
        turn.state.take_undelivered(turn.events);
        if result.is_err() {
            // So that the next call does not wait for what will not come; what happened is told
            // first.
            shared.wake();
            if !events.is_empty() {
                return Ok(());
            }
        }
        result
    }
}

fn spare(ready: &mut Vec<epoll::Event>) -> impl rustix::buffer::Buffer<epoll::Event> {
    rustix::buffer::spare_capacity(ready)
}

impl std::fmt::Debug for EventSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventSource").field("shared", &self.shared).finish_non_exhaustive()
    }
}

impl AsFd for EventSource {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.epoll.as_fd()
    }
}

impl AsRawFd for EventSource {
    fn as_raw_fd(&self) -> RawFd {
        self.shared.epoll.as_raw_fd()
    }
}

impl Drop for EventSource {
    fn drop(&mut self) {
        self.shared.lock().close();
    }
}

/// One turn of the loop, with the lock.
struct Turn<'a> {
    shared: &'a SharedRunner,
    state: &'a mut RunnerState,
    buffer: &'a mut [u8],
    events: &'a mut Vec<RunnerEvent>,
}

impl Turn<'_> {
    fn guardian(&mut self, flags: epoll::EventFlags) {
        if flags.contains(epoll::EventFlags::OUT) {
            self.state.send_waiting(&self.shared.epoll);
        }
        if flags != epoll::EventFlags::OUT {
            // Whether there is more, the next turn says.
            self.packet();
        }
    }

    /// Takes one packet of reports, and says whether there was one.
    fn packet(&mut self) -> bool {
        let Some(packet) = self.state.link.receive(self.buffer, &self.shared.epoll) else {
            return false;
        };
        // The buffer is wanted for the output of the tasks it tells of.
        let packet = packet.to_vec();
        let mut rest = packet.as_slice();
        let mut started = Vec::new();
        while let Some(report) = read_report(&mut rest) {
            if let Report::Started { seq, .. } = report {
                started.push(seq);
            }
            self.report(report);
        }
        for seq in started {
            self.state.watch_pipes(seq, &self.shared.epoll);
        }
        debug_assert!(rest.is_empty(), "the guardian is of our own kind");
        true
    }

    fn report(&mut self, report: Report) {
        match report {
            Report::Ready => {}
            Report::Started { seq, pid, at } => {
                if let Some(task) = self.state.tasks.get_mut(&seq) {
                    task.started = Some(SystemTime::UNIX_EPOCH + at);
                    task.launch = None;
                    self.state.telling.started();
                    let id = task.id;
                    self.events.push(RunnerEvent::Started { id, pid });
                }
            }
            Report::NotStarted { seq, reason: Reason::Resources, message }
                if self.state.put_back(seq) =>
            {
                self.state.no_room(message, Instant::now());
            }
            Report::NotStarted { seq, reason, message } => {
                self.ended(seq, Ending::NotStarted { reason, message }, Usage::default());
            }
            Report::Left { seq } => {
                if let Some(task) = self.state.tasks.get_mut(&seq) {
                    task.has_left = true;
                    self.release(seq);
                }
            }
            Report::Ended { seq, exit, usage } => {
                let ending = match exit {
                    Exit::Code(code) => Ending::Exited(code),
                    Exit::Signal(signal) => Ending::Signalled(signal),
                    Exit::TimedOut { killed } => Ending::TimedOut { killed },
                    Exit::Stopped { killed } => Ending::Stopped { killed },
                };
                self.ended(seq, ending, usage);
            }
        }
    }

    /// The process has ended. Mostly its pipes have too, and then it is finished here and now.
    fn ended(&mut self, seq: u64, ending: Ending, usage: Usage) {
        let Some(task) = self.state.tasks.get_mut(&seq) else { return };
        task.ended = Some((ending, usage));
        for stream in STREAMS {
            // Twice, since the first may not have been the end.
            self.pipe(seq, stream);
            self.pipe(seq, stream);
        }
        if self.state.tasks.contains_key(&seq) {
            let until = Instant::now() + self.shared.options.linger;
            self.state.lingering.insert((until, seq));
            self.state.watch_pipes(seq, &self.shared.epoll);
            self.set_timer();
        }
    }

    /// Reads a pipe once, and finishes its task if that was the last thing to come.
    fn pipe(&mut self, seq: u64, stream: Stream) {
        self.read(seq, stream);
        self.release(seq);
        if let Some(task) = self.state.tasks.get(&seq)
            && task.ended.is_some()
            && task.pipes.iter().all(Option::is_none)
        {
            self.state.finish(seq, self.events);
        }
    }

    /// Tells the guardian of a task whose process has left that nobody has its output any more.
    fn release(&mut self, seq: u64) {
        let Some(task) = self.state.tasks.get_mut(&seq) else { return };
        if task.has_left && task.pipes[Stream::Stdout as usize].is_none() {
            task.has_left = false;
            self.state.orders.push_back(control_packet(&Request::Release { seq }));
            self.state.send_waiting(&self.shared.epoll);
        }
    }

    /// Returns how much there was; closes the pipe at its end.
    fn read(&mut self, seq: u64, stream: Stream) -> usize {
        let Some(task) = self.state.tasks.get_mut(&seq) else { return 0 };
        let slot = &mut task.pipes[stream as usize];
        let Some(pipe) = slot else { return 0 };
        loop {
            match rustix::io::read(&*pipe, &mut self.buffer[..READ_BYTES]) {
                Ok(0) => *slot = None,
                Ok(len) => {
                    let bytes = self.buffer[..len].to_vec();
                    self.events.push(RunnerEvent::Output { id: task.id, stream, bytes });
                    return len;
                }
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => {}
                Err(_) => *slot = None,
            }
            return 0;
        }
    }

    /// Ends the tasks whose pipes somebody has held too long after their end.
    fn give_up_lingering(&mut self) {
        let now = Instant::now();
        while let Some(&(at, seq)) = self.state.lingering.first()
            && at <= now
        {
            self.state.lingering.pop_first();
            for stream in STREAMS {
                let mut taken = 0;
                while taken < LEFT_BYTES_MAX {
                    match self.read(seq, stream) {
                        0 => break,
                        len => taken += len,
                    }
                }
            }
            self.state.finish(seq, self.events);
            self.set_timer();
        }
    }

    fn set_timer(&mut self) {
        let Some(left) = self.state.next_timer(Instant::now()) else { return };
        // Zero would turn it off.
        let left = Timespec::try_from(left.max(Duration::from_nanos(1)));
        let it_value = left.expect("what is waited for is near");
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        let time = Itimerspec { it_interval, it_value };
        timerfd_settime(&self.shared.timer, TimerfdTimerFlags::empty(), &time)
            .expect("a timer of ours takes a valid time");
    }

    fn clear(&mut self, token: Token) {
        let fd = if token == Token::Timer { &self.shared.timer } else { &self.shared.wake };
        let _ = rustix::io::read(fd, &mut [0_u8; 8]);
    }

    /// The guardian is gone, and all that it ran: by our wish, or killed. Says whether that was
    /// the end of everything.
    fn guardian_gone(&mut self) -> Result<bool, RunnerError> {
        // It may have told of some endings before its own.
        while self.packet() {}
        let ending = if self.state.is_closing() {
            Ending::Stopped { killed: true }
        } else {
            Ending::GuardianLost
        };
        let running: Vec<u64> = self.state.tasks.keys().copied().collect();
        for seq in running {
            let Some(task) = self.state.tasks.get(&seq) else { continue };
            if task.ended.is_none() {
                let usage = Usage { wall: task.launched.elapsed(), ..Usage::default() };
                self.ended(seq, ending.clone(), usage);
            }
        }
        if self.state.is_closing() {
            self.state.stop_unsent(|_| true);
            return Ok(self.state.tasks.is_empty());
        }
        if !self.state.may_try(Instant::now()) {
            return Ok(false);
        }
        match GuardianLink::start(&self.shared.options, &self.shared.nonce, &self.shared.wake) {
            Err(error) if error.is_shortage() => {
                self.state.no_guardian(error.to_string(), Instant::now());
                return Ok(false);
            }
            link => self.state.link = link?,
        }
        self.state.link.register(&self.shared.epoll)?;
        // They were for the one that is gone.
        self.state.orders.clear();
        Ok(false)
    }
}
