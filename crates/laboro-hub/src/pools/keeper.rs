//! What is known of pools, shared by those who ask and the one that tends to them. Every change is in the hub's journal when
//! the call returns.

use super::tokens::PoolTokens;
use super::{OLD_FILE, kept};
use crate::config::NamedPool;
use crate::documents::{DocumentError, Documents, Opening};
use crate::inbox::Handle;
use crate::security::{Access, Role, SecurityError};
use laboro_api::{self as api, PoolSpec};
use laboro_core::{Backlog, Name, TaskView};
use laboro_net::Clock;
use laboro_net::secret_file::make_dir;
use laboro_pool::{Place, Pool, Scheduler, Shape, Standing, State};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// The pools of a hub.
#[derive(Clone)]
pub struct Pools(Arc<Shared>);

impl std::fmt::Debug for Pools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pools")
    }
}

pub(super) struct Shared {
    /// Held only to look, and to put in what is in the journal already.
    known: Mutex<Known>,
    /// One change at a time; held while it is written.
    changing: tokio::sync::Mutex<()>,
    documents: Documents,
    /// Something was changed by a person.
    pub wake: Notify,
    dir: PathBuf,
    pub handle: Handle,
    pub clock: Clock,
    /// The hub's own, for the addresses.
    access: Access,
    /// How often the batch system is asked.
    pub list_ms: u64,
}

struct Known {
    state: State,
    /// What each group has ready, as of the last look.
    backlogs: BTreeMap<String, Vec<Backlog>>,
}

