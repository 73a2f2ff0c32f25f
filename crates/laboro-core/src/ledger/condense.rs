//! From a state to the shortest events that lead to it: what a snapshot holds. Comes in pieces of bounded
//! size, so that neither memory nor a record grows with the ledger.

use super::handle::{JobHandle, ProfileHandle, TaskHandle, WorkerHandle};
use super::jobs::Job;
use super::reading::Ledger;
use super::record::{Extra, Past, Phase, Record};
use super::restore::{
    Restore, RestoredArray, RestoredAttempt, RestoredExtra, RestoredJob, RestoredPhase,
    RestoredTask, RestoredTasks, RestoredWorker,
};
use super::workers::Term;
use crate::event::{Event, Ranges};
use crate::id::{JobId, TaskId};
use crate::task::{NewArray, Profile, State};

const PIECE: usize = 1000;

impl Ledger {
    /// Hands over the events that, applied to an empty state, give this one.
    pub fn condense(&self, emit: &mut dyn FnMut(Event)) {
        self.condense_tables(&mut |piece| emit(Event::Restored(Box::new(piece))));
        self.documents.all().for_each(|change| emit(Event::DocumentChanged(Box::new(change))));
    }

    fn condense_tables(&self, mut emit: &mut dyn FnMut(Restore)) {
        let turns = self.lanes.turns();
        emit(Restore::Counters {
            life: self.life,
            seed: self.seed,
            next_lease: self.next_lease,
            next_job: self.next_job,
            next_worker: self.workers.next,
            front: turns.front,
            back: turns.back,
        });
        if !self.has_old_counts {
            emit(Restore::BlockedIsOver);
        }
        for group in self.groups() {
            let (group, name) = (group, group.name.clone());
            let (paused, ever_used) = (group.paused, group.ever_used);
            emit(Restore::Group { group: group.id, name, paused, ever_used });
        }
        self.workers
            .from(crate::id::WorkerId(0))
            .for_each(|handle| emit(self.packed_worker(handle)));
        self.jobs_from(JobId(0)).for_each(|handle| emit(packed_job(self.job(handle))));
        self.jobs_from(JobId(0)).for_each(|handle| self.condense_arrays(handle, &mut emit));
        self.jobs_from(JobId(0)).for_each(|handle| self.condense_tasks(handle, &mut emit));
        self.condense_followers(&mut emit);
        self.condense_edges(&mut emit);
        self.jobs_from(JobId(0)).for_each(|handle| self.condense_lanes(handle, &mut emit));
        self.condense_leases(&mut emit);
    }

    fn packed_worker(&self, handle: WorkerHandle) -> Restore {
        let worker = self.workers.get(handle);
        let record = &worker.record;
        Restore::Worker(Box::new(RestoredWorker {
            worker: worker.id,
            group: worker.group,
            name: worker.name.clone(),
            dialect: worker.dialect.clone(),
            seen: worker.seen,
            period_ms: worker.period_ms,
            good: record.good,
            bad: record.bad,
            since: record.since,
            recent: record.recent.to_vec(),
            tallies: record.tallies.iter().map(|t| (t.job, t.good, t.bad)).collect(),
            standing: record.standing,
            reason: record.reason.clone(),
            until: record.until,
            holds: record.holds,
        }))
    }

    fn condense_arrays(&self, handle: JobHandle, emit: &mut impl FnMut(Restore)) {
        let job = self.job(handle);
        for array in &job.arrays {
            let gate = &self.tasks[array.gate];
            emit(Restore::Array(Box::new(RestoredArray {
                job: job.id,
                first: array.first,
                array: NewArray {
                    name: array.name.clone(),
                    count: array.count,
                    profile: 0,
                    work: array.work.clone(),
                    values: array.values.clone(),
                    preds: Vec::new(),
                    each: array.each.clone(),
                },
                profile: Profile::clone(self.profiles.get(array.profile)),
                waiting: gate.waiting,
                failed: gate.failed,
                unfinished: array.unfinished,
                bad: array.bad,
            })));
            for state in State::ALL {
                for ranges in pieces(fresh_runs(job, state, array.first, array.last())) {
                    emit(Restore::Elements { job: job.id, state, ranges });
                }
            }
        }
        for (&outcome, set) in &job.failed_elements {
            for ranges in pieces(set.all_runs()) {
                emit(Restore::FailedElements { job: job.id, outcome, ranges });
            }
        }
        for (why, set) in &job.failed_because {
            for ranges in pieces(set.all_runs()) {
                emit(Restore::FailedBecause { job: job.id, why: why.clone(), ranges });
            }
        }
    }

