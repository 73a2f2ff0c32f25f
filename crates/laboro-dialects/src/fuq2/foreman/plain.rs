//! Originals at the foreman: they have no names on the wire and know no leases, run one program with a
//! number, and report one task at a time.

use super::super::Numbering;
use super::super::frame::Frame;
use super::super::header::{LABORO, SAY_HELLO};
use super::super::naming::{HeldTask, held_of};
use super::super::pack::{PackError, PackReader};
use super::super::payload::{JobStatusUpdate, PlainHello};
use super::super::status::outcome_of;
use super::asked::Asked;
use super::former::prefix;
use super::{Foreman, ForemanPhase, Mode};
use crate::session::Output;
use laboro_core::{
    Capacity, Command, Join, Kinds, LeaseNo, LeaseRef, Name, Query, Reply, Report, TaskId, TaskRef,
    TaskResult, Time, WorkKind, WorkerRef, WorkerView,
};
use std::sync::Arc;

/// How originals are met at a door.
#[derive(Clone, Debug, Default)]
pub struct Plain {
    /// What the door knows of the worker, where it has logged in before. `None`: the connection is all there
    /// is to know it by.
    pub name: Option<Name>,
    /// What it is besides its processors; tasks may ask for them.
    pub tags: Vec<Name>,
    /// How many processors it had then; what it says in its HELLO counts more.
    pub slots: u32,
    /// Told to leave while it was away: it hears so when it is back.
    pub leaves: bool,
    /// OK(0) first: on a byte stream, not on a websocket.
    pub greets: bool,
    /// Which numbers it knows messages by.
    pub numbering: Numbering,
    /// Of a node with a name.
    pub numbers: SeqNumbers,
}

/// How far the numbers of a node's messages have come. An original goes on counting over a new connection, and a hub
/// that has just been started has to know where.
#[derive(Clone, Default)]
pub struct SeqNumbers {
    /// The highest number so far.
    pub reached: u32,
    /// Told now and then how far they are.
    pub note: Option<Arc<dyn Fn(u32) + Send + Sync>>,
}

impl std::fmt::Debug for SeqNumbers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SeqNumbers").field("reached", &self.reached).finish_non_exhaustive()
    }
}

impl Plain {
    /// On a byte stream, as the text has it.
    pub fn tcp() -> Plain {
        Plain { greets: true, ..Plain::default() }
    }

    /// On a websocket, after a login that gave this name.
    pub fn websocket(name: Name, tags: Vec<Name>) -> Plain {
        Plain { name: Some(name), tags, ..Plain::default() }
    }
}

/// How long the hub waits for who speaks by a connection and gives no other sign of life: the grace time, also
/// where its end was not seen because the hub was not there. A very short one would need many signs.
pub(crate) fn connection_period_ms(grace_ms: u64) -> u64 {
    grace_ms.max(PERIOD_MS_MIN)
}

const PERIOD_MS_MIN: u64 = 3_000;

impl Foreman {
    pub(super) fn plain_hello(
        &mut self,
        now: Time,
        request: &Frame,
        out: &mut Output,
    ) -> Result<(), PackError> {
        let hello = PlainHello::read(&request.body)?;
        self.talk.meet_laboro(request.header.padding == LABORO);
        let mut is_stranger = false;
        let name = match (&self.mode, &self.phase) {
            (
                _,
                ForemanPhase::Working { who: WorkerRef::Name { name, .. }, .. }
                | ForemanPhase::Again { who: WorkerRef::Name { name, .. } },
            ) => name.clone(),
            (Mode::Plain(Plain { name: Some(name), .. }), _) => name.clone(),
            _ => {
                is_stranger = true;
                Name::from(format!("{}{}-{}", prefix(&self.context), now.0, self.context.session.0))
            }
        };
        let free = u32::try_from(hello.free.max(0)).unwrap_or(u32::MAX);
        let given = (free, hello.running.len() as u32);
        self.slots = free.saturating_add(given.1);
        let running: Vec<HeldTask> =
            (hello.running.iter()).filter_map(|task| held_of(task.job.id, task.task)).collect();
        let who = WorkerRef::Name { group: self.context.group.clone(), name };
        let look = Query::Worker(who.clone());
        self.phase =
            ForemanPhase::Joining { hello: request.header.seq, who, given, ahead: 0, running };
        match is_stranger {
            true => self.search_former(out),
            false => out.ask(Asked::Look.tag(), Command::Query(look)),
        }
        Ok(())
    }

