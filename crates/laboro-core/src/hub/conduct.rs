//! How workers are judged, whatever they speak. A machine that fails what others do well stands out and
//! must not eat the queue; a job that fails everywhere is no worker's fault.
//!
//! After at least `results_min` results: too small a share of good ones ejects a worker, too many
//! failures among the last ten put it on hold. A worker on hold is looked at again when what it ran is
//! in, or when its time is over. What it ran when the hold began tells no more than what led to it, if it
//! went well: then, or if no result came meanwhile, one task on probation decides. So a worker with many
//! slots is judged no harsher than a worker with one.
//! By the compared rule a failure counts only where others succeed on the same job, and only beyond twice
//! the share that fails there for others: tasks that fail by chance do so for everybody. As long as others
//! are at work on it but have too few results to tell, a worker whose last ten all failed waits for them.

use super::Hub;
use crate::command::{ConductRule, WorkerRef};
use crate::event::Event;
use crate::id::{JobId, Time};
use crate::ledger::{RECENT, Tally, TrackRecord, Worker, WorkerHandle};
use crate::presence::Due;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::task::State;
use crate::view::Standing;
use smallvec::SmallVec;

/// What the last results say about a worker.
struct Evidence {
    /// Failures among the last ten that are its own fault, beyond what may happen to anybody.
    recent_bad: u32,
    /// The same with those.
    recent_failed: u32,
    /// Failures among the last ten that nobody can tell yet.
    unsure: u32,
    recent: u32,
    /// Share of good results, its own failures only.
    good_share: f64,
}

impl Hub {
    /// After a worker's results came in.
    pub(super) fn judge(&mut self, handle: WorkerHandle) {
        let rules = &self.config.conduct;
        if rules.rule == ConductRule::Off {
            return;
        }
        let worker = self.ledger().workers().get(handle);
        let record = &worker.record;
        // Nearly everybody is in good standing with a clean record: that is all they cost.
        let clean = record.recent.last().is_none_or(|&(_, good)| good) && record.bad == 0;
        match record.standing {
            Standing::Good if clean => {}
            Standing::Good => {
                if record.good + record.bad >= u64::from(rules.results_min) {
                    self.judge_good(handle);
                }
            }
            Standing::OnHold if worker.leases == 0 => self.review(handle),
            // What still comes in may show that too little of all of it is good.
            Standing::OnHold => {
                self.judge_share(handle, &self.evidence(handle));
            }
            Standing::Probation if record.since > 0 => self.end_probation(handle),
            Standing::Probation | Standing::Ejected => {}
        }
    }

    /// Whether it is put out for all that it has done so far.
    fn judge_share(&mut self, handle: WorkerHandle, seen: &Evidence) -> bool {
        let is_bad = seen.good_share < self.config.conduct.good_share_min && self.is_enough(seen);
        if is_bad {
            let percent = seen.good_share * 100.0;
            self.put_out(handle, &format!("only {percent:.0} % of its results were good"));
        }
        is_bad
    }

    /// No more than the last ten are known.
    fn is_enough(&self, seen: &Evidence) -> bool {
        seen.recent >= self.config.conduct.results_min.min(RECENT as u32)
    }

    fn judge_good(&mut self, handle: WorkerHandle) {
        let seen = self.evidence(handle);
        if self.judge_share(handle, &seen) {
            return;
        }
        if seen.recent_bad > self.config.conduct.recent_failures_max {
            let bad = seen.recent_failed;
            self.put_on_hold(handle, &format!("{bad} of its last {} results failed", seen.recent));
        } else if seen.unsure == seen.recent && self.is_enough(&seen) {
            self.put_on_hold(
                handle,
                "all of its last results failed, and others have none yet to compare",
            );
        }
    }

