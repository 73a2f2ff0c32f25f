//! The thread of hooks: finds out what happened, writes down what is due, delivers it, and tries again what was not taken.

use super::OLD_FILE;
use super::happening::Happening;
use super::notes::Note;
use super::send::{Envelope, send};
use super::store::{Cursor, Delivery, Store, Update};
use super::target::Target;
use crate::config::{HookEvent, HookRule, HookSettings};
use crate::documents::{DocumentError, Documents, Opening};
use crate::inbox::Handle;
use crate::pools::Pools;
use crate::security::SecurityError;
use laboro_api::{self as api, DeliveryState};
use laboro_core::{Command, JobId, Query, Reply, TaskRef, Time, WorkerId, WorkerRef, WorkerView};
use laboro_net::{Clock, hex, secret_file};
use ring::rand::{SecureRandom, SystemRandom};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

#[derive(Debug, thiserror::Error)]
pub enum HookError {
    #[error("there is no delivery {0}")]
    Missing(u64),
    #[error("delivery {0} has not failed: there is nothing to try again")]
    NotFailed(u64),
    #[error(transparent)]
    Store(#[from] DocumentError),
}

/// What those who ask see of the deliveries.
#[derive(Clone)]
pub struct Hooks(Arc<Shared>);

impl std::fmt::Debug for Hooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hooks")
    }
}

struct Shared {
    store: Mutex<Store>,
    documents: Documents,
    /// One change at a time; held while it is written.
    changing: tokio::sync::Mutex<()>,
    settings: HookSettings,
    rules: Vec<HookRule>,
    dir: PathBuf,
    handle: Handle,
    clock: Clock,
    pools: Option<Pools>,
    /// Something is due.
    wake: Notify,
}

const SECRET_FILE: &str = "hook.secret";

impl Hooks {
    /// Reads what an earlier life of the hub had to deliver.
    pub(crate) fn open(
        dir: &Path,
        settings: &HookSettings,
        rules: &[HookRule],
        handle: Handle,
        clock: Clock,
        pools: Option<Pools>,
        opening: &mut Opening<'_>,
    ) -> Result<Hooks, DocumentError> {
        make_secret(dir, settings)?;
        let store = Store::open(opening, &dir.join(OLD_FILE), clock.now())?;
        Ok(Hooks(Arc::new(Shared {
            store: Mutex::new(store),
            documents: Documents::new(handle.clone()),
            changing: tokio::sync::Mutex::default(),
            settings: settings.clone(),
            rules: rules.to_vec(),
            dir: dir.to_owned(),
            handle,
            clock,
            pools,
            wake: Notify::new(),
        })))
    }

    pub(crate) fn settings(&self) -> &HookSettings {
        &self.0.settings
    }

    /// The newest first.
    pub(crate) fn list(&self) -> api::Deliveries {
        let store = self.0.store();
        let deliveries = store.all().map(view).collect();
        api::Deliveries { deliveries, dropped: store.place.dropped }
    }

    pub(crate) fn get(&self, number: u64) -> Option<api::Delivery> {
        self.0.store().get(number).map(view)
    }

    /// One that failed is due again, with all its tries.
    pub(crate) async fn retry(&self, number: u64) -> Result<api::Delivery, HookError> {
        let now = self.0.clock.now().0;
        let again = |store: &Store| {
            let mut one = store.get(number).cloned().ok_or(HookError::Missing(number))?;
            if one.state != DeliveryState::Failed {
                return Err(HookError::NotFailed(number));
            }
            one.state = DeliveryState::Pending;
            (one.tries, one.next_ms, one.ended_ms) = (0, now, None);
            Ok((view(&one), store.changed(one)))
        };
        let shown = self.0.change(again).await?;
        self.0.wake.notify_one();
        Ok(shown)
    }
}

fn view(one: &Delivery) -> api::Delivery {
    let is_pending = one.state == DeliveryState::Pending;
    api::Delivery {
        number: one.number,
        id: one.id(),
        event: one.event.clone(),
        at_ms: one.at_ms,
        to: api::shown_target(&one.to),
        job: one.job,
        owner: one.owner.clone(),
        group: one.group.clone(),
        state: one.state,
        attempts: one.tries,
        next_ms: is_pending.then_some(one.next_ms),
        ended_ms: one.ended_ms,
        error: one.error.clone(),
    }
}

/// What signs deliveries, if nothing else was told: made once, for receivers to be given.
fn make_secret(dir: &Path, settings: &HookSettings) -> Result<(), SecurityError> {
    let path = dir.join(SECRET_FILE);
    if settings.secret_file.is_some() || path.exists() {
        return Ok(());
    }
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).map_err(|_| SecurityError::NoRandom)?;
    secret_file::replace(&path, &format!("{}\n", hex::hex(&bytes)))
}

