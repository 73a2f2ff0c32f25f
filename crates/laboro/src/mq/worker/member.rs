//! One worker, over as many connections as it takes: when one is lost it comes again under its name and
//! registers again. When it leaves it says so first, and stays until everything that was already on its way
//! to it is done.

use super::super::target::open_as;
use super::programs::Programs;
use bytes::Bytes;
use laboro_clients::mq::{Broken, BrokerLink, Target};
use laboro_core::Time;
use laboro_dialects::rrmq::{Command, Envelope, Parts, Worker, WorkerOptions, WorkerTally};
use laboro_dialects::zmtp::{Message, Options};
use laboro_net::Clock;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

/// What a worker does.
#[derive(Clone)]
pub(super) struct Trade {
    pub(super) options: WorkerOptions,
    /// For what the example does not know.
    pub(super) programs: Option<Arc<Programs>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemberOrder {
    Register,
    Deregister,
    Leave,
}

pub(super) struct Member {
    orders: mpsc::UnboundedSender<MemberOrder>,
    news: watch::Receiver<MemberState>,
    task: JoinHandle<WorkerTally>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct MemberState {
    is_registered: bool,
}

impl Member {
    pub(super) fn start(target: Target, trade: Trade) -> Member {
        let (orders, received) = mpsc::unbounded_channel();
        let (told, news) = watch::channel(MemberState::default());
        let life = Life {
            options: target.options(),
            target,
            worker: Worker::new(trade.options),
            running_max: trade.options.slots.saturating_mul(2) as usize,
            programs: trade.programs,
            orders: received,
            told,
            clock: Clock::start(),
            running: JoinSet::new(),
            out: Vec::new(),
            leaving: None,
        };
        Member { orders, news, task: tokio::spawn(life.run()) }
    }

    pub(super) fn order(&self, order: MemberOrder) {
        // One that has gone has nothing left to do.
        let _ = self.orders.send(order);
    }

    pub(super) async fn registered(&mut self) {
        let _ = self.news.wait_for(|news| news.is_registered).await;
    }

    pub(super) async fn deregistered(&mut self) {
        let _ = self.news.wait_for(|news| !news.is_registered).await;
    }

