//! A node that polls is a worker like others: each request for work is an offer, and it is there for as long as its
//! login is good, since one that works has no reason to say anything. What it runs cannot be ended from here, for
//! there is no way to tell it.

use super::FuqState;
use super::register::Node;
use crate::inbox::{Lost, Subscription};
use crate::listen::Reception;
use laboro_core::{
    Capacity, Command, Grant, Join, Kinds, LeaseNo, LeaseRef, Leave, Leaving, Name, Offer,
    Patience, Place, Query, Reply, Return, Returned, Route, TaskId, Token, WorkKind, WorkerRef,
    WorkerView,
};
use laboro_dialects::session::Delivery;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

#[cfg(test)]
mod tests;

/// Held by each connection of the node. When the last is gone, nobody asks for it; its leases stand.
#[derive(Debug)]
pub(super) struct Poller {
    turns: mpsc::Sender<PollerTurn>,
    worker: WorkerRef,
    next: AtomicU64,
    /// Slots that wait to be told to leave.
    leaving: AtomicU64,
    /// Something that the node held has ended.
    ended: Notify,
}

/// Why something could not be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unasked {
    Lost,
    /// The node waits for too many answers already.
    Crowded,
}

#[derive(Debug)]
enum PollerTurn {
    Ask {
        tag: u64,
        command: Box<Command>,
        answer: oneshot::Sender<Reply>,
    },
    /// Whoever asked has gone.
    Withdraw(u64),
}

/// Tags of what nobody waits for.
const NOBODY: u64 = 0;
const JOIN: u64 = 1;
const RENEW: u64 = 2;
const LOOK: u64 = 3;

/// A node is not looked for more often, however short its login is good.
const PERIOD_MS_MIN: u64 = 3_000;

/// It is not looked more often either whether it has what it was given.
const DOUBT_MS_MIN: u64 = 1_000;

/// Requests of a node that may wait beside one for each of its slots: for connections that broke and are not known to
/// be gone.
const REQUESTS_SPARE: usize = 256;

/// How often it is looked whether a node that is to leave still holds something.
const LEAVE_LOOK: Duration = Duration::from_secs(1);

/// Longer than anybody waits; then it is offered anew.
const PATIENCE_MS: u64 = 3_600_000;

impl Poller {
    /// The one that stands, or a new one.
    pub(super) fn of(door: &Arc<FuqState>, reception: &Reception, node: &Node) -> Arc<Poller> {
        let mut pollers = door.pollers();
        let standing = pollers.get(&node.name).and_then(std::sync::Weak::upgrade);
        if let Some(poller) = standing.filter(|poller| !poller.has_ended()) {
            return poller;
        }
        let group = Name::from(reception.door.group.as_str());
        let worker = WorkerRef::Name { group, name: Name::from(node.name.as_str()) };
        let (poller, taken) = Poller::new(worker.clone(), room_for(node.slots));
        let poller = Arc::new(poller);
        pollers.insert(node.name.clone(), Arc::downgrade(&poller));
        let seat = PollerSeat {
            reception: reception.clone(),
            node: node.clone(),
            worker,
            period_ms: door.cookie_ms.max(PERIOD_MS_MIN),
            turns: taken,
            answers: HashMap::new(),
            wanted: HashMap::new(),
            wanted_sum: 0,
            idle_since: Instant::now(),
            has_broken_off: false,
        };
        let (at, name) = (Arc::clone(door), node.name.clone());
        door.tasks.spawn(async move {
            seat.sit().await;
            at.forget_poller(&name);
        });
        poller
    }

    fn new(worker: WorkerRef, room: usize) -> (Poller, mpsc::Receiver<PollerTurn>) {
        let (turns, taken) = mpsc::channel(room);
        let next = AtomicU64::new(LOOK + 1);
        (Poller { turns, worker, next, leaving: AtomicU64::new(0), ended: Notify::new() }, taken)
    }

    /// The hub has cut it off.
    pub(super) fn has_ended(&self) -> bool {
        self.turns.is_closed()
    }

    pub(super) fn worker(&self) -> WorkerRef {
        self.worker.clone()
    }

    pub(super) fn note_ended(&self) {
        self.ended.notify_waiters();
    }

    /// Returns when the node holds nothing, or so many of its slots wait here that it can hold nothing.
    pub(super) async fn runs_nothing(&self, reception: &Reception, slots: u32, all: u32) {
        let _leaver = Leaver::new(self, slots);
        loop {
            let ended = self.ended.notified();
            if self.leaving.load(Ordering::Relaxed) >= u64::from(all.max(1)) {
                return self.note_ended();
            }
            let query = Command::Query(Query::Worker(self.worker()));
            match reception.handle.ask(query).await {
                Ok(Reply::Workers(views)) if views.iter().any(|view| view.lease_count > 0) => {}
                _ => return,
            }
            // Tasks also end without a word of the node: they lapse.
            let _ = tokio::time::timeout(LEAVE_LOOK, ended).await;
        }
    }