    fn condense_tasks(&self, handle: JobHandle, emit: &mut impl FnMut(Restore)) {
        let job = self.job(handle);
        let mut piece = RestoredTasks { job: job.id, profiles: Vec::new(), tasks: Vec::new() };
        // Positions of profiles in the piece; neighbours mostly share one.
        let mut positions: Vec<ProfileHandle> = Vec::new();
        for (index, handle) in job.pages.range(1, u32::MAX) {
            let record = &self.tasks[handle];
            let profile = match positions.iter().rposition(|&known| known == record.profile) {
                Some(at) => at,
                None => {
                    positions.push(record.profile);
                    piece.profiles.push(Profile::clone(self.profiles.get(record.profile)));
                    positions.len() - 1
                }
            };
            piece.tasks.push(packed_task(record, index, profile as u32));
            if piece.tasks.len() == PIECE {
                positions.clear();
                let next = RestoredTasks { job: job.id, profiles: Vec::new(), tasks: Vec::new() };
                emit(Restore::Tasks(Box::new(std::mem::replace(&mut piece, next))));
            }
        }
        if !piece.tasks.is_empty() {
            emit(Restore::Tasks(Box::new(piece)));
        }
    }

    fn condense_followers(&self, emit: &mut impl FnMut(Restore)) {
        let jobs = self.jobs_from(JobId(0)).map(|handle| self.job(handle));
        let pairs: Vec<(TaskId, TaskId)> = jobs
            .flat_map(|job| job.arrays.iter().map(|array| (job.id, array)))
            .flat_map(|(job, array)| {
                let pred = TaskId::whole(job, array.first);
                array.followers.iter().map(move |&follower| (pred, follower))
            })
            .collect();
        pairs.chunks(PIECE).for_each(|piece| emit(Restore::Followers(piece.to_vec())));
    }

    fn condense_edges(&self, emit: &mut impl FnMut(Restore)) {
        let mut piece = Vec::new();
        for job in self.jobs_from(JobId(0)).map(|handle| self.job(handle)) {
            let gates = job.arrays.iter().map(|array| array.gate);
            for handle in gates.chain(job.pages.range(1, u32::MAX).map(|(_, handle)| handle)) {
                let pred = self.id_of(handle);
                for succ in self.graph.succs_of(self.tasks[handle].succs) {
                    piece.push((pred, self.id_of(succ)));
                    if piece.len() == PIECE {
                        emit(Restore::Edges(std::mem::take(&mut piece)));
                    }
                }
            }
        }
        if !piece.is_empty() {
            emit(Restore::Edges(piece));
        }
    }

    fn condense_lanes(&self, handle: JobHandle, emit: &mut impl FnMut(Restore)) {
        let job = self.job(handle);
        for &lane in &job.lanes {
            let this = self.lanes.lane(lane);
            let profile = Profile::clone(self.profiles.get(this.profile));
            let (kind, turn) = (this.kind, self.lanes.turn(lane));
            let mut tasks: Vec<TaskId> = Vec::new();
            let mut next = this.head;
            while next != TaskHandle::NONE {
                tasks.push(self.id_of(next));
                next = match self.tasks[next].phase {
                    Phase::Ready(link) | Phase::Gate(link) => link.next,
                    other => unreachable!("{other:?} does not stand in a lane"),
                };
                if tasks.len() == PIECE {
                    let (profile, tasks) = (profile.clone(), std::mem::take(&mut tasks));
                    emit(Restore::Lane { job: job.id, profile, kind, turn, tasks });
                }
            }
            if !tasks.is_empty() {
                emit(Restore::Lane { job: job.id, profile, kind, turn, tasks });
            }
        }
    }

