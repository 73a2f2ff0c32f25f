//! Laboro workers at the foreman: they show a token, know their leases, and report many things at once.

use super::super::frame::Frame;
use super::super::header::LABORO;
use super::super::naming::HeldTask;
use super::super::pack::PackError;
use super::super::payload::TaskPair;
use super::asked::Asked;
use super::{Foreman, ForemanPhase, wire};
use crate::session::{AttemptEnd, Ends, Output};
use laboro_core::{
    Capacity, Command, Decline, Declined, Drain, Join, Kinds, LeaseRef, Leave, Leaving, Name,
    Offer, Report, Route, TaskResult, Time, WorkKind, WorkerId, WorkerRef,
};

/// For a worker that does not say how often it shows a sign of life.
const PERIOD_MS: u64 = 30_000;
const PERIOD_MS_MIN: u64 = 1_000;
const PERIOD_MS_MAX: u64 = 3_600_000;
/// Tasks that a worker may have beyond its slots.
const AHEAD_MAX: u32 = 65_536;

impl Foreman {
    pub(super) fn native_hello(
        &mut self,
        now: Time,
        request: &Frame,
        out: &mut Output,
    ) -> Result<(), PackError> {
        let seq = request.header.seq;
        let hello = wire::NativeHello::read(&request.body)?;
        let Some(hello) = hello.filter(|_| request.header.padding == LABORO) else {
            let why = "this door is for Laboro workers: use the fuq2 door for others";
            self.deny(seq, why.into(), out);
            return Ok(());
        };
        self.talk.meet_laboro(true);
        let group = match self.admit(&hello, now) {
            Ok(group) => group,
            Err(why) => {
                self.deny(seq, why, out);
                return Ok(());
            }
        };
        let who = WorkerRef::Name { group: group.clone(), name: hello.name.clone() };
        if let ForemanPhase::Working { who: before, .. }
        | ForemanPhase::Again { who: before }
        | ForemanPhase::Joining { who: before, .. } = &self.phase
            && *before != who
        {
            out.malformed("a worker changed its name within a connection");
            return Ok(());
        }
        self.slots = hello.slots;
        let period_ms = if hello.period_ms == 0 { PERIOD_MS } else { hello.period_ms };
        self.period_ms = Some(period_ms.clamp(PERIOD_MS_MIN, PERIOD_MS_MAX));
        let given =
            (hello.slots.saturating_sub(hello.running.len() as u32), hello.running.len() as u32);
        let unsent = self.requests.unsent();
        let said = hello.running.iter().copied().chain(unsent).collect();
        let running =
            hello.running.iter().map(|&(task, lease)| HeldTask { task, lease, base: 0 }).collect();
        let join = Join {
            group,
            name: hello.name,
            dialect: "native",
            session: self.context.session,
            life: (hello.life != 0).then_some(hello.life),
            kinds: kinds(hello.takes_names).understanding(hello.fields),
            tags: hello.tags,
            capacity: Capacity {
                slots: hello.slots,
                memory: hello.memory,
                resources: hello.resources,
                time_left_ms: (hello.left_ms > 0).then_some(hello.left_ms),
            },
            period_ms: self.period_ms,
            running: Some(said),
            acknowledges: true,
            host: hello.host.into(),
        };
        out.ask(Asked::Join.tag(), Command::Join(join));
        let ahead = hello.ahead.min(AHEAD_MAX);
        self.phase = ForemanPhase::Joining { hello: seq, who, given, ahead, running };
        Ok(())
    }

    /// Which group the worker is in, if it may come in at all.
    fn admit(&self, hello: &wire::NativeHello, now: Time) -> Result<Name, String> {
        let admitted = self.context.admission.admit_worker(&hello.token, self.context.peer, now);
        let bound = admitted.map_err(|denied| denied.0)?.group;
        if hello.name.is_empty() {
            return Err("a worker needs a name".into());
        }
        match bound {
            Some(group) if hello.group.is_empty() || hello.group == group => Ok(group),
            Some(group) => Err(format!(
                "the token is good for group {group} only, and this worker asks for {}",
                hello.group
            )),
            None if hello.group.is_empty() => Ok(self.context.group.clone()),
            None => Ok(hello.group.clone()),
        }
    }