    /// What a worker on hold ran is in, or its time is over.
    pub(super) fn review(&mut self, handle: WorkerHandle) {
        let seen = self.evidence(handle);
        let is_bad = seen.recent_bad > self.config.conduct.recent_failures_max;
        if is_bad && self.record(handle).failed_since() {
            let bad = seen.recent_failed;
            self.put_out(handle, &format!("{bad} of its last {} results failed", seen.recent));
        } else {
            self.set_standing(handle, Standing::Probation, "one task decides", None);
        }
    }

    fn end_probation(&mut self, handle: WorkerHandle) {
        let last_good = self.record(handle).recent.last().is_none_or(|&(_, good)| good);
        if last_good {
            self.set_standing(handle, Standing::Good, "", None);
        } else if self.evidence(handle).recent_bad > 0 {
            self.put_out(handle, "failed on probation");
        } else if self.blames_others(handle) {
            self.set_standing(handle, Standing::Good, "", None);
        } else {
            self.put_on_hold(
                handle,
                "failed on probation, and others have no results yet to compare",
            );
        }
    }

    /// The hold or the ejection has lasted long enough.
    pub(super) fn standing_is_due(&mut self, handle: WorkerHandle) {
        let now = self.ledger.now();
        if self.record(handle).until.is_none_or(|until| until > now) {
            return;
        }
        match self.record(handle).standing {
            Standing::OnHold => self.review(handle),
            Standing::Ejected => self.set_standing(handle, Standing::Good, "", None),
            Standing::Good | Standing::Probation => {}
        }
    }

    /// After a restart. Nobody waits longer than was left when anything last happened, nor than the rules say now: the
    /// clock may have been set back meanwhile.
    pub(super) fn expect_standing_due(&mut self, handle: WorkerHandle, before: Time) {
        let record = self.record(handle);
        let Some(until) = record.until else { return };
        let rules = &self.config.conduct;
        let most_ms = match record.standing {
            Standing::Ejected => rules.ejected_ms,
            Standing::OnHold | Standing::Probation | Standing::Good => rules.hold_most_ms,
        };
        let latest = self.ledger.now().after_ms(until.since_ms(before).min(most_ms));
        if until > latest {
            let (standing, reason) = (record.standing, record.reason.clone());
            self.set_standing(handle, standing, &reason.unwrap_or_default(), Some(latest));
        } else {
            self.presence.set_timer(until, Due::Conduct(handle));
        }
    }

    /// All that failed here fails elsewhere too.
    fn blames_others(&self, handle: WorkerHandle) -> bool {
        let seen = self.evidence(handle);
        seen.unsure == 0 && seen.recent_bad == 0
    }

    fn evidence(&self, handle: WorkerHandle) -> Evidence {
        let record = self.record(handle);
        let mut seen = Evidence {
            recent_bad: 0,
            recent_failed: 0,
            unsure: 0,
            recent: record.recent.len() as u32,
            good_share: 1.0,
        };
        let mut judged: SmallVec<[JobId; RECENT]> = SmallVec::new();
        for &(job, _) in &record.recent {
            if judged.contains(&job) {
                continue;
            }
            judged.push(job);
            let results = || record.recent.iter().filter(|(other, _)| *other == job);
            let bad = results().filter(|(_, good)| !good).count() as u32;
            match self.fault(handle, job) {
                Fault::Own(chance) => {
                    let pardoned = pardoned(chance, results().count() as u32);
                    seen.recent_failed += bad;
                    seen.recent_bad += bad.saturating_sub(pardoned.min(PARDONED_MOST));
                }
                Fault::Unsure => seen.unsure += bad,
                Fault::Jobs => {}
            }
        }
        let bad = match self.config.conduct.rule {
            ConductRule::Fixed => record.bad,
            _ => record.tallies.iter().map(|tally| self.own_failures(handle, *tally)).sum(),
        };
        seen.good_share = share(record.good, bad);
        seen
    }

    /// How many failures on a job are the worker's own.
    fn own_failures(&self, handle: WorkerHandle, tally: Tally) -> u64 {
        match self.fault(handle, tally.job) {
            Fault::Own(chance) => {
                let pardoned = pardoned(chance, tally.good.saturating_add(tally.bad));
                u64::from(tally.bad.saturating_sub(pardoned))
            }
            Fault::Jobs | Fault::Unsure => 0,
        }
    }

