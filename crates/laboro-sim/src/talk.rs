//! Drives the hub's side of one conversation, in the order in which the hub's transport does: hear, deliver,
//! ask, say. Stops taking deliveries while the peer does not read, and hangs up when it does so for long.

use crate::network::{Pipe, Weather};
use crate::promise::{Broken, Kept, Promise};
use crate::results::Results;
use crate::{Dice, now_or_never};
use bytes::BytesMut;
use laboro_core::{Command, Time};
use laboro_dialects::session::{Delivery, HangUp, Output, Session};
use laboro_hub::Subscription;

pub(crate) struct Talk {
    session: Box<dyn Session>,
    subscription: Subscription,
    out: Output,
    input: BytesMut,
    unsent: BytesMut,
    sent_at: Time,
    backlog: Vec<(u64, Command)>,
    in_flight: usize,
    limits: TalkLimits,
    first_word_by: Option<Time>,
    /// The hub stops: answers are waited for until then.
    leave_by: Option<Time>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct TalkLimits {
    /// How many answers and pieces of work may wait for the session.
    pub queue: usize,
    pub message_bytes: usize,
    pub write_ms: u64,
    pub handshake_ms: u64,
}

/// Said but not sent; beyond this nothing more is read or delivered.
const UNSENT_BYTES_MAX: usize = 16 << 10;
const LEAVE_MS: u64 = 2000;

/// Whether a conversation goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Parting {
    Left,
    Slow,
    Stopped,
    HungUp(HangUp),
}

impl Talk {
    pub fn open(
        session: Box<dyn Session>,
        subscription: Subscription,
        limits: TalkLimits,
        now: Time,
    ) -> Talk {
        let mut talk = Talk {
            session,
            subscription,
            out: Output::default(),
            input: BytesMut::new(),
            unsent: BytesMut::new(),
            sent_at: now,
            backlog: Vec::new(),
            in_flight: 0,
            limits,
            first_word_by: Some(now.after_ms(limits.handshake_ms)),
            leave_by: None,
        };
        talk.session.open(now, &mut talk.out);
        talk
    }

    pub fn deadline(&self) -> Option<Time> {
        let slow = (!self.unsent.is_empty()).then(|| self.sent_at.after_ms(self.limits.write_ms));
        let times = [self.session.deadline(), self.first_word_by, slow, self.leave_by];
        times.into_iter().flatten().min()
    }

    /// Everything that can be done now. `ended`: the peer has closed, or the line is broken.
    pub fn turn(
        &mut self,
        now: Time,
        up: &mut Pipe,
        at: u64,
        results: &mut Results,
    ) -> Result<Option<Parting>, Broken> {
        let may_read = self.unsent.len() < UNSENT_BYTES_MAX && self.backlog.is_empty();
        if may_read && self.leave_by.is_none() && up.take(at, &mut self.input) {
            self.first_word_by = None;
            self.session.receive(now, &mut self.input, &mut self.out);
        }
        let is_cut_off = self.unsent.len() < UNSENT_BYTES_MAX && self.deliver(now);
        if is_cut_off {
            return Ok(Some(if self.leave_by.is_some() {
                Parting::Stopped
            } else {
                Parting::Slow
            }));
        }
        if up.has_ended(at) {
            return Ok(Some(Parting::Left));
        }
        if self.input.len() > self.limits.message_bytes + crate::network::PIPE_BYTES {
            let what = format!("a session leaves {} bytes unread", self.input.len());
            return Err(Broken::new(Promise::Limits, what));
        }
        if self.leave_by.is_some_and(|by| by <= now) {
            return Ok(Some(Parting::Stopped));
        }
        if self.first_word_by.is_some_and(|by| by <= now) {
            return Ok(Some(Parting::HungUp(HangUp::Silent)));
        }
        if !self.unsent.is_empty() && self.sent_at.after_ms(self.limits.write_ms) <= now {
            return Ok(Some(Parting::Slow));
        }
        if self.session.deadline().is_some_and(|due| due <= now) {
            self.session.tick(now, &mut self.out);
        }
        self.hand_over(results)?;
        if self.unsent.is_empty() {
            self.sent_at = now;
        }
        self.unsent.unsplit(self.out.take_bytes());
        if let Some(why) = self.out.hang_up.take() {
            return Ok(Some(Parting::HungUp(why)));
        }
        if self.leave_by.is_some() && !self.session.owes_answers() {
            return Ok(Some(Parting::Stopped));
        }
        Ok(None)
    }

    pub fn send(
        &mut self,
        now: Time,
        down: &mut Pipe,
        at: u64,
        weather: &Weather,
        dice: &mut Dice,
    ) {
        let count = self.unsent.len().min(down.room());
        if count > 0 {
            down.send(at, self.unsent.split_to(count).freeze(), weather, dice);
            self.sent_at = now;
        }
    }

    /// True: the hub has cut this session off.
    fn deliver(&mut self, now: Time) -> bool {
        loop {
            match now_or_never(self.subscription.next()) {
                None => return false,
                Some(None) => return true,
                Some(Some(delivery)) => {
                    if let Delivery::Reply { .. } = delivery {
                        self.in_flight = self.in_flight.saturating_sub(1);
                    }
                    self.session.deliver(now, delivery, &mut self.out);
                }
            }
        }
    }

    fn hand_over(&mut self, results: &mut Results) -> Kept {
        // What tasks print is kept elsewhere, and not looked at here.
        results.keep(&self.out.keep);
        self.out.keep.clear();
        for (_, command) in &self.out.ask {
            results.check(command)?;
        }
        self.backlog.append(&mut self.out.ask);
        self.out.ended.clear();
        let in_flight_max = (self.limits.queue / 2).max(1);
        let most = in_flight_max.saturating_sub(self.in_flight).min(self.backlog.len());
        if most == 0 {
            return Ok(());
        }
        let asks: Vec<(u64, Command)> = self.backlog.drain(..most).collect();
        self.in_flight += asks.len();
        match now_or_never(self.subscription.ask_all(asks)) {
            Some(_) => Ok(()),
            None => Err(Broken::new(Promise::Limits, "the inbox of the hub is full")),
        }
    }

    /// The hub stops in order.
    pub fn stop(&mut self, now: Time) {
        if self.leave_by.is_none() {
            self.session.last_words(now, &mut self.out);
            self.leave_by = Some(now.after_ms(LEAVE_MS));
        }
    }

    /// The conversation is over: the hub is told, and the peer gets what was said, if the line stands.
    pub fn close(
        mut self,
        now: Time,
        parting: &Parting,
        down: &mut Pipe,
        at: u64,
        weather: &Weather,
        dice: &mut Dice,
    ) {
        if self.leave_by.is_some() {
            self.session.farewell(now, &mut self.out);
        }
        self.session.close(now, &mut self.out);
        let mut asks = std::mem::take(&mut self.backlog);
        asks.append(&mut self.out.ask);
        if !asks.is_empty() {
            // A hub that is gone needs no goodbye.
            let _ = now_or_never(self.subscription.ask_all(asks));
        }
        if !matches!(parting, Parting::Left | Parting::Slow) {
            down.send(at, self.unsent.split().freeze(), weather, dice);
        }
        down.finish(at);
    }
}
