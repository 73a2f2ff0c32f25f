//! Workers come, offer room, show signs of life and go.

use super::Hub;
use super::policy::Taker;
use super::submit::check_name;
use crate::command::{Drain, Join, Leave, Leaving, Offer, Patience, Route, WorkerRef};
use crate::effect::Effect;
use crate::event::{Event, ReturnReason};
use crate::id::{LeaseNo, Name, SessionId, TaskId, Token, WorkerId};
use crate::ledger::WorkerHandle;
use crate::presence::{Arrivals, Member, NewAnswer, OfferKind};
use crate::refusal::Refusal;
use crate::reply::{Idle, Reply};
use crate::view::Standing;

impl Hub {
    pub(super) fn join(&mut self, join: Join) -> Result<Reply, Refusal> {
        let limits = &self.config.limits;
        check_name(&join.name, limits.name_bytes)?;
        check_name(&join.group, limits.name_bytes)?;
        let known = self.ledger().find_group(&join.group);
        if known.is_none() && self.ledger().group_count() >= limits.groups {
            return Err(Refusal::Limit { what: "groups", most: limits.groups as u64 });
        }
        let known = known.and_then(|group| self.ledger().workers().find_name(group, &join.name));
        let most = limits.workers;
        if known.is_none() && self.ledger().workers().len() >= most && !self.make_room() {
            return Err(Refusal::Limit { what: "workers", most: most as u64 });
        }
        if let (Some(handle), Some(life)) = (known, join.life) {
            self.check_welcome(handle, life, join.session)?;
        }

        let other = known.filter(|&handle| self.is_somebody_else(handle, &join));
        if let Some(handle) = other
            && self.is_in_use(handle)
        {
            let dialect = self.ledger().workers().get(handle).dialect.clone();
            return Err(Refusal::WorkerTaken { name: join.name, dialect });
        }
        // Nothing fails from here on.
        let arrivals = Arrivals::of(&join, self.ledger().life());
        let known = match other {
            Some(handle) => {
                self.make_way(handle);
                None
            }
            None => known,
        };
        let group = self.group_or_new(join.group);
        let dialect = Name::from(join.dialect);
        let news = known.is_none_or(|handle| {
            let worker = self.ledger().workers().get(handle);
            worker.dialect != dialect || worker.period_ms != join.period_ms
        });
        let id = known.map_or(WorkerId(self.ledger().workers().next), |handle| {
            self.ledger().workers().get(handle).id
        });
        if news {
            let (name, period_ms) = (join.name, join.period_ms);
            self.ledger.post(Event::WorkerMet { worker: id, group, name, dialect, period_ms });
        }
        let handle = self.ledger().workers().find(id).expect("just met");
        let now = self.ledger.now();
        let member = self.presence.admit(handle);
        let before = std::mem::replace(&mut member.arrivals, arrivals);
        member.arrivals.last = before.last.max(arrivals.last);
        let former = member.session.replace(join.session);
        let comes_anew = former != Some(join.session);
        member.life = join.life;
        member.kinds = join.kinds;
        member.tags = join.tags;
        member.tags.sort();
        // Slots that it was told to give up and does not count any more are not taken off twice.
        let given_up = member.capacity.slots.saturating_sub(join.capacity.slots);
        member.fewer_slots = member.fewer_slots.saturating_sub(given_up);
        member.until = join.capacity.time_left_ms.map(|ms| now.after_ms(ms));
        member.capacity = join.capacity;
        member.host = join.host;
        member.kept_for = None;
        member.ahead = 0;
        self.presence.note_coming(handle);
        self.presence.set_alive_until(handle, join.period_ms.map(|ms| now.after_ms(ms)));
        let unknown =
            join.running.map_or(Vec::new(), |running| self.compare(handle, &running, before));
        if comes_anew {
            // A worker has two connections, and this need not be the one that it listens to: what was said on
            // one that broke may arrive late. Without the other it comes again on a third.
            if let Some(session) = former {
                self.effects.push(Effect::Replaced { session, worker: id });
            }
            self.repeat_orders(handle);
        }
        self.ledger.note_room(handle);
        Ok(Reply::Joined { worker: id, unknown })
    }

    /// What it was told while nobody was there to hear it, or on a connection that broke.
    fn repeat_orders(&mut self, handle: WorkerHandle) {
        if self.is_ejected(handle) {
            self.show_out(handle);
            return;
        }
        match self.presence.member(handle) {
            Some(member) if member.draining => self.tell_to_stop(handle, Drain::All),
            Some(member) if member.fewer_slots > 0 => {
                self.tell_to_stop(handle, Drain::Slots(member.fewer_slots));
            }
            Some(_) | None => {}
        }
    }

