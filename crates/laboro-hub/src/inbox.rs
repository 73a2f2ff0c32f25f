//! The world of a serving hub: a bounded inbox that many sessions write to, and the outbox that takes
//! effects back to them. A full inbox makes sessions wait, which makes them stop reading. What people ask has a
//! queue of its own, so that it does not wait behind all that sessions have asked.

use crate::outbox::Outbox;
use crate::ring::World;
use crate::underway::Underway;
use laboro_core::{
    Ask, Change, Command, Effect, Offer, Patience, Query, Reply, Route, SessionId, Time, Token,
};
use laboro_dialects::session::Delivery;
use laboro_net::Clock;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Letters that may wait for the engine. All that one turn of a session asks is one, however many commands it is.
    pub inbox: usize,
    /// Commands of sessions that one step takes at most, but for the last letter, which is taken whole.
    pub step: usize,
    /// Effects that may wait for one session before it is cut off.
    pub session: usize,
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        // Whoever asks waits for the step under way and for its own: this many commands take some 50 ms.
        ServerOptions { inbox: 65_536, step: 4096, session: 4096 }
    }
}

/// What reaches the engine.
pub(crate) enum Letter {
    Ask {
        command: Command,
        answer: oneshot::Sender<Reply>,
    },
    /// Asked by a session that takes its answers from its own queue, under a token of its own.
    SessionAsk {
        session: SessionId,
        tag: u64,
        command: Command,
    },
    /// All that one turn of a session asked, in one letter.
    SessionAsks {
        session: SessionId,
        asks: Vec<(u64, Command)>,
    },
    Open {
        session: SessionId,
        to: mpsc::Sender<Delivery>,
    },
    Watch {
        command: Command,
        to: mpsc::Sender<Arc<[Change]>>,
    },
    /// Nothing after this is taken.
    End,
}

/// A session that nobody holds any more, with what it was sent and did not take.
#[derive(Debug)]
struct Departed {
    session: SessionId,
    queue: mpsc::Receiver<Delivery>,
}

/// The hub is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost;

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the hub has stopped")
    }
}

impl std::error::Error for Lost {}

/// Asks things of a running hub. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Handle {
    /// Where its letters go: to those of sessions, or to those of people. All of one handle stay in order.
    letters: mpsc::Sender<Letter>,
    of_sessions: mpsc::Sender<Letter>,
    of_people: mpsc::Sender<Letter>,
    /// Without a limit of its own, for whoever goes cannot wait: each session that was opened goes through it once.
    departed: mpsc::UnboundedSender<Departed>,
    next_session: Arc<AtomicU64>,
    session_queue: usize,
    /// What answers are corrected by.
    underway: Option<Underway>,
}

/// A session's own queue of answers and work. Dropped: the session is closed.
#[derive(Debug)]
pub struct Subscription {
    pub session: SessionId,
    /// `None` only while it is dropped.
    queue: Option<mpsc::Receiver<Delivery>>,
    handle: Handle,
}

impl std::fmt::Debug for Letter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Letter::Ask { .. } => "ask",
            Letter::SessionAsk { .. } => "session ask",
            Letter::SessionAsks { .. } => "session asks",
            Letter::Open { .. } => "open",
            Letter::Watch { .. } => "watch",
            Letter::End => "end",
        })
    }
}

impl Letter {
    fn commands(&self) -> usize {
        match self {
            Letter::SessionAsks { asks, .. } => asks.len(),
            Letter::Ask { .. } | Letter::SessionAsk { .. } | Letter::Watch { .. } => 1,
            Letter::Open { .. } | Letter::End => 0,
        }
    }
}

impl Handle {
    /// For those who ask little and have somebody waiting in front of them: what they ask comes first in the next
    /// step, whatever sessions have asked before.
    pub fn for_people(&self) -> Handle {
        Handle { letters: self.of_people.clone(), ..self.clone() }
    }

