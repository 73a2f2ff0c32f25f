//! What happens because time has passed. Nothing here polls: `next_deadline` says when to look.

use super::Hub;
use crate::effect::Standing;
use crate::event::{Back, Event};
use crate::ledger::Timer;
use crate::presence::{Due, OfferKind};

impl Hub {
    /// Everything that is due. Commands of the same step came first.
    pub(super) fn expire(&mut self) {
        let now = self.ledger.now();
        while let Some((at, timer)) = self.state().next_timer() {
            if at > now {
                break;
            }
            match timer {
                Timer::Delay(task) => {
                    self.ledger.post(Event::Woken { task });
                }
                Timer::Lease(_, lease) => {
                    let task = self.state().id_of(self.state().workers().lease(lease).task);
                    self.take_back(task, Back::Lapsed);
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
                Due::Conduct(worker) => {
                    if self.is_known(worker) {
                        self.standing_is_due(worker);
                    }
                }
            }
        }
    }

    /// No sign of life for a period: its leases lapse. Long away and nothing held: forgotten.
    fn worker_is_due(&mut self, worker: u32) {
        let now = self.ledger.now();
        self.presence.timer_rang(worker);
        match self.presence.member(worker).map(|member| member.alive_until) {
            Some(Some(until)) if until > now => self.presence.set_alive_until(worker, Some(until)),
            Some(Some(_)) => self.dismiss(worker, Back::Lapsed),
            Some(None) => {}
            None if self.is_known(worker) => {
                let this = self.state().workers().get(worker);
                let away = now.since_ms(this.seen) >= self.config.keep.worker_ms;
                if away && this.leases == 0 && this.record.standing != Standing::Ejected {
                    let worker = this.id;
                    self.ledger.post(Event::WorkerForgotten { worker });
                }
            }
            None => {}
        }
    }

    /// Timers may outlive the worker they were set for.
    fn is_known(&self, worker: u32) -> bool {
        self.state().workers().is_used(worker)
    }
}
