//! Drives one session over one stream of bytes, plain or TLS. Everything that can be read becomes one turn:
//! one call of the session, one letter to the hub, one write. Nothing here grows without end: a peer that
//! does not read is not read from, and is cut off after a while.

mod stream;

use crate::inbox::Subscription;
use crate::keep::Outputs;
use crate::listen::DoorStats;
use crate::listen::stats::count;
use crate::security::TokenAdmission;
use laboro_core::{Command, Time};
use laboro_dialects::session::{Delivery, HangUp, Output, Session};
use laboro_net::Clock;
use laboro_net::Linger;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use stream::PeerStream;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Sleep;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// What the conversations of one door have in common.
#[derive(Debug, Clone)]
pub(crate) struct Hall {
    pub clock: Clock,
    /// `None`: whoever makes the sessions sees to it.
    pub outputs: Option<Outputs>,
    pub stats: Arc<DoorStats>,
    pub limits: ConnectionLimits,
    /// Whether a peer's next word is waited for awake, where that pays.
    pub lingers: bool,
    /// The hub wants to stop.
    pub stop: CancellationToken,
}

#[derive(Debug, Clone)]
pub(crate) struct ConnectionLimits {
    pub message_bytes: usize,
    /// For the first word of a peer, and for a TLS handshake before it.
    pub handshake_ms: u64,
    /// A peer that takes nothing for so long is cut off.
    pub write_ms: u64,
    /// How often it is looked whether the token of a connection still counts.
    pub admission_ms: u64,
    /// A peer whose machine does not answer for so long is gone.
    pub lost_ms: u64,
}

/// How a conversation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Parting {
    /// Everything was said.
    Finished,
    /// The peer closed the connection, or it broke.
    Left,
    Malformed(String),
    Denied(String),
    Silent,
    Slow,
    /// The hub stops, or has stopped.
    Stopped,
    /// What it brought could not be written in time. It has no answer, so it is told again on the next connection.
    Unkept,
}

/// Said but not sent; beyond this nothing more is read or delivered.
const UNSENT_BYTES_MAX: usize = 1 << 20;

/// Deliveries that one turn takes.
const DELIVERIES_A_TURN: usize = 1024;

/// How long answers to what a peer has asked before are waited for when the hub stops.
const LEAVE_MS: u64 = 2000;

/// How long output is waited for that cannot be written. Nothing is heard meanwhile, also no sign of life: shorter than
/// leases, which go on when the worker comes again.
const UNKEPT_MS: u64 = 10_000;

/// How long a dialect that has a word for it hears on when the hub stops, for what was on its way.
const LATE_MS: u64 = 200;

/// Drives the session to its end, and counts how it ended. A peer that says nothing in the beginning is cut off.
pub(crate) async fn drive<I, S>(
    io: I,
    session: S,
    subscription: Subscription,
    admission: Option<&TokenAdmission>,
    hall: &Hall,
) -> Parting
where
    I: AsyncRead + AsyncWrite + Unpin + Send,
    S: Session,
{
    let first_word_by = hall.clock.now().after_ms(hall.limits.handshake_ms);
    converse(io, session, subscription, admission, Some(first_word_by), hall).await
}

/// The same for a peer that has shown before who it is: it speaks when it has something to say.
pub(crate) async fn drive_known<I, S>(
    io: I,
    session: S,
    subscription: Subscription,
    hall: &Hall,
) -> Parting
where
    I: AsyncRead + AsyncWrite + Unpin + Send,
    S: Session,
{
    converse(io, session, subscription, None, None, hall).await
}

