//! The client's conversation with its server, over as many connections as it takes. Its name stays the same,
//! so answers to what was asked before a connection broke still find it.

use super::super::target::open_as;
use laboro_clients::mq::{BrokerLink, Target};
use laboro_core::Time;
use laboro_dialects::rrmq::{Answer, Client};
use laboro_dialects::zmtp::{Message, Options};
use laboro_net::Clock;
use std::convert::Infallible;
use std::time::Duration;

/// Of one stream.
const DATA_BYTES_MAX: usize = 1 << 30;

const CONNECT: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(100);

pub(super) struct Talk {
    target: Target,
    options: Options,
    clock: Clock,
    link: Option<BrokerLink>,
    client: Client,
    out: Vec<Message>,
    messages: Vec<Message>,
}

impl Talk {
    /// An error when there is no server: later, when one is lost, it is waited for.
    pub(super) async fn open(target: Target, timeout: Duration) -> anyhow::Result<Talk> {
        let answer_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        let clock = Clock::start();
        let options = target.options();
        let link = open_as(&target, options.clone(), clock).await?;
        let mut talk = Talk {
            target,
            options,
            clock,
            link: Some(link),
            client: Client::new(answer_ms, DATA_BYTES_MAX),
            out: Vec::new(),
            messages: Vec::new(),
        };
        talk.client.open(clock.now(), &mut talk.out);
        Ok(talk)
    }

    /// A PING, which has no answer; returns when it is on its way.
    pub(super) async fn ping(&mut self) -> anyhow::Result<()> {
        self.client.ping(&mut self.out);
        if let Some(link) = &mut self.link {
            link.say_all(&mut self.out);
            link.flush().await?;
        }
        Ok(())
    }

    pub(super) fn ask_ping(&mut self) {
        self.client.tracked_ping(self.clock.now(), &mut self.out);
    }

    pub(super) fn ask_data(&mut self, ones: u32) {
        let host = self.options.identity.clone();
        self.client.stream(self.clock.now(), host, ones, &mut self.out);
    }

    /// Waits until something has happened, and takes the answers that it brought. Nothing is lost when it is
    /// dropped half way.
    pub(super) async fn turn(&mut self, answers: &mut Vec<Answer>) {
        match &mut self.link {
            None => self.connect().await,
            Some(link) => {
                link.say_all(&mut self.out);
                let deadline = self.client.deadline();
                let alarm = tokio::time::sleep(self.clock.until(deadline.unwrap_or(Time::NEVER)));
                tokio::select! {
                    heard = link.hear(&mut self.messages) => if let Err(why) = heard {
                        tracing::warn!("{}: {why}; connecting again", self.target);
                        self.lose();
                    },
                    () = alarm, if deadline.is_some() => {}
                }
            }
        }
        let now = self.clock.now();
        for message in self.messages.drain(..) {
            match self.client.receive(now, &message, &mut self.out) {
                Ok(answer) => answers.extend(answer),
                Err(error) => tracing::warn!("a malformed message: {error}"),
            }
        }
        if self.client.deadline().is_some_and(|at| at <= now)
            && !self.client.tick(now, &mut self.out, answers)
        {
            tracing::warn!("{} is silent; connecting again", self.target);
            self.lose();
        }
    }

    /// Keeps the conversation going while there is nothing to ask.
    pub(super) async fn stay(&mut self) -> Infallible {
        loop {
            self.turn(&mut Vec::new()).await;
        }
    }

    fn lose(&mut self) {
        self.link = None;
        self.client.lost();
    }

    async fn connect(&mut self) {
        let opening = open_as(&self.target, self.options.clone(), self.clock);
        match tokio::time::timeout(CONNECT, opening).await {
            Ok(Ok(link)) => {
                self.link = Some(link);
                self.client.open(self.clock.now(), &mut self.out);
            }
            _ => tokio::time::sleep(PAUSE).await,
        }
    }
}