    /// Is somebody here by this name who speaks another dialect?
    fn is_somebody_else(&self, handle: WorkerHandle, join: &Join) -> bool {
        let is_here = self.presence.member(handle).is_some_and(|member| member.session.is_some());
        let dialect = &self.ledger().workers().get(handle).dialect;
        is_here && dialect.bytes() != join.dialect.as_bytes()
    }

    /// Who shows signs of life, holds something or waits for something is not to be taken for another.
    fn is_in_use(&self, handle: WorkerHandle) -> bool {
        let this = self.ledger().workers().get(handle);
        let waits = self
            .presence
            .member(handle)
            .is_some_and(|member| member.push.is_some() || !member.answers.is_empty());
        waits || this.leases > 0 || this.period_ms.is_some() || self.is_remembered(handle)
    }

    /// Some of those who hold nothing and wait for nothing are forgotten early, who was met first before
    /// others. A name that steals once and never says that it leaves would else stay for ever.
    fn make_room(&mut self) -> bool {
        let workers = self.ledger().workers();
        let is_idle = |&handle: &WorkerHandle| match self.presence.member(handle) {
            Some(_) => !self.is_in_use(handle),
            None => workers.get(handle).leases == 0 && !self.is_remembered(handle),
        };
        let mut idle: Vec<WorkerHandle> =
            workers.from(WorkerId::default()).filter(is_idle).collect();
        idle.sort_by_key(|&handle| (workers.get(handle).seen, workers.get(handle).id));
        idle.truncate((self.config.limits.workers / 16).max(1));
        for &handle in &idle {
            self.presence.take_away(handle);
            self.make_way(handle);
        }
        !idle.is_empty()
    }

    /// Who has failed must not come back as somebody new.
    fn is_remembered(&self, handle: WorkerHandle) -> bool {
        self.ledger().workers().get(handle).record.standing != Standing::Good
    }

    /// It is forgotten, so that whoever knows it by its number finds nobody.
    fn make_way(&mut self, handle: WorkerHandle) {
        self.presence.dismiss(handle);
        let worker = self.ledger().workers().get(handle).id;
        self.ledger.post(Event::WorkerForgotten { worker });
    }

    /// Whoever was ejected is told so, unless it still has something to hand in. And the tasks of a worker that
    /// is here are not given to a second process of its name: they would run twice. One that comes back on a new connection before the old one is known to be lost is welcome.
    fn check_welcome(
        &self,
        handle: WorkerHandle,
        life: u64,
        session: SessionId,
    ) -> Result<(), Refusal> {
        let worker = self.ledger().workers().get(handle);
        let record = &worker.record;
        if record.standing == Standing::Ejected && worker.leases == 0 {
            let reason = record.reason.clone().unwrap_or_default();
            return Err(Refusal::Ejected { worker: worker.name.clone(), reason });
        }
        let is_another = |member: &Member| {
            member.session.is_some_and(|here| here != session)
                && member.life.is_some_and(|here| here != life)
        };
        if self.presence.member(handle).is_some_and(is_another) {
            return Err(Refusal::WorkerHere(worker.name.clone()));
        }
        Ok(())
    }

    pub(super) fn leases_of(&self, worker: WorkerHandle) -> Vec<(TaskId, LeaseNo)> {
        let workers = self.ledger().workers();
        (workers.leases_of(worker))
            .map(|lease| workers.lease(lease))
            .map(|lease| (self.ledger().id_of(lease.task), lease.no))
            .collect()
    }

