//! The tasks that run or start: their process groups, their deadlines, how they are told to end.
//! Signals are sent only from here, and only to groups that cannot have become another's.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use libc::pid_t;

use super::peak::Peak;
use crate::ending::Usage;
use crate::sys::{self, Reaped};
use crate::wire::{Exit, LaunchHead, Report};

#[derive(Default)]
pub(super) struct Tasks {
    peak: Peak,
    /// Being spawned; their processes are not known yet.
    starting: BTreeMap<u64, Starting>,
    tasks: BTreeMap<u64, GuardedTask>,
    /// The processes not reaped yet.
    by_pid: HashMap<pid_t, u64>,
    deadlines: BTreeSet<(Instant, u64)>,
    /// Told to end, their process is gone, others of their group still use the grace.
    lingering: Vec<u64>,
}

/// What a task shall hear once it has a process.
#[derive(Default)]
struct Starting {
    /// Each once, the last sent last.
    signals: Vec<i32>,
    /// With this grace.
    stop: Option<Duration>,
}

struct GuardedTask {
    /// Of the process and of its group.
    pid: pid_t,
    started: Instant,
    grace: Duration,
    deadline: Option<Instant>,
    /// A signal that it hears at its deadline, which is no more than that, and when its time is over.
    warning: Option<(i32, Instant)>,
    /// What its process leaves behind may go on until it is released.
    awaits_release: bool,
    phase: Phase,
    /// Set once the process is reaped.
    left: Option<(Exit, Usage)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Phase {
    Running,
    /// Its process has ended, others of its group go on.
    Left,
    /// Had SIGTERM; the deadline is the end of the grace.
    Told(Why),
    Killed(Why),
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Why {
    TimedOut,
    Stopped,
}

impl Tasks {
    pub fn starting(&mut self, seq: u64) {
        self.starting.insert(seq, Starting::default());
    }

    /// It was not started after all.
    pub fn not_started(&mut self, seq: u64) {
        self.starting.remove(&seq);
    }

    /// It has a process, which now hears what it was sent meanwhile.
    pub fn started(&mut self, head: &LaunchHead, pid: pid_t, started: Instant, now: Instant) {
        let end = head.timeout.and_then(|timeout| started.checked_add(timeout));
        let warned_at = end.zip(head.warning).map(|(end, warning)| {
            let at = end.checked_sub(warning.before).map_or(started, |at| at.max(started));
            (at, (warning.signal, end))
        });
        let (deadline, warning) = match warned_at {
            Some((at, warning)) => (Some(at), Some(warning)),
            None => (end, None),
        };
        let phase = Phase::Running;
        let &LaunchHead { grace, awaits_release, .. } = head;
        let left = None;
        let task =
            GuardedTask { pid, started, grace, deadline, warning, awaits_release, phase, left };
        self.deadlines.extend(deadline.map(|at| (at, head.seq)));
        self.by_pid.insert(pid, head.seq);
        self.tasks.insert(head.seq, task);
        let Some(orders) = self.starting.remove(&head.seq) else { return };
        for signal in orders.signals {
            self.signal(head.seq, signal);
        }
        if let Some(grace) = orders.stop {
            self.end(head.seq, Why::Stopped, grace, now);
        }
    }

    /// One that starts may have left a stray already.
    pub fn contains(&self, seq: u64) -> bool {
        self.tasks.contains_key(&seq) || self.starting.contains_key(&seq)
    }

    pub fn oldest(&self) -> Option<u64> {
        let running = self.tasks.first_key_value().map(|(&seq, _)| seq);
        let starting = self.starting.first_key_value().map(|(&seq, _)| seq);
        running.into_iter().chain(starting).min()
    }

    /// Those that start have their room already.
    pub fn len(&self) -> usize {
        self.tasks.len() + self.starting.len()
    }

    pub fn is_task(&self, pid: pid_t) -> bool {
        self.by_pid.contains_key(&pid)
    }

    pub fn all(&self) -> Vec<u64> {
        self.tasks.keys().chain(self.starting.keys()).copied().collect()
    }

    pub fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|&(at, _)| at)
    }

