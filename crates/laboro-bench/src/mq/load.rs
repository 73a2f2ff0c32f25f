//! One client and ten workers, each side on a thread of its own. They say as little as can be said.

use super::broker::Broker;
use crate::exit::usage;
use anyhow::Context;
use bytes::Bytes;
use laboro_clients::mq::{Broken, BrokerLink, Target};
use laboro_dialects::zmtp::Message;
use laboro_net::Clock;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

const WORKERS: usize = 10;
const SLOTS: &[u8] = b"10";

const LMQ: Bytes = Bytes::from_static(b"LMQv100");

pub(super) struct Load {
    front: Target,
}

#[derive(Debug)]
pub(super) struct LoadFigures {
    pub(super) count: usize,
    pub(super) took: Duration,
    /// With those before the measurement, for which the broker worked too.
    pub(super) all: usize,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    /// Of the broker, for each.
    pub(super) cpu_us: Option<f64>,
}

impl Load {
    /// Workers work until the program ends.
    pub(super) fn start(broker: &Broker) -> anyhow::Result<Load> {
        let (told, ready) = channel();
        let back = Target::at(&broker.back).map_err(usage)?;
        let has_slots = broker.has_slots;
        std::thread::Builder::new().name("workers".into()).spawn(move || {
            let worked = runtime().map_err(anyhow::Error::from).and_then(|runtime| {
                runtime.block_on(async {
                    let mut working = tokio::task::JoinSet::new();
                    for _ in 0..WORKERS {
                        let mut link = BrokerLink::open(&back, Clock::start()).await?;
                        if has_slots {
                            register(&mut link).await?;
                        }
                        working.spawn(work(link, has_slots));
                    }
                    let _ = told.send(());
                    while working.join_next().await.is_some() {}
                    Ok(())
                })
            });
            if let Err(error) = worked {
                crate::exit::say(format_args!("laboro-bench: the workers have ended: {error:#}"));
            }
        })?;
        ready.recv().context("the workers cannot begin")?;
        Ok(Load { front: Target::at(&broker.front).map_err(usage)? })
    }

    pub(super) fn run(
        &self,
        bytes: usize,
        at_once: usize,
        time: Duration,
    ) -> anyhow::Result<LoadFigures> {
        runtime()?.block_on(async {
            let mut link = BrokerLink::open(&self.front, Clock::start()).await?;
            let payload = Bytes::from(vec![7; bytes]);
            let before = ask(&mut link, &payload, at_once, time / 10).await?;
            let mut figures = ask(&mut link, &payload, at_once, time).await?;
            figures.all += before.all;
            Ok(figures)
        })
    }
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

async fn ask(
    link: &mut BrokerLink,
    payload: &Bytes,
    at_once: usize,
    time: Duration,
) -> Result<LoadFigures, Broken> {
    // An id is the place of its request among those that are on their way.
    let mut begun = vec![Instant::now(); at_once];
    let began = Instant::now();
    let mut latencies = Vec::with_capacity(1 << 20);
    let mut messages = Vec::new();
    let mut on_the_way = at_once;
    for id in 0..at_once {
        link.say(&request(id, payload));
    }
    while on_the_way > 0 {
        link.hear(&mut messages).await?;
        let now = Instant::now();
        for message in messages.drain(..) {
            // A heartbeat has no place.
            let place = message.get(3).and_then(|id| <[u8; 8]>::try_from(&id[..]).ok());
            let Some(id) = place.map(|id| u64::from_le_bytes(id) as usize) else { continue };
            let Some(begun) = begun.get_mut(id) else { continue };
            latencies.push(now - *begun);
            if now - began < time {
                *begun = now;
                link.say(&request(id, payload));
            } else {
                on_the_way -= 1;
            }
        }
    }
    let took = began.elapsed();
    latencies.sort_unstable();
    let percentile = |percent: usize| {
        let at = latencies.len().saturating_sub(1) * percent / 100;
        latencies.get(at).map_or(0.0, |took: &Duration| took.as_secs_f64() * 1e6)
    };
    let (count, p50_us, p99_us) = (latencies.len(), percentile(50), percentile(99));
    Ok(LoadFigures { count, took, all: count, p50_us, p99_us, cpu_us: None })
}

fn request(id: usize, payload: &Bytes) -> Message {
    let id = Bytes::copy_from_slice(&(id as u64).to_le_bytes());
    let head = [Bytes::new(), LMQ, Bytes::from_static(&[4]), id, Bytes::from_static(b"bench")];
    let payload = Some(payload.clone()).filter(|payload| !payload.is_empty());
    head.into_iter().chain(payload).chain([Bytes::new()]).collect()
}

async fn register(link: &mut BrokerLink) -> Result<(), Broken> {
    let frames: [&'static [u8]; 7] = [b"", b"LMQv100", &[4], b"reg", &[8], SLOTS, b""];
    link.say(&frames.into_iter().map(Bytes::from_static).collect());
    link.hear(&mut Vec::new()).await
}

/// Answers with what was sent. The proxy puts the client's name before a request, a server behind it.
async fn work(mut link: BrokerLink, has_slots: bool) -> Result<(), Broken> {
    let increment: [&'static [u8]; 6] = [b"", b"LMQv100", &[3], b"inc", &[7], b""];
    let increment: Message = increment.into_iter().map(Bytes::from_static).collect();
    let mut messages = Vec::new();
    loop {
        link.hear(&mut messages).await?;
        for asked in messages.drain(..) {
            let (client, skip) = match has_slots {
                true => (asked.get(asked.len() - 1), 0),
                false => (asked.get(0), 1),
            };
            let (Some(client), Some(id)) = (client, asked.get(3 + skip)) else { continue };
            if asked.get(2 + skip).is_none_or(|command| command != &[4][..]) {
                continue;
            }
            let head = [client.clone(), Bytes::new(), LMQ, Bytes::from_static(&[6]), id.clone()];
            let payload = asked.get(5 + skip).filter(|payload| !payload.is_empty()).cloned();
            link.say(&head.into_iter().chain(payload).chain([Bytes::new()]).collect());
            if has_slots {
                link.say(&increment);
            }
        }
    }
}
