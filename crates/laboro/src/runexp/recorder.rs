//! A conversation with a runner whose results go to files: around the dialect's own session, which knows no files.
//! A result takes its place when the hub has counted it, and before the runner hears that it was received.

use super::files::{Draft, Files};
use super::manage::{GROUP, JOB};
use crate::output::safe;
use bytes::BytesMut;
use laboro_core::{Command, Idle, LeaseRef, Name, Query, Reply, State, TaskId, TaskRef, Time};
use laboro_dialects::runexp::Manager;
use laboro_dialects::session::{Delivery, HangUp, Output, Session};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::Notify;

pub(super) struct Recorder {
    session: Manager,
    number: u64,
    files: Shared,
    draft: Option<Draft>,
    reported: Option<Reported>,
    /// When each task was handed out, by its number.
    lent: BTreeMap<u32, Instant>,
    /// What people know of its getting nothing.
    told: Told,
    /// Who it was, when it has gone, and what became of the jobs that it had.
    runner: String,
    lost: Vec<State>,
}

/// Answers of the hub about jobs that were lost. The dialect's session has tags below it.
const LOST: u64 = 100;

#[derive(Clone, Copy, PartialEq)]
enum Told {
    Nothing,
    OnHold,
    SentAway,
}

/// What the hub is asked to count.
struct Reported {
    tag: u64,
    task: u32,
    good: bool,
}

#[derive(Clone)]
pub(super) struct Shared {
    files: Arc<Mutex<Files>>,
    /// Something happened that the manager wants to know.
    pub(super) news: Arc<Notify>,
}

impl Shared {
    pub(super) fn new(files: Files) -> Shared {
        Shared { files: Arc::new(Mutex::new(files)), news: Arc::default() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recorder {
    pub(super) fn new(session: Manager, number: u64, files: Shared) -> Recorder {
        Recorder {
            session,
            number,
            files,
            draft: None,
            reported: None,
            lent: BTreeMap::new(),
            told: Told::Nothing,
            runner: String::new(),
            lost: Vec::new(),
        }
    }

    /// Takes what was printed out of the output, and notes what is reported.
    fn record(&mut self, out: &mut Output) {
        // The result files tell.
        out.ended.clear();
        let mut files = self.files.lock();
        for chunk in out.keep.drain(..) {
            let draft = self.draft.get_or_insert_with(|| Files::begin(self.number));
            files.add(draft, &chunk.bytes);
        }
        for (tag, command) in &out.ask {
            if let Command::Report(report) = command
                && let [result] = &report.results[..]
                && let LeaseRef::Number { task, .. }
                | LeaseRef::Held(TaskRef::Id(task))
                | LeaseRef::HeldOrFree(TaskRef::Id(task)) = result.lease
            {
                // A result without a byte has a file all the same.
                self.draft.get_or_insert_with(|| Files::begin(self.number));
                let good = result.outcome.is_success();
                self.reported = Some(Reported { tag: *tag, task: task.number(), good });
            }
        }
        if files.has_trouble() {
            // What cannot be kept must not be counted.
            out.ask.retain(|(_, command)| !matches!(command, Command::Report(_)));
            out.hang_up(HangUp::Finished);
            self.files.news.notify_one();
        }
    }

    fn tell_once(&mut self, what: Told, words: &str) {
        if self.told != what {
            self.told = what;
            self.tell(words);
        }
    }

    fn tell(&self, words: &str) {
        let runner = self.session.runner().map(Name::to_string).unwrap_or_default();
        self.files.lock().tell(format!("runner {} {words}", safe(&runner)));
    }

    /// One of the jobs that it had when it went. After the last one it is told.
    fn note_lost(&mut self, reply: &Reply) {
        self.lost.push(match reply {
            Reply::Task(task) => task.state,
            _ => State::Done,
        });
        if self.lost.len() < self.lent.len() {
            return;
        }
        let is_over = |state: &State| state.is_finished() || *state == State::Held;
        let back = self.lost.iter().filter(|state| !is_over(state)).count();
        let failed = self.lost.iter().filter(|&&state| state == State::Held).count();
        let back = match back {
            0 => None,
            1 => Some("a job of its goes back".to_owned()),
            _ => Some(format!("{back} jobs of its go back")),
        };
        let failed = match failed {
            0 => None,
            1 => Some("a job of its has failed: it was lost too often".to_owned()),
            _ => Some(format!("{failed} jobs of its have failed: they were lost too often")),
        };
        let words: Vec<String> = back.into_iter().chain(failed).collect();
        if !words.is_empty() {
            let (runner, words) = (safe(&self.runner), words.join(", and "));
            self.files.lock().tell(format!("runner {runner} is gone, and {words}"));
        }
    }

    fn settle(&mut self, delivery: &Delivery, out: &mut Output) {
        let Delivery::Reply { tag, reply } = delivery else { return };
        if let Reply::Work { grants, .. } = reply {
            let now = Instant::now();
            self.lent.extend(grants.iter().map(|grant| (grant.task.number(), now)));
            self.told = Told::Nothing;
        }
        match reply {
            Reply::Nothing(Idle::Ejected) => {
                self.tell_once(Told::SentAway, "is sent away: too many of its jobs failed (--ban)");
            }
            Reply::Nothing(Idle::OnHold) => {
                self.tell_once(
                    Told::OnHold,
                    "is on hold: too many of its last jobs failed (--ban)",
                );
            }
            _ => {}
        }
        let Some(reported) = self.reported.take_if(|reported| reported.tag == *tag) else { return };
        let Some(draft) = self.draft.take() else { return };
        let counts =
            matches!(reply, Reply::Reported(verdicts) if verdicts.iter().all(Result::is_ok));
        let mut files = self.files.lock();
        if let Some(lent) = self.lent.remove(&reported.task) {
            files.note_time(lent.elapsed());
        }
        if !counts {
            files.discard(&draft);
        } else if !files.place(&draft, reported.task, reported.good) {
            out.hang_up(HangUp::Finished);
        }
        if files.is_worth_a_word() {
            self.files.news.notify_one();
        }
    }
}

impl Session for Recorder {
    fn open(&mut self, now: Time, out: &mut Output) {
        self.session.open(now, out);
    }

    fn receive(&mut self, now: Time, input: &mut BytesMut, out: &mut Output) {
        self.session.receive(now, input, out);
        self.record(out);
    }

    fn deliver(&mut self, now: Time, delivery: Delivery, out: &mut Output) {
        if let Delivery::Reply { tag: LOST, reply } = &delivery {
            self.note_lost(reply);
            return;
        }
        self.settle(&delivery, out);
        if out.hang_up.is_none() {
            self.session.deliver(now, delivery, out);
            self.record(out);
        }
    }

    fn deadline(&self) -> Option<Time> {
        self.session.deadline()
    }

    fn tick(&mut self, now: Time, out: &mut Output) {
        self.session.tick(now, out);
        self.record(out);
    }

    fn close(&mut self, now: Time, out: &mut Output) {
        self.runner = self.session.runner().map(Name::to_string).unwrap_or_default();
        self.session.close(now, out);
        // What becomes of its jobs is known when the hub knows that it has gone.
        for &task in self.lent.keys() {
            let task = TaskRef::Id(TaskId::new(JOB, task));
            let query = Query::Task { group: Name::from(GROUP), task };
            out.ask.push((LOST, Command::Query(query)));
        }
        if let Some(draft) = self.draft.take() {
            self.files.lock().discard(&draft);
        }
    }
}