    pub(super) fn offer(&mut self, token: Token, offer: Offer) -> Option<Reply> {
        let worker = match self.find_worker(&offer.worker) {
            Ok(worker) => worker,
            Err(refusal) => return Some(Reply::Refused(refusal)),
        };
        // Taken for gone while this was on its way: nothing could be sent to it, so it has to come anew.
        let is_here = |member: &Member| member.session.is_some();
        if matches!(offer.route, Route::Push { .. })
            && !self.presence.member(worker).is_some_and(is_here)
        {
            let name = self.ledger().workers().get(worker).name.clone();
            return Some(Reply::Refused(Refusal::NoSuchWorker(name)));
        }
        let most_offers = self.config.limits.offers;
        if self.presence.offer_count() >= most_offers {
            let most = most_offers as u64;
            return Some(Reply::Refused(Refusal::Limit { what: "waiting offers", most }));
        }
        let group = self.ledger().workers().get(worker).group;
        self.presence.admit(worker);
        self.note_alive(worker);
        match offer.route {
            Route::Push { ahead } => {
                self.presence.admit(worker).ahead = ahead;
                let waiting = self.presence.add_push(worker, group, offer.lease_ms);
                self.serve(waiting, u32::MAX);
                Some(Reply::Ok)
            }
            Route::Answer { most: 0, .. } => Some(Reply::Nothing(self.idle_reason(worker))),
            Route::Answer { most, patience } => {
                let lease_ms = offer.lease_ms;
                let kind = OfferKind::Answer { token, most };
                let grants = self.fill(Taker { worker, kind, lease_ms }, u32::MAX);
                if !grants.is_empty() {
                    let worker = self.ledger().workers().get(worker).id;
                    return Some(Reply::Work { worker, grants });
                }
                let idle = self.idle_reason(worker);
                let holds_something = self.ledger().workers().get(worker).leases > 0;
                let may_come = matches!(idle, Idle::Later | Idle::Own | Idle::Fresh);
                let ends_with_group = !matches!(patience, Patience::Always(_));
                let waits = match patience {
                    Patience::Until(until) => may_come.then_some(until),
                    Patience::InTurn { busy_until, .. } if holds_something => {
                        may_come.then_some(busy_until)
                    }
                    Patience::InTurn { until, .. } => may_come.then_some(until),
                    Patience::Always(until) => {
                        (!matches!(idle, Idle::Ejected | Idle::Draining)).then_some(until)
                    }
                    Patience::None => None,
                };
                match waits {
                    Some(until) => {
                        let answer = NewAnswer {
                            worker,
                            group,
                            token,
                            most,
                            until,
                            lease_ms,
                            ends_with_group,
                        };
                        let waiting = self.presence.add_answer(answer);
                        self.presence.queue(waiting);
                        None
                    }
                    None => Some(Reply::Nothing(idle)),
                }
            }
        }
    }

    /// An offer that still waits is answered with nothing.
    pub(super) fn give_up(&mut self, token: Token) {
        if let Some(offer) = self.presence.answer_of(token) {
            let gone = self.presence.drop_offer(offer);
            let reply = Reply::Nothing(self.idle_reason(gone.worker));
            self.effects.push(Effect::Reply { token, reply });
        }
    }

    /// Whatever a worker says shows that it is alive.
    pub(super) fn note_alive(&mut self, worker: WorkerHandle) {
        let period_ms = self.ledger().workers().get(worker).period_ms;
        let Some(until) = period_ms.map(|ms| self.ledger.now().after_ms(ms)) else { return };
        if self.presence.member(worker).is_some_and(|m| m.alive_until.is_none_or(|at| at < until)) {
            self.presence.set_alive_until(worker, Some(until));
        }
    }

    pub(super) fn renew(&mut self, worker: &WorkerRef) -> Result<Reply, Refusal> {
        let worker = self.find_worker(worker)?;
        let now = self.ledger.now();
        let period_ms = self.ledger().workers().get(worker).period_ms;
        if self.presence.member(worker).is_none() {
            return Err(Refusal::NoSuchWorker(self.ledger().workers().get(worker).name.clone()));
        }
        self.presence.set_alive_until(worker, period_ms.map(|ms| now.after_ms(ms)));
        Ok(Reply::Ok)
    }

    pub(super) fn leave(&mut self, leave: &Leave) -> Result<Reply, Refusal> {
        let worker = self.find_worker(&leave.worker)?;
        let Some(member) = self.presence.member(worker) else {
            return Err(Refusal::NoSuchWorker(self.ledger().workers().get(worker).name.clone()));
        };
        if leave.session.is_some() && member.session != leave.session {
            return Ok(Reply::Ok);
        }
        match leave.how {
            Leaving::Gone => self.dismiss(worker, ReturnReason::Left),
            Leaving::Away { grace_ms: 0 } => self.dismiss(worker, ReturnReason::Lapsed),
            Leaving::Away { grace_ms } => {
                let holds_something = self.ledger().workers().get(worker).leases > 0;
                let arrivals = member.arrivals;
                self.part(worker);
                if holds_something {
                    let until = self.ledger.now().after_ms(grace_ms);
                    self.presence.admit(worker).arrivals = arrivals;
                    self.presence.set_alive_until(worker, Some(until));
                }
            }
        }
        Ok(Reply::Ok)
    }