    /// After `MemberOrder::Leave`.
    pub(super) async fn gone(&mut self) -> WorkerTally {
        (&mut self.task).await.unwrap_or_default()
    }
}

struct Life {
    target: Target,
    /// With a name that stays the same.
    options: Options,
    worker: Worker,
    programs: Option<Arc<Programs>>,
    orders: mpsc::UnboundedReceiver<MemberOrder>,
    told: watch::Sender<MemberState>,
    clock: Clock,
    running: JoinSet<(Envelope, Option<Parts>)>,
    /// Messages with an address come past the slots, so there may be more than those.
    running_max: usize,
    out: Vec<Message>,
    leaving: Option<Leaving>,
}

/// DEREGISTER is not answered, but a PING after it is, and then nothing is on its way any more.
struct Leaving {
    is_answered: bool,
    until: Time,
}

const LEAVE_ID: &[u8] = b"LEAVE";
const LEAVE_MS: u64 = 5000;

const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);

impl Life {
    async fn run(mut self) -> WorkerTally {
        let mut pause = PAUSE_MIN;
        while self.leaving.is_none() {
            match self.connect().await {
                None => {}
                Some(Err(error)) => {
                    tracing::warn!("{error:#}; trying again");
                    self.wait(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
                Some(Ok(link)) => {
                    pause = PAUSE_MIN;
                    if let Err(why) = self.talk(link).await {
                        tracing::warn!("{}: {why}; connecting again", self.target);
                    }
                    self.worker.lost();
                    self.tell();
                }
            }
        }
        self.worker.tally()
    }

    /// `None` when it was told to leave meanwhile.
    async fn connect(&mut self) -> Option<anyhow::Result<BrokerLink>> {
        let (target, options) = (self.target.clone(), self.options.clone());
        let mut opening = std::pin::pin!(open_as(&target, options, self.clock));
        loop {
            tokio::select! {
                opened = &mut opening => return Some(opened),
                Some(order) = self.orders.recv() => self.obey(order),
            }
            self.out.clear();
            self.leaving.is_none().then_some(())?;
        }
    }

    async fn wait(&mut self, pause: Duration) {
        let mut pause = std::pin::pin!(tokio::time::sleep(pause));
        while self.leaving.is_none() {
            tokio::select! {
                () = &mut pause => return,
                Some(order) = self.orders.recv() => self.obey(order),
            }
            self.out.clear();
        }
    }

    /// One connection, from its beginning to its end.
    async fn talk(&mut self, mut link: BrokerLink) -> Result<(), Broken> {
        self.worker.open(self.clock.now(), &mut self.out);
        let mut messages = Vec::new();
        loop {
            link.say_all(&mut self.out);
            if self.may_go() {
                return link.flush().await;
            }
            let leave_by = self.leaving.as_ref().map(|leaving| leaving.until);
            let deadline = [self.worker.deadline(), leave_by].into_iter().flatten().min();
            let alarm = tokio::time::sleep(self.clock.until(deadline.unwrap_or(Time::NEVER)));
            tokio::select! {
                heard = link.hear(&mut messages) => heard?,
                Some(order) = self.orders.recv() => self.obey(order),
                Some(ended) = self.running.join_next() => match ended {
                    Ok((asked, answer)) => self.worker.finish(&asked, answer, &mut self.out),
                    Err(error) => tracing::error!("a request was lost: {error}"),
                },
                () = alarm, if deadline.is_some() => {
                    if !self.worker.tick(self.clock.now(), &mut self.out) {
                        return Err(Broken::Closed);
                    }
                }
            }
            let now = self.clock.now();
            messages.drain(..).for_each(|message| self.hear(now, &message));
            self.tell();
        }
    }

    fn hear(&mut self, now: Time, message: &Message) {
        match self.worker.receive_or_give(now, message, &mut self.out) {
            Ok(None) => {
                if let Some(leaving) = &mut self.leaving {
                    leaving.is_answered |= is_leave_answer(message);
                }
            }
            Ok(Some(asked)) => self.begin(asked),
            Err(error) => tracing::warn!("{}: a malformed message: {error}", self.target),
        }
        tracing::debug!("{}: a message of {} frames", self.target, message.len());
    }

    fn begin(&mut self, asked: Envelope) {
        match &self.programs {
            Some(programs) if self.running.len() < self.running_max => {
                let programs = Arc::clone(programs);
                self.running.spawn(async move {
                    let answer = programs.run(&asked).await;
                    (asked, answer.inspect_err(|why| tracing::warn!("no answer: {why}")).ok())
                });
            }
            Some(_) => {
                tracing::warn!(
                    "no answer: as many requests run as there are slots ({})",
                    self.running.len()
                );
                self.worker.finish(&asked, None, &mut self.out);
            }
            None => {
                tracing::warn!("no answer: unknown command");
                self.worker.finish(&asked, None, &mut self.out);
            }
        }
    }

    fn obey(&mut self, order: MemberOrder) {
        match order {
            MemberOrder::Register => self.worker.register(&mut self.out),
            MemberOrder::Deregister => self.worker.deregister(&mut self.out),
            MemberOrder::Leave => {
                if self.leaving.is_none() {
                    if self.worker.is_on_duty() {
                        self.worker.deregister(&mut self.out);
                    }
                    let id = Bytes::from_static(LEAVE_ID);
                    self.out.push(Envelope::new(Command::Ping, id, []).to_message());
                    let until = self.clock.now().after_ms(LEAVE_MS);
                    self.leaving = Some(Leaving { is_answered: false, until });
                }
            }
        }
        self.tell();
    }

    /// Everything that was taken is done, and nothing more is to come.
    fn may_go(&self) -> bool {
        let is_quiet = |leaving: &Leaving| leaving.is_answered || self.clock.now() >= leaving.until;
        self.leaving.as_ref().is_some_and(is_quiet) && self.running.is_empty()
    }

    fn tell(&self) {
        let is_registered = self.worker.is_registered();
        self.told.send_if_modified(|news| {
            std::mem::replace(&mut news.is_registered, is_registered) != is_registered
        });
    }
}

fn is_leave_answer(message: &Message) -> bool {
    Envelope::parse(message).is_ok_and(|said| said.command == Command::Pong && said.id == LEAVE_ID)
}