    /// Its answers show as running only what is under way.
    pub fn showing(self, underway: Underway) -> Handle {
        Handle { underway: Some(underway), ..self }
    }

    /// Waits for room in the inbox, then for the answer.
    pub async fn ask(&self, command: Command) -> Result<Reply, Lost> {
        let asks_for = match &command {
            Command::Query(Query::Tasks { state, .. }) => *state,
            _ => None,
        };
        let (answer, reply) = oneshot::channel();
        self.letters.send(Letter::Ask { command, answer }).await.map_err(|_| Lost)?;
        let mut reply = reply.await.map_err(|_| Lost)?;
        if let Some(underway) = &self.underway {
            underway.correct(asks_for, &mut reply);
        }
        Ok(reply)
    }

    pub async fn open_session(&self) -> Result<Subscription, Lost> {
        let session = SessionId(self.next_session.fetch_add(1, Ordering::Relaxed));
        let (to, queue) = mpsc::channel(self.session_queue);
        self.letters.send(Letter::Open { session, to }).await.map_err(|_| Lost)?;
        Ok(Subscription { session, queue: Some(queue), handle: self.clone() })
    }

    /// Letters of sessions that wait for the engine, and how many may.
    pub(crate) fn inbox(&self) -> (usize, usize) {
        let most = self.of_sessions.max_capacity();
        (most - self.of_sessions.capacity(), most)
    }

    /// Ends the loop once everything asked before is answered. Whoever asks later finds the hub gone.
    pub async fn end(&self) -> Result<(), Lost> {
        self.letters.send(Letter::End).await.map_err(|_| Lost)
    }

    /// Changes as they happen, in order. A watcher that does not keep up is dropped.
    pub async fn watch(&self, command: Command) -> Result<mpsc::Receiver<Arc<[Change]>>, Lost> {
        let (to, changes) = mpsc::channel(self.session_queue);
        self.letters.send(Letter::Watch { command, to }).await.map_err(|_| Lost)?;
        Ok(changes)
    }
}

impl Subscription {
    /// Asks without waiting for the answer, which comes through `next` with this tag. What is withdrawn is
    /// an offer of this session, by its tag.
    pub async fn ask(&self, tag: u64, command: Command) -> Result<(), Lost> {
        let letter = Letter::SessionAsk { session: self.session, tag, command };
        self.handle.letters.send(letter).await.map_err(|_| Lost)
    }

    /// Asks several things in order, without waiting for the answers.
    pub async fn ask_all(&self, asks: Vec<(u64, Command)>) -> Result<(), Lost> {
        let letter = Letter::SessionAsks { session: self.session, asks };
        self.handle.letters.send(letter).await.map_err(|_| Lost)
    }

    /// What has arrived already. `None` says only that nothing is there now.
    pub fn try_next(&mut self) -> Option<Delivery> {
        self.queue().try_recv().ok()
    }

    /// For somebody else who asks in the name of this session and does not wait for the answers either.
    pub fn asker(&self) -> Asker {
        Asker { session: self.session, letters: self.handle.letters.clone() }
    }

    /// As many as are there, up to `most`, for whoever waits for other things too. Ready with nothing: the
    /// hub has stopped or has cut this session off.
    pub fn poll_next(
        &mut self,
        context: &mut Context<'_>,
        deliveries: &mut Vec<Delivery>,
        most: usize,
    ) -> Poll<usize> {
        self.queue().poll_recv_many(context, deliveries, most)
    }

    /// There is no hub any more.
    pub(crate) fn is_orphaned(&self) -> bool {
        self.handle.letters.is_closed()
    }

    /// How many answers and pieces of work may wait here before the session is cut off.
    pub(crate) fn queue_max(&self) -> usize {
        self.handle.session_queue
    }

    /// `None`: the hub has stopped or has cut this session off.
    pub async fn next(&mut self) -> Option<Delivery> {
        self.queue().recv().await
    }