    fn condense_leases(&self, emit: &mut impl FnMut(Restore)) {
        for worker in self.workers.from(crate::id::WorkerId(0)) {
            let id = self.workers.get(worker).id;
            let leases = self.workers.leases_of(worker).map(|handle| self.workers.lease(handle));
            for lease in leases.filter(|lease| !lease.is_node) {
                emit(Restore::Lease {
                    task: self.id_of(lease.task),
                    lease: lease.no,
                    worker: id,
                    started: lease.started,
                    until: lease.term.map(|term| term.until),
                    period_ms: lease.term.map(Term::period_ms),
                    share: lease.share.clone(),
                });
            }
        }
    }
}

fn packed_job(job: &Job) -> Restore {
    Restore::Job(Box::new(RestoredJob {
        job: job.id,
        group: job.group,
        options: (*job.options).clone(),
        stopped: job.stopped,
        forgiven: job.forgiven,
        submitted: job.submitted,
        ended: job.ended,
        next_index: job.next_index,
        failures: job.failures.iter().map(|(outcome, count)| (*outcome, *count)).collect(),
        good: job.good,
        bad: job.bad,
    }))
}

fn packed_task(record: &Record, index: u32, profile: u32) -> RestoredTask {
    RestoredTask {
        index,
        name: record.name.clone(),
        profile,
        work: record.work.clone(),
        waiting: record.waiting,
        failed: record.failed,
        fails: record.fails,
        lost: record.lost,
        phase: match record.phase {
            Phase::Waiting => RestoredPhase::Waiting,
            Phase::Blocked => RestoredPhase::Blocked,
            Phase::Ready(_) => RestoredPhase::Ready,
            Phase::Delayed { until } => RestoredPhase::Delayed(until),
            Phase::Held => RestoredPhase::Held,
            Phase::Leased { .. } => RestoredPhase::Leased,
            Phase::Finished { outcome, worker, took_ms, started } => {
                RestoredPhase::Finished(RestoredAttempt { outcome, worker, started, took_ms })
            }
            Phase::Cancelled => RestoredPhase::Cancelled,
            Phase::Vacant | Phase::Gate(_) => unreachable!("only tasks have numbers"),
        },
        extra: record.extra.as_ref().map(|extra| Box::new(packed_extra(extra))),
    }
}

fn packed_extra(extra: &Extra) -> RestoredExtra {
    let pack = |past: &Past| RestoredAttempt {
        outcome: past.outcome,
        worker: past.worker,
        started: past.started,
        took_ms: past.took_ms,
    };
    RestoredExtra {
        memo: extra.memo.clone(),
        message: extra.message.clone(),
        past: extra.past.iter().map(pack).collect(),
        lapsed: extra.lapsed,
    }
}

/// Runs of elements in a state, cut where an element has a record: those come as tasks.
fn fresh_runs(job: &Job, state: State, first: u32, last: u32) -> impl Iterator<Item = (u32, u32)> {
    let mut recorded: Vec<u32> = (job.pages.range(first, last))
        .map(|(index, _)| index)
        .filter(|&index| job.set(state).contains(index))
        .collect();
    recorded.push(u32::MAX);
    let mut runs: Vec<(u32, u32)> = Vec::new();
    let mut cuts = recorded.into_iter().peekable();
    for (mut from, to) in job.set(state).runs(first, last) {
        while let Some(&cut) = cuts.peek() {
            if cut > to {
                break;
            }
            if from < cut {
                runs.push((from, cut - 1));
            }
            from = cut + 1;
            cuts.next();
        }
        if from <= to {
            runs.push((from, to));
        }
    }
    runs.into_iter()
}

fn pieces(runs: impl Iterator<Item = (u32, u32)>) -> impl Iterator<Item = Ranges> {
    let mut runs = runs.peekable();
    std::iter::from_fn(move || {
        runs.peek()?;
        Some(runs.by_ref().take(PIECE).collect())
    })
}
