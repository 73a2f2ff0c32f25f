//! How a worker is accepted, refused, and asked once more who it is. What it says in its HELLO is read by `native` and
//! `plain`.

use super::{Asked, Foreman, ForemanPhase, HELLO_MS, HeldTask, Mode, Plain, Waking, counts};
use crate::fuq2::header::Trouble;
use crate::session::{HangUp, Output};
use laboro_core::{
    Command, Drain, LeaseNo, Offer, Refusal, Route, TaskId, Time, WorkerId, WorkerRef,
};
use std::collections::BTreeSet;

impl Foreman {
    pub(super) fn greet(&mut self, out: &mut Output) {
        if let Mode::Plain(Plain { greets: true, .. }) = self.mode {
            self.talk.greet(&mut out.say);
            out.end_message();
        }
    }

    /// Strangers only: who has logged in says HELLO when there is a reason to, and a node that comes back
    /// says none by itself.
    pub(super) fn hello_by(&self) -> Option<Time> {
        let is_stranger = !matches!(&self.mode, Mode::Plain(Plain { name: Some(_), .. }));
        is_stranger.then(|| self.heard_at.after_ms(HELLO_MS))
    }

    /// The hub knows the worker: it is answered, and whatever it holds without a lease is ended.
    pub(super) fn joined(
        &mut self,
        worker: WorkerId,
        unknown: &[(TaskId, LeaseNo)],
        out: &mut Output,
    ) {
        let phase = std::mem::replace(&mut self.phase, ForemanPhase::Strange);
        let ForemanPhase::Joining { hello, who, given, ahead, running } = phase else {
            self.phase = phase;
            return;
        };
        self.talk.answer_hello(&mut out.say, hello, counts(given.0, given.1));
        out.end_message();
        self.running = running.len().saturating_sub(unknown.len()) as u32;
        let unknown: BTreeSet<(TaskId, LeaseNo)> = unknown.iter().copied().collect();
        let is_unknown = |held: &&HeldTask| unknown.contains(&(held.task, held.lease));
        self.requests.cancels.extend(running.iter().filter(is_unknown));
        if !self.is_native() {
            self.held = running.into_iter().map(|held| (held.task, held)).collect();
        }
        self.start_work(worker, who, ahead, out);
        for update in std::mem::take(&mut self.early) {
            if let Err(error) = self.plain_update(&update, out) {
                out.malformed(format!("UPDATE number {}: {error}", update.header.seq));
            }
        }
    }

    pub(super) fn start_work(
        &mut self,
        worker: WorkerId,
        who: WorkerRef,
        ahead: u32,
        out: &mut Output,
    ) {
        self.waking = Waking::Done;
        self.phase = ForemanPhase::Working { worker, who };
        let route = Route::Push { ahead };
        let offer = Offer { worker: WorkerRef::Id(worker), route, lease_ms: None };
        out.ask(Asked::Nothing.tag(), Command::Offer(offer));
        if let Mode::Plain(Plain { leaves: true, .. }) = self.mode {
            let worker = WorkerRef::Id(worker);
            out.ask(Asked::Nothing.tag(), Command::Drain(worker, Drain::All));
        }
    }

    pub(super) fn refused(&mut self, refusal: &Refusal, out: &mut Output) {
        let ForemanPhase::Joining { hello, .. } = self.phase else { return };
        let trouble = match refusal {
            Refusal::WorkerHere(_) => Trouble::NotNow,
            _ => Trouble::Refused,
        };
        let advice = match refusal {
            Refusal::WorkerHere(_) => "; give this one another --name or stop that one".into(),
            Refusal::WorkerTaken { .. } => "; give this one another --name".into(),
            Refusal::Ejected { worker, .. } => {
                format!("; `laboro workers pardon {worker}` lets it back in")
            }
            _ => String::new(),
        };
        self.turn_away(hello, trouble, format!("{refusal}{advice}"), out);
    }

    pub(super) fn deny(&mut self, hello: u32, why: String, out: &mut Output) {
        self.turn_away(hello, Trouble::Refused, why, out);
    }

    /// With the reason, if the peer can read one.
    pub(super) fn turn_away(
        &mut self,
        hello: u32,
        trouble: Trouble,
        why: String,
        out: &mut Output,
    ) {
        if self.talk.knows_laboro() {
            self.talk.refuse_with(&mut out.say, hello, trouble, &why);
            out.end_message();
        }
        self.phase = ForemanPhase::Strange;
        out.hang_up(HangUp::Denied(why));
    }

    /// After a RESET everything that was not answered is said again, once there is a new HELLO.
    pub(super) fn start_anew(&mut self, out: &mut Output) {
        for task in self.requests.all_again() {
            self.note_gone(task);
        }
        self.expect_hello();
        self.greet(out);
    }

    pub(super) fn expect_hello(&mut self) {
        if let ForemanPhase::Working { who, .. } = &self.phase {
            self.phase = ForemanPhase::Again { who: who.clone() };
        }
    }
}
