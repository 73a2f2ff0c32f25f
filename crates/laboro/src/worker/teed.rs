//! A worker's side of a conversation that also shows what tasks print, line by line, each with its task's name before
//! it: for dialects whose hubs take no output, and for people who look on.

use crate::output::safe;
use crate::run::{Tee, print_teed};
use bytes::BytesMut;
use laboro_core::Time;
use laboro_dialects::session::Stream;
use laboro_dialects::worker::{Key, News, Order, Orders, WorkerSide};
use std::collections::HashMap;
use std::ffi::OsString;

pub(super) struct Teed {
    side: Box<dyn WorkerSide>,
    tee: Tee,
    names: HashMap<Key, String>,
}

impl Teed {
    pub(super) fn new(side: Box<dyn WorkerSide>) -> Teed {
        Teed { side, tee: Tee::default(), names: HashMap::new() }
    }

    /// Remembers what is to be started.
    fn note(&mut self, out: &Orders) {
        for order in &out.orders {
            if let Order::Start(task) = order {
                self.names.insert(task.key, safe(&task.name));
            }
        }
    }

    fn wrote(&mut self, key: Key, stream: Stream, bytes: &[u8]) {
        let is_stderr = match stream {
            Stream::Out => false,
            Stream::Err => true,
            Stream::Result => return,
        };
        let lines = self.tee.take(key.0, is_stderr, bytes);
        let name = self.names.get(&key).map_or("", String::as_str);
        lines.iter().for_each(|line| print(name, is_stderr, line));
    }

    fn over(&mut self, key: Key) {
        let name = self.names.remove(&key).unwrap_or_default();
        for (is_stderr, line) in self.tee.end(key.0) {
            print(&name, is_stderr, &line);
        }
    }
}

/// That nobody reads it any more is no reason to stop working.
fn print(name: &str, is_stderr: bool, line: &str) {
    let _ = print_teed(name, is_stderr, line);
}

impl WorkerSide for Teed {
    fn open(&mut self, now: Time, out: &mut Orders) {
        self.side.open(now, out);
        self.note(out);
    }

    fn receive(&mut self, now: Time, input: &mut BytesMut, out: &mut Orders) {
        self.side.receive(now, input, out);
        self.note(out);
    }

    fn tell(&mut self, now: Time, news: News, out: &mut Orders) {
        match &news {
            News::Wrote { key, stream, bytes } => self.wrote(*key, *stream, bytes),
            News::Ended { key, .. } | News::Returned(key) => self.over(*key),
            News::Started(_) | News::Ahead(_) | News::Draining | News::Leaving => {}
        }
        self.side.tell(now, news, out);
        self.note(out);
    }

    fn not_started(&mut self, now: Time, key: Key, why: String, out: &mut Orders) {
        self.over(key);
        self.side.not_started(now, key, why, out);
        self.note(out);
    }

    fn launching(&mut self, key: Key, words: &[OsString]) {
        self.side.launching(key, words);
    }

    fn deadline(&self) -> Option<Time> {
        self.side.deadline()
    }

    fn tick(&mut self, now: Time, out: &mut Orders) {
        self.side.tick(now, out);
        self.note(out);
    }

    fn lost(&mut self, now: Time) {
        self.side.lost(now);
    }

    fn unsaid(&self) -> usize {
        self.side.unsaid()
    }

    fn takes_back(&self) -> bool {
        self.side.takes_back()
    }

    fn is_settled(&self) -> bool {
        self.side.is_settled()
    }
}
