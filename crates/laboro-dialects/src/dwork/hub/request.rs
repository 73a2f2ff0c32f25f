//! What requests ask of the hub. Fields are checked by presence, as the table in the specification has it;
//! a request that breaks it is answered with Error and asks nothing.

use super::{HubSide, Part, RequestStage, tag};
use crate::dwork::codec::{Kind, Query, Task, decode, put_notes};
use crate::session::Output;
use crate::zmtp::SocketType;
use bytes::{Bytes, BytesMut};
use laboro_core::{
    Capacity, Command, IfTaken, JobOptions, Join, LeaseRef, Leave, Leaving, Name, Offer, Outcome,
    Patience, Place, Profile, Query as Question, Report, Return, Returned, Route, Submit, SubmitTo,
    TaskRef, TaskResult, TaskSpec, Time, UnknownPred, WorkerRef,
};
use std::sync::Arc;

const DIALECT: &str = "dwork";

/// Origin and log of one task that are kept, in bytes.
const NOTES_MAX: usize = 16 << 10;

/// Tasks that one steal is given at most, whatever it asks for.
const STEAL_MOST: u32 = 100_000;

/// How long a steal waits whose worker holds something. Original workers ask again at once, so a little.
const BUSY_PATIENCE_MS: u64 = 10;

impl HubSide {
    /// Asks what the request means, from its first byte; also when it has to be asked once more.
    pub(super) fn begin(&mut self, now: Time, number: u64, out: &mut Output) {
        let Some(request) = self.request(number) else { return };
        let body = request.body.clone();
        let begun = decode(&body, self.door.settings.tasks_a_message)
            .ok()
            .filter(has_its_fields)
            .and_then(|query| self.ask(now, number, &query, out));
        match (begun, self.request(number)) {
            (Some(stage), Some(request)) => {
                if let RequestStage::Steal { until: Some(_), .. } = stage {
                    // It may wait long and must not hold on to all that was read with it.
                    request.body = Bytes::copy_from_slice(&body);
                }
                request.stage = stage;
            }
            _ => self.answer_kind(number, Kind::Error, out),
        }
    }

    fn ask(
        &mut self,
        now: Time,
        number: u64,
        query: &Query<'_>,
        out: &mut Output,
    ) -> Option<RequestStage> {
        let location = query.location.unwrap_or_default();
        let main = tag(number, Part::Main);
        match query.kind {
            Kind::Create => {
                let submit = self.submit(query)?;
                out.ask(main, Command::Submit(submit));
                Some(RequestStage::Create)
            }
            Kind::Steal => {
                let most = wanted(query);
                let patience_ms = self.door.settings.patience_ms;
                let until = (most > 0 && patience_ms > 0).then(|| now.after_ms(patience_ms));
                let patience = self.patience(now, until);
                self.offer(number, location, Route::Answer { most, patience }, out);
                Some(RequestStage::Steal { until, is_withdrawn: false })
            }
            Kind::Complete => {
                let only_holder = self.door.settings.only_holder;
                let results = query.tasks.iter().map(|task| result(task, only_holder)).collect();
                let worker = self.worker(number, location, out);
                out.ask(main, Command::Report(Report { worker, results }));
                Some(RequestStage::Complete)
            }
            Kind::Transfer => {
                // The original walks the message from its end.
                let tasks = query.tasks.iter().rev().map(returned).collect();
                let worker = self.worker(number, location, out);
                let place = Place::Back;
                out.ask(main, Command::Return(Return { worker, tasks, place }));
                Some(RequestStage::Transfer)
            }
            Kind::Exit => {
                let (group, name) = (self.context.group.clone(), Name::new(location));
                let worker = WorkerRef::Of { group, name, dialect: DIALECT };
                out.ask(main, Command::Query(Question::Worker(worker.clone())));
                let leave = Leave { worker, session: None, how: Leaving::Gone };
                out.ask(tag(number, Part::Leave), Command::Leave(leave));
                self.door.worker_left();
                Some(RequestStage::Exit { is_known: false })
            }
            Kind::Ok => {
                let group = self.context.group.clone();
                out.ask(main, Command::Query(Question::Group(group)));
                Some(RequestStage::Status)
            }
            Kind::Lookup => {
                let task = TaskRef::Name(Name::new(query.name?));
                let group = self.context.group.clone();
                out.ask(main, Command::Query(Question::Task { group, task }));
                Some(RequestStage::Lookup)
            }
            Kind::NotFound | Kind::Error => None,
        }
    }

    /// A peer that asks in turn cannot tell what it has done before its steal is answered, and what it has
    /// done may be what everybody waits for.
    fn patience(&self, now: Time, until: Option<Time>) -> Patience {
        let Some(until) = until else { return Patience::None };
        if self.connection.peer_socket() == Some(SocketType::Req) {
            let busy_until = until.min(now.after_ms(BUSY_PATIENCE_MS));
            Patience::InTurn { until, busy_until }
        } else {
            Patience::Until(until)
        }
    }

