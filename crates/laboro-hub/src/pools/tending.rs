//! The thread that tends to pools: for each of them, again and again, what the batch system has, whether workers came, and
//! what to submit. A pool waits only for its own commands.

use super::keeper::{PoolRefusal, Pools, Shared};
use laboro_core::{Command, Query, Reply, WorkerRef, WorkerView};
use laboro_pool::{CallError, Pool, Scheduler, Standing, State, run, worker_name};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Seek, SeekFrom};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::{self, JoinSet};
use tokio_util::sync::CancellationToken;

const TICK: Duration = Duration::from_secs(1);

/// What is cancelled is soon gone.
const LIST_REMOVING: Duration = Duration::from_secs(3);

/// Before a pool whose care broke down is taken up again.
const AFTER_FAULT: Duration = Duration::from_secs(10);

/// More tasks of a kind than so many allocations could take are not counted.
const TASKS_MAX: u64 = 1_000_000;

/// Of what an allocation printed, for people.
const LOG_BYTES: u64 = 2000;

/// Starts the thread; it ends with the hub.
pub(crate) fn start(pools: &Pools, stop: CancellationToken) -> std::io::Result<()> {
    let shared = pools.shared();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let run = move || runtime.block_on(tend_all(shared, stop));
    std::thread::Builder::new().name("laboro-pools".into()).spawn(run).map(drop)
}

