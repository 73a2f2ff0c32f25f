//! Our runner against our manager, cut and merged by a careless network.

use super::rig::Rig;
use crate::runexp::{Runner, RunnerOptions};
use crate::session::Stream;
use crate::worker::{Key, News, Order, Orders, Parting, TaskEnd, Used, WorkerSide};
use bytes::{Bytes, BytesMut};
use laboro_core::{Outcome, State};
use proptest::prelude::*;
use std::collections::VecDeque;

struct Pair {
    rig: Rig,
    runner: Runner,
    running: VecDeque<Key>,
    parting: Option<Parting>,
}

impl Pair {
    fn take(&mut self, mut out: Orders, cut: usize) {
        for order in std::mem::take(&mut out.orders) {
            if let Order::Start(assignment) = order {
                self.running.push_back(assignment.key);
            }
        }
        self.parting = self.parting.take().or(out.hang_up.take());
        // Bodies may come in pieces, words with arguments may not.
        for message in out.take_messages() {
            let pieces = if message.len() > 200 { cut.max(1) } else { message.len().max(1) };
            for piece in message.chunks(pieces) {
                self.rig.hears(1, piece);
            }
        }
    }

    /// Until both wait for something to happen.
    fn settle(&mut self, cut: usize) {
        loop {
            let said = self.rig.said(1);
            if said.is_empty() || self.parting.is_some() {
                break;
            }
            for message in said {
                let mut out = Orders::default();
                self.runner.receive(self.rig.now, &mut BytesMut::from(&message[..]), &mut out);
                self.take(out, cut);
            }
        }
    }

    fn tell(&mut self, news: News, cut: usize) {
        let mut out = Orders::default();
        self.runner.tell(self.rig.now, news, &mut out);
        self.take(out, cut);
        self.settle(cut);
    }
}

proptest! {
    #[test]
    fn all_jobs_are_done_however_many_slots_there_are(slots in 1..9u32, jobs in 1..30usize, cut in 1..500usize) {
        let names: Vec<String> = (0..jobs).map(|number| format!("job {number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let rig = Rig::with_scripts(&names, 1);
        let runner = Runner::new(RunnerOptions::new("r1", slots));
        let mut pair = Pair { rig, runner, running: VecDeque::new(), parting: None };
        pair.rig.connect(1);
        let mut out = Orders::default();
        pair.runner.open(pair.rig.now, &mut out);
        pair.take(out, cut);
        pair.settle(cut);
        while pair.parting.is_none() {
            match pair.running.pop_front() {
                Some(key) => {
                    let bytes = Bytes::from(format!("{}\nRES:ok\n", "x".repeat(cut * 3)));
                    pair.tell(News::Wrote { key, stream: Stream::Out, bytes }, cut);
                    let outcome = Outcome::Success;
                    let how = TaskEnd { outcome, message: None, used: Used::default() };
                    pair.tell(News::Ended { key, how }, cut);
                }
                None => {
                    let deadline = pair.runner.deadline().expect("somebody does something");
                    let ms = deadline.since_ms(pair.rig.now);
                    pair.rig.pass(ms);
                    let mut out = Orders::default();
                    pair.runner.tick(pair.rig.now, &mut out);
                    pair.take(out, cut);
                    pair.settle(cut);
                }
            }
        }
        prop_assert_eq!(pair.parting, Some(Parting::Finished));
        for name in names {
            prop_assert_eq!(pair.rig.state(name), State::Done);
        }
    }
}