    pub(super) fn native_update(
        &mut self,
        now: Time,
        request: &Frame,
        out: &mut Output,
    ) -> Result<(), PackError> {
        let update = wire::Update::read(&request.body)?;
        self.tell_arrived(out);
        let ForemanPhase::Working { worker, who } = &self.phase else { return Ok(()) };
        out.ended.extend(ends(now, *worker, who, &update));
        let worker = WorkerRef::Id(*worker);
        let ended = (update.results.len() + update.back.len()) as u32;
        self.running = self.running.saturating_sub(ended);
        if ended > 0 {
            self.requests.release_jobs();
        }
        out.keep.extend(update.chunks);

        // Whatever is asked last carries the answer, and something always is: at least the sign of life.
        let mut commands = Vec::new();
        if update.drains {
            self.drains = true;
            commands.push(Command::Drain(worker.clone(), Drain::All));
        }
        if let Some(ahead) = update.ahead {
            let route = Route::Push { ahead: ahead.min(AHEAD_MAX) };
            commands.push(Command::Offer(Offer { worker: worker.clone(), route, lease_ms: None }));
        }
        let mut declined = Vec::new();
        for wire::Back { task, lease, reason } in update.back {
            match reason {
                None => self.hand_back((task, lease), out),
                Some(reason) => {
                    declined.push(Declined { lease: LeaseRef::Number { task, lease }, reason });
                }
            }
        }
        if !declined.is_empty() {
            commands.push(Command::Decline(Decline { worker: worker.clone(), tasks: declined }));
        }
        if !update.results.is_empty() {
            let results = update.results;
            commands.push(Command::Report(Report { worker: worker.clone(), results }));
        }
        if update.leaves {
            let session = Some(self.context.session);
            commands.push(Command::Leave(Leave { worker, session, how: Leaving::Gone }));
            self.phase = ForemanPhase::Left;
        } else if !matches!(commands.last(), Some(Command::Report(_))) {
            commands.push(Command::Renew(worker));
        }
        let last = commands.len() - 1;
        for (at, command) in commands.into_iter().enumerate() {
            let asked = if at == last { Asked::Update(request.header.seq) } else { Asked::Nothing };
            out.ask(asked.tag(), command);
        }
        Ok(())
    }
}

/// The results once more, for those who remember what was used.
fn ends(now: Time, worker: WorkerId, who: &WorkerRef, update: &wire::Update) -> Option<Ends> {
    let name = match who {
        WorkerRef::Name { name, .. } | WorkerRef::Of { name, .. } => name.clone(),
        WorkerRef::Id(_) => Name::default(),
    };
    let end = |(result, facts): (&TaskResult, &wire::Facts)| {
        let LeaseRef::Number { task, lease } = result.lease else { return None };
        let ended = Time(now.0.saturating_sub(facts.ago_ms));
        let (attempt, outcome, used) = (facts.attempt, result.outcome, facts.used);
        Some(AttemptEnd { task, lease, attempt, outcome, ended, used })
    };
    let ends: Vec<_> = update.results.iter().zip(&update.facts).filter_map(end).collect();
    (!ends.is_empty()).then_some(Ends { worker, name, ends })
}

pub(super) fn pair_of(held: &HeldTask) -> TaskPair {
    let HeldTask { task, lease, .. } = *held;
    TaskPair { job: task.job.0.into(), task: task.index.into(), lease: Some(lease.0) }
}

/// Whoever was not told what names mean is given none: it could only fail them.
fn kinds(takes_names: bool) -> Kinds {
    match takes_names {
        true => Kinds::ALL,
        false => {
            Kinds::of(&[WorkKind::Command, WorkKind::Script, WorkKind::Indexed, WorkKind::Call])
        }
    }
}
