//! Random words against a table written down as the protocol describes it: take the first, put it at the end.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::VecDeque;

#[derive(Clone, Debug)]
enum Word {
    Open(u8),
    Close(u8),
    Register(u8, u32),
    Deregister(u8),
    Increment(u8),
    Request,
    Wait(u16),
}

fn word(peers: u8) -> impl Strategy<Value = Word> {
    let peer = 0..peers;
    prop_oneof![
        1 => peer.clone().prop_map(Word::Open),
        1 => peer.clone().prop_map(Word::Close),
        2 => (peer.clone(), 0u32..4).prop_map(|(peer, slots)| Word::Register(peer, slots)),
        1 => peer.clone().prop_map(Word::Deregister),
        5 => peer.prop_map(Word::Increment),
        8 => Just(Word::Request),
        1 => (0u16..30_000).prop_map(Word::Wait),
    ]
}

/// The order of the workers, each with its free and all slots.
#[derive(Default)]
struct Model {
    table: VecDeque<(u8, u32, u32)>,
    here: Vec<u8>,
    queue: VecDeque<u32>,
}

impl Model {
    fn find(&mut self, peer: u8) -> Option<&mut (u8, u32, u32)> {
        self.table.iter_mut().find(|row| row.0 == peer)
    }

    fn drain(&mut self) -> Vec<(u8, u32)> {
        let mut sent = Vec::new();
        while let Some(&number) = self.queue.front() {
            let Some(to) = self.choose() else { break };
            self.queue.pop_front();
            sent.push((to, number));
        }
        sent
    }

    fn choose(&mut self) -> Option<u8> {
        for _ in 0..self.table.len() {
            let mut row = self.table.pop_front()?;
            let is_open = row.1 > 0 && self.here.contains(&row.0);
            row.1 -= u32::from(is_open);
            self.table.push_back(row);
            if is_open {
                return Some(row.0);
            }
        }
        None
    }

    fn apply(&mut self, word: &Word, number: u32) -> Vec<(u8, u32)> {
        match *word {
            Word::Open(peer) if !self.here.contains(&peer) => self.here.push(peer),
            Word::Close(peer) => self.here.retain(|&here| here != peer),
            Word::Register(peer, slots) if self.here.contains(&peer) => match self.find(peer) {
                Some(row) => *row = (peer, slots, slots),
                None => self.table.push_back((peer, slots, slots)),
            },
            Word::Deregister(peer) if self.here.contains(&peer) => {
                self.table.retain(|row| row.0 != peer);
            }
            Word::Increment(peer) if self.here.contains(&peer) => {
                if let Some(row) = self.find(peer) {
                    row.1 = row.2.min(row.1 + 1);
                }
            }
            Word::Request => self.queue.push_back(number),
            _ => {}
        }
        self.drain()
    }
}

/// Says one word to the broker; a peer's name and connection are the same number.
fn say(broker: &mut Broker<u32>, now: Time, word: &Word, number: u32) -> Vec<Act<u32>> {
    let id = |peer: u8| PeerId(u64::from(peer));
    let mut acts = Vec::new();
    match *word {
        Word::Open(peer) if broker.identity(id(peer)).is_none() => {
            broker.open(now, id(peer), Name::new(&[peer]), &mut acts);
        }
        Word::Open(_) => {}
        Word::Close(peer) => broker.close(now, id(peer)),
        Word::Register(peer, slots) => {
            let _ = broker.register(now, id(peer), slots, &mut acts);
        }
        Word::Deregister(peer) => broker.deregister(id(peer)),
        Word::Increment(peer) => broker.increment(now, id(peer), &mut acts),
        Word::Request => {
            let _ = broker.request(now, number, 1, |kept| kept, &mut acts);
        }
        Word::Wait(_) => broker.tick(now, &mut acts),
    }
    broker.check();
    acts
}

proptest! {
    #[test]
    fn turns_are_those_of_a_table_that_is_really_rotated(words in vec(word(80), 0..400)) {
        let patient = BrokerConfig {
            probe_ms: 0, grace_ms: u64::MAX, queue_ms: u64::MAX, ..BrokerConfig::default()
        };
        let (mut broker, mut model) = (Broker::new(patient, 1), Model::default());
        for (number, word) in words.iter().enumerate() {
            let number = number as u32;
            let acts = say(&mut broker, NOW, word, number);
            let sent: Vec<_> = acts.iter().map(|act| match act {
                Act::Send { to, message } => (to.0 as u8, *message),
                other => panic!("nobody asked for {other:?}"),
            }).collect();
            prop_assert_eq!(sent, model.apply(word, number), "{:?}", word);
            let rows: Vec<_> =
                broker.workers().map(|row| (row.identity.bytes()[0], row.free, row.slots)).collect();
            prop_assert_eq!(rows, model.table.iter().copied().collect::<Vec<_>>());
        }
    }

    #[test]
    fn every_request_reaches_one_worker_waits_or_is_counted(
        words in vec(word(6), 0..300),
        slot_ms in proptest::option::of(1u64..20_000),
    ) {
        let config = BrokerConfig {
            queue_messages_max: 10, queue_ms: 40_000, slot_ms, ..BrokerConfig::default()
        };
        let mut broker = Broker::new(config, 1);
        let (mut now, mut seen) = (NOW, std::collections::BTreeSet::new());
        for (number, word) in words.iter().enumerate() {
            if let Word::Wait(ms) = word {
                now = now.after_ms(u64::from(*ms));
            }
            for act in say(&mut broker, now, word, number as u32) {
                if let Act::Send { message, .. } = act {
                    prop_assert!(seen.insert(message), "{} was sent twice", message);
                }
            }
            let counters = broker.counters();
            let dropped = counters.dropped(Dropped::QueueFull) + counters.dropped(Dropped::Expired);
            let waiting = broker.waiting().0 as u64;
            prop_assert_eq!(counters.requests, counters.dispatched + dropped + waiting);
            prop_assert_eq!(counters.dispatched, seen.len() as u64);
        }
    }
}