    fn queue(&mut self) -> &mut mpsc::Receiver<Delivery> {
        self.queue.as_mut().expect("the queue is taken once no handle is left")
    }
}

/// Asks in the name of a session; the answers go to its subscription.
#[derive(Debug, Clone)]
pub struct Asker {
    pub session: SessionId,
    letters: mpsc::Sender<Letter>,
}

impl Asker {
    /// Does not wait: a hub whose inbox is full counts as lost, so this is for those who ask little.
    pub fn ask(&self, tag: u64, command: Command) -> Result<(), Lost> {
        let letter = Letter::SessionAsk { session: self.session, tag, command };
        self.letters.try_send(letter).map_err(|_| Lost)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        // The queue goes back whole: only whoever fills it can tell when nothing more comes into it.
        if let Some(queue) = self.queue.take() {
            let _ = self.handle.departed.send(Departed { session: self.session, queue });
        }
    }
}

/// Letters of people that may wait, and that one step takes beside those of sessions.
const PEOPLE: usize = 64;

/// Later than this after something was due, it is not load that made it late.
const STOOD_STILL_MS: u64 = 1000;
/// As long as it takes to read what waits at all connections, and to let in who comes again.
const HEARING: Duration = Duration::from_millis(250);

/// The engine's side of the inbox.
#[derive(Debug)]
pub struct Server {
    letters: mpsc::Receiver<Letter>,
    of_people: mpsc::Receiver<Letter>,
    /// What the next step begins with.
    people: Vec<Letter>,
    buffer: Vec<Letter>,
    departed: mpsc::UnboundedReceiver<Departed>,
    /// Whom the next step parts with.
    leaving: Vec<Departed>,
    outbox: Outbox,
    clock: Clock,
    step: usize,
    has_ended: bool,
}

pub fn server(options: &ServerOptions, clock: Clock) -> (Server, Handle) {
    let (of_sessions, letters) = mpsc::channel(options.inbox);
    let (of_people, from_people) = mpsc::channel(PEOPLE);
    let (departed, from_departed) = mpsc::unbounded_channel();
    let server = Server {
        letters,
        of_people: from_people,
        people: Vec::new(),
        buffer: Vec::with_capacity(options.step.min(1024)),
        departed: from_departed,
        leaving: Vec::new(),
        outbox: Outbox::default(),
        clock,
        step: options.step,
        has_ended: false,
    };
    let handle = Handle {
        letters: of_sessions.clone(),
        of_sessions,
        of_people,
        departed,
        next_session: Arc::new(AtomicU64::new(1)),
        session_queue: options.session,
        underway: None,
    };
    (server, handle)
}

impl Server {
    /// All that has arrived, without waiting for anything: for a world with a clock of its own. `None`
    /// ends the loop.
    pub fn gather_now(&mut self) -> Option<Vec<Ask>> {
        if self.has_ended {
            return None;
        }
        self.take_letters();
        Some(self.open_letters())
    }

    /// This process, or all of its machine, has not run for a while. What peers said meanwhile is read now, so
    /// that nobody is taken for silent who was not heard.
    async fn hear_what_was_said(&mut self) {
        tokio::time::sleep(HEARING).await;
        self.take_letters();
    }

    /// Waits for the first letter, and takes those that came with it. `false`: nobody is left who could ask.
    fn poll_letters(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        let people = self.of_people.poll_recv_many(context, &mut self.people, PEOPLE);
        let sessions = self.letters.poll_recv_many(context, &mut self.buffer, 1);
        let departed = self.departed.poll_recv_many(context, &mut self.leaving, 1);
        if people.is_pending() && sessions.is_pending() && departed.is_pending() {
            return Poll::Pending;
        }
        self.take_letters();
        let is_left =
            !self.people.is_empty() || !self.buffer.is_empty() || !self.leaving.is_empty();
        Poll::Ready(is_left)
    }

