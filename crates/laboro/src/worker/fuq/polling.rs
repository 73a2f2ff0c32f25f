//! A node that polls: each free slot has a request for work under way, by itself or with a result. Speaks in the lines
//! of `bridge`; what cannot be said here is that a task was cancelled, so none is.

mod results;

use super::bridge::{Answered, NodeRequest};
use super::tasks::{self, Work};
use bytes::BytesMut;
use laboro_core::{Outcome, Time};
use laboro_dialects::fuq2::{Task, assignment};
use laboro_dialects::worker::{Key, News, Order, Orders, Parting, TaskEnd, WorkerSide};
use results::{Asking, UpdateReport, is_final};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

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
    /// Results that were said and ask for the next task as well: the answer to both comes when there is one.
    asking: BTreeMap<u64, Asking>,
    /// When each of them, oldest first, has waited so long that it must be asked about.
    doubts: VecDeque<(Time, u64)>,
    /// Those results said again alone, by that request: the answer tells whether they are taken.
    again: BTreeMap<u64, u64>,
    /// Results that were said and ask for nothing.
    updates: BTreeMap<u64, UpdateReport>,
    unsaid: Vec<UpdateReport>,
    /// Results that the foreman could not take, and when they are said again.
    refused: Vec<UpdateReport>,
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
            asking: BTreeMap::new(),
            doubts: VecDeque::new(),
            again: BTreeMap::new(),
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
        say(&NodeRequest { id, path: Some(path.to_owned()), body }, out);
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
        self.pause_until.take_if(|until| *until <= now);
        for result in std::mem::take(&mut self.unsaid) {
            self.say_result(now, result, out);
        }
        self.look_at_doubts(now, out);
        if self.drains {
            for id in std::mem::take(&mut self.polls) {
                say(&NodeRequest { id, path: None, body: Value::Null }, out);
            }
            if self.running.is_empty() && self.is_settled() {
                self.part(out);
            }
            return;
        }
        while self.pause_until.is_none() && self.has_room() {
            let id = self.ask("job/request", json!({ "nproc": 1 }), out);
            self.polls.insert(id);
        }
    }

    fn drain(&mut self, now: Time) {
        if !std::mem::replace(&mut self.drains, true) {
            self.doubt_all(now);
        }
    }

    /// A slot that neither works nor has asked for work. Results that ask for nothing hold up nobody.
    fn has_room(&self) -> bool {
        self.running.len() + self.polls.len() + self.asking.len() < self.slots as usize
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
        let failed = |task| UpdateReport {
            task,
            outcome: Outcome::Error,
            message: message.clone(),
            is_repeated: false,
        };
        self.unsaid.extend(self.unfinished.drain(..).map(failed));
    }

    fn hear(&mut self, now: Time, line: &[u8], out: &mut Orders) {
        let Ok(Answered { id, status, body, is_repeated }) = serde_json::from_slice(line) else {
            return out.hang_up(Parting::Malformed("an answer is not understood".into()));
        };
        if self.goodbye == Goodbye::Said(id) {
            return self.hear_goodbye(status);
        }
        if let Some(asking) = self.again.remove(&id) {
            return self.hear_again(now, asking, status);
        }
        let asking = self.asking.remove(&id).map(|asking| UpdateReport {
            is_repeated: asking.told.is_repeated || asking.is_doubted,
            ..asking.told
        });
        let is_poll = self.polls.remove(&id) || asking.is_some();
        let update = asking.or_else(|| self.updates.remove(&id));
        if !is_poll && update.is_none() {
            return;
        }
        if status != 200 {
            match update {
                Some(told) => self.hear_refusal(now, told, is_repeated, status),
                None => self.pause_until = Some(now.after_ms(PAUSE_MS)),
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
                self.drain(now);
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
            self.unsaid.push(UpdateReport { task, outcome, message, is_repeated: false });
        }
    }
}

fn say(asked: &NodeRequest, out: &mut Orders) {
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
            News::Ended { key, how: TaskEnd { outcome, message, .. } } => {
                self.end(key, outcome, message);
            }
            News::Returned(key) => match self.running.remove(&key) {
                Some(task) if self.drains => self.unfinished.push(task),
                Some(task) => self.start(task, out),
                None => {}
            },
            News::Draining | News::Leaving => self.drain(now),
        }
        self.flush(now, out);
    }

    fn deadline(&self) -> Option<Time> {
        let pause = self.pause_until.filter(|_| !self.drains);
        let doubt = self.doubts.front().map(|&(at, _)| at);
        let due = [pause, self.again_at, doubt].into_iter().flatten().min();
        due.filter(|_| self.is_connected)
    }

    fn tick(&mut self, now: Time, out: &mut Orders) {
        self.flush(now, out);
    }

    fn lost(&mut self, _: Time) {
        self.is_connected = false;
        self.polls.clear();
        self.again.clear();
        self.doubts.clear();
        // A foreman that has them already says so.
        let asking = std::mem::take(&mut self.asking).into_values().map(|asking| asking.told);
        let said = asking.chain(std::mem::take(&mut self.updates).into_values());
        self.unsaid.extend(said.map(|told| UpdateReport { is_repeated: true, ..told }));
        self.unsaid.append(&mut self.refused);
        self.again_at = None;
        if let Goodbye::Said(_) = self.goodbye {
            self.goodbye = Goodbye::Unsaid;
        }
    }

    fn takes_back(&self) -> bool {
        false
    }

    /// An original never does.
    fn must_finish(&self) -> bool {
        true
    }

    fn unsaid(&self) -> usize {
        0
    }

    fn is_settled(&self) -> bool {
        let is_taken = self.updates.is_empty() && self.asking.is_empty();
        is_taken && self.unsaid.is_empty() && self.refused.is_empty()
    }
}

#[cfg(test)]
mod tests;