    /// The worker is gone and what it held goes back.
    pub(super) fn dismiss(&mut self, worker: WorkerHandle, why: ReturnReason) {
        let arrivals = self.presence.member(worker).map(|member| member.arrivals);
        self.part(worker);
        let tasks = self.leases_of(worker).into_iter().map(|(task, _)| task);
        match why {
            ReturnReason::Lapsed => self.lose_all(worker, arrivals.unwrap_or_default()),
            // One after the other to the front, so the newest stands there first: peers of dwork know it so.
            ReturnReason::Left | ReturnReason::Handed | ReturnReason::Revoked => {
                tasks.for_each(|task| self.take_back(task, why));
            }
        }
    }

    /// The worker is not connected any more. Its leases stand.
    fn part(&mut self, worker: WorkerHandle) {
        for token in self.presence.dismiss(worker) {
            let reply = Reply::Nothing(Idle::Later);
            self.effects.push(Effect::Reply { token, reply });
        }
        self.expect_back(worker);
    }

    /// A worker that does not come back is forgotten some day.
    pub(super) fn expect_back(&mut self, worker: WorkerHandle) {
        let now = self.ledger.now();
        let look_at = now.after_ms(self.config.keep.worker_ms);
        self.presence.set_away_until(worker, now, look_at);
    }

    pub(super) fn drain(&mut self, worker: &WorkerRef, drain: Drain) -> Result<Reply, Refusal> {
        let handle = self.find_worker(worker)?;
        let name = &self.ledger().workers().get(handle).name;
        let Some(member) = self.presence.member(handle) else {
            return Err(Refusal::WorkerAway(name.clone()));
        };
        // One of our own workers was told, and goes: what it would be given came back at once.
        let was_told = member.life.is_some() && (member.draining || member.fewer_slots > 0);
        if drain == Drain::Lift && was_told {
            return Err(Refusal::WorkerLeaves(name.clone()));
        }
        let member = self.presence.member_mut(handle).expect("looked at just now");
        match drain {
            Drain::Slots(slots) => member.fewer_slots = member.fewer_slots.saturating_add(slots),
            Drain::Lift => {
                member.draining = false;
                member.fewer_slots = 0;
            }
            Drain::All | Drain::AtOnce => member.draining = true,
        }
        self.tell_to_stop(handle, drain);
        if drain != Drain::Lift {
            self.give_up_all(handle);
        }
        self.presence.note_coming(handle);
        self.ledger.note_room(handle);
        Ok(Reply::Ok)
    }

    /// It has to go, and what it holds goes to others, whether it is here or not.
    pub(super) fn send_away(&mut self, worker: WorkerHandle) {
        self.tell_to_stop(worker, Drain::AtOnce);
        self.give_up_all(worker);
    }

    /// It failed too often. A process that can be told so hands in what it runs, and goes; others hear it when
    /// they ask for work.
    pub(super) fn show_out(&mut self, worker: WorkerHandle) {
        if let Some(member) = self.presence.member_mut(worker)
            && member.life.is_some()
        {
            member.draining = true;
            self.presence.note_coming(worker);
            self.tell_to_stop(worker, Drain::All);
            self.give_up_all(worker);
        }
    }

    fn is_ejected(&self, handle: WorkerHandle) -> bool {
        self.ledger().workers().get(handle).record.standing == Standing::Ejected
    }

    fn tell_to_stop(&mut self, handle: WorkerHandle, drain: Drain) {
        let session = self.presence.member(handle).and_then(|member| member.session);
        if let Some(session) = session {
            let worker = self.ledger().workers().get(handle).id;
            self.effects.push(Effect::Stop { session, worker, drain });
        }
        if drain == Drain::AtOnce {
            self.revoke_all(handle, session);
        }
    }

    /// Nobody at this worker need wait for more.
    fn give_up_all(&mut self, worker: WorkerHandle) {
        let waiting = self.presence.member(worker).map(|member| member.answers.to_vec());
        for offer in waiting.unwrap_or_default() {
            if let OfferKind::Answer { token, .. } = self.presence.offer(offer).kind {
                self.give_up(token);
            }
        }
    }

    fn revoke_all(&mut self, worker: WorkerHandle, session: Option<SessionId>) {
        let leases = self.leases_of(worker);
        // Each goes to the front, so the newest goes first.
        leases.iter().rev().for_each(|&(task, _)| self.take_back(task, ReturnReason::Revoked));
        if let (Some(session), false) = (session, leases.is_empty()) {
            let worker = self.ledger().workers().get(worker).id;
            self.effects.push(Effect::Revoke { session, worker, leases });
        }
    }
}
