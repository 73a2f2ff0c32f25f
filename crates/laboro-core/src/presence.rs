//! Who is connected and what they wait for. Never journaled: a restart forgets it, and workers say hello
//! again.

use crate::command::{Capacity, Join, Scope};
use crate::fields::Fields;
use crate::id::{GroupId, LeaseNo, Name, SessionId, Time, Token};
use crate::ledger::{ClassHandle, OfferHandle, Slab, WorkerHandle};
use crate::task::Kinds;
use hashbrown::HashMap;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(crate) struct Presence {
    /// By the ledger's handle of the worker.
    members: Vec<Option<Box<Member>>>,
    offers: Slab<OfferHandle, WaitingOffer>,
    answers: HashMap<Token, OfferHandle, foldhash::fast::FixedState>,
    /// For each group the offers that wait, least recently served first.
    waiting: Vec<BTreeMap<u64, OfferHandle>>,
    /// For each group the offers that are answered when nothing of it goes on any more.
    ending: Vec<BTreeSet<OfferHandle>>,
    turn: u64,
    timers: BTreeSet<(Time, Due)>,
    /// Since when workers are away that were here. One timer each, however often they come and go.
    away: HashMap<WorkerHandle, Time, foldhash::fast::FixedState>,
    /// Up to which turn nobody who waits fits a class: its serial and the turn, by its handle.
    tried: Vec<(u64, u64)>,
    /// For each group the furthest of these turns.
    tried_most: Vec<u64>,
    pub(crate) watches: BTreeMap<Token, Scope>,
    /// How often a worker came, went, or could take more or less than before.
    comings: u64,
    /// Workers that did so since somebody looked, or that are gathered now or are not any more.
    changed: Vec<WorkerHandle>,
    /// Classes that lost a worker which was gathered for them.
    strayed: Vec<ClassHandle>,
}

#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) session: Option<SessionId>,
    /// The process that joined, as far as it says.
    pub(crate) life: Option<u64>,
    /// What is known of the tasks it holds; kept while it is away.
    pub(crate) arrivals: Arrivals,
    pub(crate) kinds: Kinds,
    /// Sorted.
    pub(crate) tags: Vec<Name>,
    pub(crate) capacity: Capacity,
    pub(crate) host: Name,
    /// What it is given must be over by then, as far as its time is limited.
    pub(crate) until: Option<Time>,
    /// It was given work, or gave something back, since it came.
    pub(crate) engaged: bool,
    pub(crate) draining: bool,
    /// Slots that are not to be used any more.
    pub(crate) fewer_slots: u32,
    /// How many small tasks it takes beyond its slots.
    pub(crate) ahead: u32,
    /// The standing offer, if it made one.
    pub(crate) push: Option<OfferHandle>,
    pub(crate) answers: SmallVec<[OfferHandle; 2]>,
    /// Without a sign of life until then its leases lapse.
    pub(crate) alive_until: Option<Time>,
    timer: Option<Time>,
    /// Serial of the class that it is kept free for.
    pub(crate) kept_for: Option<u64>,
    /// The class of a task with several workers, for which it is kept free together with others.
    pub(crate) gathered: Option<ClassHandle>,
}

/// Which of a worker's leases its process can have started.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Arrivals {
    /// The process that this is about, as far as it says.
    pub(crate) life: Option<u64>,
    /// How many slots it had. 0: not known.
    pub(crate) slots: u32,
    /// It says what has arrived.
    pub(crate) are_told: bool,
    /// The last lease that has.
    pub(crate) last: LeaseNo,
}

impl Arrivals {
    /// What an earlier life of the hub sent counts as arrived: nobody knows.
    pub(crate) fn of(join: &Join, life: u32) -> Arrivals {
        let before = LeaseNo(LeaseNo::new(life, 0).0.saturating_sub(1));
        let (slots, are_told) = (join.capacity.slots, join.acknowledges);
        Arrivals { life: join.life, slots, are_told, last: before }
    }

