//! One life of the hub: the real loop over the real core, inbox and outbox, in a world that decides what time
//! it is and when the loop may go on.

use crate::clock::{HubClock, Offset};
use crate::journal::SimJournal;
use crate::plan::Sabotage;
use crate::tap::{Seen, Tap};
use laboro_core::{Ask, Config, Effect, Hub, Ledger, Reply, Time};
use laboro_hub::{Handle, Server, ServerOptions, World, run, server};
use laboro_journal::{Journal, JournalError};
use laboro_net::Clock;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

pub(crate) struct Engine {
    life: Pin<Box<dyn Future<Output = Result<(), JournalError>>>>,
    pub handle: Handle,
    pub journal: SimJournal,
    pub offset: Offset,
    clock: HubClock,
    deadline: Deadline,
}

/// When the core wants to be called even if nothing arrives.
#[derive(Clone, Debug, Default)]
struct Deadline(Arc<AtomicU64>);

/// What a life begins with.
pub(crate) struct Birth {
    pub ledger: Ledger,
    pub journal: SimJournal,
    pub config: Config,
    pub options: ServerOptions,
    pub clock: HubClock,
    pub offset: Offset,
    pub tap: Tap,
    pub sabotage: Option<Sabotage>,
}

impl Engine {
    pub fn start(birth: Birth, now: u64) -> Engine {
        let Birth { ledger, journal, config, options, clock, offset, tap, sabotage } = birth;
        clock.set(offset.time(now));
        let (server, handle) = server(&options, Clock::start());
        let deadline = Deadline::default();
        deadline.set(None);
        let mut world =
            Desk { server, clock: clock.clone(), deadline: deadline.clone(), tap, sabotage };
        let mut commits = journal.clone();
        let life = async move {
            let (mut hub, batch) = Hub::begin(ledger, config, world.clock.now(), SEED);
            let effects = commits.commit(batch).await?;
            world.deliver(effects);
            run(&mut hub, &mut world, &mut commits).await
        };
        Engine { life: Box::pin(life), handle, journal, offset, clock, deadline }
    }

    /// Goes on as far as it can at this moment. Ready when the loop has ended.
    pub fn poll(&mut self, now: u64) -> Poll<Result<(), JournalError>> {
        self.clock.set(self.offset.time(now));
        self.life.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    /// When it must be polled at the latest, in the world's time.
    pub fn due(&self) -> Option<u64> {
        let due = self.journal.due().or_else(|| self.deadline.get())?;
        Some(self.offset.world(due))
    }
}

const SEED: u64 = 7;

impl Deadline {
    fn set(&self, at: Option<Time>) {
        self.0.store(at.unwrap_or(Time::NEVER).0, Ordering::Relaxed);
    }

    fn get(&self) -> Option<Time> {
        Some(Time(self.0.load(Ordering::Relaxed))).filter(|at| *at != Time::NEVER)
    }
}

/// The world of the loop: the hub's own inbox and outbox, with the world's clock, and with a tap on both.
struct Desk {
    server: Server,
    clock: HubClock,
    deadline: Deadline,
    tap: Tap,
    sabotage: Option<Sabotage>,
}

impl World for Desk {
    async fn gather(&mut self, deadline: Option<Time>) -> Option<(Time, Vec<Ask>)> {
        self.deadline.set(deadline);
        let gathered = poll_fn(|_| {
            let now = self.clock.now();
            let Some(asks) = self.server.gather_now() else { return Poll::Ready(None) };
            if asks.is_empty() && deadline.is_none_or(|at| at > now) {
                return Poll::Pending;
            }
            Poll::Ready(Some((now, asks)))
        })
        .await;
        self.deadline.set(None);
        if let Some((_, asks)) = &gathered
            && !asks.is_empty()
        {
            self.tap.note(Seen::Asked(asks.clone()));
        }
        gathered
    }

    fn deliver(&mut self, mut effects: Vec<Effect>) {
        if let Some(sabotage) = self.sabotage {
            spoil(sabotage, &mut effects);
        }
        self.tap.note(Seen::LetOut(effects.clone()));
        self.server.deliver(effects);
    }
}

/// Breaks a promise on purpose, so that it is seen whether anybody notices.
fn spoil(sabotage: Sabotage, effects: &mut Vec<Effect>) {
    match sabotage {
        Sabotage::AnswersTwice => {
            let reply = effects.iter().find(|effect| matches!(effect, Effect::Reply { .. }));
            effects.extend(reply.cloned());
        }
        Sabotage::NeverAnswers => {
            let is_report =
                |effect: &Effect| matches!(effect, Effect::Reply { reply: Reply::Reported(_), .. });
            effects.retain(|effect| !is_report(effect));
        }
        Sabotage::GivesTwice => {
            for effect in effects {
                if let Effect::Dispatch { grants, .. } = effect {
                    let again = grants.first().cloned();
                    grants.extend(again);
                }
            }
        }
        Sabotage::AcksUnwritten
        | Sabotage::NeverSyncs
        | Sabotage::SendsTwice
        | Sabotage::DropsSilently => {}
    }
}
