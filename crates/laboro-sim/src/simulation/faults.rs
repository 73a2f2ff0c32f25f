//! What goes wrong, and when.

use super::Simulation;
use super::seats::Who;
use crate::clock::Offset;
use crate::dice::Dice;
use crate::plan::Faults;
use crate::promise::Kept;

/// When each kind of fault happens next.
pub(crate) struct Timers {
    timers: Vec<Timer>,
}

struct Timer {
    fault: Fault,
    mean_ms: u64,
    at: u64,
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    HubCrash,
    HubStop,
    DiskRefusal,
    Cut,
    Partition,
    WorkerCrash,
    Stall,
    WorkerLeaves,
}

impl Timers {
    pub fn new(faults: &Faults, dice: &mut Dice) -> Timers {
        let kinds = [
            (Fault::HubCrash, faults.hub_crash_ms),
            (Fault::HubStop, faults.hub_stop_ms),
            (Fault::DiskRefusal, faults.disk_refusal_ms),
            (Fault::Cut, faults.cut_ms),
            (Fault::Partition, faults.partition_ms),
            (Fault::WorkerCrash, faults.worker_crash_ms),
            (Fault::Stall, faults.worker_stall_ms),
            (Fault::WorkerLeaves, faults.worker_leaves_ms),
        ];
        let happening = kinds.into_iter().filter(|(_, mean_ms)| *mean_ms > 0);
        let timer = |(fault, mean_ms)| Timer { fault, mean_ms, at: dice.between(1, 2 * mean_ms) };
        Timers { timers: happening.map(timer).collect() }
    }

    pub fn due(&self) -> Option<u64> {
        self.timers.iter().map(|timer| timer.at).min()
    }

    fn take(&mut self, now: u64, dice: &mut Dice) -> Option<Fault> {
        let timer = self.timers.iter_mut().find(|timer| timer.at <= now)?;
        timer.at = now + dice.between(1, 2 * timer.mean_ms);
        Some(timer.fault)
    }
}

impl Simulation {
    pub(super) fn go_wrong(&mut self) -> Kept {
        while let Some(fault) = self.timers.take(self.now, &mut self.dice) {
            self.happen(fault)?;
        }
        Ok(())
    }

    fn happen(&mut self, fault: Fault) -> Kept {
        let at = self.dice.index(self.seats.seats.len());
        let now = self.now;
        let name = self.seats.seats[at].who.peer().name().to_owned();
        match fault {
            Fault::HubCrash => {
                if self.hub.engine.is_some() {
                    self.timeline.say(now, format_args!("hub: crashes"));
                    self.crash_hub()?;
                }
            }
            Fault::HubStop => {
                self.timeline.say(now, format_args!("hub: is told to stop"));
                self.stop_hub();
            }
            Fault::DiskRefusal => {
                if let Some(engine) = &self.hub.engine {
                    self.timeline.say(now, format_args!("disk: is about to refuse"));
                    engine.journal.refuse();
                }
            }
            Fault::Cut => {
                if self.seats.cut(at, now, &mut self.dice) {
                    self.timeline.say(now, format_args!("network: cuts {name}"));
                }
            }
            Fault::Partition => {
                self.seats.cut(at, now, &mut self.dice);
                let until = now + self.dice.mostly_short(15_000);
                self.seats.seats[at].apart_until = until;
                self.timeline.say(now, format_args!("network: {name} is apart until {until} ms"));
            }
            Fault::WorkerCrash => {
                let back_at = now + 10 + self.dice.mostly_short(8000);
                if let Who::Agent(agent) = &mut self.seats.seats[at].who {
                    let clock = self.plan.faults.clocks_jump.then(|| {
                        let ahead = self.dice.mostly_short(600_000);
                        Offset(Offset::USUAL.0 + ahead - 300_000)
                    });
                    agent.crash(back_at, clock);
                    self.seats.drop_line(at, now, &mut self.dice);
                    self.tally.worker_crashes += 1;
                    self.timeline.say(now, format_args!("{name}: crashes, back at {back_at} ms"));
                }
            }
            Fault::Stall => {
                let until = now + self.dice.mostly_short(20_000);
                match &mut self.seats.seats[at].who {
                    Who::Agent(agent) => agent.stall(until),
                    Who::Visitor(visitor) => visitor.stall(until),
                }
                self.tally.stalls += 1;
                self.timeline.say(now, format_args!("{name}: stands still until {until} ms"));
            }
            Fault::WorkerLeaves => {
                if let Who::Agent(agent) = &mut self.seats.seats[at].who {
                    agent.signal(now);
                    self.timeline.say(now, format_args!("{name}: is told to finish"));
                }
            }
        }
        Ok(())
    }
}