/// Why a person's wish is not met.
#[derive(Debug, thiserror::Error)]
pub enum PoolRefusal {
    #[error("{0}")]
    Bad(String),
    #[error("there is a pool named {0} already: remove it first or choose another name")]
    Taken(String),
    #[error("there is no pool {0}")]
    Missing(String),
    #[error(transparent)]
    Store(#[from] DocumentError),
    #[error(transparent)]
    Security(#[from] SecurityError),
}

impl Pools {
    /// Reads what an earlier life of the hub knew, makes of it what the hub's file says, and writes the addresses of this
    /// one for their workers.
    pub(crate) fn open(
        dir: &Path,
        access: &Access,
        handle: Handle,
        clock: Clock,
        list_ms: u64,
        named: &[NamedPool],
        opening: &mut Opening<'_>,
    ) -> Result<Pools, PoolRefusal> {
        let state = kept::open(opening, &dir.join(OLD_FILE))?;
        let pools = Pools(Arc::new(Shared {
            known: Mutex::new(Known { state, backlogs: BTreeMap::new() }),
            changing: tokio::sync::Mutex::default(),
            documents: Documents::new(handle.clone()),
            wake: Notify::new(),
            dir: dir.to_owned(),
            handle,
            clock,
            access: access.clone(),
            list_ms,
        }));
        let specs: Vec<PoolSpec> =
            pools.0.known().state.pools.iter().map(|pool| pool.spec.clone()).collect();
        for spec in specs {
            pools.0.give_access(&spec)?;
        }
        let before = pools.0.known().state.clone();
        let mut state = before.clone();
        pools.0.settle_file(named, &mut state)?;
        opening.write(kept::changes(&before, &state));
        pools.0.known().state = state;
        Ok(pools)
    }

    pub(super) fn shared(&self) -> Arc<Shared> {
        self.0.clone()
    }

    pub async fn add(&self, spec: PoolSpec) -> Result<api::Pool, PoolRefusal> {
        laboro_pool::check(&spec).map_err(PoolRefusal::Bad)?;
        let (name, now_ms) = (spec.name.clone(), self.0.now_ms());
        let add = |state: &mut State| {
            if state.find(&spec.name).is_some() {
                return Err(PoolRefusal::Taken(spec.name));
            }
            self.0.give_access(&spec)?;
            state.pools.push(Pool::new(spec, now_ms));
            Ok(())
        };
        self.0.try_change(add).await?;
        tracing::info!(event = "pool_added", pool = name, "pool {name} was made");
        self.0.wake.notify_waiters();
        self.show(&name)
    }

    pub async fn set(&self, name: &str, standing: Standing) -> Result<api::Pool, PoolRefusal> {
        let now_ms = self.0.now_ms();
        let words = match standing {
            Standing::Active => "resumed",
            Standing::Paused => "paused",
            Standing::Removing => "is being removed",
        };
        // As it was changed: one that is empty is gone as soon as it may go.
        let set = |state: &mut State| {
            let pool = state.find_mut(name)?;
            // What was asked to go goes.
            if pool.standing != Standing::Removing && pool.standing != standing {
                pool.standing = standing;
                pool.wait_until_ms = 0;
                pool.note(now_ms, words.to_owned());
            }
            Some(pool.clone())
        };
        let changed = self.0.change(set).await?;
        let pool = changed.ok_or_else(|| PoolRefusal::Missing(name.to_owned()))?;
        tracing::info!(event = "pool_changed", pool = name, "pool {name}: {words}");
        self.0.wake.notify_waiters();
        Ok(self.view(&pool, &self.0.known()))
    }

    pub fn show(&self, name: &str) -> Result<api::Pool, PoolRefusal> {
        let known = self.0.known();
        let pool = known.state.find(name);
        pool.map(|pool| self.view(pool, &known))
            .ok_or_else(|| PoolRefusal::Missing(name.to_owned()))
    }

    pub fn list(&self) -> Vec<api::Pool> {
        let known = self.0.known();
        known.state.pools.iter().map(|pool| self.view(pool, &known)).collect()
    }

    fn view(&self, pool: &Pool, known: &Known) -> api::Pool {
        let backlog = known.backlogs.get(&pool.spec.group).map_or(&[][..], Vec::as_slice);
        let reason = pool.reason(backlog, self.0.now_ms());
        pool.view(reason)
    }

    /// What the pools of its group do about a task that waits for a worker.
    pub fn explain(&self, group: &Name, task: &TaskView) -> Vec<String> {
        let known = self.0.known();
        let of_group = |pool: &&Pool| Name::from(pool.spec.group.as_str()) == *group;
        let pools = known.state.pools.iter().filter(of_group);
        let profile = &task.profile;
        let limit = profile.time_request_ms.or(profile.time_limit_ms);
        let explain = |pool: &Pool| {
            let name = &pool.spec.name;
            match Shape::of(&pool.spec).lacks(&profile.needs, limit) {
                Some(lack) => format!("pool {name} does not help: {lack}"),
                None => format!("pool {name}: {}", self.view(pool, &known).reason),
            }
        };
        pools.map(explain).collect()
    }

    /// Tries the commands of a pool; nothing is submitted.
    pub async fn test(&self, name: &str) -> Result<api::PoolTest, PoolRefusal> {
        let pool = self.0.known().state.find(name).cloned();
        let pool = pool.ok_or_else(|| PoolRefusal::Missing(name.to_owned()))?;
        let place = self.0.place(&pool.spec);
        let scheduler = Scheduler::new(&pool.spec, &place);
        let ids: Vec<String> = pool.allocations.iter().filter_map(|one| one.id.clone()).collect();
        let calls = [scheduler.prepare(), Some(scheduler.list(&ids)), scheduler.try_submit()];
        let mut steps = Vec::new();
        for call in calls.into_iter().flatten() {
            let came_to = laboro_pool::run_within(&call, TEST_MAX).await;
            let (ok, text) = match came_to {
                Ok(printed) => (true, printed.trim().to_owned()),
                Err(error) => (false, error.to_string()),
            };
            let text = text.chars().take(2000).collect();
            steps.push(api::PoolStep { command: call.words.join(" "), ok, text });
        }
        Ok(api::PoolTest { ok: steps.iter().all(|step| step.ok), steps })
    }
}

/// Of each command of a test: a person waits, and all of them end before a client gives up.
const TEST_MAX: Duration = Duration::from_secs(15);

impl Shared {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.clock.now().0
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.known().state.pools.iter().map(|pool| pool.spec.name.clone()).collect()
    }

    pub(super) fn pool(&self, name: &str) -> Option<Pool> {
        self.known().state.find(name).cloned()
    }

    /// It is in the journal when this returns.
    pub(super) async fn change<T>(
        &self,
        change: impl FnOnce(&mut State) -> T,
    ) -> Result<T, DocumentError> {
        self.try_change(|state| Ok(change(state))).await
    }

    /// The same for one that may be refused. Nothing is changed by one that is refused or cannot be written.
    async fn try_change<T, E: From<DocumentError>>(
        &self,
        change: impl FnOnce(&mut State) -> Result<T, E>,
    ) -> Result<T, E> {
        let _changing = self.changing.lock().await;
        let before = self.known().state.clone();
        let mut next = before.clone();
        let came_to = change(&mut next)?;
        self.documents.write(kept::changes(&before, &next)).await?;
        self.known().state = next;
        Ok(came_to)
    }

    /// The same for one pool, if it is still there.
    pub(super) async fn change_pool<T>(
        &self,
        name: &str,
        change: impl FnOnce(&mut Pool) -> T,
    ) -> Result<Option<T>, DocumentError> {
        self.change(|state| state.find_mut(name).map(change)).await
    }

    /// How many allocations the pool is to submit now, for this backlog of its group.
    pub(super) fn wanted(&self, name: &str, backlog: Vec<Backlog>) -> u32 {
        let mut known = self.known();
        let now_ms = self.now_ms();
        let Some(group) = known.state.find(name).map(|pool| pool.spec.group.clone()) else {
            return 0;
        };
        let of_group: Vec<&Pool> =
            known.state.pools.iter().filter(|pool| pool.spec.group == group).collect();
        let shares: Vec<(Shape, u32, u32)> = of_group
            .iter()
            .map(|pool| (Shape::of(&pool.spec), pool.coming(), pool.room(now_ms)))
            .collect();
        let more = laboro_pool::share_out(&shares, &backlog);
        let at = of_group.iter().position(|pool| pool.spec.name == name);
        let wanted = at.map_or(0, |at| more[at]);
        known.backlogs.insert(group, backlog);
        wanted
    }

    pub(super) fn place(&self, spec: &PoolSpec) -> Place {
        let program = std::env::current_exe()
            .map_or_else(|_| "laboro".to_owned(), |program| program.to_string_lossy().into_owned());
        let dir = self.dir_of(&spec.name);
        let dir = std::path::absolute(&dir).unwrap_or(dir).to_string_lossy().into_owned();
        let access = std::fs::read_to_string(self.access_file(&spec.name)).unwrap_or_default();
        Place { dir, hub: self.hub_mark(), program, access }
    }

    /// Four digits that say which hub of its user this is.
    fn hub_mark(&self) -> String {
        let digest =
            ring::digest::digest(&ring::digest::SHA256, self.access.certificate.as_bytes());
        laboro_net::hex::hex(&digest.as_ref()[..2])
    }

    fn dir_of(&self, name: &str) -> PathBuf {
        self.dir.join("pools").join(name)
    }

    fn access_file(&self, name: &str) -> PathBuf {
        Access::path_in(&self.dir_of(name))
    }

    /// Makes, changes and removes pools so that they are what the hub's file says. Those made by a person stay.
    fn settle_file(&self, named: &[NamedPool], state: &mut State) -> Result<(), PoolRefusal> {
        let now_ms = self.now_ms();
        let is_named = |pool: &Pool| named.iter().any(|one| one.0.name == pool.spec.name);
        for NamedPool(spec) in named {
            let pool = match state.find_mut(&spec.name) {
                Some(pool) => pool,
                None => {
                    state.pools.push(Pool::new(spec.clone(), now_ms));
                    state.pools.last_mut().expect("it was pushed")
                }
            };
            pool.from_file = true;
            if pool.standing == Standing::Removing {
                pool.standing = Standing::Active;
            }
            if pool.spec != *spec {
                self.change_spec(pool, spec, now_ms)?;
            }
            self.give_access(&pool.spec)?;
        }
        for pool in state.pools.iter_mut().filter(|pool| pool.from_file && !is_named(pool)) {
            pool.standing = Standing::Removing;
            pool.note(now_ms, "removing: its lines in hub.toml were deleted".to_owned());
        }
        Ok(())
    }

    /// Allocations are found again by the commands and the token that they were started with.
    fn change_spec(
        &self,
        pool: &mut Pool,
        spec: &PoolSpec,
        now_ms: u64,
    ) -> Result<(), SecurityError> {
        let (old, name) = (&pool.spec, &spec.name);
        let is_same = (old.kind, &old.via, &old.group) == (spec.kind, &spec.via, &spec.group);
        if !is_same && !pool.allocations.is_empty() {
            let words = "hub.toml gives it another kind, `via` or group: the old one holds while it has allocations";
            tracing::warn!(event = "pool_trouble", pool = name, "pool {name}: {words}");
            pool.note(now_ms, words.to_owned());
            return Ok(());
        }
        if !is_same {
            // The token is for the old group.
            PoolTokens::of(&self.dir).take_back(name)?;
            let _ = std::fs::remove_file(self.access_file(name));
        }
        pool.spec = spec.clone();
        pool.note(now_ms, "changed in hub.toml".to_owned());
        Ok(())
    }

    /// A file that only this user can read, with a token that may do nothing but work.
    fn give_access(&self, spec: &PoolSpec) -> Result<(), PoolRefusal> {
        make_dir(&self.dir_of(&spec.name))?;
        let path = self.access_file(&spec.name);
        let own = Access::read_own(&path)?.map(|own| own.token);
        let token = PoolTokens::of(&self.dir).give(spec, own, self.clock.now())?;
        let group = Some(spec.group.clone());
        let own = self.access.clone();
        Access { socket: None, role: Role::Work, group, token, ..own }.write(&path)?;
        Ok(())
    }

    /// Its last allocation is gone.
    pub(super) async fn forget(&self, name: &str) -> Result<(), PoolRefusal> {
        self.change(|state| state.pools.retain(|pool| pool.spec.name != name)).await?;
        PoolTokens::of(&self.dir).take_back(name)?;
        // What its allocations printed may still be wanted; the token is not.
        let _ = std::fs::remove_file(self.access_file(name));
        tracing::info!(event = "pool_removed", pool = name, "pool {name} was removed");
        Ok(())
    }
}
