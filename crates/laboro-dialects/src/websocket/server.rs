//! A session of the hub inside a websocket: unwraps what the peer says, wraps what the session says, and keeps the
//! connection alive. What it means is left to the session.

use super::frame::{self, Opcode};
use super::messages::{Arrival, Messages};
use super::{PING_MS, SILENT_MS};
use crate::session::{Delivery, HangUp, Output, Session};
use bytes::BytesMut;
use laboro_core::Time;

/// A session inside a websocket.
#[derive(Debug)]
pub struct Server<S> {
    session: S,
    messages: Messages,
    /// What the session says, before it is wrapped.
    inside: Output,
    /// In every ping, for whoever reads along.
    tag: String,
    pings: u64,
    ping_at: Time,
    heard_at: Time,
    is_closed: bool,
}

impl<S: Session> Server<S> {
    /// `bytes_max` bounds one message, `tag` stands in the pings.
    pub fn new(session: S, bytes_max: usize, tag: impl Into<String>) -> Server<S> {
        Server {
            session,
            messages: Messages::new(true, bytes_max),
            inside: Output::default(),
            tag: tag.into(),
            pings: 0,
            ping_at: Time::NEVER,
            heard_at: Time::default(),
            is_closed: false,
        }
    }

    fn wrap(&mut self, out: &mut Output) {
        self.inside.drain_messages(|message| {
            frame::write(&mut out.say, Opcode::Binary, message, None);
            out.end_message();
        });
        out.heard += std::mem::take(&mut self.inside.heard);
        out.dropped += std::mem::take(&mut self.inside.dropped);
        out.ask.append(&mut self.inside.ask);
        out.keep.append(&mut self.inside.keep);
        if let Some(why) = self.inside.hang_up.take() {
            let (code, words) = match &why {
                HangUp::Finished => (1000, "closing"),
                HangUp::Malformed(_) => (1002, "not understood"),
                HangUp::Denied(_) => (1008, "denied"),
                HangUp::Silent => (1001, "silent for too long"),
            };
            self.say_close(code, words, out);
            out.hang_up(why);
        }
    }

    fn say_close(&mut self, code: u16, words: &str, out: &mut Output) {
        if !std::mem::replace(&mut self.is_closed, true) {
            let payload = [&code.to_be_bytes(), words.as_bytes()].concat();
            frame::write(&mut out.say, Opcode::Close, &payload, None);
            out.end_message();
        }
    }

    fn take(&mut self, now: Time, incoming: Arrival, out: &mut Output) {
        match incoming {
            Arrival::Message(mut message) => {
                self.session.hear(now, &mut message, &mut self.inside);
                if !message.is_empty() && self.inside.hang_up.is_none() {
                    let left = message.len();
                    let why = format!("{left} bytes of a websocket message are no whole message");
                    self.inside.malformed(why);
                }
                self.wrap(out);
            }
            Arrival::Ping(payload) => {
                frame::write(&mut out.say, Opcode::Pong, &payload, None);
                out.end_message();
            }
            Arrival::Pong => {}
            Arrival::Close(code) => {
                self.say_close(code.unwrap_or(1000), "", out);
                out.hang_up(HangUp::Finished);
            }
        }
    }
}

impl<S: Session> Session for Server<S> {
    fn open(&mut self, now: Time, out: &mut Output) {
        (self.heard_at, self.ping_at) = (now, now.after_ms(PING_MS));
        self.session.open(now, &mut self.inside);
        self.wrap(out);
    }

    fn receive(&mut self, now: Time, input: &mut BytesMut, out: &mut Output) {
        self.heard_at = now;
        while out.hang_up.is_none() {
            match self.messages.next(input) {
                Ok(Some(incoming)) => self.take(now, incoming, out),
                Ok(None) => {
                    self.session.receive(now, &mut BytesMut::new(), &mut self.inside);
                    return self.wrap(out);
                }
                Err(broken) => {
                    self.say_close(broken.code(), "", out);
                    out.malformed(broken.to_string());
                }
            }
        }
    }

    fn deliver(&mut self, now: Time, delivery: Delivery, out: &mut Output) {
        self.session.deliver(now, delivery, &mut self.inside);
        self.wrap(out);
    }

    fn deadline(&self) -> Option<Time> {
        let own = self.ping_at.min(self.heard_at.after_ms(SILENT_MS));
        Some(self.session.deadline().map_or(own, |at| at.min(own)))
    }

    fn tick(&mut self, now: Time, out: &mut Output) {
        if now.since_ms(self.heard_at) >= SILENT_MS {
            self.say_close(1001, "silent for too long", out);
            return out.hang_up(HangUp::Silent);
        }
        if self.ping_at <= now {
            self.ping_at = now.after_ms(PING_MS);
            self.pings += 1;
            let payload = format!("PING:{}:{}", self.tag, self.pings);
            let most = payload.len().min(frame::CONTROL_BYTES_MAX as usize);
            frame::write(&mut out.say, Opcode::Ping, &payload.as_bytes()[..most], None);
            out.end_message();
        }
        if self.session.deadline().is_some_and(|at| at <= now) {
            self.session.tick(now, &mut self.inside);
            self.wrap(out);
        }
    }

    fn last_words(&mut self, now: Time, out: &mut Output) {
        self.session.last_words(now, &mut self.inside);
        self.wrap(out);
    }

    fn owes_answers(&self) -> bool {
        self.session.owes_answers()
    }

    fn answers_late(&self) -> bool {
        self.session.answers_late()
    }

    fn farewell(&mut self, now: Time, out: &mut Output) {
        self.session.farewell(now, &mut self.inside);
        self.wrap(out);
        self.say_close(1001, "the hub stops", out);
    }

    fn close(&mut self, now: Time, out: &mut Output) {
        self.session.close(now, &mut self.inside);
        self.wrap(out);
    }
}
