//! One watcher for all viewers: recent events in a ring that everybody reads at their own pace. Whoever is too
//! slow, or comes back too late, is told that there is a gap. Nobody watches the hub while nobody looks.

use super::bells::Bells;
use super::finishes::Finishes;
use super::fold::Fold;
use crate::Handle;
use laboro_api::Event;
use laboro_core::{Change, Command, Scope};
use laboro_net::Clock;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// How many events can be resumed from.
const EVENTS_KEPT: usize = 20_000;

/// After a flush changes are gathered for so long; the first after a silence is told at once.
const WINDOW: Duration = Duration::from_millis(100);

/// The watcher stays so long after the last viewer, so that one who reconnects finds what it missed.
const LINGER: Duration = Duration::from_secs(60);

/// Events copied for a viewer at once.
const PIECE: usize = 256;

pub(super) struct Feed {
    handle: Handle,
    clock: Clock,
    /// Of this process: an id from another one cannot be resumed from.
    epoch: u64,
    ring: Mutex<Ring>,
    /// The number of the next event, for whoever waits for one.
    next: watch::Sender<u64>,
    viewers: watch::Sender<usize>,
    /// Whoever finds nobody watching starts a watcher, and only one does.
    watching: watch::Sender<Watching>,
    pub(super) bells: Bells,
    pub(super) finishes: Arc<Finishes>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watching {
    No,
    Starting,
    Yes,
}

#[derive(Default)]
struct Ring {
    events: VecDeque<Arc<Event>>,
    /// The number of the first event in it.
    first: u64,
}

impl Ring {
    fn next(&self) -> u64 {
        self.first + self.events.len() as u64
    }
}

/// One who looks on. Counted, so that the watcher knows when it can go.
pub(super) struct Viewer {
    feed: Arc<Feed>,
    at: u64,
    news: watch::Receiver<u64>,
}

/// What a viewer is told.
pub(super) enum FeedUpdate {
    Events(Vec<(u64, Arc<Event>)>),
    /// Something before the next event is missing.
    Gap,
    /// The hub has stopped.
    Over,
}

impl Feed {
    pub(super) fn new(handle: Handle, clock: Clock) -> Arc<Feed> {
        let ring = Ring { events: VecDeque::new(), first: 1 };
        Arc::new(Feed {
            handle,
            clock,
            epoch: clock.now().0,
            ring: Mutex::new(ring),
            next: watch::Sender::new(1),
            viewers: watch::Sender::new(0),
            watching: watch::Sender::new(Watching::No),
            bells: Bells::default(),
            finishes: Arc::default(),
        })
    }

    pub(super) fn viewers(&self) -> usize {
        *self.viewers.borrow()
    }

    /// Comes back once the hub is being watched: whatever it is asked after this and whatever happens later are
    /// one story without a hole. `resume` is the id of the last event that was seen.
    pub(super) async fn join(self: &Arc<Feed>, resume: Option<&str>) -> Viewer {
        self.viewers.send_modify(|viewers| *viewers += 1);
        let news = self.next.subscribe();
        let mut viewer = Viewer { feed: self.clone(), at: 0, news };
        let mut started = false;
        self.watching.send_if_modified(|watching| {
            started = *watching == Watching::No;
            if started {
                *watching = Watching::Starting;
            }
            started
        });
        if started {
            tokio::spawn(self.clone().watch());
        }
        // An error means that the feed is gone, and we hold it.
        let _ = self.watching.subscribe().wait_for(|now| *now != Watching::Starting).await;
        viewer.at = match resume.map(|id| self.place(id)) {
            None => self.lock().next(),
            Some(Some(seen)) => seen.saturating_add(1).min(self.lock().next()),
            // Before everything: the first thing told is the gap.
            Some(None) => 0,
        };
        viewer
    }

    pub(super) fn id(&self, number: u64) -> String {
        format!("{}-{number}", self.epoch)
    }

