//! A stand-in for an original node on a websocket, with its faults: it counts its messages over all its connections, says
//! HELLO once and then only when told to, and waits for ever for an answer that was lost with a connection. What
//! would end or lock up the original's program is a panic here.

use crate::fuq2::frame::{self, Frame};
use crate::fuq2::header::{MessageHeader, MessageKind, Numbering, SAY_HELLO, counts};
use crate::fuq2::payload::{JobStatusUpdate, PlainHello, Task, read_pairs, read_tasks};
use crate::worker::{Key, News, Order, Orders, WorkerSide};
use bytes::BytesMut;
use laboro_core::Time;
use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct Original {
    slots: usize,
    /// The next number of its own is at least this.
    next: u32,
    waiting: Option<(u32, Asked)>,
    pending: Option<Frame>,
    tasks: Vec<(Key, Task)>,
    keys: u64,
    /// Ended, and not said yet.
    ended: VecDeque<Key>,
    hello_is_due: bool,
    /// Has heard nothing from here on.
    pub(super) is_deaf: bool,
    pub(super) hellos: u32,
}

#[derive(Debug)]
enum Asked {
    Hello,
    Update(Key),
}

impl Original {
    pub(super) fn new(slots: usize) -> Original {
        Original {
            slots,
            next: 0,
            waiting: None,
            pending: None,
            tasks: Vec::new(),
            keys: 1,
            ended: VecDeque::new(),
            hello_is_due: true,
            is_deaf: false,
            hellos: 0,
        }
    }

    pub(super) fn waits(&self) -> bool {
        self.waiting.is_some()
    }

    /// As if it had said so much already.
    pub(super) fn count_from(&mut self, number: u32) {
        self.next = number;
    }

    fn free(&self) -> u32 {
        (self.slots - self.tasks.len()) as u32
    }

    fn say(&mut self, out: &mut Orders) {
        if self.waiting.is_some() {
            return;
        }
        let mut body = BytesMut::new();
        let (kind, asked) = if std::mem::take(&mut self.hello_is_due) {
            let running = self.tasks.iter().map(|(_, task)| task.clone()).collect();
            PlainHello { free: self.free().into(), running }.write(&mut body);
            self.hellos += 1;
            (MessageKind::Hello, Asked::Hello)
        } else if let Some(key) = self.ended.pop_front() {
            let task = &self.tasks.iter().find(|(of, _)| *of == key).expect("it ran").1;
            let (job, task, success) = (task.job.id, task.task, true);
            let status = "done".into();
            JobStatusUpdate { job, task, success, status, new_job: None }.write(&mut body);
            (MessageKind::Update, Asked::Update(key))
        } else {
            return;
        };
        let seq = self.next;
        self.next += 2;
        let arg0 = body.len() as u32;
        MessageHeader { kind, subtype: 0, seq, padding: 0, arg0 }
            .write(Numbering::Current, &mut out.say);
        out.say.unsplit(body);
        out.end_message();
        self.waiting = Some((seq, asked));
    }

    fn hear(&mut self, message: Frame, out: &mut Orders) {
        let seq = message.header.seq;
        self.next = self.next.max((seq / 2 + 1) * 2);
        match self.waiting.take() {
            Some((waiting, asked)) if waiting == seq => {
                self.take_answer(asked, message.header);
                if let Some(pending) = self.pending.take() {
                    self.dispatch(pending, out);
                }
            }
            Some((waiting, asked)) if waiting < seq => {
                self.waiting = Some((waiting, asked));
                assert!(
                    self.pending.replace(message).is_none(),
                    "the node dies: two messages wait"
                );
            }
            waiting => {
                self.waiting = waiting;
                self.dispatch(message, out);
            }
        }
    }

    fn take_answer(&mut self, asked: Asked, answer: MessageHeader) {
        assert_eq!(answer.kind, MessageKind::Ok, "the node dies");
        match asked {
            Asked::Hello => {
                let expected = counts(self.free(), self.tasks.len() as u32);
                assert_eq!(
                    answer.arg0, expected,
                    "the node leaves: this does not answer its HELLO"
                );
            }
            Asked::Update(key) => {
                self.tasks.retain(|(of, _)| *of != key);
                self.hello_is_due |= answer.arg0 == SAY_HELLO;
            }
        }
    }

    fn dispatch(&mut self, message: Frame, out: &mut Orders) {
        let MessageHeader { kind, seq, .. } = message.header;
        let says_hello = matches!(self.waiting, Some((_, Asked::Hello)));
        assert!(!says_hello || kind == MessageKind::Ok, "the node locks itself up");
        let (kind, subtype, arg0) = match kind {
            MessageKind::Ok => return,
            MessageKind::Job => {
                let tasks = read_tasks(&message.body).expect("tasks");
                let has_room = tasks.len() as u32 <= self.free();
                if has_room {
                    for task in tasks {
                        let key = Key(self.keys);
                        self.keys += 1;
                        let assignment = crate::fuq2::assignment(key, &task).expect("a task");
                        out.order(Order::Start(Box::new(assignment)));
                        self.tasks.push((key, task));
                    }
                }
                let counts = counts(self.free(), self.tasks.len() as u32);
                if has_room {
                    (MessageKind::Ok, 0, counts)
                } else {
                    (MessageKind::Error, 2, counts)
                }
            }
            MessageKind::Cancel => {
                let pairs = read_pairs(&message.body).expect("pairs");
                assert!(!message.body.is_empty(), "the node dies");
                let is_meant = |task: &Task| {
                    pairs.iter().any(|pair| pair.job == task.job.id && pair.task == task.task)
                };
                let found: Vec<Key> =
                    self.tasks.iter().filter(|(_, task)| is_meant(task)).map(|at| at.0).collect();
                found.iter().for_each(|&key| out.order(Order::Cancel(key)));
                (MessageKind::Ok, 0, (found.len() as u32) << 16)
            }
            other => panic!("{other:?} is not tried here"),
        };
        MessageHeader { kind, subtype, seq, padding: 0, arg0 }
            .write(Numbering::Current, &mut out.say);
        out.end_message();
    }
}

impl WorkerSide for Original {
    fn open(&mut self, _: Time, out: &mut Orders) {
        self.say(out);
    }

    fn receive(&mut self, _: Time, input: &mut BytesMut, out: &mut Orders) {
        while let Ok(Some(message)) = frame::take(input, Numbering::Current, 1 << 20) {
            if !self.is_deaf {
                self.hear(message, out);
            }
        }
        self.say(out);
    }

    fn tell(&mut self, _: Time, news: News, out: &mut Orders) {
        if let News::Ended { key, .. } = news {
            self.ended.push_back(key);
        }
        self.say(out);
    }

    fn deadline(&self) -> Option<Time> {
        None
    }

    fn tick(&mut self, _: Time, _: &mut Orders) {}

    /// It does not even notice.
    fn lost(&mut self, _: Time) {}

    fn unsaid(&self) -> usize {
        0
    }

    fn is_settled(&self) -> bool {
        self.ended.is_empty()
    }
}