    /// Now that the leases are known, what runs there can be said with them.
    pub(super) fn plain_join(&mut self, now: Time, reply: Reply, out: &mut Output) {
        let ForemanPhase::Joining { who: WorkerRef::Name { group, name }, running, .. } =
            &mut self.phase
        else {
            return;
        };
        let view = match reply {
            Reply::Workers(mut views) => views.pop(),
            _ => None,
        };
        let leases = view.as_ref().map_or(&[][..], |view| &view.leases[..]);
        for held in running.iter_mut() {
            let found = leases.iter().find(|(task, _)| *task == held.task);
            held.lease = found.map_or(LeaseNo(0), |&(_, lease)| lease);
        }
        // A view shows a page of leases. When there are more, what is not shown must not be taken back.
        let is_whole = |view: &WorkerView| view.leases.len() as u64 == u64::from(view.lease_count);
        let says = view.as_ref().is_none_or(is_whole);
        let unsent = self.requests.unsent();
        let said: Vec<(TaskId, LeaseNo)> =
            running.iter().map(|held| (held.task, held.lease)).chain(unsent).collect();
        let (group, name) = (group.clone(), name.clone());
        let join = self.plain_as(now, group, name, says.then_some(said));
        out.ask(Asked::Join.tag(), join);
    }

    /// Who has logged in may have been here before: its leases stand from now on, whatever it says and when.
    pub(super) fn plain_return(&mut self, now: Time, out: &mut Output) {
        let Mode::Plain(Plain { name: Some(name), slots, .. }) = &self.mode else { return };
        let (group, name) = (self.context.group.clone(), name.clone());
        self.slots = *slots;
        self.phase = ForemanPhase::Again {
            who: WorkerRef::Name { group: group.clone(), name: name.clone() },
        };
        let join = self.plain_as(now, group, name, None);
        out.ask(Asked::Return.tag(), join);
    }

    pub(super) fn plain_as(
        &mut self,
        now: Time,
        group: Name,
        name: Name,
        running: Option<Vec<(TaskId, LeaseNo)>>,
    ) -> Command {
        let period_ms = connection_period_ms(self.context.grace_ms);
        self.renew_at = Some(now.after_ms(period_ms / 3));
        Command::Join(Join {
            group,
            name,
            dialect: "fuq2",
            session: self.context.session,
            life: None,
            kinds: Kinds::of(&[WorkKind::Indexed]),
            tags: match &self.mode {
                Mode::Plain(plain) => plain.tags.clone(),
                Mode::Native => Vec::new(),
            },
            capacity: Capacity::slots(self.slots),
            period_ms: Some(period_ms),
            running,
            acknowledges: true,
            host: Name::default(),
        })
    }

    /// No sign of life is agreed on; the connection is one.
    pub(super) fn plain_renew(&mut self, now: Time, out: &mut Output) {
        if self.renew_at.is_none_or(|at| at > now) {
            return;
        }
        let period_ms = connection_period_ms(self.context.grace_ms);
        self.renew_at = self.plain_worker().map(|worker| {
            out.ask(Asked::Renew.tag(), Command::Renew(worker));
            now.after_ms(period_ms / 3)
        });
    }

    /// A result counts also when no HELLO was said on this connection: a node that came back does not tell
    /// it a second time.
    pub(super) fn plain_update(
        &mut self,
        request: &Frame,
        out: &mut Output,
    ) -> Result<(), PackError> {
        let seq = request.header.seq;
        let Some(worker) = self.plain_worker() else {
            self.talk.answer(&mut out.say, seq, SAY_HELLO);
            out.end_message();
            return Ok(());
        };
        self.tell_arrived(out);
        self.requests.release_jobs();
        let update = if request.body.is_empty() {
            JobStatusUpdate::default()
        } else {
            JobStatusUpdate::read(&mut PackReader::new(&request.body))?
        };
        let Some(HeldTask { task, .. }) = held_of(update.job, update.task) else {
            out.ask(Asked::Update(seq).tag(), Command::Renew(worker));
            return Ok(());
        };
        let lease = match self.held.remove(&task) {
            Some(HeldTask { lease, .. }) => LeaseRef::Number { task, lease },
            None => LeaseRef::Held(TaskRef::Id(task)),
        };
        let (outcome, message) = outcome_of(update.success, &update.status);
        let results = vec![TaskResult { lease, outcome, message, memo: None }];
        out.ask(Asked::Update(seq).tag(), Command::Report(Report { worker, results }));
        Ok(())
    }

    /// Who speaks, if that is known: by its HELLO, or by its login.
    fn plain_worker(&self) -> Option<WorkerRef> {
        match (&self.phase, &self.mode) {
            (&ForemanPhase::Working { worker, .. }, _) => Some(WorkerRef::Id(worker)),
            (ForemanPhase::Joining { who, .. } | ForemanPhase::Again { who }, _) => {
                Some(who.clone())
            }
            (_, Mode::Plain(Plain { name: Some(name), .. })) => {
                Some(WorkerRef::Name { group: self.context.group.clone(), name: name.clone() })
            }
            _ => None,
        }
    }
}
