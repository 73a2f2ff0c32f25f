//! A node that polls: each free slot has a request for work under way. Speaks in the lines of `bridge`; what cannot be
//! said here is that a task was cancelled, so none is.

use super::bridge::{Answered, Asked};
use super::tasks::{self, Work};
use bytes::BytesMut;
use laboro_core::{Outcome, Time};
use laboro_dialects::fuq2::{Task, assignment};
use laboro_dialects::worker::{Ended, Key, News, Order, Orders, Parting, WorkerSide};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug)]
pub(super) struct Polling {
    name: String,
    slots: u32,
    next_key: u64,
    next_id: u64,
    is_connected: bool,
    running: BTreeMap<Key, Task>,
    /// Requests for work under way.
    polls: BTreeSet<u64>,
    /// Results without an answer, by their request once they were said.
    updates: BTreeMap<u64, Told>,
    unsaid: Vec<Told>,
    /// Results that the foreman could not take, and when they are said again.
    refused: Vec<Told>,
    again_at: Option<Time>,
    /// The foreman had nothing, or could not say: not before then.
    pause_until: Option<Time>,
    drains: bool,
    /// What was not finished when this worker had to go.
    unfinished: Vec<Task>,
    goodbye: Goodbye,
    is_gone: bool,
}

/// A foreman of ours understands one: what this node was given and has not finished goes to others. An original does
/// not, and never takes anything back; there what is not finished has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goodbye {
    Unsaid,
    /// In the request with this number.
    Said(u64),
    Answered,
}

#[derive(Clone, Debug)]
struct Told {
    task: Task,
    outcome: Outcome,
    message: Option<String>,
}

/// As the original waits when it was given nothing.
const PAUSE_MS: u64 = 5000;

impl Polling {
    pub(super) fn new(name: String, slots: u32) -> Polling {
        Polling {
            name,
            slots,
            next_key: 1,
            next_id: 1,
            is_connected: false,
            running: BTreeMap::new(),
            polls: BTreeSet::new(),
            updates: BTreeMap::new(),
            unsaid: Vec::new(),
            refused: Vec::new(),
            again_at: None,
            pause_until: None,
            drains: false,
            unfinished: Vec::new(),
            goodbye: Goodbye::Unsaid,
            is_gone: false,
        }
    }

    fn ask(&mut self, path: &str, body: Value, out: &mut Orders) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        say(&Asked { id, path: Some(path.to_owned()), body }, out);
        id
    }

    /// Everything that can be said now.
    fn flush(&mut self, now: Time, out: &mut Orders) {
        if !self.is_connected || out.hang_up.is_some() {
            return;
        }
        if self.again_at.take_if(|at| *at <= now).is_some() {
            self.unsaid.append(&mut self.refused);
        }
        for result in std::mem::take(&mut self.unsaid) {
            let Told { task, outcome, message } = &result;
            let body = tasks::update(task, *outcome, message.as_deref());
            let id = self.ask("job/update", body, out);
            self.updates.insert(id, result);
        }
        if self.drains {
            for id in std::mem::take(&mut self.polls) {
                say(&Asked { id, path: None, body: Value::Null }, out);
            }
            if self.running.is_empty() && self.is_settled() {
                self.part(out);
            }
            return;
        }
        self.pause_until.take_if(|until| *until <= now);
        if self.pause_until.is_some() {
            return;
        }
        // A slot asks when its result is told, so that there is a connection a slot and no more.
        let told = self.updates.len() + self.refused.len();
        while self.running.len() + self.polls.len() + told < self.slots as usize {
            let id = self.ask("job/request", json!({ "nproc": 1 }), out);
            self.polls.insert(id);
        }
    }

    /// A request for work that was taken back may have been answered in the same moment, so goodbye is always said.
    fn part(&mut self, out: &mut Orders) {
        match self.goodbye {
            Goodbye::Unsaid => {
                self.goodbye = Goodbye::Said(self.ask("node/leave", json!({}), out));
            }
            Goodbye::Said(_) => {}
            Goodbye::Answered => {
                self.is_gone = true;
                out.hang_up(Parting::Finished);
            }
        }
    }

    fn hear_goodbye(&mut self, status: u16) {
        self.goodbye = Goodbye::Answered;
        if !is_final(status) {
            // Understood; or the foreman has trouble of its own, and may know the word.
            self.unfinished.clear();
        }
        let message = Some("the worker had to leave".to_owned());
        let failed = |task| Told { task, outcome: Outcome::Error, message: message.clone() };
        self.unsaid.extend(self.unfinished.drain(..).map(failed));
    }

    fn hear(&mut self, now: Time, line: &[u8], out: &mut Orders) {
        let Ok(Answered { id, status, body }) = serde_json::from_slice(line) else {
            return out.hang_up(Parting::Malformed("an answer is not understood".into()));
        };
        if self.goodbye == Goodbye::Said(id) {
            return self.hear_goodbye(status);
        }
        let update = self.updates.remove(&id);
        let is_poll = self.polls.remove(&id);
        if !is_poll && update.is_none() {
            return;
        }
        if status != 200 {
            self.pause_until = Some(now.after_ms(PAUSE_MS));
            match update {
                Some(Told { task, .. }) if is_final(status) => {
                    let (job, number) = (task.job.id, task.task);
                    tracing::warn!(
                        "the foreman answers {status} to the result of task {number} of job {job}"
                    );
                }
                // It stops, or its disk is full: it must not run again because of that.
                Some(told) => {
                    self.refused.push(told);
                    self.again_at = self.again_at.or(self.pause_until);
                }
                None => {}
            }
            return;
        }
        match tasks::read(body) {
            Ok(Work::Tasks(tasks)) => {
                if is_poll && tasks.is_empty() {
                    self.pause_until = Some(now.after_ms(PAUSE_MS));
                }
                tasks.into_iter().for_each(|task| self.start(task, out));
            }
            Ok(Work::Stop) => {
                self.drains = true;
                out.order(Order::Drain);
            }
            Err(error) => {
                out.hang_up(Parting::Malformed(format!("a list of tasks is not one: {error}")));
            }
        }
    }

    fn start(&mut self, task: Task, out: &mut Orders) {
        let key = Key(self.next_key);
        self.next_key += 1;
        let assignment = assignment(key, &task);
        self.running.insert(key, task);
        match assignment {
            Some(assignment) => out.order(Order::Start(Box::new(assignment))),
            None => self.end(key, Outcome::Error, Some("tasks are numbered from 1".into())),
        }
    }

    fn end(&mut self, key: Key, outcome: Outcome, message: Option<String>) {
        if let Some(task) = self.running.remove(&key) {
            self.unsaid.push(Told { task, outcome, message });
        }
    }
}

