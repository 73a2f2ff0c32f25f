//! What the hub's replies mean to the peer. A reply that needs another question asks it; everything else
//! ends the request with exactly one message.

use super::{HubSide, Part, RequestStage, give_back};
use crate::dwork::codec::{Kind, Log, Note, QueryWriter, are_notes, decode};
use crate::session::Output;
use laboro_core::{
    Command, Grant, GroupView, Idle, Query as Question, Refusal, Reply, State, TaskView, Time,
    WorkerId, WorkerRef,
};
use std::io::Write;

/// How often a request is asked anew because what it went by has gone meanwhile.
const TRIES_MAX: u8 = 3;

/// A reply that is longer gets no more tasks. Much less than clients take.
const REPLY_BYTES_MAX: usize = 8 << 20;

impl HubSide {
    pub(super) fn reply(
        &mut self,
        now: Time,
        number: u64,
        part: Part,
        reply: Reply,
        out: &mut Output,
    ) {
        let Some(request) = self.request(number) else { return };
        match part {
            Part::Main => {}
            Part::Join => {
                if let (Reply::Joined { worker, .. }, Some(name)) = (reply, request.joining.take())
                {
                    self.workers.note(name, worker);
                }
                return;
            }
            Part::Withdraw => return,
            Part::Leave => {
                let is_known = matches!(request.stage, RequestStage::Exit { is_known: true });
                // Once more: somebody may have joined between the asking and the leaving.
                self.door.worker_left();
                let kind = if is_known { Kind::Ok } else { Kind::NotFound };
                self.answer_kind(number, kind, out);
                return;
            }
        }
        match (&mut request.stage, reply) {
            (RequestStage::Create, Reply::Submitted { .. }) => {
                self.answer_kind(number, Kind::Ok, out);
            }
            (RequestStage::Create, _) => self.answer_kind(number, Kind::Error, out),
            (RequestStage::Steal { .. }, reply) => self.stolen(now, number, reply, out),
            (RequestStage::Complete, Reply::Reported(verdicts)) => {
                self.completed(number, &verdicts, out);
            }
            (RequestStage::Transfer, Reply::Ok) => self.answer_kind(number, Kind::Ok, out),
            (RequestStage::Complete | RequestStage::Transfer, Reply::Refused(refusal)) => {
                match refusal {
                    Refusal::NoSuchWorker(_) => self.begin_again(now, number, out),
                    Refusal::NotYours(_)
                    | Refusal::NotStarted(_)
                    | Refusal::NoSuchTask(_)
                    | Refusal::AlreadyFinished { .. }
                    | Refusal::NameTwice(_) => self.answer_kind(number, Kind::NotFound, out),
                    _ => self.answer_kind(number, Kind::Error, out),
                }
            }
            // The answer comes with the reply to the leave.
            (RequestStage::Exit { is_known }, reply) => {
                *is_known =
                    matches!(&reply, Reply::Workers(views) if views.iter().any(|v| v.engaged));
            }
            (RequestStage::Status, Reply::Groups(groups)) => {
                self.status(number, groups.first(), out);
            }
            (RequestStage::Status, _) => self.status(number, None, out),
            (RequestStage::Lookup, Reply::Task(view)) => self.found(number, &view, out),
            (RequestStage::Holder, Reply::Workers(views)) => match views.first() {
                Some(view) => self.held(number, view.name.bytes(), out),
                None => self.answer_kind(number, Kind::NotFound, out),
            },
            (RequestStage::Lookup | RequestStage::Holder, _) => {
                self.answer_kind(number, Kind::NotFound, out);
            }
            (RequestStage::Complete | RequestStage::Transfer, _) => {
                self.answer_kind(number, Kind::Error, out);
            }
            (RequestStage::Answered(_), _) => {}
        }
    }

    fn begin_again(&mut self, now: Time, number: u64, out: &mut Output) {
        self.workers.forget();
        let Some(request) = self.request(number) else { return };
        request.tries = request.tries.saturating_add(1);
        if request.tries > TRIES_MAX {
            self.answer_kind(number, Kind::Error, out);
        } else {
            self.begin(now, number, out);
        }
    }

    fn stolen(&mut self, now: Time, number: u64, reply: Reply, out: &mut Output) {
        match reply {
            Reply::Work { worker, grants } => self.give(now, number, worker, grants, out),
            Reply::Nothing(idle) => self.nothing_to_steal(now, number, idle, out),
            Reply::Refused(Refusal::NoSuchWorker(_)) => self.begin_again(now, number, out),
            // Too many wait already: this one may ask again.
            Reply::Refused(Refusal::Limit { .. }) => self.answer_kind(number, Kind::NotFound, out),
            _ => self.answer_kind(number, Kind::Error, out),
        }
    }