    fn submit(&self, query: &Query<'_>) -> Option<Submit> {
        let mut notes = Notes::default();
        let mut tasks = Vec::with_capacity(query.tasks.len());
        for task in &query.tasks {
            // A task without a name could be stolen but never completed.
            if task.name.is_empty() {
                return None;
            }
            tasks.push(TaskSpec {
                name: Name::new(task.name),
                profile: 0,
                work: None,
                preds: preds(task).collect(),
                memo: Some(notes.of(task)?),
            });
        }
        // All tasks of a group that come this way are one job, which stays open.
        let job = SubmitTo::Open(JobOptions {
            name: "dwork".into(),
            key: Some(b"dwork".as_slice().into()),
            owner: Some("door:dwork".into()),
            ..JobOptions::default()
        });
        Some(Submit {
            group: self.context.group.clone(),
            job,
            profiles: vec![Profile::default()],
            tasks,
            arrays: Vec::new(),
            unknown_pred: UnknownPred::InOrder,
            if_taken: IfTaken::Merge,
        })
    }

    pub(super) fn offer(&mut self, number: u64, location: &[u8], route: Route, out: &mut Output) {
        let worker = self.worker(number, location, out);
        let lease_ms = self.door.settings.lease_ms;
        out.ask(tag(number, Part::Main), Command::Offer(Offer { worker, route, lease_ms }));
    }

    /// The worker of this name, made known to the hub if this connection has not done so.
    fn worker(&mut self, number: u64, location: &[u8], out: &mut Output) -> WorkerRef {
        if let Some(id) = self.workers.find(location, self.door.workers_left()) {
            return WorkerRef::Id(id);
        }
        let (group, name) = (self.context.group.clone(), Name::new(location));
        if let Some(request) = self.request(number) {
            request.joining = Some(name.clone());
        }
        let join = Join {
            group: group.clone(),
            name: name.clone(),
            dialect: DIALECT,
            session: self.context.session,
            life: None,
            kinds: self.door.settings.kinds,
            tags: Vec::new(),
            // It says with each steal how much it wants.
            capacity: Capacity::slots(1),
            period_ms: None,
            running: None,
            acknowledges: false,
            host: Default::default(),
        };
        out.ask(tag(number, Part::Join), Command::Join(join));
        WorkerRef::Of { group, name, dialect: DIALECT }
    }

    /// The offer of a steal that may wait longer than it did, for somebody to submit something.
    pub(super) fn offer_on(&mut self, number: u64, until: Time, out: &mut Output) {
        let Some(body) = self.request(number).map(|request| request.body.clone()) else { return };
        let Ok(query) = decode(&body, 0) else { return };
        let most = wanted(&query);
        let route = Route::Answer { most, patience: Patience::Always(until) };
        self.offer(number, query.location.unwrap_or_default(), route, out);
    }
}

fn wanted(query: &Query<'_>) -> u32 {
    u32::try_from(query.n.unwrap_or(1)).unwrap_or(0).min(STEAL_MOST)
}

fn has_its_fields(query: &Query<'_>) -> bool {
    let has = (
        !query.tasks.is_empty(),
        query.name.is_some(),
        query.n.is_some(),
        query.location.is_some(),
    );
    match query.kind {
        Kind::Create => matches!(has, (true, false, false, false)),
        Kind::Steal => matches!(has, (false, false, _, true)),
        Kind::Complete | Kind::Transfer => matches!(has, (true, false, false, true)),
        Kind::Lookup => matches!(has, (false, true, false, false)),
        Kind::Ok => matches!(has, (false, false, false, false)),
        Kind::Exit => matches!(has, (false, false, false, true)),
        Kind::NotFound | Kind::Error => false,
    }
}

fn preds<'a>(task: &Task<'a>) -> impl Iterator<Item = TaskRef> + use<'a> {
    task.preds().map(|dep| TaskRef::Name(Name::new(dep.name)))
}

fn result(task: &Task<'_>, only_holder: bool) -> TaskResult {
    // Who sends no log has nothing to tell that the creator has not told.
    let memo = task.has_log().then(|| Notes::default().of(task)).flatten();
    let task = TaskRef::Name(Name::new(task.name));
    let lease = if only_holder { LeaseRef::HeldOrFree(task) } else { LeaseRef::Anyones(task) };
    TaskResult { lease, outcome: Outcome::Success, message: None, memo }
}

fn returned(task: &Task<'_>) -> Returned {
    let lease = LeaseRef::Held(TaskRef::Name(Name::new(task.name)));
    Returned { lease, preds: preds(task).collect() }
}

/// What is kept with tasks. Those of one message are mostly the same, and then shared.
#[derive(Default)]
struct Notes {
    buffer: BytesMut,
    last: Option<Arc<[u8]>>,
}

impl Notes {
    /// `None`: more than is kept for one task.
    fn of(&mut self, task: &Task<'_>) -> Option<Arc<[u8]>> {
        self.buffer.clear();
        put_notes(task.origin, task.log(), &mut self.buffer);
        if self.buffer.len() > NOTES_MAX {
            return None;
        }
        if self.last.as_deref() != Some(&self.buffer) {
            self.last = Some(Arc::from(&self.buffer[..]));
        }
        self.last.clone()
    }
}
