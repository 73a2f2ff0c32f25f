//! What happens because time has passed. Nothing here polls: `next_deadline` says when to look.

use super::Hub;
use crate::event::{Event, ReturnReason};
use crate::ledger::{Timer, WorkerHandle};
use crate::presence::{Due, OfferKind};
use crate::view::Standing;

impl Hub {
    /// Everything that is due. Commands of the same step came first.
    pub(super) fn expire(&mut self) {
        let now = self.ledger.now();
        while let Some((at, timer)) = self.ledger().next_timer() {
            if at > now {
                break;
            }
            match timer {
                Timer::Begin(job) => {
                    self.ledger.post(Event::JobDue { job });
                }
                Timer::Delay(task) => {
                    self.ledger.post(Event::Woken { task });
                }
                Timer::Lease(_, lease) => {
                    let task = self.ledger().id_of(self.ledger().workers().lease(lease).task);
                    self.take_back(task, ReturnReason::Lapsed);
                }
            }
        }
        while let Some(due) = self.presence.take_due(now) {
            match due {
                Due::Offer(offer) => {
                    if let OfferKind::Answer { token, .. } = self.presence.offer(offer).kind {
                        self.give_up(token);
                    }
                }
                Due::Worker(worker) => self.worker_is_due(worker),
                Due::Away(worker) => self.away_is_due(worker),
                Due::Conduct(worker) => {
                    if self.is_known(worker) {
                        self.standing_is_due(worker);
                    }
                }
            }
        }
    }

    /// No sign of life for a period: its leases lapse.
    fn worker_is_due(&mut self, worker: WorkerHandle) {
        let now = self.ledger.now();
        self.presence.timer_rang(worker);
        match self.presence.member(worker).map(|member| member.alive_until) {
            Some(Some(until)) if until > now => self.presence.set_alive_until(worker, Some(until)),
            Some(Some(_)) => self.dismiss(worker, ReturnReason::Lapsed),
            Some(None) | None => {}
        }
    }

    /// Long away: forgotten, unless it was ejected and must not come back as somebody new.
    fn away_is_due(&mut self, worker: WorkerHandle) {
        let (now, keep_ms) = (self.ledger.now(), self.config.keep.worker_ms);
        let Some(since) = self.presence.take_away(worker) else { return };
        let this = self.ledger().workers().get(worker);
        if now.since_ms(since) < keep_ms {
            self.presence.set_away_until(worker, since, since.after_ms(keep_ms));
        } else if this.record.standing == Standing::Ejected {
            self.presence.set_away_until(worker, since, now.after_ms(keep_ms));
        } else {
            let worker = this.id;
            self.ledger.post(Event::WorkerForgotten { worker });
        }
    }

    /// Timers may outlive the worker they were set for.
    fn is_known(&self, worker: WorkerHandle) -> bool {
        self.ledger().workers().is_used(worker)
    }
}