    /// Its process has ended and is not reaped. The rest of the group goes too, unless it may go
    /// on until it is released, or was told to end and has time left: behind a shell it is the
    /// group that does the work.
    pub fn end_group_of(&mut self, pid: pid_t) {
        let seq = self.by_pid.get(&pid);
        let Some(task) = seq.and_then(|seq| self.tasks.get_mut(seq)) else { return };
        match task.phase {
            Phase::Told(_) => {}
            // Whose parent has ended is a child of ours by now.
            Phase::Running if task.awaits_release && sys::has_child_in_group(pid) => {
                task.phase = Phase::Left;
            }
            Phase::Running | Phase::Left | Phase::Killed(_) => {
                sys::kill_group(pid, libc::SIGKILL);
            }
        }
    }

    /// The report of its end, or that others of its group go on; none while they use the grace.
    pub fn reaped(&mut self, pid: pid_t, reaped: &Reaped, now: Instant) -> Option<(u64, Report)> {
        let seq = self.by_pid.remove(&pid)?;
        let task = self.tasks.get_mut(&seq)?;
        let usage = Usage {
            wall: now.saturating_duration_since(task.started),
            user: reaped.user,
            system: reaped.system,
            max_rss_kib: self.peak.of_task(reaped.max_rss_kib),
        };
        let exit = if libc::WIFSIGNALED(reaped.status) {
            Exit::Signal(libc::WTERMSIG(reaped.status))
        } else {
            Exit::Code(libc::WEXITSTATUS(reaped.status))
        };
        task.left = Some((exit, usage));
        match task.phase {
            Phase::Left => Some((seq, Report::Left { seq })),
            Phase::Told(_) if sys::kill_group(pid, 0) => {
                self.lingering.push(seq);
                None
            }
            Phase::Running | Phase::Told(_) | Phase::Killed(_) => self.finish(seq),
        }
    }

    /// The report of the end of a task whose process has left, and with it goes what that left
    /// behind. One that was told to end meanwhile ends as that.
    pub fn released(&mut self, seq: u64, now: Instant) -> Option<(u64, Report)> {
        let task = self.tasks.get(&seq).filter(|task| task.phase == Phase::Left)?;
        task.signal(libc::SIGKILL);
        self.finish_now(seq, now)
    }

    /// The report of one lingering task whose group is gone. Members that are not our children
    /// tell us nothing when they end, but their elders in the group are, or become so.
    pub fn next_gone_group(&mut self, now: Instant) -> Option<(u64, Report)> {
        let at = self.lingering.iter().position(|seq| {
            self.tasks.get(seq).is_none_or(|task| {
                // A task with the same number can only be if the old group is gone.
                !matches!(task.phase, Phase::Told(_))
                    || self.by_pid.contains_key(&task.pid)
                    || !sys::kill_group(task.pid, 0)
            })
        })?;
        let seq = self.lingering.swap_remove(at);
        self.finish_now(seq, now)
    }

    /// Its group took longer than its process.
    fn finish_now(&mut self, seq: u64, now: Instant) -> Option<(u64, Report)> {
        if let Some(task) = self.tasks.get_mut(&seq)
            && let Some((_, usage)) = &mut task.left
        {
            usage.wall = now.saturating_duration_since(task.started);
        }
        self.finish(seq)
    }

    fn finish(&mut self, seq: u64) -> Option<(u64, Report)> {
        let task = self.tasks.remove(&seq)?;
        if let Some(at) = task.deadline {
            self.deadlines.remove(&(at, seq));
        }
        let (exit, usage) = task.left?;
        let exit = match task.phase {
            Phase::Running | Phase::Left => exit,
            Phase::Told(Why::TimedOut) => Exit::TimedOut { killed: false },
            Phase::Told(Why::Stopped) => Exit::Stopped { killed: false },
            Phase::Killed(Why::TimedOut) => Exit::TimedOut { killed: true },
            Phase::Killed(Why::Stopped) => Exit::Stopped { killed: true },
        };
        Some((seq, Report::Ended { seq, exit, usage }))
    }

