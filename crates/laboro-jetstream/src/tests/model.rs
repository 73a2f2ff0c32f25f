//! A stream in memory with the rules of JetStream and the luck of a bad day: requests and answers are lost,
//! copies arrive late, and whoever is asked may be behind.

use crate::message::{Kind, Message};
use crate::stream::{Bounds, NotStored, Stream, Unclear};
use bytes::Bytes;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::time::sleep;

#[derive(Clone)]
pub(super) struct Model {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    first: u64,
    messages: Vec<Bytes>,
    /// On their way still: what they expect, and themselves.
    late: Vec<(u64, Bytes)>,
    dice: u64,
    /// Of a hundred requests, how many go wrong.
    trouble: u64,
    slowest_ms: u64,
    /// So many more requests are answered.
    left: Option<u64>,
}

impl Model {
    pub fn new(seed: u64) -> Model {
        let dice = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let shared = Shared { first: 1, dice, ..Shared::default() };
        Model { shared: Arc::new(Mutex::new(shared)) }
    }

    /// Of a hundred requests so many go wrong, and each takes up to so long.
    pub fn with_trouble(self, of_hundred: u64, slowest_ms: u64) -> Model {
        let mut shared = self.lock();
        (shared.trouble, shared.slowest_ms) = (of_hundred, slowest_ms);
        drop(shared);
        self
    }

    /// After so many requests nothing is answered any more.
    pub fn dies_after(&self, requests: Option<u64>) {
        self.lock().left = requests;
    }

    /// A stream of its own with the same content, and good luck.
    pub fn copy(&self) -> Model {
        let model = Model::new(1);
        let (mut to, from) = (model.lock(), self.lock());
        (to.first, to.messages) = (from.first, from.messages.clone());
        drop(to);
        model
    }

    pub fn kept(&self) -> usize {
        self.lock().messages.len()
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap()
    }

    /// Takes its time; meanwhile something that was late may arrive.
    async fn travel(&self) -> Result<Luck, Unclear> {
        let (luck, ms) = {
            let mut shared = self.lock();
            if let Some(left) = &mut shared.left {
                match left.checked_sub(1) {
                    Some(fewer) => *left = fewer,
                    None => return Err(Unclear("dead".into())),
                }
            }
            let most = shared.slowest_ms;
            let ms = if most == 0 { 0 } else { shared.below(most) };
            let luck = match shared.below(100) < shared.trouble {
                false => Luck::Good,
                true => match shared.below(5) {
                    0 => Luck::RequestLost,
                    1 => Luck::AnswerLost,
                    2 => Luck::Late,
                    3 => Luck::RefusedEarly,
                    _ => Luck::Behind,
                },
            };
            (luck, ms)
        };
        if ms > 0 {
            sleep(Duration::from_millis(ms)).await;
        }
        let mut shared = self.lock();
        if !shared.late.is_empty() && shared.below(3) == 0 {
            let (after, message) = shared.late.remove(0);
            shared.store(after, message);
        }
        Ok(luck)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Luck {
    Good,
    RequestLost,
    AnswerLost,
    /// Nobody answers, and it is stored some time later, if it still fits.
    Late,
    /// Refused although nothing is there: a copy of it is under way.
    RefusedEarly,
    Behind,
}

impl Shared {
    fn below(&mut self, limit: u64) -> u64 {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.dice >> 33) % limit
    }

    fn last(&self) -> u64 {
        self.first + self.messages.len() as u64 - 1
    }

    fn store(&mut self, after: u64, message: Bytes) -> Option<u64> {
        if self.last() != after {
            return None;
        }
        self.messages.push(message);

        Some(after + 1)
    }
}

fn lost<T>() -> Result<T, Unclear> {
    Err(Unclear("no answer".into()))
}

impl Stream for Model {
    async fn append(&mut self, after: u64, message: Bytes) -> Result<u64, NotStored> {
        let luck = self.travel().await?;
        let mut shared = self.lock();
        let refused = || NotStored::Refused(format!("the last sequence is not {after}"));
        match luck {
            Luck::RequestLost => return Ok(lost()?),
            Luck::Late => {
                shared.late.push((after, message));
                return Ok(lost()?);
            }
            Luck::RefusedEarly => {
                shared.late.push((after, message));
                return Err(refused());
            }
            Luck::Good | Luck::AnswerLost | Luck::Behind => {}
        }
        let stored = shared.store(after, message).ok_or_else(refused);
        if luck == Luck::AnswerLost { Ok(lost()?) } else { stored }
    }

    async fn bounds(&mut self) -> Result<Bounds, Unclear> {
        let luck = self.travel().await?;
        let shared = self.lock();
        let (messages, bytes) = (shared.messages.len() as u64, 0);
        match luck {
            Luck::RequestLost | Luck::AnswerLost => lost(),
            Luck::Behind => {
                let last = shared.last().saturating_sub(1).max(shared.first.saturating_sub(1));
                Ok(Bounds { first: shared.first, last, messages, bytes })
            }
            _ => Ok(Bounds { first: shared.first, last: shared.last(), messages, bytes }),
        }
    }

    async fn get(&mut self, sequence: u64) -> Result<Option<Bytes>, Unclear> {
        match self.travel().await? {
            Luck::RequestLost | Luck::AnswerLost => return lost(),
            _ => {}
        }
        let shared = self.lock();
        let at = sequence.checked_sub(shared.first);
        Ok(at.and_then(|at| shared.messages.get(at as usize).cloned()))
    }

    async fn last_end(&mut self) -> Result<Option<(u64, Bytes)>, Unclear> {
        self.travel().await?;
        let shared = self.lock();
        let is_end =
            |bytes: &Bytes| Message::open(bytes.clone()).is_ok_and(|m| m.head.kind == Kind::End);
        let ends = (shared.first..).zip(&shared.messages).filter(|(_, bytes)| is_end(bytes));
        Ok(ends.last().map(|(sequence, bytes)| (sequence, bytes.clone())))
    }

    async fn read(&mut self, from: u64) -> Result<Vec<(u64, Bytes)>, Unclear> {
        match self.travel().await? {
            Luck::RequestLost | Luck::AnswerLost => return lost(),
            _ => {}
        }
        let shared = self.lock();
        let each = (shared.first..).zip(shared.messages.iter().cloned());
        Ok(each.filter(|(sequence, _)| *sequence >= from).take(7).collect())
    }

    async fn trim(&mut self, before: u64) -> Result<(), Unclear> {
        self.travel().await?;
        let mut shared = self.lock();
        let gone = before.saturating_sub(shared.first).min(shared.messages.len() as u64);
        shared.messages.drain(..gone as usize);
        shared.first += gone;
        Ok(())
    }
}