/// Starts the thread; it ends with the hub.
pub(crate) fn start(
    hooks: &Hooks,
    changed: Arc<Notify>,
    notes: mpsc::Receiver<Note>,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let shared = hooks.0.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let keeper = Keeper {
        shared,
        notes,
        lost: BTreeMap::new(),
        is_disk_low: false,
        troubled: BTreeSet::new(),
        sending: JoinSet::new(),
        in_flight: BTreeMap::new(),
        looked: None,
    };
    let run = move || {
        runtime.block_on(async move {
            tokio::select! {
                () = keeper.run(changed) => {}
                () = stop.cancelled() => {}
            }
        });
    };
    std::thread::Builder::new().name("laboro-hooks".into()).spawn(run).map(drop)
}

impl Shared {
    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It is on the disk when this returns.
    async fn change<T, E: From<DocumentError>>(
        &self,
        change: impl FnOnce(&Store) -> Result<(T, Update), E>,
    ) -> Result<T, E> {
        let _changing = self.changing.lock().await;
        let (came_to, update) = change(&self.store())?;
        self.documents.write(update.changes()).await?;
        self.store().put(update);
        Ok(came_to)
    }

    fn wants(&self, event: HookEvent) -> bool {
        self.rules.iter().any(|rule| rule.on.contains(&event))
    }

    fn key(&self, one: &Delivery) -> Result<Vec<u8>, String> {
        let own = || self.dir.join(SECRET_FILE);
        let path = one.secret_file.clone().or_else(|| self.settings.secret_file.clone());
        let path = path.unwrap_or_else(own);
        match secret_file::read(&path) {
            Ok(Some(text)) if !text.trim().is_empty() => Ok(text.trim().as_bytes().to_vec()),
            Ok(_) => Err(format!("{}: there is no secret in it", path.display())),
            Err(error) => Err(error.to_string()),
        }
    }
}

struct Keeper {
    shared: Arc<Shared>,
    notes: mpsc::Receiver<Note>,
    /// Workers that were lost lately: each holds many tasks.
    lost: BTreeMap<u32, Instant>,
    is_disk_low: bool,
    /// Pools that are known to be in trouble.
    troubled: BTreeSet<String>,
    sending: JoinSet<(u64, Result<(), String>)>,
    /// How many are on their way to each target.
    in_flight: BTreeMap<String, BTreeSet<u64>>,
    /// When disk and pools were last looked at.
    looked: Option<Instant>,
}

/// After something happened: more of it mostly follows, and ends of the same millisecond are told together.
const GATHER: Duration = Duration::from_millis(100);
const LOOK: Duration = Duration::from_secs(10);
/// A worker is told of once in this time.
const LOST_ONCE: Duration = Duration::from_secs(60);
const AT_ONCE: usize = 8;
/// One receiver that hangs leaves room for others.
const AT_ONCE_EACH: usize = 2;
const PAUSE_MAX_MS: u64 = 30 * 60 * 1000;
const PAGE: u32 = 200;
const ERROR_CHARS: usize = 500;
/// While nothing is due, the last job looked at is written to the file only this often.
const CURSOR_KEPT: Duration = Duration::from_secs(60);

impl Keeper {
    async fn run(mut self, changed: Arc<Notify>) {
        let mut is_changed = true;
        let mut cursor_written = Instant::now();
        loop {
            if is_changed {
                tokio::time::sleep(GATHER).await;
                is_changed = self.find_ended(&mut cursor_written).await;
            }
            while let Ok(note) = self.notes.try_recv() {
                self.hear(note).await;
            }
            self.look().await;
            let next = self.deliver_due();
            let looks = self.looks().then_some(LOOK);
            let wait = next.into_iter().chain(looks).min();
            if is_changed {
                continue;
            }
            tokio::select! {
                () = changed.notified() => is_changed = true,
                () = self.shared.wake.notified() => {}
                Some(ended) = self.sending.join_next(), if !self.sending.is_empty() => {
                    // One that panicked stays in flight until the hub is started again.
                    if let Ok((number, came_to)) = ended {
                        self.note_try(number, came_to).await;
                    }
                    // Some that ended were not found because there was no room.
                    is_changed = true;
                }
                () = sleep(wait) => {}
            }
        }
    }

    /// Whether there is anything that nobody tells of and that somebody wants to know.
    fn looks(&self) -> bool {
        self.shared.wants(HookEvent::DiskLow) || self.shared.wants(HookEvent::PoolTrouble)
    }