/// Saying it again would not change the answer: it is not understood, or nobody knows the task.
fn is_final(status: u16) -> bool {
    matches!(status, 400 | 404 | 405 | 413)
}

fn say(asked: &Asked, out: &mut Orders) {
    let line = serde_json::to_string(asked).expect("texts and numbers have a JSON form");
    out.say.extend_from_slice(line.as_bytes());
    out.say.extend_from_slice(b"\n");
    out.end_message();
}

impl WorkerSide for Polling {
    fn open(&mut self, now: Time, out: &mut Orders) {
        if self.is_gone {
            return out.hang_up(Parting::Finished);
        }
        self.is_connected = true;
        out.order(Order::Welcome { name: self.name.clone() });
        self.flush(now, out);
    }

    fn receive(&mut self, now: Time, input: &mut BytesMut, out: &mut Orders) {
        while let Some(end) = input.iter().position(|&byte| byte == b'\n')
            && out.hang_up.is_none()
        {
            let line = input.split_to(end + 1);
            self.hear(now, &line, out);
        }
        self.flush(now, out);
    }

    fn tell(&mut self, now: Time, news: News, out: &mut Orders) {
        match news {
            News::Started(_) | News::Wrote { .. } | News::Ahead(_) => {}
            News::Ended { key, how: Ended { outcome, message, .. } } => {
                self.end(key, outcome, message);
            }
            News::Returned(key) => match self.running.remove(&key) {
                Some(task) if self.drains => self.unfinished.push(task),
                Some(task) => self.start(task, out),
                None => {}
            },
            News::Draining | News::Leaving => self.drains = true,
        }
        self.flush(now, out);
    }

    fn deadline(&self) -> Option<Time> {
        let pause = self.pause_until.filter(|_| !self.drains);
        let due = pause.into_iter().chain(self.again_at).min();
        due.filter(|_| self.is_connected)
    }

    fn tick(&mut self, now: Time, out: &mut Orders) {
        self.flush(now, out);
    }

    fn lost(&mut self, _: Time) {
        self.is_connected = false;
        self.polls.clear();
        // A foreman that has them already says so.
        let updates = std::mem::take(&mut self.updates);
        self.unsaid.extend(updates.into_values());
        self.unsaid.append(&mut self.refused);
        self.again_at = None;
        if let Goodbye::Said(_) = self.goodbye {
            self.goodbye = Goodbye::Unsaid;
        }
    }

    fn takes_back(&self) -> bool {
        false
    }

    fn unsaid(&self) -> usize {
        0
    }

    fn is_settled(&self) -> bool {
        self.unsaid.is_empty() && self.updates.is_empty() && self.refused.is_empty()
    }
}

#[cfg(test)]
mod tests;