    /// Never waits for room: what waits for work holds it for as long as there is none.
    pub(super) async fn ask(&self, command: Command) -> Result<Reply, Unasked> {
        let withdrawal = self.turns.try_reserve()?;
        let place = self.turns.try_reserve()?;
        let tag = self.next.fetch_add(1, Ordering::Relaxed);
        let (answer, reply) = oneshot::channel();
        place.send(PollerTurn::Ask { tag, command: Box::new(command), answer });
        let mut waiting = WaitingRequest { withdrawal: Some(withdrawal), tag };
        let reply = reply.await.map_err(|_| Unasked::Lost);
        waiting.withdrawal = None;
        reply
    }

    /// Waits for up to so many tasks, for as long as it takes or until the hub sends the node away.
    pub(super) async fn work(
        &self,
        reception: &Reception,
        most: u32,
    ) -> Result<Vec<Grant>, Unasked> {
        loop {
            let until = reception.hall.clock.now().after_ms(PATIENCE_MS);
            let route = Route::Answer { most, patience: Patience::Always(until) };
            let offer = Offer { worker: self.worker(), route, lease_ms: None };
            match self.ask(Command::Offer(offer)).await? {
                Reply::Work { grants, .. } => return Ok(grants),
                Reply::Nothing(laboro_core::Idle::Draining | laboro_core::Idle::Ejected) => {
                    return Ok(Vec::new());
                }
                Reply::Nothing(_) => {}
                // Too many wait already, or it was forgotten; the node asks again.
                _ => return Err(Unasked::Lost),
            }
        }
    }
}

/// Slots of a node that wait to be told to leave, for as long as this is kept.
struct Leaver<'a> {
    poller: &'a Poller,
    slots: u64,
}

impl<'a> Leaver<'a> {
    fn new(poller: &'a Poller, slots: u32) -> Leaver<'a> {
        let slots = u64::from(slots);
        poller.leaving.fetch_add(slots, Ordering::Relaxed);
        Leaver { poller, slots }
    }
}

impl Drop for Leaver<'_> {
    fn drop(&mut self) {
        self.poller.leaving.fetch_sub(self.slots, Ordering::Relaxed);
    }
}

/// A request takes two places: its own until it is read, and that of its withdrawal until it is answered.
fn room_for(slots: u32) -> usize {
    2 * (slots as usize + REQUESTS_SPARE)
}

impl From<TrySendError<()>> for Unasked {
    fn from(error: TrySendError<()>) -> Unasked {
        match error {
            TrySendError::Full(()) => Unasked::Crowded,
            TrySendError::Closed(()) => Unasked::Lost,
        }
    }
}

/// A request whose connection breaks is not waited for any more. That it is not has its place from the beginning: a
/// node of which it is not known would seem to have room for tasks that it has not.
struct WaitingRequest<'a> {
    withdrawal: Option<mpsc::Permit<'a, PollerTurn>>,
    tag: u64,
}

impl Drop for WaitingRequest<'_> {
    fn drop(&mut self) {
        if let Some(withdrawal) = self.withdrawal.take() {
            withdrawal.send(PollerTurn::Withdraw(self.tag));
        }
    }
}

/// The node's place at the hub.
struct PollerSeat {
    reception: Reception,
    node: Node,
    worker: WorkerRef,
    /// A node that polls comes back when something ends there, and not before; one that is gone for good must not
    /// keep its tasks. So its leases stand for as long as its login is good.
    period_ms: u64,
    turns: mpsc::Receiver<PollerTurn>,
    answers: HashMap<u64, oneshot::Sender<Reply>>,
    /// How many tasks each request for work that waits would take.
    wanted: HashMap<u64, u32>,
    wanted_sum: u64,
    /// When they last came to be as many as the node has slots, or this was looked into.
    idle_since: Instant,
    /// A request ended without its answer, and nothing was asked since. Whoever lives asks again.
    has_broken_off: bool,
}

impl PollerSeat {
    /// Until every connection of the node is gone.
    async fn sit(mut self) {
        let Ok(mut hub) = self.reception.handle.open_session().await else { return };
        let stop = self.reception.hall.stop.clone();
        let mut renewals = tokio::time::interval(Duration::from_millis(self.period_ms / 3));
        // What was asked on a connection counts until the connection is known to be gone. That of one which the node
        // has given up is known `lost_ms / 2` after the network is back, when the system asks whether the peer is
        // there. So whoever seems idle for all of `lost_ms` is.
        let doubt = Duration::from_millis(self.reception.hall.limits.lost_ms.max(DOUBT_MS_MIN));
        if hub.ask(JOIN, self.join(&hub)).await.is_err() {
            return;
        }
        loop {
            let lives = tokio::select! {
                turn = self.turns.recv() => match turn {
                    Some(turn) => self.take(turn, &hub).await,
                    None => break,
                },
                delivery = hub.next() => match delivery {
                    Some(delivery) => self.deliver(delivery, &hub).await,
                    None => return,
                },
                _ = renewals.tick() => hub.ask(RENEW, Command::Renew(self.worker.clone())).await,
                () = sleep_until(self.idle_since + doubt), if self.is_idle() => {
                    self.idle_since = Instant::now();
                    hub.ask(LOOK, Command::Query(Query::Worker(self.worker.clone()))).await
                }
                () = stop.cancelled() => break,
            };
            if lives.is_err() {
                return;
            }
        }
        let grace_ms = match self.has_broken_off {
            true => self.reception.grace_ms,
            false => self.period_ms,
        };
        let how = Leaving::Away { grace_ms };
        let leave = Leave { worker: self.worker, session: Some(hub.session), how };
        let _ = hub.ask(NOBODY, Command::Leave(leave)).await;
    }