    /// As many as fit one reply; the others go back.
    fn give(
        &mut self,
        now: Time,
        number: u64,
        worker: WorkerId,
        mut grants: Vec<Grant>,
        out: &mut Output,
    ) {
        let log = Log::new(Note::Stolen, i64::try_from(now.0 * 1000).unwrap_or(i64::MAX));
        let mut query = QueryWriter::new(Kind::Transfer, &mut self.scratch);
        let mut given = 0;
        for grant in &grants {
            if query.bytes() > REPLY_BYTES_MAX {
                break;
            }
            given += 1;
            let notes = grant.memo.as_deref().filter(|notes| are_notes(notes));
            let notes = notes.unwrap_or(&self.door.host_notes);
            match &grant.element {
                // What has no name goes by its number.
                _ if grant.name.is_empty() => {
                    query.noted_task(grant.task.to_string().as_bytes(), notes, &[log]);
                }
                None if !grant.own_names => query.noted_task(grant.name.bytes(), notes, &[log]),
                element => {
                    // Names of other jobs may be there twice: such a task is said with its job.
                    let mut name = match grant.own_names {
                        true => format!("{}/", grant.task.job).into_bytes(),
                        false => Vec::new(),
                    };
                    name.extend_from_slice(grant.name.bytes());
                    if let Some(element) = element {
                        name.extend(format!(".{}", u64::from(element.position) + 1).bytes());
                    }
                    query.noted_task(&name, notes, &[log]);
                }
            }
        }
        // Each goes before the one that went back before it.
        let rest = grants.drain(given..).rev();
        give_back(worker, rest, out);
        self.answer_scratch(number, out);
    }

    fn nothing_to_steal(&mut self, now: Time, number: u64, idle: Idle, out: &mut Output) {
        let exits = self.door.settings.exit_when_finished;
        let stopping = self.is_stopping;
        let is_last = number + 1 == self.first + self.under_way.len() as u64;
        let Some(RequestStage::Steal { until, is_withdrawn }) =
            self.request(number).map(|r| &r.stage)
        else {
            return;
        };
        let patience = until.filter(|&until| is_last && !is_withdrawn && now < until);
        match (idle, patience) {
            _ if stopping => self.answer_kind(number, Kind::Exit, out),
            (Idle::Finished, _) if exits => self.answer_kind(number, Kind::Exit, out),
            (Idle::Ejected | Idle::Draining, _) => self.answer_kind(number, Kind::Exit, out),
            // Somebody may submit something meanwhile.
            (Idle::Fresh | Idle::Finished | Idle::OnHold, Some(until)) => {
                self.offer_on(number, until, out);
            }
            _ => self.answer_kind(number, Kind::NotFound, out),
        }
    }

    fn completed(&mut self, number: u64, verdicts: &[Result<(), Refusal>], out: &mut Output) {
        let is_done = |verdict: &Result<(), Refusal>| {
            matches!(verdict, Ok(()) | Err(Refusal::AlreadyFinished { by_you: true, .. }))
        };
        if verdicts.iter().all(is_done) {
            return self.answer_kind(number, Kind::Ok, out);
        }
        let Some(body) = self.request(number).map(|request| request.body.clone()) else { return };
        let Ok(query) = decode(&body, self.door.settings.tasks_a_message) else { return };
        let mut reply = QueryWriter::new(Kind::NotFound, &mut self.scratch);
        for (task, _) in query.tasks.iter().zip(verdicts).filter(|(_, verdict)| !is_done(verdict)) {
            reply.task_again(task);
        }
        self.answer_scratch(number, out);
    }

    /// Scripts read the words.
    fn status(&mut self, number: u64, group: Option<&GroupView>, out: &mut Output) {
        let (active, ready) =
            group.map_or((0, 0), |g| (g.counts.unfinished(), g.counts.of(State::Ready)));
        let mut words = [0u8; 96];
        let mut rest = &mut words[..];
        write!(rest, "dhub: {active} active tasks, {ready} ready.")
            .expect("two numbers fit between the words");
        let left = rest.len();
        let words = &words[..words.len() - left];
        let n = i32::try_from(ready).unwrap_or(i32::MAX);
        QueryWriter::new(Kind::Ok, &mut self.scratch).name(words).n(n);
        self.answer_scratch(number, out);
    }

    /// The task is there; who holds it?
    fn found(&mut self, number: u64, view: &TaskView, out: &mut Output) {
        let holder = view.attempts.last().filter(|_| view.state == State::Leased);
        let (Some(attempt), Some(request)) = (holder, self.request(number)) else {
            return self.answer_kind(number, Kind::NotFound, out);
        };
        request.stage = RequestStage::Holder;
        let worker = WorkerRef::Id(attempt.worker);
        let tag = super::tag(number, Part::Main);
        out.ask(tag, Command::Query(Question::Worker(worker)));
    }

    fn held(&mut self, number: u64, location: &[u8], out: &mut Output) {
        let Some(body) = self.request(number).map(|request| request.body.clone()) else { return };
        let Ok(query) = decode(&body, 0) else { return };
        QueryWriter::new(Kind::Lookup, &mut self.scratch)
            .name(query.name.unwrap_or_default())
            .location(location);
        self.answer_scratch(number, out);
    }
}