    /// Whose fault are failures of this worker on this job?
    fn fault(&self, handle: WorkerHandle, job: JobId) -> Fault {
        let rules = &self.config.conduct;
        if rules.rule == ConductRule::Fixed {
            return Fault::Own(0.0);
        }
        let Some(job_handle) = self.ledger().find_job(job) else { return Fault::Jobs };
        let this = self.ledger().job(job_handle);
        let own = self.record(handle).tally(job);
        let good = this.good.saturating_sub(own.good);
        let bad = this.bad.saturating_sub(own.bad);
        if good.saturating_add(bad) < rules.others_min {
            let worker = self.ledger().workers().get(handle);
            return if self.others_at_work(worker, this.counts.of(State::Leased))
                || good > 0
                || bad > 0
            {
                Fault::Unsure
            } else {
                Fault::Jobs
            };
        }
        let good_share = share(u64::from(good), u64::from(bad));
        if good_share >= rules.good_share_min { Fault::Own(1.0 - good_share) } else { Fault::Jobs }
    }

    /// A job with more tasks running than this worker has is run by others too.
    fn others_at_work(&self, worker: &Worker, running: u32) -> bool {
        running > worker.leases
    }

    fn put_on_hold(&mut self, handle: WorkerHandle, reason: &str) {
        let rules = &self.config.conduct;
        let wait_ms = rules.hold_ms << self.record(handle).holds.min(16);
        let until = self.ledger.now().after_ms(wait_ms.min(rules.hold_most_ms));
        self.set_standing(handle, Standing::OnHold, reason, Some(until));
    }

    fn put_out(&mut self, handle: WorkerHandle, reason: &str) {
        let until = self.ledger.now().after_ms(self.config.conduct.ejected_ms);
        self.set_standing(handle, Standing::Ejected, reason, Some(until));
        self.show_out(handle);
    }

    fn set_standing(
        &mut self,
        handle: WorkerHandle,
        standing: Standing,
        reason: &str,
        until: Option<Time>,
    ) {
        let worker = self.ledger().workers().get(handle).id;
        self.ledger.post(Event::Judged { worker, standing, reason: reason.into(), until });
        if let Some(until) = until {
            self.presence.set_timer(until, Due::Conduct(handle));
        }
        self.presence.note_coming(handle);
        self.ledger.note_room(handle);
    }

    pub(super) fn eject(&mut self, worker: &WorkerRef, reason: &str) -> Result<Reply, Refusal> {
        let handle = self.find_worker(worker)?;
        self.set_standing(handle, Standing::Ejected, reason, None);
        self.send_away(handle);
        Ok(Reply::Ok)
    }

    pub(super) fn pardon(&mut self, worker: &WorkerRef) -> Result<Reply, Refusal> {
        let handle = self.find_worker(worker)?;
        if self.record(handle).standing != Standing::Good {
            self.set_standing(handle, Standing::Good, "", None);
        }
        Ok(Reply::Ok)
    }

    fn record(&self, handle: WorkerHandle) -> &TrackRecord {
        &self.ledger().workers().get(handle).record
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    /// Its own, where this share fails for others.
    Own(f64),
    /// It fails for others too, or nobody else works on it.
    Jobs,
    /// Others are at it and have too few results.
    Unsure,
}

fn share(good: u64, bad: u64) -> f64 {
    if good + bad == 0 { 1.0 } else { good as f64 / (good + bad) as f64 }
}

/// Of the last ten no more than this are pardoned: if all ten fail, a worker stands out anywhere.
const PARDONED_MOST: u32 = 7;

/// How many failures among so many results are nobody's fault, where this share fails for others: twice
/// that share, and one more, since few results scatter.
fn pardoned(chance: f64, results: u32) -> u32 {
    if chance <= 0.0 { 0 } else { (2.0 * chance * f64::from(results)).floor() as u32 + 1 }
}
