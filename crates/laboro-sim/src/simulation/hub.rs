//! Where the hub stands: its directory, its lives one after the other, and how they end.

use super::Simulation;
use crate::clock::{HubClock, Offset};
use crate::dice::Dice;
use crate::disk::Disk;
use crate::engine::{Birth, Engine};
use crate::journal::{CALM_SYNC_MS, Doubt, SimJournal};
use crate::now_or_never;
use crate::oracle::Oracle;
use crate::plan::Plan;
use crate::promise::{Broken, Kept, Promise};
use crate::tap::Tap;
use laboro_core::{Grant, Kinds, Work, WorkKind};
use laboro_dialects::{dwork, runexp};
use std::sync::Arc;
use std::task::Poll;
use tempfile::TempDir;

pub(crate) struct HubPlace {
    dir: TempDir,
    disk: Disk,
    pub engine: Option<Engine>,
    pub doors: Option<Doors>,
    up_at: u64,
    /// It stops in order: nobody new comes in.
    pub is_stopping: bool,
    has_ended_inbox: bool,
    offset: Offset,
    doubt: Option<Doubt>,
    tap: Tap,
    dice: Dice,
    is_calm: bool,
}

/// What the conversations of one life share.
#[derive(Clone)]
pub(crate) struct Doors {
    pub dwork: Arc<dwork::HubDoor>,
    pub runexp: runexp::ManagerDoor,
}

/// Memory, where there is such a place: a real disk adds nothing but time.
const MEMORY_DIR: &str = "/dev/shm";

impl HubPlace {
    pub fn new(tap: Tap, dice: Dice) -> Result<HubPlace, Broken> {
        let made = tempfile::Builder::new().prefix("laboro-sim-").tempdir_in(MEMORY_DIR);
        let dir = made.or_else(|_| tempfile::tempdir()).map_err(|error| {
            Broken::new(Promise::StartsAgain, format!("a directory to work in: {error}"))
        })?;
        Ok(HubPlace {
            disk: Disk::over(dir.path()),
            dir,
            engine: None,
            doors: None,
            up_at: 0,
            is_stopping: false,
            has_ended_inbox: false,
            offset: Offset::USUAL,
            doubt: None,
            tap,
            dice,
            is_calm: false,
        })
    }

    pub fn due(&self) -> Option<u64> {
        match &self.engine {
            Some(engine) => engine.due(),
            None => Some(self.up_at),
        }
    }

    pub fn offset(&self) -> Option<Offset> {
        self.engine.as_ref().map(|engine| engine.offset)
    }

    pub fn calm_down(&mut self, now: u64) {
        self.is_calm = true;
        self.up_at = self.up_at.min(now);
        if let Some(engine) = &self.engine {
            engine.journal.calm_down();
        }
    }

    /// What the journal gives back is looked at before the hub has it.
    fn start(&mut self, now: u64, plan: &Plan, oracle: &mut Oracle) -> Kept {
        let clock = HubClock::default();
        let mut disposition = plan.journal.clone();
        if self.is_calm {
            disposition.sync_ms_max = CALM_SYNC_MS;
        }
        let (path, tap, dice) = (self.dir.path(), self.tap.clone(), self.dice.split());
        let (journal, ledger) =
            SimJournal::open(path, &self.disk, clock.clone(), tap.clone(), &disposition, dice)?;
        oracle.recovered(&ledger, self.doubt.take())?;
        if plan.faults.clocks_jump && self.dice.one_in(2) {
            let back = self.dice.mostly_short(7_200_000);
            let ahead = self.dice.mostly_short(7_200_000);
            self.offset = Offset(Offset::USUAL.0 + ahead - back);
        }
        let birth = Birth {
            ledger,
            journal,
            config: plan.config.clone(),
            options: plan.server.clone(),
            clock,
            offset: self.offset,
            tap,
            sabotage: plan.sabotage,
        };
        self.doors = Some(doors(plan)?);
        (self.is_stopping, self.has_ended_inbox) = (false, false);
        self.engine = Some(Engine::start(birth, now));
        Ok(())
    }
}