async fn converse<I, S>(
    io: I,
    session: S,
    subscription: Subscription,
    admission: Option<&TokenAdmission>,
    first_word_by: Option<Time>,
    hall: &Hall,
) -> Parting
where
    I: AsyncRead + AsyncWrite + Unpin + Send,
    S: Session,
{
    let now = hall.clock.now();
    let mut talk = Talk {
        stream: PeerStream::new(io),
        linger: if hall.lingers { Linger::default() } else { Linger::never() },
        session,
        in_flight_max: (subscription.queue_max() / 2).max(1),
        subscription,
        admission,
        hall,
        out: Output::default(),
        backlog: Vec::new(),
        in_flight: 0,
        deliveries: Vec::new(),
        alarm: Box::pin(tokio::time::sleep(hall.clock.until(now))),
        alarm_at: Time::NEVER,
        stop: Box::pin(hall.stop.clone().cancelled_owned()),
        leave_by: None,
        hear_until: None,
        first_word_by,
        admission_at: now.after_ms(hall.limits.admission_ms),
        sent_at: now,
    };
    let parting = talk.run().await;
    talk.close(&parting).await;
    let stats = &hall.stats;
    match &parting {
        Parting::Finished | Parting::Left | Parting::Stopped | Parting::Unkept => {}
        Parting::Malformed(_) => count(&stats.malformed, 1),
        Parting::Denied(_) => count(&stats.denied, 1),
        Parting::Silent => count(&stats.silent, 1),
        Parting::Slow => count(&stats.slow, 1),
    }
    parting
}

struct Talk<'a, I, S> {
    stream: PeerStream<I>,
    linger: Linger,
    session: S,
    subscription: Subscription,
    admission: Option<&'a TokenAdmission>,
    hall: &'a Hall,
    out: Output,
    /// Asked by the session, but not yet of the hub: its queue could not hold all the answers.
    backlog: Vec<(u64, Command)>,
    in_flight: usize,
    in_flight_max: usize,
    deliveries: Vec<Delivery>,
    alarm: Pin<Box<Sleep>>,
    alarm_at: Time,
    stop: Pin<Box<WaitForCancellationFutureOwned>>,
    /// The hub stops: answers are waited for until then.
    leave_by: Option<Time>,
    /// And until then something is heard, if at all.
    hear_until: Option<Time>,
    /// Until the peer has said something.
    first_word_by: Option<Time>,
    admission_at: Time,
    /// When the peer last took something, or had taken everything.
    sent_at: Time,
}

/// What a turn begins with.
#[derive(Default)]
struct TurnInput {
    heard: usize,
    is_closed: bool,
    delivered: usize,
    is_cut_off: bool,
    has_rung: bool,
    stops: bool,
}

impl TurnInput {
    fn is_some(&self) -> bool {
        self.heard + self.delivered > 0
            || self.is_closed
            || self.is_cut_off
            || self.has_rung
            || self.stops
    }
}

