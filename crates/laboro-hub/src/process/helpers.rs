//! Pools, hooks and schedules, each on a thread of its own beside the engine: opened on what the journal holds of them,
//! before anybody can ask anything.

use super::HubError;
use super::journal::HubJournal;
use crate::config::Settings;
use crate::documents::{DocumentError, Opening};
use crate::hooks::{self, HookNotes, Hooks};
use crate::inbox::Handle;
use crate::pools::{self, Pools};
use crate::schedules::{self, Schedules};
use crate::security::Access;
use laboro_core::{DocumentChange, Hub, Ledger};
use laboro_net::Clock;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// What a hub that starts in this directory writes into a journal that holds this, of pools, hooks and a schedule `night`.
pub fn read_kept(ledger: &Ledger, dir: &Path) -> Result<Vec<DocumentChange>, DocumentError> {
    let mut opening = Opening::of(ledger);
    pools::read_kept(&mut opening, dir)?;
    hooks::read_kept(&mut opening, dir)?;
    schedules::read_kept(&mut opening, dir)?;
    Ok(opening.into_writing().into_changes())
}

pub(super) struct Helpers {
    pub pools: Pools,
    pub hooks: Hooks,
    pub schedules: Schedules,
}

impl Helpers {
    pub fn open(
        settings: &Settings,
        access: &Access,
        handle: &Handle,
        clock: Clock,
        (hub, journal): (&mut Hub, &mut HubJournal),
    ) -> Result<Helpers, HubError> {
        let mut opening = Opening::of(hub.ledger());
        let (dir, list_ms) = (&settings.dir, settings.pools.list_ms);
        let named = settings.pool.as_slice();
        let pools = Pools::open(dir, access, handle.clone(), clock, list_ms, named, &mut opening)?;
        let (told, rules) = (&settings.hooks, settings.hook.as_slice());
        let known = Some(pools.clone());
        let hooks = Hooks::open(dir, told, rules, handle.clone(), clock, known, &mut opening)?;
        let planned = settings.schedule.as_slice();
        let schedules = Schedules::open(dir, planned, access, handle.clone(), clock, &mut opening)?;
        let writing = opening.into_writing();
        writing.finish(hub, clock.now(), |batch| journal.commit_blocking(batch))?;
        Ok(Helpers { pools, hooks, schedules })
    }

    /// They end with the hub. Gives what is to be told of events.
    pub fn start(&self, stop: &CancellationToken) -> std::io::Result<HookNotes> {
        pools::start(&self.pools, stop.clone())?;
        let (notes, changed, heard) = HookNotes::new();
        hooks::start(&self.hooks, changed, heard, stop.clone())?;
        schedules::start(&self.schedules, stop.clone())?;
        Ok(notes)
    }
}