    pub(crate) fn has(&self, lease: LeaseNo) -> bool {
        !self.are_told || lease <= self.last
    }
}

#[derive(Debug, Clone)]
pub(crate) struct WaitingOffer {
    pub(crate) worker: WorkerHandle,
    pub(crate) kind: OfferKind,
    pub(crate) lease_ms: Option<u64>,
    until: Option<Time>,
    /// Its place in the queue of its group; 0 when it is not there.
    turn: u64,
    group: GroupId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OfferKind {
    Push,
    Answer { token: Token, most: u32 },
}

/// What presence waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    /// Patience of an offer is over.
    Offer(OfferHandle),
    /// A worker has given no sign of life.
    Worker(WorkerHandle),
    /// A worker is long away.
    Away(WorkerHandle),
    /// A worker's hold or ejection is over.
    Conduct(WorkerHandle),
}

impl Presence {
    pub(crate) fn member(&self, worker: WorkerHandle) -> Option<&Member> {
        self.members.get(worker.at())?.as_deref()
    }

    pub(crate) fn member_mut(&mut self, worker: WorkerHandle) -> Option<&mut Member> {
        self.members.get_mut(worker.at())?.as_deref_mut()
    }

    /// The member, made when it is not there.
    pub(crate) fn admit(&mut self, worker: WorkerHandle) -> &mut Member {
        let at = worker.at();
        if at >= self.members.len() {
            self.members.resize_with(at + 1, || None);
        }
        self.members[at].get_or_insert_with(|| {
            Box::new(Member {
                session: None,
                life: None,
                arrivals: Arrivals::default(),
                kinds: Kinds::ALL.understanding(Fields::NONE),
                tags: Vec::new(),
                capacity: Capacity::default(),
                host: Name::default(),
                until: None,
                engaged: false,
                draining: false,
                fewer_slots: 0,
                ahead: 0,
                push: None,
                answers: SmallVec::new(),
                alive_until: None,
                timer: None,
                kept_for: None,
                gathered: None,
            })
        })
    }

    /// What the worker can take is not what it was.
    pub(crate) fn note_coming(&mut self, worker: WorkerHandle) {
        self.comings += 1;
        self.changed.push(worker);
        let class = self.member_mut(worker).and_then(|member| member.gathered.take());
        self.strayed.extend(class);
    }

    /// It is kept free for a task of this class, or for none.
    pub(crate) fn set_gathered(&mut self, worker: WorkerHandle, class: Option<ClassHandle>) {
        let Some(member) = self.member_mut(worker) else { return };
        member.gathered = class;
        self.changed.push(worker);
    }

