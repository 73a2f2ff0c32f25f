//! A conversation with a runner whose results go to files: around the dialect's own session, which knows no files.
//! What a runner prints becomes a draft; with the report it goes to the journal, which puts it in its place.

use super::files::{Draft, DraftKey, SharedFiles};
use bytes::BytesMut;
use laboro_core::{Command, LeaseRef, TaskRef, Time, WorkerRef};
use laboro_dialects::runexp::Manager;
use laboro_dialects::session::{Delivery, HangUp, Output, Session};

pub(super) struct Recorder {
    session: Manager,
    number: u64,
    files: SharedFiles,
    draft: Option<Draft>,
    /// What the hub is asked to count, by the tag of the answer.
    reported: Option<(u64, DraftKey)>,
}

impl Recorder {
    pub(super) fn new(session: Manager, number: u64, files: SharedFiles) -> Recorder {
        Recorder { session, number, files, draft: None, reported: None }
    }

    /// Takes what was printed out of the output, and hands over what is reported.
    fn record(&mut self, out: &mut Output) {
        // The result files tell.
        out.ended.clear();
        if out.keep.is_empty() && out.ask.is_empty() {
            return;
        }
        let mut files = self.files.lock();
        for chunk in out.keep.drain(..) {
            let draft = self.draft.get_or_insert_with(|| Draft::new(self.number));
            files.add(draft, &chunk.bytes);
        }
        for (tag, command) in &out.ask {
            if let Command::Report(report) = command
                && let WorkerRef::Name { name, .. } = &report.worker
                && let [result] = &report.results[..]
                && let LeaseRef::Number { task, .. }
                | LeaseRef::Held(TaskRef::Id(task))
                | LeaseRef::HeldOrFree(TaskRef::Id(task)) = result.lease
            {
                // A result without a byte has a file all the same.
                let draft = self.draft.take().unwrap_or_else(|| Draft::new(self.number));
                let key = (name.clone(), task.number());
                files.hand_over(key.clone(), draft);
                self.reported = Some((*tag, key));
            }
        }
        if files.has_trouble() {
            // What cannot be kept must not be counted.
            out.ask.retain(|(_, command)| !matches!(command, Command::Report(_)));
            out.hang_up(HangUp::Finished);
            self.files.news.notify_one();
        }
    }

    /// What was not counted is not kept.
    fn forget_reported(&mut self, delivery: &Delivery) {
        let Delivery::Reply { tag, .. } = delivery else { return };
        if let Some((_, key)) = self.reported.take_if(|(asked, _)| asked == tag) {
            self.files.lock().discard_handed_over(&key, self.number);
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
        self.forget_reported(&delivery);
        self.session.deliver(now, delivery, out);
        self.record(out);
    }

    fn deadline(&self) -> Option<Time> {
        self.session.deadline()
    }

    fn tick(&mut self, now: Time, out: &mut Output) {
        self.session.tick(now, out);
        self.record(out);
    }

    /// A runner that hears of its result need not bring it again.
    fn owes_answers(&self) -> bool {
        self.reported.is_some()
    }

    fn close(&mut self, now: Time, out: &mut Output) {
        self.session.close(now, out);
        if let Some(draft) = self.draft.take() {
            self.files.lock().discard(&draft);
        }
    }
}