    fn join(&self, hub: &Subscription) -> Command {
        Command::Join(Join {
            group: Name::from(self.reception.door.group.as_str()),
            name: Name::from(self.node.name.as_str()),
            dialect: "fuq",
            session: hub.session,
            life: None,
            kinds: Kinds::of(&[WorkKind::Indexed]),
            tags: self.node.tags.iter().map(|tag| Name::from(tag.as_str())).collect(),
            capacity: Capacity::slots(self.node.slots),
            period_ms: Some(self.period_ms),
            // It does not say what runs there.
            running: None,
            acknowledges: false,
            host: Default::default(),
        })
    }

    async fn take(&mut self, turn: PollerTurn, hub: &Subscription) -> Result<(), Lost> {
        self.has_broken_off = matches!(turn, PollerTurn::Withdraw(_));
        match turn {
            PollerTurn::Ask { tag, command, answer } => {
                crate::listen::stats::count(&self.reception.door.stats.commands, 1);
                self.answers.insert(tag, answer);
                if let Command::Offer(Offer { route: Route::Answer { most, .. }, .. }) = &*command {
                    let was_idle = self.is_idle();
                    self.wanted.insert(tag, *most);
                    self.wanted_sum += u64::from(*most);
                    if !was_idle {
                        self.idle_since = Instant::now();
                    }
                }
                hub.ask(tag, *command).await
            }
            PollerTurn::Withdraw(tag) => hub.ask(NOBODY, Command::Withdraw(Token(tag))).await,
        }
    }

    async fn deliver(&mut self, delivery: Delivery, hub: &Subscription) -> Result<(), Lost> {
        match delivery {
            Delivery::Reply { tag: LOOK, reply: Reply::Workers(seen) } => {
                self.doubt(seen, hub).await
            }
            Delivery::Reply { tag, reply } => {
                self.wanted_sum -= self.wanted.remove(&tag).map_or(0, u64::from);
                let unheard = match self.answers.remove(&tag) {
                    Some(answer) => answer.send(reply).err(),
                    None => Some(reply),
                };
                match unheard {
                    // It was taken for gone, and is not.
                    Some(Reply::Refused(_)) if tag == RENEW => hub.ask(JOIN, self.join(hub)).await,
                    Some(Reply::Work { grants, .. }) => {
                        self.give_back(grants.iter().map(lease_of), hub).await
                    }
                    Some(Reply::Refused(refusal)) if tag == JOIN => {
                        tracing::warn!("{}: {}: {refusal}", self.reception.door, self.node.name);
                        Ok(())
                    }
                    _ => Ok(()),
                }
            }
            Delivery::Work { grants, .. } => self.give_back(grants.iter().map(lease_of), hub).await,
            // It hears of it when it asks again, or not at all.
            Delivery::Revoke { .. } | Delivery::Stop { .. } | Delivery::Replaced => Ok(()),
        }
    }

    /// Its requests would take as many tasks as it has slots: it can have none.
    fn is_idle(&self) -> bool {
        self.wanted_sum >= u64::from(self.node.slots.max(1))
    }

    /// There is no answer to an answer: one that was lost with its connection leaves tasks with a node that has never
    /// heard of them, and asks for more in vain. What was given out since this was asked has been delivered before.
    async fn doubt(&self, seen: Vec<WorkerView>, hub: &Subscription) -> Result<(), Lost> {
        match self.is_idle() {
            true => self.give_back(seen.into_iter().flat_map(|worker| worker.leases), hub).await,
            false => Ok(()),
        }
    }

    /// Whoever asked for it has gone meanwhile, or has not heard of it.
    async fn give_back(
        &self,
        leases: impl Iterator<Item = (TaskId, LeaseNo)>,
        hub: &Subscription,
    ) -> Result<(), Lost> {
        let back =
            |(task, lease)| Returned { lease: LeaseRef::Number { task, lease }, preds: Vec::new() };
        let tasks: Vec<Returned> = leases.map(back).collect();
        if tasks.is_empty() {
            return Ok(());
        }
        let back = Return { worker: self.worker.clone(), tasks, place: Place::Front };
        hub.ask(NOBODY, Command::Return(back)).await
    }
}

fn lease_of(grant: &Grant) -> (TaskId, LeaseNo) {
    (grant.task, grant.lease)
}