    /// Queues what is due for jobs that ended since the last look. Says whether there may be more.
    async fn find_ended(&mut self, cursor_written: &mut Instant) -> bool {
        let (after, pending) = {
            let store = self.shared.store();
            (store.place.cursor, store.pending())
        };
        if pending >= self.shared.settings.max_pending {
            return false;
        }
        let query = Command::Query(Query::Ended { after, most: PAGE });
        let Ok(Reply::Jobs(jobs)) = self.shared.handle.ask(query).await else { return false };
        let Some(last) = jobs.last() else { return false };
        let cursor = (last.ended.unwrap_or(Time(0)), last.job);
        let is_full = jobs.len() == PAGE as usize;
        let now = self.shared.clock.now();
        let due: Vec<Delivery> = jobs
            .into_iter()
            .flat_map(|job| Happening::job_ended(job).deliveries(&self.shared.rules, now))
            .collect();
        if due.is_empty() && cursor_written.elapsed() < CURSOR_KEPT {
            self.shared.store().place.cursor = cursor;
            return is_full;
        }
        *cursor_written = Instant::now();
        self.keep(due, Some(cursor)).await && is_full
    }

    async fn queue(&self, happening: &Happening) {
        let due = happening.deliveries(&self.shared.rules, self.shared.clock.now());
        if due.is_empty() {
            return;
        }
        if self.shared.store().pending() + due.len() > self.shared.settings.max_pending {
            self.shared.store().place.dropped += due.len() as u64;
            tracing::warn!(event = "hook_dropped", "too many deliveries wait: one is left out");
            return;
        }
        self.keep(due, None).await;
    }

    /// Whether they are on the disk now.
    async fn keep(&self, due: Vec<Delivery>, cursor: Option<Cursor>) -> bool {
        let queued = |store: &Store| Ok(((), store.queued(due, cursor)));
        let came_to: Result<(), DocumentError> = self.shared.change(queued).await;
        if let Err(error) = &came_to {
            tracing::error!("hooks: {error}");
        }
        came_to.is_ok()
    }

    async fn hear(&mut self, note: Note) {
        match note {
            Note::Lost(task) if self.shared.wants(HookEvent::WorkerLost) => {
                let query = Query::Task { group: Default::default(), task: TaskRef::Id(task) };
                let Ok(Reply::Task(view)) = self.shared.handle.ask(Command::Query(query)).await
                else {
                    return;
                };
                if let Some(attempt) = view.attempts.last() {
                    self.note_lost(attempt.worker).await;
                }
            }
            Note::Ejected { worker, reason } if self.shared.wants(HookEvent::WorkerEjected) => {
                if let Some(view) = self.worker(worker).await {
                    let (name, group) = (view.name.to_string(), view.group.to_string());
                    let ejected =
                        Happening::WorkerEjected { worker: worker.0, name, group, reason };
                    self.queue(&ejected).await;
                }
            }
            Note::Stopped(job) if self.shared.wants(HookEvent::JobStopped) => {
                self.note_stopped(job).await;
            }
            Note::Lost(_) | Note::Ejected { .. } | Note::Stopped(_) => {}
        }
    }

    async fn note_stopped(&self, job: JobId) {
        let query = Command::Query(Query::Job(job));
        if let Ok(Reply::Jobs(views)) = self.shared.handle.ask(query).await
            && let Some(view) = views.into_iter().next()
        {
            self.queue(&Happening::JobStopped(Box::new(view.into()))).await;
        }
    }

    async fn note_lost(&mut self, worker: WorkerId) {
        self.lost.retain(|_, at| at.elapsed() < LOST_ONCE);
        if self.lost.contains_key(&worker.0) {
            return;
        }
        if let Some(view) = self.worker(worker).await {
            self.lost.insert(worker.0, Instant::now());
            let (name, group) = (view.name.to_string(), view.group.to_string());
            self.queue(&Happening::WorkerLost { worker: worker.0, name, group }).await;
        }
    }

    async fn worker(&self, worker: WorkerId) -> Option<WorkerView> {
        let query = Command::Query(Query::Worker(WorkerRef::Id(worker)));
        match self.shared.handle.ask(query).await {
            Ok(Reply::Workers(views)) => views.into_iter().next(),
            _ => None,
        }
    }