    fn place(&self, id: &str) -> Option<u64> {
        let (epoch, number) = id.split_once('-')?;
        (epoch.parse() == Ok(self.epoch)).then(|| number.parse().ok()).flatten()
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs while somebody looks, and a little longer.
    async fn watch(self: Arc<Feed>) {
        loop {
            let Ok(changes) = self.handle.watch(Command::Watch(Scope::All)).await else {
                self.stop();
                return;
            };
            self.watching.send_replace(Watching::Yes);
            match self.carry(changes).await {
                Carried::NobodyLooks => return,
                // Cut off because we were too slow: what was missed is a gap.
                Carried::CutOff => self.skip(),
            }
        }
    }

    /// Nobody will learn anything any more, or not before somebody looks again.
    fn stop(&self) {
        self.skip();
        self.watching.send_replace(Watching::No);
    }

    async fn carry(&self, mut changes: mpsc::Receiver<Arc<[Change]>>) -> Carried {
        let mut fold = Fold::default();
        let mut viewers = self.viewers.subscribe();
        // However busy the hub is, the time without viewers goes on.
        let mut go_at = None;
        loop {
            go_at = match *viewers.borrow_and_update() {
                0 => go_at.or_else(|| Some(Instant::now() + LINGER)),
                _ => None,
            };
            let nobody = async {
                match go_at {
                    Some(then) => tokio::time::sleep_until(then).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                // The sender lives in the feed, which we hold.
                _ = viewers.changed() => continue,
                batch = changes.recv() => match batch {
                    Some(batch) => self.hear(&batch, &mut fold),
                    None => return Carried::CutOff,
                },
                () = nobody => {
                    // Decided under the lock of the count, so that nobody joins in between unseen.
                    let mut is_over = false;
                    self.viewers.send_if_modified(|viewers| {
                        is_over = *viewers == 0;
                        if is_over {
                            self.stop();
                        }
                        false
                    });
                    if is_over {
                        return Carried::NobodyLooks;
                    }
                }
            }
            self.tell(&mut fold);
            let window = tokio::time::sleep(WINDOW);
            tokio::pin!(window);
            loop {
                tokio::select! {
                    () = &mut window => break,
                    batch = changes.recv() => match batch {
                        Some(batch) => self.hear(&batch, &mut fold),
                        None => return Carried::CutOff,
                    },
                }
            }
            self.tell(&mut fold);
        }
    }

    fn hear(&self, changes: &[Change], fold: &mut Fold) {
        self.bells.ring(changes);
        self.finishes.tell(changes);
        changes.iter().for_each(|change| fold.add(change));
    }

    fn tell(&self, fold: &mut Fold) {
        if fold.is_empty() {
            return;
        }
        let events = fold.take(self.clock.now().0);
        let mut ring = self.lock();
        ring.events.extend(events.into_iter().map(Arc::new));
        while ring.events.len() > EVENTS_KEPT {
            ring.events.pop_front();
            ring.first += 1;
        }
        let next = ring.next();
        drop(ring);
        self.next.send_replace(next);
    }

    /// One number is left out, so that whoever stands before it sees the gap.
    fn skip(&self) {
        let mut ring = self.lock();
        ring.first = ring.next() + 1;
        ring.events.clear();
        let next = ring.next();
        drop(ring);
        self.next.send_replace(next);
        self.finishes.tell_gap();
    }
}

enum Carried {
    NobodyLooks,
    CutOff,
}

impl Viewer {
    /// Waits for something to tell.
    pub(super) async fn next(&mut self) -> FeedUpdate {
        loop {
            self.news.borrow_and_update();
            {
                let ring = self.feed.lock();
                if self.at < ring.first {
                    self.at = ring.first;
                    return FeedUpdate::Gap;
                }
                if self.at < ring.next() {
                    let from = usize::try_from(self.at - ring.first).unwrap_or(usize::MAX);
                    let piece = ring.events.iter().skip(from).take(PIECE).cloned();
                    let numbered: Vec<_> = (self.at..).zip(piece).collect();
                    self.at += numbered.len() as u64;
                    return FeedUpdate::Events(numbered);
                }
            }
            if *self.feed.watching.borrow() == Watching::No {
                return FeedUpdate::Over;
            }
            if self.news.changed().await.is_err() {
                return FeedUpdate::Over;
            }
        }
    }

    /// The id to resume after.
    pub(super) fn id(&self) -> String {
        self.feed.id(self.at.saturating_sub(1))
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        self.feed.viewers.send_modify(|viewers| *viewers -= 1);
    }
}
