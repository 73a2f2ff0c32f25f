//! What the hub tells the worker to do.

use std::time::Duration;

use laboro_core::{Outcome, Role, counted};
use laboro_dialects::worker::{Assignment, Key, News, Order, Parting, TaskEnd, Used};

use super::link::{Link, Next};
use super::pace::AHEAD_MAX;
use super::stages::Stage;
use super::{Agent, Farewell};

/// So many in a row that do not fit its time are enough.
const MISFITS_MAX: u32 = 16;

impl Agent {
    pub(super) fn obey(&mut self) {
        while !self.orders.orders.is_empty() {
            let mut orders = std::mem::take(&mut self.spare_orders);
            std::mem::swap(&mut orders, &mut self.orders.orders);
            for order in orders.drain(..) {
                match order {
                    Order::Start(assignment) => self.assigned(assignment),
                    Order::Cancel(key) => self.cancel(key),
                    Order::Welcome { name } => self.welcome(&name),
                    Order::GiveUpSlots(slots) => self.slots = self.slots.saturating_sub(slots),
                    Order::Drain => {
                        self.note("drained by the hub: finishing running tasks");
                        self.drain_for_hub();
                    }
                    Order::StopNow => {
                        self.note("stopped by the hub");
                        self.end_tasks(Duration::ZERO);
                    }
                    Order::Fail(why) => {
                        self.unable.get_or_insert(why);
                        self.drain(None);
                    }
                    Order::Say(words) => self.note(&words),
                }
            }
            self.spare_orders = orders;
        }
    }

    fn welcome(&mut self, name: &str) {
        if !self.has_met || name != self.options.name {
            self.options.name = name.to_owned();
            self.maker.rename(name);
        }
        self.has_met = true;
        self.put_off = None;
        let slots = counted(self.slots, "slot");
        self.note(&format!("connected as {name}, {slots}"));
        // The hub may have forgotten what it was told.
        let ahead = if self.crew.is_some() { self.pace.told() } else { AHEAD_MAX };
        if ahead > 0 && self.stage == Stage::Working {
            self.tell(News::Ahead(ahead));
        }
    }

    fn assigned(&mut self, assignment: Box<Assignment>) {
        if !self.takes() {
            self.tell(News::Returned(assignment.key));
        } else if assignment.role == Role::Kept {
            self.note(&format!("kept for {}, which runs on another worker", assignment.name));
            self.kept_for.insert(assignment.key);
            self.tell(News::Started(assignment.key));
        } else if self.crew.is_none() {
            let how = TaskEnd { outcome: Outcome::Success, message: None, used: Used::default() };
            self.idle_since = std::time::Instant::now();
            self.tell(News::Ended { key: assignment.key, how });
        } else if !self.has_time_for(&assignment) {
            self.misfit(&assignment);
        } else {
            self.misfits = 0;
            self.waiting.push_back(assignment);
        }
    }

    /// Given back: others have more time. A hub that was told how long this worker has sends few such tasks;
    /// one that goes on sending nothing else has nothing for it.
    fn misfit(&mut self, assignment: &Assignment) {
        self.misfits += 1;
        if self.misfits == 1 {
            let name = &assignment.name;
            self.note(&format!(
                "{name} may take longer than this worker has left: given back to the hub"
            ));
        }
        self.tell(News::Returned(assignment.key));
        if self.misfits >= MISFITS_MAX {
            self.note("all tasks may take longer than this worker has left: exiting");
            self.drain(None);
        }
    }

    /// Its end is told all the same, so that the conversation knows that its room is free.
    fn cancel(&mut self, key: Key) {
        if self.kept_for.remove(&key) {
            self.idle_since = std::time::Instant::now();
            self.tell(News::Returned(key));
            return;
        }
        if let Some(at) = self.waiting.iter().position(|waiting| waiting.key == key) {
            self.waiting.remove(at);
            self.tell(News::Returned(key));
        } else if let (Some(running), Some(crew)) = (self.running.get_mut(&key), &self.crew) {
            running.is_cancelled = true;
            crew.runner.stop(key.0, self.options.grace);
            self.calls.cancel(key);
            self.tell_of_calls();
        }
    }

    /// The conversation ends the connection.
    pub(super) fn part(&mut self, parting: Parting, link: &mut Link) {
        match parting {
            Parting::Finished => {
                link.hang_up(Next::Never);
                // A dialect whose hub says that all is done; what runs is not worth the waiting.
                self.end_tasks(self.options.grace);
            }
            Parting::Refused(why) => {
                link.hang_up(Next::Never);
                self.farewell.get_or_insert(Farewell::Refused(why));
            }
            Parting::NotNow(why) => {
                // Said once, however often it is tried.
                if self.put_off.as_ref() != Some(&why) {
                    self.note(&format!(
                        "the hub does not accept this worker now: {why}; trying again"
                    ));
                    self.put_off = Some(why);
                }
                link.hang_up(Next::Later);
            }
            Parting::Malformed(why) => {
                self.note(&format!("{} does not make sense: {why}", link.target()));
                link.hang_up(Next::Later);
            }
            Parting::Again(why) => {
                if self.is_busy() {
                    self.note(&format!("reconnecting: {why}"));
                }
                link.hang_up(Next::Soon);
            }
        }
    }
}