async fn tend_all(shared: Arc<Shared>, stop: CancellationToken) {
    let mut tended: BTreeMap<String, task::Id> = BTreeMap::new();
    let mut tending = JoinSet::new();
    loop {
        // Asked for before the look, so that no pool that is made meanwhile is missed.
        let mut woken = pin!(shared.wake.notified());
        woken.as_mut().enable();
        for name in shared.names() {
            if let Entry::Vacant(new) = tended.entry(name) {
                let started = tending.spawn(tend(shared.clone(), new.key().clone()));
                new.insert(started.id());
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = woken => {}
            Some(gone) = tending.join_next_with_id() => {
                let (id, broke) = match gone {
                    Ok((id, ())) => (id, false),
                    Err(error) => (error.id(), true),
                };
                let of_it = tended.iter().find(|(_, tending)| **tending == id);
                let Some(name) = of_it.map(|(name, _)| name.clone()) else { continue };
                if broke {
                    tracing::error!(event = "pool_trouble", pool = name,
                        "pool {name}: a fault in laboro stopped its care; it is taken up again");
                    let waiting = tending.spawn(tokio::time::sleep(AFTER_FAULT));
                    tended.insert(name, waiting.id());
                } else {
                    tended.remove(&name);
                }
            }
        }
    }
}

/// Until it is removed.
async fn tend(shared: Arc<Shared>, name: String) {
    let mut tender = Tender { shared, name, listed: None, prepared: None, cancelled: false };
    while let Some(pool) = tender.shared.pool(&tender.name) {
        if let Err(error) = tender.turn(pool).await {
            tracing::error!("pool {}: {error}", tender.name);
        }
        tokio::select! {
            () = tender.shared.wake.notified() => {}
            () = tokio::time::sleep(TICK) => {}
        }
    }
}

struct Tender {
    shared: Arc<Shared>,
    name: String,
    /// When the batch system was last asked.
    listed: Option<Instant>,
    /// The access file as it was last taken to where allocations are submitted.
    prepared: Option<String>,
    cancelled: bool,
}

impl Tender {
    async fn turn(&mut self, pool: Pool) -> Result<(), PoolRefusal> {
        self.look_for_workers(&pool).await?;
        let every = match pool.standing {
            Standing::Removing => LIST_REMOVING,
            _ => Duration::from_millis(self.shared.list_ms),
        };
        let is_due = self.listed.is_none_or(|at| at.elapsed() >= every);
        if is_due && (!pool.allocations.is_empty() || pool.unlisted.is_some()) {
            self.list(&pool).await?;
            self.listed = Some(Instant::now());
        }
        if pool.standing == Standing::Removing {
            return self.remove().await;
        }
        let Some(pool) = self.shared.pool(&self.name) else { return Ok(()) };
        self.submit(&pool).await
    }

    async fn worker(&self, pool: &Pool, number: u64) -> Option<WorkerView> {
        let name = worker_name(&pool.spec.name, number).as_str().into();
        let worker = WorkerRef::Name { group: pool.spec.group.as_str().into(), name };
        match self.shared.handle.ask(Command::Query(Query::Worker(worker))).await {
            Ok(Reply::Workers(views)) => views.into_iter().next(),
            _ => None,
        }
    }

    async fn look_for_workers(&self, pool: &Pool) -> Result<(), PoolRefusal> {
        for one in pool.allocations.iter().filter(|one| !one.worked) {
            if self.worker(pool, one.number).await.is_some() {
                let now_ms = self.shared.now_ms();
                let worked = |pool: &mut Pool| pool.worked(one.number, now_ms);
                self.shared.change_pool(&self.name, worked).await?;
                tracing::info!(
                    event = "pool_worker",
                    pool = self.name,
                    "pool {}: a worker connected",
                    self.name
                );
            }
        }
        Ok(())
    }

    async fn list(&self, pool: &Pool) -> Result<(), PoolRefusal> {
        let place = self.shared.place(&pool.spec);
        let scheduler = Scheduler::new(&pool.spec, &place);
        let ids: Vec<String> = pool.allocations.iter().filter_map(|one| one.id.clone()).collect();
        let came_to = run(&scheduler.list(&ids)).await;
        let now_ms = self.shared.now_ms();
        let printed = match came_to {
            Ok(printed) => printed,
            Err(error) => {
                if pool.unlisted.is_none() {
                    tracing::warn!(
                        event = "pool_trouble",
                        pool = self.name,
                        "pool {}: {error}",
                        self.name
                    );
                }
                let words = error.to_string();
                let not_listed = |pool: &mut Pool| pool.not_listed(words, now_ms);
                self.shared.change_pool(&self.name, not_listed).await?;
                return Ok(());
            }
        };
        let mut there = BTreeSet::new();
        for one in &pool.allocations {
            if self.worker(pool, one.number).await.is_some_and(|view| view.connected) {
                there.insert(one.number);
            }
        }
        let listed = scheduler.listed(&printed);
        let log = |number| scheduler.log_file(number).and_then(|path| tail(&path));
        let came_to = |pool: &mut Pool| {
            let named = |number| scheduler.job_name(number);
            for over in pool.listed(&listed, named, |number| there.contains(&number), now_ms) {
                let log = if over.worked { None } else { log(over.number) };
                pool.over(&over, log.as_deref(), now_ms);
                if let Some(event) = pool.events.back() {
                    tracing::info!(
                        event = "pool_allocation_over",
                        pool = self.name,
                        "pool {}: {}",
                        self.name,
                        event.text
                    );
                }
            }
        };
        self.shared.change_pool(&self.name, came_to).await?;
        Ok(())
    }

    async fn remove(&mut self) -> Result<(), PoolRefusal> {
        let now_ms = self.shared.now_ms();
        let cancelling = |pool: &mut Pool| pool.cancelling(now_ms);
        let ids = self.shared.change_pool(&self.name, cancelling).await?;
        let Some(pool) = self.shared.pool(&self.name) else { return Ok(()) };
        if pool.allocations.is_empty() {
            return self.shared.forget(&self.name).await;
        }
        let ids = ids.unwrap_or_default();
        if !self.cancelled && !ids.is_empty() {
            let place = self.shared.place(&pool.spec);
            match run(&Scheduler::new(&pool.spec, &place).cancel(&ids)).await {
                Ok(_) => self.cancelled = true,
                Err(error) => {
                    let words = format!("allocations could not be cancelled: {error}");
                    let note = |pool: &mut Pool| pool.note(now_ms, words);
                    self.shared.change_pool(&self.name, note).await?;
                }
            }
        }
        Ok(())
    }

    async fn submit(&mut self, pool: &Pool) -> Result<(), PoolRefusal> {
        let query = Query::Backlog { group: pool.spec.group.as_str().into(), most: TASKS_MAX };
        let Ok(Reply::Backlog(backlog)) = self.shared.handle.ask(Command::Query(query)).await
        else {
            return Ok(());
        };
        for _ in 0..self.shared.wanted(&self.name, backlog) {
            if !self.submit_one(pool).await? {
                break;
            }
        }
        Ok(())
    }

    /// Whether it succeeded.
    async fn submit_one(&mut self, pool: &Pool) -> Result<bool, PoolRefusal> {
        let place = self.shared.place(&pool.spec);
        let scheduler = Scheduler::new(&pool.spec, &place);
        let now_ms = self.shared.now_ms();
        // Written down before it is submitted.
        let submitting = |state: &mut State| {
            state.last_number += 1;
            let number = state.last_number;
            let pool = state.find_mut(&self.name);
            let host = pool.and_then(|pool| {
                pool.submitting(number, now_ms);
                pool.allocations.last().and_then(|one| one.host.clone())
            });
            (number, host)
        };
        let (number, host) = self.shared.change(submitting).await?;
        let mut came_to = Ok(String::new());
        if let Some(call) =
            scheduler.prepare().filter(|call| self.prepared.as_ref() != Some(&call.stdin))
        {
            // Nothing was submitted yet, however long it took.
            came_to = run(&call).await.map_err(|error| CallError::Failed(error.to_string()));
            if came_to.is_ok() {
                self.prepared = Some(call.stdin);
            }
        }
        if came_to.is_ok() {
            came_to = run(&scheduler.submit(number, host.as_deref())).await;
        }
        let now_ms = self.shared.now_ms();
        let (id, is_known) = match came_to {
            Ok(printed) => (scheduler.submitted(&printed), true),
            Err(CallError::Failed(words)) => (Err(words), true),
            Err(late @ CallError::Late { .. }) => (Err(late.to_string()), false),
        };
        match &id {
            Ok(id) => tracing::info!(
                event = "pool_submitted",
                pool = self.name,
                "pool {}: allocation {id} was submitted",
                self.name
            ),
            Err(words) => tracing::warn!(
                event = "pool_trouble",
                pool = self.name,
                "pool {}: {words}",
                self.name
            ),
        }
        let went_well = id.is_ok();
        let note = |pool: &mut Pool| match (is_known, id) {
            (false, Err(words)) => pool.unsure(number, &words, now_ms),
            (_, id) => pool.submitted(number, id, now_ms),
        };
        self.shared.change_pool(&self.name, note).await?;
        Ok(went_well)
    }
}

/// The last lines of a file, in one.
fn tail(path: &str) -> Option<String> {
    let mut file = std::fs::File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_BYTES))).ok()?;
    let mut bytes = Vec::new();
    file.take(LOG_BYTES).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(3)..].join(" / ");
    let plain: String = last.chars().filter(|c| !c.is_control()).take(400).collect();
    (!plain.is_empty()).then_some(plain)
}
