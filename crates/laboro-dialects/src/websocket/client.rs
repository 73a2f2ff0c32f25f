//! A worker's side of a conversation inside a websocket, the mirror of `server`. Over TLS a mask guards nothing,
//! but a client has to have one.

use super::frame::{self, Mask, Opcode};
use super::messages::{Arrival, Messages};
use super::{CLOSE_MS, PING_MS, SILENT_MS};
use crate::worker::{Key, News, Orders, Parting, WorkerSide};
use bytes::BytesMut;
use laboro_core::Time;
use std::ffi::OsString;

/// A worker's side inside a websocket.
#[derive(Debug)]
pub struct Client<W> {
    side: W,
    messages: Messages,
    inside: Orders,
    masks: Masks,
    tag: String,
    pings: u64,
    /// `None` without a connection.
    alive: Option<Alive>,
}

#[derive(Debug)]
struct Alive {
    ping_at: Time,
    heard_at: Time,
    is_closed: bool,
    /// Said to the peer, which may have said more before it hears so: until it answers, or until then.
    parting: Option<(Parting, Time)>,
}

impl<W: WorkerSide> Client<W> {
    /// `bytes_max` bounds one message, `tag` stands in the pings.
    pub fn new(side: W, bytes_max: usize, tag: impl Into<String>) -> Client<W> {
        Client {
            side,
            messages: Messages::new(false, bytes_max),
            inside: Orders::default(),
            masks: Masks::new(),
            tag: tag.into(),
            pings: 0,
            alive: None,
        }
    }

    fn wrap(&mut self, now: Time, out: &mut Orders) {
        let masks = &mut self.masks;
        let is_open = self.alive.as_ref().is_none_or(|alive| !alive.is_closed);
        self.inside.drain_messages(|message| {
            if is_open {
                frame::write(&mut out.say, Opcode::Binary, message, Some(masks.next()));
                out.end_message();
            }
        });
        out.orders.append(&mut self.inside.orders);
        let Some(why) = self.inside.hang_up.take() else { return };
        let code = if matches!(why, Parting::Malformed(_)) { 1002 } else { 1000 };
        self.say_close(code, "closing", out);
        match &mut self.alive {
            Some(alive) if matches!(why, Parting::Again(_)) => {
                alive.parting.get_or_insert((why, now.after_ms(CLOSE_MS)));
            }
            _ => out.hang_up(why),
        }
    }

    fn say(&mut self, opcode: Opcode, payload: &[u8], out: &mut Orders) {
        frame::write(&mut out.say, opcode, payload, Some(self.masks.next()));
        out.end_message();
    }

    fn say_close(&mut self, code: u16, words: &str, out: &mut Orders) {
        let Some(alive) = &mut self.alive else { return };
        if !std::mem::replace(&mut alive.is_closed, true) {
            let payload = [&code.to_be_bytes(), words.as_bytes()].concat();
            self.say(Opcode::Close, &payload, out);
        }
    }

    fn take(&mut self, now: Time, incoming: Arrival, out: &mut Orders) {
        match incoming {
            Arrival::Message(mut message) => {
                self.side.receive(now, &mut message, &mut self.inside);
                if !message.is_empty() && self.inside.hang_up.is_none() {
                    let why = "a websocket message is not one message".to_owned();
                    self.inside.hang_up(Parting::Malformed(why));
                }
                self.wrap(now, out);
            }
            Arrival::Ping(payload) => self.say(Opcode::Pong, &payload, out),
            Arrival::Pong => {}
            Arrival::Close(code) => {
                if let Some((why, _)) = self.alive.as_mut().and_then(|alive| alive.parting.take()) {
                    return out.hang_up(why);
                }
                self.say_close(code.unwrap_or(1000), "", out);
                let code = code.map_or_else(String::new, |code| format!(" ({code})"));
                out.hang_up(Parting::Again(format!("the foreman closed the websocket{code}")));
            }
        }
    }
}

impl<W: WorkerSide> WorkerSide for Client<W> {
    fn open(&mut self, now: Time, out: &mut Orders) {
        self.messages.restart();
        let ping_at = now.after_ms(PING_MS);
        self.alive = Some(Alive { ping_at, heard_at: now, is_closed: false, parting: None });
        self.side.open(now, &mut self.inside);
        self.wrap(now, out);
    }

    fn receive(&mut self, now: Time, input: &mut BytesMut, out: &mut Orders) {
        if let Some(alive) = &mut self.alive {
            alive.heard_at = now;
        }
        while out.hang_up.is_none() {
            match self.messages.next(input) {
                Ok(Some(incoming)) => self.take(now, incoming, out),
                Ok(None) => break,
                Err(broken) => {
                    self.say_close(broken.code(), "", out);
                    out.hang_up(Parting::Malformed(broken.to_string()));
                }
            }
        }
    }

    fn tell(&mut self, now: Time, news: News, out: &mut Orders) {
        self.side.tell(now, news, &mut self.inside);
        self.wrap(now, out);
    }

    fn launching(&mut self, key: Key, words: &[OsString]) {
        self.side.launching(key, words);
    }

    fn deadline(&self) -> Option<Time> {
        if let Some((_, at)) = self.alive.as_ref().and_then(|alive| alive.parting.as_ref()) {
            return Some(*at);
        }
        let own =
            self.alive.as_ref().map(|alive| alive.ping_at.min(alive.heard_at.after_ms(SILENT_MS)));
        [own, self.side.deadline()].into_iter().flatten().min()
    }

    fn tick(&mut self, now: Time, out: &mut Orders) {
        if let Some(alive) = &mut self.alive {
            if let Some((why, at)) = &alive.parting {
                if *at <= now {
                    out.hang_up(why.clone());
                }
                return;
            }
            if now.since_ms(alive.heard_at) >= SILENT_MS {
                return out.hang_up(Parting::Again("the foreman is silent".into()));
            }
            if alive.ping_at <= now {
                alive.ping_at = now.after_ms(PING_MS);
                self.pings += 1;
                let payload = format!("PING:{}:{}", self.tag, self.pings);
                let most = payload.len().min(frame::CONTROL_BYTES_MAX as usize);
                self.say(Opcode::Ping, &payload.as_bytes()[..most], out);
            }
        }
        if self.side.deadline().is_some_and(|at| at <= now) {
            self.side.tick(now, &mut self.inside);
            self.wrap(now, out);
        }
    }

    fn lost(&mut self, now: Time) {
        self.alive = None;
        self.side.lost(now);
    }

    fn unsaid(&self) -> usize {
        self.side.unsaid()
    }

    fn takes_back(&self) -> bool {
        self.side.takes_back()
    }

    fn must_finish(&self) -> bool {
        self.side.must_finish()
    }

    fn is_settled(&self) -> bool {
        self.side.is_settled()
    }
}

/// A new one for every frame; not to be guessed by who saw none.
#[derive(Debug)]
struct Masks(u64);

impl Masks {
    fn new() -> Masks {
        let mut seed = [0; 8];
        // Without random bytes the masks are always the same, which inside TLS nobody sees.
        let _ = getrandom::fill(&mut seed);
        Masks(u64::from_le_bytes(seed) | 1)
    }

    fn next(&mut self) -> Mask {
        let Masks(state) = self;
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        ((*state >> 32) as u32).to_le_bytes()
    }
}
