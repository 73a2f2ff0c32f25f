//! A run that is over, or was killed: its journal and its outputs, asked through the same API as a hub, within this
//! process. Changes nothing in its directory.

use super::serve::{Dashboards, ServedRun, look_elsewhere, services};
use super::{GROUP, config, layout};
use anyhow::Context;
use laboro_api::client::{Dial, Target};
use laboro_core::{Command, Hub, Join, SessionId};
use laboro_hub::http::{Services, router, serve_within};
use laboro_hub::{Handle, ServerOptions};
use laboro_journal::{Journal, MemoryJournal, read_ledger};
use laboro_net::Clock;
use std::path::Path;
use std::sync::Arc;
use tokio::net::UnixStream;

pub(crate) struct Past {
    services: Services,
}

impl Past {
    /// Only within a runtime, which the answers are made on.
    pub(crate) async fn open(dir: &Path) -> anyhow::Result<Past> {
        let journal = dir.join("journal");
        let ledger = read_ledger(&journal)
            .with_context(|| format!("{} cannot be read", journal.display()))?;
        let clock = Clock::start();
        let (mut hub, first) = Hub::begin(ledger, config(), clock.now(), layout::seed());
        let mut journal = MemoryJournal::default();
        journal.commit(first).await?;
        let (mut server, handle) = laboro_hub::server(&ServerOptions::default(), clock);
        tokio::spawn(async move { laboro_hub::run(&mut hub, &mut server, &mut journal).await });
        end_leases(&handle).await?;
        let outputs = ServedRun::outputs(dir);
        look_elsewhere(&outputs, dir);
        let shown = ServedRun { handle, clock, dir: dir.to_owned(), history: None, outputs };
        Ok(Past { services: services(&shown) })
    }

    pub(crate) fn target(&self, name: String) -> Target {
        let (limits, stats) = (self.services.limits.clone(), Arc::clone(&self.services.serving));
        let routes = router(self.services.clone());
        let dial: Dial = Arc::new(move || {
            let (here, there) = UnixStream::pair()?;
            let served = serve_within(there, routes.clone(), limits.clone(), Arc::clone(&stats));
            tokio::spawn(served);
            Ok(here)
        });
        Target { within: Some(dial), token: Some("run".to_owned()), ..Target::new(name, 0) }
    }

    pub(crate) fn dashboards(&self) -> Dashboards {
        Dashboards::new(self.services.clone())
    }
}

/// What a killed run had on loan is not running any more: its worker comes with nothing.
async fn end_leases(handle: &Handle) -> anyhow::Result<()> {
    let join = Join {
        running: Some(Vec::new()),
        ..Join::new(GROUP, super::WORKER, "local", SessionId(u64::MAX))
    };
    let worker = laboro_core::WorkerRef::Name { group: GROUP.into(), name: super::WORKER.into() };
    handle.ask(Command::Join(join)).await?;
    let leave = laboro_core::Leave { worker, session: None, how: laboro_core::Leaving::Gone };
    handle.ask(Command::Leave(leave)).await?;
    Ok(())
}