    pub(crate) fn drain_changed(&mut self) -> impl Iterator<Item = WorkerHandle> + '_ {
        self.changed.drain(..)
    }

    /// Rises with every worker that comes, goes, or can take more or less.
    pub(crate) fn comings(&self) -> u64 {
        self.comings
    }

    pub(crate) fn take_strayed(&mut self) -> Vec<ClassHandle> {
        std::mem::take(&mut self.strayed)
    }

    pub(crate) fn note_engaged(&mut self, worker: WorkerHandle) {
        if let Some(member) = self.member_mut(worker) {
            member.engaged = true;
        }
    }

    /// The worker is not there any more. Gives back who waits for an answer.
    pub(crate) fn dismiss(&mut self, worker: WorkerHandle) -> Vec<Token> {
        let Some(member) = self.members.get_mut(worker.at()).and_then(Option::take) else {
            return Vec::new();
        };
        self.comings += 1;
        self.changed.push(worker);
        self.strayed.extend(member.gathered);
        if let Some(timer) = member.timer {
            self.timers.remove(&(timer, Due::Worker(worker)));
        }
        let mut tokens = Vec::new();
        for offer in member.push.into_iter().chain(member.answers) {
            if let OfferKind::Answer { token, .. } = self.drop_offer(offer).kind {
                tokens.push(token);
            }
        }
        tokens
    }

    /// Its leases are safe until then, or for ever.
    pub(crate) fn set_alive_until(&mut self, worker: WorkerHandle, until: Option<Time>) {
        let Some(member) = self.member_mut(worker) else { return };
        member.alive_until = until;
        // A timer that rings too early looks again: most signs of life cost nothing here.
        let Some(until) = until else { return };
        match member.timer {
            Some(timer) if timer <= until => {}
            earlier => {
                member.timer = Some(until);
                if let Some(timer) = earlier {
                    self.timers.remove(&(timer, Due::Worker(worker)));
                }
                self.timers.insert((until, Due::Worker(worker)));
            }
        }
    }

    /// The worker is not here; look again then, if not earlier.
    pub(crate) fn set_away_until(&mut self, worker: WorkerHandle, since: Time, look_at: Time) {
        if self.away.insert(worker, since).is_none() {
            self.timers.insert((look_at, Due::Away(worker)));
        }
    }

    /// Since when the worker is away, which is looked at now.
    pub(crate) fn take_away(&mut self, worker: WorkerHandle) -> Option<Time> {
        self.away.remove(&worker).filter(|_| self.member(worker).is_none())
    }

    /// The timer of this worker rang.
    pub(crate) fn timer_rang(&mut self, worker: WorkerHandle) {
        if let Some(member) = self.member_mut(worker) {
            member.timer = None;
        }
    }

    pub(crate) fn set_timer(&mut self, at: Time, due: Due) {
        self.timers.insert((at, due));
    }

    pub(crate) fn next_timer(&self) -> Option<Time> {
        self.timers.first().map(|&(at, _)| at)
    }

    pub(crate) fn take_due(&mut self, now: Time) -> Option<Due> {
        let &(at, due) = self.timers.first()?;
        (at <= now).then(|| {
            self.timers.pop_first();
            due
        })
    }

    pub(crate) fn offer_count(&self) -> usize {
        self.offers.len()
    }

    pub(crate) fn offer(&self, offer: OfferHandle) -> &WaitingOffer {
        &self.offers[offer]
    }

    pub(crate) fn add_push(
        &mut self,
        worker: WorkerHandle,
        group: GroupId,
        lease_ms: Option<u64>,
    ) -> OfferHandle {
        if let Some(offer) = self.member(worker).and_then(|member| member.push) {
            self.offers[offer].lease_ms = lease_ms;
            return offer;
        }
        let kind = OfferKind::Push;
        let offer = self.offers.insert(WaitingOffer {
            worker,
            kind,
            lease_ms,
            until: None,
            turn: 0,
            group,
        });
        self.admit(worker).push = Some(offer);
        self.note_coming(worker);
        offer
    }

    pub(crate) fn add_answer(&mut self, answer: NewAnswer) -> OfferHandle {
        let NewAnswer { worker, group, token, most, until, lease_ms, ends_with_group } = answer;
        let kind = OfferKind::Answer { token, most };
        let offer = WaitingOffer { worker, kind, lease_ms, until: Some(until), turn: 0, group };
        let offer = self.offers.insert(offer);
        let member = self.admit(worker);
        member.answers.push(offer);
        if member.push.is_some() {
            self.note_coming(worker);
        }
        self.answers.insert(token, offer);
        self.timers.insert((until, Due::Offer(offer)));
        if ends_with_group {
            let at = group.at();
            if at >= self.ending.len() {
                self.ending.resize_with(at + 1, BTreeSet::new);
            }
            self.ending[at].insert(offer);
        }
        offer
    }

    /// Who waits for the end of this group, or for what comes before.
    pub(crate) fn next_ending(&self, group: GroupId) -> Option<Token> {
        let &offer = self.ending.get(group.at())?.first()?;
        match self.offers[offer].kind {
            OfferKind::Answer { token, .. } => Some(token),
            OfferKind::Push => None,
        }
    }

    pub(crate) fn answer_of(&self, token: Token) -> Option<OfferHandle> {
        self.answers.get(&token).copied()
    }

    /// An offer that is answered, withdrawn or gone with its worker.
    pub(crate) fn drop_offer(&mut self, offer: OfferHandle) -> WaitingOffer {
        self.unqueue(offer);
        let vacant = WaitingOffer {
            worker: WorkerHandle::NONE,
            kind: OfferKind::Push,
            lease_ms: None,
            until: None,
            turn: 0,
            group: GroupId::default(),
        };
        let gone = self.offers.remove(offer, vacant);
        if let OfferKind::Answer { token, .. } = gone.kind {
            self.answers.remove(&token);
        }
        if let Some(until) = gone.until {
            self.timers.remove(&(until, Due::Offer(offer)));
        }
        if let Some(ending) = self.ending.get_mut(gone.group.at()) {
            ending.remove(&offer);
        }
        if let Some(member) = self.member_mut(gone.worker) {
            member.answers.retain(|other| *other != offer);
            if member.push == Some(offer) {
                member.push = None;
            }
            if member.push.is_some() && member.answers.is_empty() {
                self.note_coming(gone.worker);
            }
        }
        gone
    }

    /// To the end of the queue: it was served, or has just come.
    pub(crate) fn queue(&mut self, offer: OfferHandle) {
        self.unqueue(offer);
        self.turn += 1;
        let turn = self.turn;
        self.offers[offer].turn = turn;
        let group = self.offers[offer].group.at();
        if group >= self.waiting.len() {
            self.waiting.resize_with(group + 1, BTreeMap::new);
        }
        self.waiting[group].insert(turn, offer);
    }

    pub(crate) fn is_queued(&self, offer: OfferHandle) -> bool {
        self.offers[offer].turn != 0
    }

    /// It has no room now.
    pub(crate) fn unqueue(&mut self, offer: OfferHandle) {
        let here = &mut self.offers[offer];
        let turn = std::mem::take(&mut here.turn);
        if turn != 0 {
            self.waiting[here.group.at()].remove(&turn);
        }
    }

    pub(crate) fn waiting_count(&self, group: GroupId) -> usize {
        self.waiting.get(group.at()).map_or(0, BTreeMap::len)
    }

    /// The first offer in the group's queue after this turn.
    pub(crate) fn next_waiting(&self, group: GroupId, after: u64) -> Option<(u64, OfferHandle)> {
        let queue = self.waiting.get(group.at())?;
        queue.range(after + 1..).next().map(|(&turn, &offer)| (turn, offer))
    }

    /// Nobody who waits at this turn or before fits the class.
    pub(crate) fn tried(&self, class: ClassHandle, serial: u64) -> u64 {
        match self.tried.get(class.at()) {
            Some(&(known, turn)) if known == serial => turn,
            _ => 0,
        }
    }

    /// Some class may have found that the offer does not fit.
    pub(crate) fn may_have_been_tried(&self, offer: OfferHandle) -> bool {
        let WaitingOffer { turn, group, .. } = self.offers[offer];
        self.tried_most.get(group.at()).is_some_and(|&most| turn <= most)
    }

    /// The last turn that was given out.
    pub(crate) fn last_turn(&self) -> u64 {
        self.turn
    }

    pub(crate) fn set_tried(&mut self, group: GroupId, class: ClassHandle, serial: u64, turn: u64) {
        let at = group.at();
        if at >= self.tried_most.len() {
            self.tried_most.resize(at + 1, 0);
        }
        self.tried_most[at] = self.tried_most[at].max(turn);
        let at = class.at();
        if at >= self.tried.len() {
            self.tried.resize(at + 1, (0, 0));
        }
        self.tried[at] = (serial, turn);
    }
}

pub(crate) struct NewAnswer {
    pub(crate) worker: WorkerHandle,
    pub(crate) group: GroupId,
    pub(crate) token: Token,
    pub(crate) most: u32,
    pub(crate) until: Time,
    pub(crate) lease_ms: Option<u64>,
    /// It is answered when nothing of the group goes on any more.
    pub(crate) ends_with_group: bool,
}
