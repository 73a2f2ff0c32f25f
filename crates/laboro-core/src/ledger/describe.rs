//! The whole state as text, the same for equal states however they came about. For tests, and for people
//! who want to see what a journal holds.

use super::handle::{JobHandle, LaneHandle, TaskHandle};
use super::reading::Ledger;
use super::record::{Phase, Record};
use super::workers::Term;
use crate::id::{JobId, TaskId, WorkerId};
use crate::task::State;
use std::fmt::Write;

impl Ledger {
    /// One line a thing. Grows with the state.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        self.write_all(&mut text).expect("writing to a string does not fail");
        text
    }

    fn write_all(&self, out: &mut String) -> std::fmt::Result {
        let turns = self.lanes.turns();
        writeln!(
            out,
            "life {} next lease {} job {} worker {} turns {} {}",
            self.life, self.next_lease, self.next_job, self.workers.next, turns.front, turns.back
        )?;
        for group in self.groups() {
            writeln!(
                out,
                "group {} paused {} used {} counts {:?} classes {}",
                group.name,
                group.paused,
                group.ever_used,
                group.counts,
                self.lanes.busy_classes(group.id),
            )?;
        }
        for handle in self.workers.from(WorkerId(0)) {
            let worker = self.workers.get(handle);
            let mut used = worker.used.clone();
            used.resources.retain(|(_, usage)| !usage.is_nothing());
            used.resources.sort();
            writeln!(
                out,
                "worker {} {} {} {} {:?} used {used:?} {:?}",
                worker.id.0,
                worker.group.0,
                worker.name,
                worker.dialect,
                worker.period_ms,
                worker.record
            )?;
            for lease in self.workers.leases_of(handle).map(|lease| self.workers.lease(lease)) {
                writeln!(
                    out,
                    "  lease {} {} {:?} {:?} {:?} {:?}",
                    lease.no,
                    self.id_of(lease.task),
                    lease.started,
                    lease.term.map(|term| term.until),
                    lease.term.map(Term::period_ms),
                    lease.share
                )?;
            }
        }
        for handle in self.jobs_from(JobId(0)) {
            self.write_job(out, handle)?;
        }
        for change in self.documents.all() {
            writeln!(out, "{change:?}")?;
        }
        for (at, timer) in &self.timers {
            let task = match *timer {
                super::Timer::Begin(job) => {
                    writeln!(out, "timer {} job {job}", at.0)?;
                    continue;
                }
                super::Timer::Delay(task) => task,
                super::Timer::Lease(_, lease) => self.id_of(self.workers.lease(lease).task),
            };
            writeln!(out, "timer {} {task}", at.0)?;
        }
        writeln!(out, "ended {:?}", self.ended)
    }

    fn write_job(&self, out: &mut String, handle: JobHandle) -> std::fmt::Result {
        let job = self.job(handle);
        writeln!(
            out,
            "job {} group {} {:?} stopped {} forgiven {} at {:?} ended {:?} next {} {:?} failures {:?} results {} {}",
            job.id,
            job.group.0,
            job.options,
            job.stopped,
            job.forgiven,
            job.submitted,
            job.ended,
            job.next_index,
            job.counts,
            job.failures,
            job.good,
            job.bad
        )?;
        for state in State::ALL {
            let runs: Vec<_> = job.set(state).all_runs().collect();
            if !runs.is_empty() {
                writeln!(out, "  {} {runs:?}", state.word())?;
            }
        }
        for (outcome, set) in &job.failed_elements {
            writeln!(out, "  {outcome} {:?}", set.all_runs().collect::<Vec<_>>())?;
        }
        for (why, set) in &job.failed_because {
            writeln!(out, "  {why:?} {:?}", set.all_runs().collect::<Vec<_>>())?;
        }
        for array in &job.arrays {
            let mut followers = array.followers.clone();
            followers.sort();
            writeln!(
                out,
                "  array {} {}+{} {:?} {:?} {:?} fresh {:?} left {} bad {} each {:?} followers {followers:?}",
                array.name,
                array.first,
                array.count,
                array.work,
                array.values,
                self.profiles.get(array.profile),
                array.fresh.all_runs().collect::<Vec<_>>(),
                array.unfinished,
                array.bad,
                array.each,
            )?;
            self.write_record(out, &self.tasks[array.gate])?;
        }
        for (_, handle) in job.pages.range(1, u32::MAX) {
            self.write_record(out, &self.tasks[handle])?;
        }
        self.write_lanes(out, handle)
    }

    fn write_record(&self, out: &mut String, record: &Record) -> std::fmt::Result {
        let phase = match record.phase {
            Phase::Ready(_) => "ready".to_owned(),
            Phase::Gate(link) => format!("gate {}", link.lane != LaneHandle::NONE),
            Phase::Leased { lease } => format!("leased {}", self.workers.lease(lease).no),
            other => format!("{other:?}"),
        };
        let ids = |ring: super::graph::Ring<'_>| -> Vec<String> {
            ring.map(|handle| self.id_of(handle).to_string()).collect()
        };
        // The order of predecessors means nothing.
        let mut preds = ids(self.graph.preds_of(record.preds));
        preds.sort();
        writeln!(
            out,
            "  task {} {} {phase} waits {} failed {} tried {} lost {} {:?} {:?} {:?} preds {preds:?} succs {:?}",
            record.index,
            record.name,
            record.waiting,
            record.failed,
            record.fails,
            record.lost,
            record.work,
            self.profiles.get(record.profile),
            record.extra,
            ids(self.graph.succs_of(record.succs)),
        )
    }

    fn write_lanes(&self, out: &mut String, handle: JobHandle) -> std::fmt::Result {
        let mut lines = Vec::new();
        for &lane in &self.job(handle).lanes {
            let this = self.lanes.lane(lane);
            let mut tasks: Vec<TaskId> = Vec::new();
            let mut next = this.head;
            while next != TaskHandle::NONE {
                tasks.push(self.id_of(next));
                next = match self.tasks[next].phase {
                    Phase::Ready(link) | Phase::Gate(link) => link.next,
                    _ => TaskHandle::NONE,
                };
            }
            if !tasks.is_empty() {
                let tasks: Vec<String> = tasks.iter().map(ToString::to_string).collect();
                lines.push(format!(
                    "  lane {:?} turn {} listed {} {:?} {tasks:?}",
                    this.kind,
                    self.lanes.turn(lane),
                    this.listed,
                    self.profiles.get(this.profile),
                ));
            }
        }
        lines.sort();
        lines.iter().try_for_each(|line| writeln!(out, "{line}"))
    }
}