fn doors(plan: &Plan) -> Result<Doors, Broken> {
    let dwork = dwork::HubDoor::new(dwork::Settings {
        patience_ms: 300,
        exit_when_finished: false,
        lease_ms: Some(plan.dwork_lease_ms),
        only_holder: plan.dwork_only_holder,
        kinds: Kinds::of(&[WorkKind::Named]),
        ..dwork::Settings::default()
    });
    let runexp = runexp::ManagerDoor::new("")
        .map_err(|error| Broken::new(Promise::StartsAgain, error.to_string()))?
        .with_fill(fill)
        .staying();
    Ok(Doors { dwork, runexp })
}

/// Nobody looks at what an element stands for.
fn fill(grant: &Grant) -> Result<runexp::Filled, String> {
    let work = grant.work.as_deref().cloned().unwrap_or(Work::Named);
    Ok(runexp::Filled { work, arguments: Vec::new() })
}

impl Simulation {
    pub(super) fn start_hub_if_due(&mut self) -> Kept {
        if self.hub.engine.is_some() || self.hub.up_at > self.now {
            return Ok(());
        }
        self.hub.start(self.now, &self.plan, &mut self.oracle)?;
        self.tally.lives += 1;
        self.timeline.say(self.now, format_args!("hub: begins its life {}", self.tally.lives));
        Ok(())
    }

    /// Goes on as far as the hub can; true if something happened.
    pub(super) fn engine_turns(&mut self) -> Result<bool, Broken> {
        let Some(engine) = &mut self.hub.engine else { return Ok(false) };
        if self.hub.is_stopping && !self.hub.has_ended_inbox && !self.seats.has_talks() {
            self.hub.has_ended_inbox = true;
            let _ = now_or_never(engine.handle.end());
        }
        let (polled, time) = (engine.poll(self.now), engine.offset.time(self.now));
        let seen = self.tap.take();
        let has_moved = !seen.is_empty();
        for seen in seen {
            if self.timeline.is_kept() {
                super::seats::tell(&mut self.timeline, self.now, &seen);
            }
            self.oracle.see(time, seen)?;
        }
        match polled {
            Poll::Pending => Ok(has_moved),
            Poll::Ready(Ok(())) => {
                if let Some(engine) = self.hub.engine.take() {
                    engine.journal.close();
                }
                self.timeline.say(self.now, format_args!("hub: has stopped"));
                self.hub_is_gone();
                Ok(true)
            }
            // The words name a directory that is another one each time.
            Poll::Ready(Err(_)) => {
                self.timeline.say(self.now, format_args!("hub: its journal fails, it ends"));
                self.tally.refusals += 1;
                self.crash_hub()?;
                Ok(true)
            }
        }
    }

    pub(super) fn crash_hub(&mut self) -> Kept {
        let Some(engine) = self.hub.engine.take() else { return Ok(()) };
        let remains = engine.journal.crash()?;
        drop(engine);
        self.tally.torn += u64::from(remains.doubt.is_some());
        self.timeline.say(self.now, format_args!("hub: {}", remains.words));
        self.hub.doubt = remains.doubt;
        self.hub_is_gone();
        Ok(())
    }

    /// Stops it in order: everybody is told, and what was asked before is answered.
    pub(super) fn stop_hub(&mut self) {
        if let Some(engine) = &self.hub.engine
            && !self.hub.is_stopping
        {
            self.hub.is_stopping = true;
            self.seats.stop_talks(engine.offset.time(self.now));
        }
    }

    fn hub_is_gone(&mut self) {
        self.hub.engine = None;
        self.hub.doors = None;
        self.hub.is_stopping = false;
        let pause = if self.is_calm { 100 } else { self.dice.mostly_short(4000) };
        self.hub.up_at = self.now + pause;
        self.seats.lose_hub(self.now, &mut self.dice);
    }
}
