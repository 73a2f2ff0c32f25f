//! Calls at the agent: they take slots as other tasks do, and go to runners that stay.

use laboro_dialects::session::Stream as Said;
use laboro_dialects::worker::{Assignment, Key, News};

use super::Agent;
use super::running::Running;
use crate::calls::{CallNews, CallTurn};
use crate::{Refusal, RunnerError};

impl Agent {
    pub(super) fn begin_call(&mut self, assignment: Box<Assignment>, slots: u32) {
        let key = assignment.key;
        let running = match self
            .open_calls()
            .and_then(|()| Running::new(slots, self.options.output_limit, None, None))
        {
            Ok(running) => running,
            Err(Refusal { message, .. }) => {
                self.side.not_started(self.clock.now(), key, message, &mut self.orders);
                return;
            }
        };
        self.count_in(key, running);
        self.running_calls += 1;
        self.calls.push(assignment);
        self.give_calls();
    }

    /// Runners have a guardian of their own: they stay, and its places are counted by tasks that do not.
    fn open_calls(&mut self) -> Result<(), Refusal> {
        if self.calls.has_crew() {
            return Ok(());
        }
        let crew = self.crew.as_ref().expect("without a crew nothing waits");
        let crew = crew.another().map_err(|error| Refusal::from(error.to_string()))?;
        self.calls.set_crew(crew);
        if let Some(nonce) = self.calls.nonce()
            && let Err(error) = self.scratch.add_runner(nonce)
        {
            self.note(&format!("its runners could outlive this worker if it is killed: {error}"));
        }
        Ok(())
    }

    fn give_calls(&mut self) {
        let Agent { calls, maker, confinement, slots, .. } = self;
        calls.give(*slots, |assignment, id| {
            let mut launch = maker.runner(assignment, id)?;
            launch.limits = confinement.limits(assignment);
            let process = Assignment { key: Key(id), ..assignment.clone() };
            confinement.prepare(&process, assignment.slots.max(1))?;
            Ok(launch)
        });
        self.tell_of_calls();
    }

    pub(super) fn called(
        &mut self,
        turn: Result<CallTurn, RunnerError>,
    ) -> Result<(), RunnerError> {
        self.calls.take_in(turn?);
        self.give_calls();
        self.tell_pace();
        Ok(())
    }

    pub(super) fn tell_of_calls(&mut self) {
        for news in self.calls.take_news() {
            match news {
                CallNews::ProcessStarted { id, pid } => self.confinement.enter(id, pid),
                CallNews::ProcessEnded { id, ending } => {
                    drop(self.confinement.leave(id, &ending));
                }
                CallNews::Began(key) => self.begun(key),
                CallNews::Wrote { key, stream, bytes } => self.wrote(key, stream, bytes),
                CallNews::Back(key) => {
                    if self.count_out(key).is_some() {
                        self.running_calls -= 1;
                        self.tell(News::Returned(key));
                    }
                }
                CallNews::Ended { key, how, result } => {
                    let Some(running) = self.count_out(key) else { continue };
                    self.running_calls -= 1;
                    self.pace.took(std::time::Duration::from_micros(how.used.wall_us));
                    if !result.is_empty() {
                        // It stands before its end, as all output does.
                        self.tell(News::Wrote { key, stream: Said::Result, bytes: result });
                    }
                    let message = how.message.clone().or_else(|| running.cut_words());
                    let how = laboro_dialects::worker::TaskEnd { message, ..how };
                    self.tell(News::Ended { key, how });
                }
            }
        }
    }
}