    /// Those that are there already, as many as one step takes.
    fn take_letters(&mut self) {
        while self.people.len() < PEOPLE
            && let Ok(letter) = self.of_people.try_recv()
        {
            self.people.push(letter);
        }
        let mut commands: usize = self.buffer.iter().map(Letter::commands).sum();
        while commands < self.step
            && let Ok(letter) = self.letters.try_recv()
        {
            commands += letter.commands();
            self.buffer.push(letter);
        }
    }

    fn open_letters(&mut self) -> Vec<Ask> {
        let mut asks = Vec::with_capacity(self.buffer.len());
        for letter in self.people.drain(..).chain(self.buffer.drain(..)) {
            match letter {
                Letter::Ask { command, answer } => {
                    asks.push(Ask { token: self.outbox.expect(answer), command });
                }
                Letter::SessionAsk { session, tag, command } => {
                    asks.push(session_ask(&mut self.outbox, session, tag, command));
                }
                Letter::SessionAsks { session, asks: several } => {
                    asks.extend(several.into_iter().map(|(tag, command)| {
                        session_ask(&mut self.outbox, session, tag, command)
                    }));
                }
                Letter::Open { session, to } => self.outbox.open(session, to),
                Letter::Watch { command, to } => {
                    asks.push(Ask { token: self.outbox.watch(to), command });
                }
                Letter::End => {
                    self.has_ended = true;
                    break;
                }
            }
        }
        self.part_with_departed();
        asks.extend(self.outbox.take_unwatched().map(|watch: Token| {
            let command = Command::Unwatch(watch);
            Ask { token: self.outbox.nobody(), command }
        }));
        asks.extend(self.outbox.take_undelivered().map(|back| {
            let command = Command::Return(back);
            Ask { token: self.outbox.nobody(), command }
        }));
        asks
    }

    /// What a session was sent and did not take is given back.
    fn part_with_departed(&mut self) {
        while let Ok(departed) = self.departed.try_recv() {
            self.leaving.push(departed);
        }
        for Departed { session, mut queue } in self.leaving.drain(..) {
            self.outbox.close(session);
            while let Ok(delivery) = queue.try_recv() {
                self.outbox.take_back(delivery);
            }
        }
    }
}

/// A session knows its offers by its own tags, so a tag is what it withdraws.
fn session_ask(outbox: &mut Outbox, session: SessionId, tag: u64, command: Command) -> Ask {
    match command {
        Command::Offer(Offer {
            route:
                Route::Answer {
                    patience: Patience::Until(_) | Patience::InTurn { .. } | Patience::Always(_),
                    ..
                },
            ..
        }) => Ask { token: outbox.expect_patiently(session, tag), command },
        Command::Withdraw(Token(offer)) => {
            let offer = outbox.patient(session, offer).unwrap_or(outbox.nobody());
            Ask { token: outbox.expect_for(session, tag), command: Command::Withdraw(offer) }
        }
        command => Ask { token: outbox.expect_for(session, tag), command },
    }
}

impl World for Server {
    async fn gather(&mut self, deadline: Option<Time>) -> Option<(Time, Vec<Ask>)> {
        if self.has_ended {
            return None;
        }
        let deadline = match self.outbox.has_undelivered() {
            true => Some(self.clock.now()),
            false => deadline,
        };
        let wait = deadline.map(|deadline| self.clock.until(deadline));
        let received = poll_fn(|context| self.poll_letters(context));
        let is_left = match wait {
            None => received.await,
            Some(wait) => tokio::time::timeout(wait, received).await.unwrap_or(true),
        };
        if !is_left {
            return None;
        }
        if deadline.is_some_and(|deadline| self.clock.now() > deadline.after_ms(STOOD_STILL_MS)) {
            self.hear_what_was_said().await;
        }
        let asks = self.open_letters();
        Some((self.clock.now(), asks))
    }

    fn deliver(&mut self, effects: Vec<Effect>) {
        self.outbox.deliver(effects);
    }
}
