//! One world: time goes from one thing that is due to the next, everybody who has something to do does it,
//! and the oracle looks at all of it. First things go wrong, then they stop, and everything must come to rest.

mod faults;
mod hub;
mod seats;

use crate::Tally;
use crate::clerk::Clerk;
use crate::dice::Dice;
use crate::network::Weather;
use crate::oracle::Oracle;
use crate::plan::{Plan, Sabotage};
use crate::promise::{Broken, Kept, Promise};
use crate::results::Results;
use crate::tap::Tap;
use crate::timeline::Timeline;
use faults::Timers;
use hub::HubPlace;
use laboro_core::State;
use seats::Seats;

pub(crate) struct Simulation {
    now: u64,
    dice: Dice,
    plan: Plan,
    timeline: Timeline,
    tap: Tap,
    oracle: Oracle,
    clerk: Clerk,
    hub: HubPlace,
    seats: Seats,
    timers: Timers,
    weather: Weather,
    is_calm: bool,
    tally: Tally,
    results: Results,
}

/// Once the faults have stopped, everything has so long to end.
const CALM_MS_MAX: u64 = 20 * 60_000;
/// How often it is looked whether everything has ended, and whatever hinders is taken away.
const LOOK_MS: u64 = 2000;
/// For answers that may wait, after the last task.
const REST_MS: u64 = 5000;
/// Nothing that makes sense takes so many rounds.
const ROUNDS_MAX: u64 = 2_000_000;
/// Rounds in one moment: an exchange takes a few.
const ROUNDS_A_MOMENT_MAX: u64 = 1000;

impl Simulation {
    pub fn new(
        seed: u64,
        sabotage: Option<Sabotage>,
        mut timeline: Timeline,
    ) -> Result<Simulation, Broken> {
        let mut dice = Dice::new(seed);
        let plan = Plan::draw(&mut dice, sabotage);
        timeline.say(0, format_args!("seed {seed}"));
        for worker in &plan.workers {
            timeline.say(0, format_args!("{worker:?}"));
        }
        timeline.say(0, format_args!("{:?} {:?} {:?}", plan.faults, plan.weather, plan.journal));
        let tap = Tap::default();
        Ok(Simulation {
            now: 0,
            oracle: Oracle::new(plan.config.shares.clone()),
            clerk: Clerk::new(dice.split(), &plan),
            hub: HubPlace::new(tap.clone(), dice.split())?,
            seats: Seats::new(&plan, &mut dice),
            timers: Timers::new(&plan.faults, &mut dice),
            weather: plan.weather.clone(),
            dice,
            plan,
            timeline,
            tap,
            is_calm: false,
            tally: Tally::default(),
            results: Results::default(),
        })
    }

    pub fn run(&mut self) -> Kept {
        self.go_on_until(self.plan.turbulent_ms)?;
        self.calm_down()?;
        let give_up_at = self.now + CALM_MS_MAX;
        loop {
            self.go_on_until(self.now + LOOK_MS)?;
            if self.is_at_rest() {
                break;
            }
            if self.now >= give_up_at {
                return Err(Broken::new(Promise::Drains, self.what_is_left()));
            }
            if let Some(engine) = &self.hub.engine {
                self.clerk.calm_down(&engine.handle.for_people(), &self.oracle);
            }
        }
        self.go_on_until(self.now + REST_MS)?;
        self.last_look()
    }

    pub fn tally(&self) -> Tally {
        Tally {
            batches: self.oracle.batches,
            grants: self.oracle.grants,
            submits: self.clerk.acked,
            started: self.seats.started(),
            virtual_ms: self.now,
            ..self.tally
        }
    }

    pub fn into_timeline(self) -> Timeline {
        self.timeline
    }

    fn go_on_until(&mut self, end: u64) -> Kept {
        let mut rounds = 0;
        while self.now < end {
            self.moment()?;
            rounds += 1;
            if rounds > ROUNDS_MAX {
                return Err(Broken::new(Promise::Drains, "the world does not come to rest"));
            }
            self.now = self.next_due().max(self.now + 1).min(end);
        }
        Ok(())
    }

    fn next_due(&self) -> u64 {
        let hub = self.hub.due();
        let seats = self.seats.due(self.now, self.hub.offset());
        let clerk = self.clerk.due().filter(|_| self.hub.engine.is_some());
        let faults = self.timers.due().filter(|_| !self.is_calm);
        [hub, seats, clerk, faults].into_iter().flatten().min().unwrap_or(u64::MAX)
    }

    /// Everything that happens now, until nobody has anything more to do.
    fn moment(&mut self) -> Kept {
        if !self.is_calm {
            self.go_wrong()?;
        }
        self.start_hub_if_due()?;
        self.connect();
        self.peers_turn()?;
        if let Some(engine) = &self.hub.engine
            && let Some(words) = self.clerk.act(self.now, &engine.handle.for_people(), &self.oracle)
        {
            self.timeline.say(self.now, format_args!("clerk: {words}"));
        }
        for _ in 0..ROUNDS_A_MOMENT_MAX {
            self.talks_turn()?;
            if !self.engine_turns()? {
                self.talks_send();
                return Ok(());
            }
            self.clerk.hear(&self.oracle)?;
        }
        Err(Broken::new(Promise::Drains, "hub and sessions have no end of things to say"))
    }

    /// The faults stop: whatever is down comes up, whatever stands still goes on.
    fn calm_down(&mut self) -> Kept {
        self.timeline.say(self.now, format_args!("calm"));
        self.is_calm = true;
        self.weather = Weather { delay_ms_max: 2, pieces_max: 2 };
        self.clerk.rest();
        self.hub.calm_down(self.now);
        self.seats.calm_down(self.now);
        Ok(())
    }

    fn is_at_rest(&self) -> bool {
        self.clerk.is_idle() && self.seats.are_settled() && self.oracle.active().is_empty()
    }

    fn what_is_left(&self) -> String {
        let mut what = Vec::new();
        if !self.clerk.is_idle() {
            what.push("the clerk waits for answers".to_owned());
        }
        what.extend(self.seats.unsettled().map(|name| format!("{name} is not settled")));
        let active = self.oracle.active();
        let leases = self.oracle.leases();
        let some = active.iter().take(5).map(|(task, state)| {
            let holder = leases.iter().find(|(leased, ..)| leased == task);
            let held = holder.map(|(_, lease, worker)| format!(" by {} as {lease}", worker.0));
            format!("{task} is {}{}", state.word(), held.unwrap_or_default())
        });
        what.extend(some);
        format!("{} tasks are left: {}", active.len(), what.join(", "))
    }

    /// Everything is quiet: what was promised is looked up once more, in a hub that was started anew.
    fn last_look(&mut self) -> Kept {
        if let Some(engine) = &self.hub.engine {
            self.oracle.check_answers(engine.offset.time(self.now))?;
        }
        self.clerk.check(&self.oracle, self.plan.config.keep.jobs < 100)?;
        for &task in &self.oracle.ends_acked {
            match self.oracle.state(task) {
                None | Some(State::Done) => {}
                Some(state) => {
                    let what = format!("{task} was acknowledged as done and is {}", state.word());
                    return Err(Broken::new(Promise::NothingLost, what));
                }
            }
        }
        let lives = self.tally.lives;
        self.stop_hub();
        self.go_on_until(self.now + LOOK_MS * 3)?;
        if self.tally.lives == lives {
            return Err(Broken::new(Promise::Drains, "the hub does not stop in order"));
        }
        let left = self.oracle.unfinished();
        self.timeline.say(self.now, format_args!("at rest; {left} tasks wait for a person"));
        Ok(())
    }
}