impl<I, S> Talk<'_, I, S>
where
    I: AsyncRead + AsyncWrite + Unpin + Send,
    S: Session,
{
    async fn run(&mut self) -> Parting {
        self.session.open(self.hall.clock.now(), &mut self.out);
        loop {
            if let Err(parting) = self.empty_output().await {
                return parting;
            }
            if let Some(why) = self.out.hang_up.take() {
                return why.into();
            }
            let has_left_off = self.leave_by.is_some() && self.hear_until.is_none();
            if has_left_off && !self.session.owes_answers() {
                return Parting::Stopped;
            }
            self.set_alarm();
            let news = poll_fn(|context| self.poll_news(context)).await;
            if let Some(parting) = self.take_in(&news) {
                return parting;
            }
        }
    }

    /// Gives the session all that is new.
    fn take_in(&mut self, news: &TurnInput) -> Option<Parting> {
        let now = self.hall.clock.now();
        if news.stops {
            self.session.last_words(now, &mut self.out);
            self.leave_by = Some(now.after_ms(LEAVE_MS));
            self.hear_until = self.session.answers_late().then(|| now.after_ms(LATE_MS));
        }
        if news.heard > 0 {
            count(&self.hall.stats.bytes_in, news.heard);
            self.first_word_by = None;
            self.session.receive(now, &mut self.stream.input, &mut self.out);
            count(&self.hall.stats.messages_in, std::mem::take(&mut self.out.heard));
            count(&self.hall.stats.dropped, std::mem::take(&mut self.out.dropped));
        }
        self.deliver(now);
        if news.is_cut_off {
            // The queue overflowed, or there is no hub any more to fill it.
            let gone = self.subscription.is_orphaned();
            return Some(if gone { Parting::Stopped } else { Parting::Slow });
        }
        if news.is_closed {
            return Some(if self.stream.is_lost { Parting::Silent } else { Parting::Left });
        }
        if self.stream.input.len() > self.hall.limits.message_bytes + stream::TURN_BYTES {
            let most = self.hall.limits.message_bytes;
            return Some(Parting::Malformed(format!("a message is longer than {most} bytes")));
        }
        if news.has_rung { self.ring(now) } else { None }
    }

    fn deliver(&mut self, now: Time) {
        for delivery in self.deliveries.drain(..) {
            if let Delivery::Reply { .. } = delivery {
                self.in_flight = self.in_flight.saturating_sub(1);
            }
            self.session.deliver(now, delivery, &mut self.out);
        }
    }

    /// Something is due.
    fn ring(&mut self, now: Time) -> Option<Parting> {
        self.alarm_at = Time::NEVER;
        if self.leave_by.is_some_and(|by| by <= now) {
            return Some(Parting::Stopped);
        }
        self.hear_until = self.hear_until.filter(|&until| until > now);
        if self.first_word_by.is_some_and(|by| by <= now) {
            return Some(Parting::Silent);
        }
        if self.stream.has_unsent() && self.sent_at.after_ms(self.hall.limits.write_ms) <= now {
            return Some(Parting::Slow);
        }
        if self.admission_at <= now {
            self.admission_at = now.after_ms(self.hall.limits.admission_ms);
            if self.admission.is_some_and(|admission| !admission.still_holds(now)) {
                return Some(Parting::Denied("its token was revoked or has expired".into()));
            }
        }
        if self.session.deadline().is_some_and(|at| at <= now) {
            self.session.tick(now, &mut self.out);
        }
        None
    }

    /// Does what stands in the output: first what is to be kept, then what is asked, then what is said. An
    /// answer that is already there when something is asked joins what is said.
    async fn empty_output(&mut self) -> Result<(), Parting> {
        loop {
            self.hand_over().await?;
            while let Some(delivery) = self.subscription.try_next() {
                self.deliveries.push(delivery);
            }
            if self.deliveries.is_empty() {
                break;
            }
            self.deliver(self.hall.clock.now());
        }
        let stats = &self.hall.stats;
        count(&stats.messages_out, self.out.messages());
        let unsent = self.stream.has_unsent();
        self.stream.say(self.out.take_bytes());
        if !unsent {
            self.sent_at = self.hall.clock.now();
        }
        Ok(())
    }

    async fn hand_over(&mut self) -> Result<(), Parting> {
        self.keep().await?;
        if self.backlog.is_empty() {
            std::mem::swap(&mut self.backlog, &mut self.out.ask);
        } else {
            self.backlog.append(&mut self.out.ask);
        }
        let most = self.in_flight_max.saturating_sub(self.in_flight).min(self.backlog.len());
        if most == 0 {
            return Ok(());
        }
        let rest = self.backlog.split_off(most);
        let asks = std::mem::replace(&mut self.backlog, rest);
        self.in_flight += asks.len();
        count(&self.hall.stats.commands, asks.len());
        self.subscription.ask_all(asks).await.map_err(|_| Parting::Stopped)
    }

    /// Output is in its file before the result that follows it is passed on. That it cannot be written is told by its keeper.
    async fn keep(&mut self) -> Result<(), Parting> {
        let chunks = std::mem::take(&mut self.out.keep);
        let Some(outputs) = &self.hall.outputs else { return Ok(()) };
        if chunks.is_empty() && self.out.ended.is_empty() && self.out.ask.is_empty() {
            return Ok(());
        }
        let Output { ended, ask, .. } = &mut self.out;
        // A store that is closed is that of a hub that has stopped.
        let kept = async {
            if !chunks.is_empty() {
                let _ = outputs.keep(chunks).await;
            }
            if !ended.is_empty() {
                let _ = outputs.note_ends(ended).await;
            } else if !ask.is_empty() {
                let _ = outputs.note_results(ask).await;
            }
        };
        let too_late = async {
            let stopped = async {
                self.hall.stop.cancelled().await;
                tokio::time::sleep(Duration::from_millis(LEAVE_MS)).await;
            };
            let _ = tokio::time::timeout(Duration::from_millis(UNKEPT_MS), stopped).await;
        };
        tokio::select! {
            biased;
            () = kept => Ok(()),
            () = too_late => {
                // Without its output no result is passed on, and nothing is said that depends on it.
                self.out = Output::default();
                Err(Parting::Unkept)
            }
        }
    }

    fn poll_news(&mut self, context: &mut Context<'_>) -> Poll<TurnInput> {
        let mut news = TurnInput::default();
        match self.stream.poll_send(context) {
            Ok(0) => {}
            Ok(sent) => {
                count(&self.hall.stats.bytes_out, sent);
                self.sent_at = self.hall.clock.now();
                self.linger.said();
            }
            Err(_) => news.is_closed = true,
        }
        if self.stream.unsent_bytes() < UNSENT_BYTES_MAX {
            // While the hub is behind with what this peer asked, the peer has to wait.
            let hears = self.leave_by.is_none() || self.hear_until.is_some();
            if self.backlog.is_empty() && hears {
                match self.stream.poll_hear(context) {
                    Ok(heard) => news.heard = heard,
                    Err(heard) => (news.heard, news.is_closed) = (heard, true),
                }
                if news.heard > 0 {
                    self.linger.heard();
                }
            }
            let queue = &mut self.subscription;
            match queue.poll_next(context, &mut self.deliveries, DELIVERIES_A_TURN) {
                Poll::Ready(0) => news.is_cut_off = true,
                Poll::Ready(delivered) => news.delivered = delivered,
                Poll::Pending => {}
            }
        }
        news.has_rung =
            self.alarm_at != Time::NEVER && self.alarm.as_mut().poll(context).is_ready();
        news.stops = self.leave_by.is_none() && self.stop.as_mut().poll(context).is_ready();
        if news.is_some() {
            return Poll::Ready(news);
        }
        self.linger.poll(context);
        Poll::Pending
    }

    /// An alarm that is set too early costs less than moving it each time: it rings, and is set anew.
    fn set_alarm(&mut self) {
        let limits = &self.hall.limits;
        let slow = self.stream.has_unsent().then(|| self.sent_at.after_ms(limits.write_ms));
        let admission = self.admission.map(|_| self.admission_at);
        let stop = self.hear_until.or(self.leave_by);
        let times = [self.session.deadline(), self.first_word_by, slow, admission, stop];
        let due = times.into_iter().flatten().min().unwrap_or(Time::NEVER);
        if due < self.alarm_at {
            self.alarm_at = due;
            let wait = self.hall.clock.until(due);
            self.alarm.as_mut().reset(tokio::time::Instant::now() + wait);
        }
    }

    /// The hub is told in any case; the peer gets what was said to it, if it takes it in time.
    async fn close(&mut self, parting: &Parting) {
        if *parting == Parting::Stopped {
            self.session.farewell(self.hall.clock.now(), &mut self.out);
        }
        count(&self.hall.stats.messages_out, self.out.messages());
        self.stream.say(self.out.take_bytes());
        self.session.close(self.hall.clock.now(), &mut self.out);
        let _ = self.keep().await;
        let mut asks = std::mem::take(&mut self.backlog);
        asks.append(&mut self.out.ask);
        if !asks.is_empty() {
            count(&self.hall.stats.commands, asks.len());
            // A hub that is gone needs no goodbye.
            let _ = self.subscription.ask_all(asks).await;
        }
        if !matches!(parting, Parting::Left | Parting::Slow) {
            count(&self.hall.stats.bytes_out, self.stream.finish(&self.hall.limits).await);
        }
    }
}

impl From<HangUp> for Parting {
    fn from(why: HangUp) -> Parting {
        match why {
            HangUp::Finished => Parting::Finished,
            HangUp::Malformed(why) => Parting::Malformed(why),
            HangUp::Denied(why) => Parting::Denied(why),
            HangUp::Silent => Parting::Silent,
        }
    }
}