    /// At disk and pools, where somebody wants to know: told when it begins, not while it lasts.
    async fn look(&mut self) {
        if self.looked.is_some_and(|at| at.elapsed() < LOOK) {
            return;
        }
        self.looked = Some(Instant::now());
        if self.shared.wants(HookEvent::DiskLow)
            && let Some(disk) = crate::http::disk_of(&self.shared.dir)
        {
            let is_low = crate::http::is_disk_low(disk);
            if is_low && !self.is_disk_low {
                self.queue(&Happening::DiskLow(disk)).await;
            }
            self.is_disk_low = is_low;
        }
        if self.shared.wants(HookEvent::PoolTrouble) {
            let pools = self.shared.pools.as_ref().map(Pools::list).unwrap_or_default();
            let troubled: Vec<api::Pool> =
                pools.into_iter().filter(|pool| pool.failures > 0).collect();
            for pool in &troubled {
                if !self.troubled.contains(&pool.spec.name) {
                    let (name, group) = (pool.spec.name.clone(), pool.spec.group.clone());
                    let reason = pool.reason.clone();
                    self.queue(&Happening::PoolTrouble { name, group, reason }).await;
                }
            }
            self.troubled = troubled.into_iter().map(|pool| pool.spec.name).collect();
        }
    }

    /// Sends what is due; gives the time until more is.
    fn deliver_due(&mut self) -> Option<Duration> {
        let now = self.shared.clock.now().0;
        let mut next: Option<u64> = None;
        let mut due = Vec::new();
        {
            let store = self.shared.store();
            let mut room = AT_ONCE.saturating_sub(self.sending.len());
            let mut started: BTreeMap<&str, usize> = BTreeMap::new();
            for one in store.waiting() {
                let flying = self.in_flight.get(&one.to);
                if flying.is_some_and(|numbers| numbers.contains(&one.number)) {
                    continue;
                }
                if one.next_ms > now {
                    next = Some(next.map_or(one.next_ms, |next| next.min(one.next_ms)));
                    continue;
                }
                let count = started.entry(one.to.as_str()).or_default();
                if room > 0 && *count + flying.map_or(0, BTreeSet::len) < AT_ONCE_EACH {
                    *count += 1;
                    room -= 1;
                    due.push(one.clone());
                }
            }
        }
        for one in due {
            self.in_flight.entry(one.to.clone()).or_default().insert(one.number);
            let shared = self.shared.clone();
            self.sending.spawn(async move { (one.number, shared.deliver(one).await) });
        }
        next.map(|next| Duration::from_millis(next.saturating_sub(now)))
    }

    async fn note_try(&mut self, number: u64, came_to: Result<(), String>) {
        let now = self.shared.clock.now().0;
        let Some(mut one) = self.shared.store().get(number).cloned() else { return };
        if let Some(numbers) = self.in_flight.get_mut(&one.to) {
            numbers.remove(&number);
            if numbers.is_empty() {
                self.in_flight.remove(&one.to);
            }
        }
        one.tries += 1;
        match came_to {
            Ok(()) => {
                one.state = DeliveryState::Delivered;
                (one.error, one.ended_ms, one.body) = (None, Some(now), String::new());
            }
            Err(why) => {
                one.error = Some(why.chars().take(ERROR_CHARS).collect());
                let to = api::shown_target(&one.to);
                if one.tries >= self.shared.settings.max_tries {
                    one.state = DeliveryState::Failed;
                    one.ended_ms = Some(now);
                    tracing::warn!(event = "hook_failed", number, to, "a delivery failed: {why}");
                } else {
                    let doubled = 1 << (one.tries - 1).min(40);
                    let pause = self.shared.settings.retry_ms.saturating_mul(doubled);
                    one.next_ms = now + pause.min(PAUSE_MAX_MS);
                    tracing::info!(event = "hook_retry", number, to, "a delivery failed: {why}");
                }
            }
        }
        let noted = |store: &Store| Ok(((), store.changed(one.clone())));
        let came_to: Result<(), DocumentError> = self.shared.change(noted).await;
        if let Err(error) = came_to {
            tracing::error!("hooks: {error}");
            // It is not tried again at once. After a restart it is.
            let mut store = self.shared.store();
            let update = store.changed(one.clone());
            store.put(update);
        }
    }
}

/// For ever, if no time is given.
async fn sleep(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

impl Shared {
    async fn deliver(&self, one: Delivery) -> Result<(), String> {
        let target = Target::parse(&one.to)?;
        let key = match &target {
            Target::Url(_) => Some(self.key(&one)?),
            Target::Mail(_) | Target::Command(_) => None,
        };
        let id = one.id();
        let Delivery { event, text, body, .. } = one;
        // What is kept is without its id, which it gets with its number.
        let body = format!("{{\"id\":\"{id}\",{}", body.strip_prefix('{').unwrap_or("}"));
        let what = Envelope { id, event, text, body, key };
        send(&target, &what, &self.settings.sending()).await
    }
}