    /// Ends the time of those whose deadline has come: first a word, then the knife.
    pub fn expire(&mut self, now: Instant) {
        while let Some(&(at, seq)) = self.deadlines.first()
            && at <= now
        {
            self.deadlines.pop_first();
            let Some(task) = self.tasks.get_mut(&seq) else { continue };
            task.deadline = None;
            let is_told = matches!(task.phase, Phase::Told(_) | Phase::Killed(_));
            if let Some((signal, end)) = task.warning.take().filter(|_| !is_told) {
                task.signal(signal);
                task.deadline = Some(end);
                self.deadlines.insert((end, seq));
                continue;
            }
            let grace = task.grace;
            match task.phase {
                Phase::Running | Phase::Left => self.end(seq, Why::TimedOut, grace, now),
                Phase::Told(why) => task.kill(why),
                Phase::Killed(_) => {}
            }
        }
    }

    /// Tells a task to end. One that was asked to stop before, or has no grace, is killed.
    pub fn end(&mut self, seq: u64, why: Why, grace: Duration, now: Instant) {
        if let Some(orders) = self.starting.get_mut(&seq) {
            let grace = if orders.stop.is_some() { Duration::ZERO } else { grace };
            orders.stop = Some(grace);
        }
        let Some(task) = self.tasks.get_mut(&seq) else { return };
        if let Some(at) = task.deadline.take() {
            self.deadlines.remove(&(at, seq));
        }
        if task.phase == Phase::Left {
            self.lingering.push(seq);
        }
        match task.phase {
            Phase::Running | Phase::Left if !grace.is_zero() => {
                task.signal(libc::SIGTERM);
                // A stopped process hears nothing until it goes on.
                task.signal(libc::SIGCONT);
                task.phase = Phase::Told(why);
                task.deadline = now.checked_add(grace);
                self.deadlines.extend(task.deadline.map(|at| (at, seq)));
            }
            Phase::Running | Phase::Left => task.kill(why),
            Phase::Told(first) => task.kill(first),
            Phase::Killed(_) => {}
        }
    }

    pub fn signal(&mut self, seq: u64, signal: i32) {
        if let Some(orders) = self.starting.get_mut(&seq) {
            remember(&mut orders.signals, signal);
        }
        if let Some(task) = self.tasks.get(&seq) {
            task.signal(signal);
        }
    }

    pub fn kill_all(&self) {
        for task in self.tasks.values() {
            task.signal(libc::SIGKILL);
        }
    }
}

/// For a task that has no process yet: each once, the last sent last.
pub(super) fn remember(signals: &mut Vec<i32>, signal: i32) {
    if (1..=SIGNAL_MAX).contains(&signal) {
        signals.retain(|&earlier| earlier != signal);
        signals.push(signal);
    }
}

/// The last there is.
const SIGNAL_MAX: i32 = 64;

impl GuardedTask {
    fn signal(&self, signal: i32) {
        if self.phase == Phase::Left && !sys::has_child_in_group(self.pid) {
            // They have ended too, and the group may be another's by now.
            return;
        }
        sys::kill_group(self.pid, signal);
        if self.left.is_none() && self.has_left_its_group() {
            sys::kill(self.pid, signal);
        }
    }

    /// A process may move to another group of its session, and then misses what its own is told.
    fn has_left_its_group(&self) -> bool {
        sys::group_of(self.pid) != Some(self.pid)
    }

    fn kill(&mut self, why: Why) {
        self.signal(libc::SIGKILL);
        self.phase = Phase::Killed(why);
    }
}
