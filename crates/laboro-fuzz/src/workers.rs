//! The worker's side of every dialect, in conversation with a stranger who says to be a hub. Tasks begin, print
//! and end as the steps say; nothing is run.

use crate::steps::{Deed, Step, number, read};
use bytes::{Bytes, BytesMut};
use laboro_core::{Outcome, Setting, Time};
use laboro_dialects::dwork::{OnFailure, Template};
use laboro_dialects::fuq2::{NativeWorker, Numbering, PlainSettings, PlainWorker, WorkerSettings};
use laboro_dialects::runexp::{Runner, RunnerOptions};
use laboro_dialects::session::Stream;
use laboro_dialects::worker::{Key, News, Order, Orders, TaskEnd, Used, WorkerSide};
use laboro_dialects::zmtp::Mechanism;
use laboro_dialects::{dwork, fuq1, websocket};
use std::collections::HashSet;

const MESSAGE_BYTES_MAX: usize = 64 << 10;
const SLOTS: u32 = 4;

fn split(bytes: &[u8]) -> (u8, &[u8]) {
    bytes.split_first().map_or((0, bytes), |(&first, rest)| (first, rest))
}

fn plain(message: &[u8]) -> Vec<u8> {
    message.to_vec()
}

pub(crate) fn native(bytes: &[u8]) {
    let mut settings = WorkerSettings::new("worker", SLOTS);
    settings.message_max = MESSAGE_BYTES_MAX;
    Talk::new(NativeWorker::new(settings), plain, &[]).hold(read(bytes));
}

fn plain_settings(first: u8) -> PlainSettings {
    let numberings = [Numbering::Current, Numbering::Older, Numbering::Oldest];
    PlainSettings {
        numbering: numberings[usize::from(first) % 3],
        message_max: MESSAGE_BYTES_MAX,
        ..PlainSettings::tcp("worker", SLOTS)
    }
}

pub(crate) fn fuq2(bytes: &[u8]) {
    let (first, steps) = split(bytes);
    Talk::new(PlainWorker::new(plain_settings(first)), plain, &[]).hold(read(steps));
}

pub(crate) fn fuq1(bytes: &[u8]) {
    let mut settings = fuq1::ClientSettings::new("worker", SLOTS);
    settings.message_max = MESSAGE_BYTES_MAX;
    Talk::new(fuq1::Client::new(settings), plain, &[]).hold(read(bytes));
}

pub(crate) fn websocket(bytes: &[u8]) {
    let (first, steps) = split(bytes);
    let settings =
        PlainSettings { awaits_greeting: false, must_finish: true, ..plain_settings(first) };
    let side = websocket::Client::new(PlainWorker::new(settings), MESSAGE_BYTES_MAX, "fuzz");
    Talk::new(side, unmasked, &[]).hold(read(steps));
}

/// One binary message of a server.
fn unmasked(message: &[u8]) -> Vec<u8> {
    let length = message.len() as u16;
    let head = [&[0x82, 126][..], &length.to_be_bytes()].concat();
    [&head, &message[..usize::from(length)]].concat()
}

pub(crate) fn dwork(bytes: &[u8]) {
    let (first, steps) = split(bytes);
    let template = Template::new(["run", "{}"], Setting::default()).expect("there is a command");
    let side = dwork::Worker::new(dwork::WorkerSettings {
        location: b"worker".to_vec(),
        slots: SLOTS,
        template,
        on_failure: if first & 1 == 0 { OnFailure::Complete } else { OnFailure::Transfer },
        stays: first & 2 != 0,
        mechanism: Mechanism::Null,
    });
    Talk::new(side, reply, &router_greeting()).hold(read(steps));
}

/// What a ROUTER socket says first.
fn router_greeting() -> Vec<u8> {
    let mut greeting = vec![0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 1];
    greeting.extend_from_slice(b"NULL");
    greeting.resize(64, 0);
    let ready = b"\x05READY\x0bSocket-Type\0\0\0\x06ROUTER\x08Identity\0\0\0\0";
    greeting.extend_from_slice(&[4, ready.len() as u8]);
    greeting.extend_from_slice(ready);
    greeting
}

/// The empty frame and the body.
fn reply(body: &[u8]) -> Vec<u8> {
    let head = [&[1, 0, 2][..], &(body.len() as u64).to_be_bytes()].concat();
    [&head, body].concat()
}

pub(crate) fn runexp(bytes: &[u8]) {
    let side = Runner::new(RunnerOptions {
        job_bytes_max: MESSAGE_BYTES_MAX as u64,
        output_bytes_max: 4096,
        ..RunnerOptions::new("host", SLOTS)
    });
    Talk::new(side, plain, b"VERSIO 1.3").hold(read(bytes));
}

struct Talk<W> {
    side: W,
    wrap: fn(&[u8]) -> Vec<u8>,
    greeting: Vec<u8>,
    now: Time,
    input: BytesMut,
    orders: Orders,
    is_connected: bool,
    /// Everything is over: nobody comes back after that.
    is_over: bool,
    running: Vec<Key>,
    seen: HashSet<Key>,
}

impl<W: WorkerSide> Talk<W> {
    fn new(side: W, wrap: fn(&[u8]) -> Vec<u8>, greeting: &[u8]) -> Talk<W> {
        let mut talk = Talk {
            side,
            wrap,
            greeting: greeting.to_vec(),
            now: Time(1_700_000_000_000),
            input: BytesMut::new(),
            orders: Orders::default(),
            is_connected: false,
            is_over: false,
            running: Vec::new(),
            seen: HashSet::new(),
        };
        talk.connect();
        talk
    }

    fn hold<'a>(&mut self, steps: impl Iterator<Item = Step<'a>>) {
        for step in steps {
            if self.is_over {
                return;
            }
            self.take(step);
            self.obey();
            let deadline = self.side.deadline();
            if deadline.is_some_and(|due| due <= self.now) {
                self.side.tick(self.now, &mut self.orders);
                self.obey();
            }
            let _ = (self.side.unsaid(), self.side.is_settled());
        }
    }

    fn take(&mut self, step: Step<'_>) {
        match step.deed {
            Deed::Say => self.hear(step.payload),
            Deed::SayInPieces => step.payload.chunks(1).for_each(|byte| self.hear(byte)),
            Deed::SayMessage => self.hear(&(self.wrap)(step.payload)),
            Deed::Wait => {
                let ms = number(&step.payload[..step.payload.len().min(5)]);
                self.now = self.now.after_ms(ms);
            }
            Deed::Reconnect => {
                self.lose();
                self.connect();
            }
            Deed::Greet => {
                self.lose();
                self.connect();
                let greeting = self.greeting.clone();
                self.hear(&greeting);
            }
            Deed::Act => self.happen(step.which, step.payload),
            Deed::Stop => self.tell(match step.which & 3 {
                0 => News::Draining,
                1 => News::Leaving,
                _ => News::Ahead(u32::from(step.which >> 2)),
            }),
        }
    }

    fn connect(&mut self) {
        self.input.clear();
        self.is_connected = true;
        self.side.open(self.now, &mut self.orders);
        self.obey();
    }

    fn lose(&mut self) {
        if std::mem::replace(&mut self.is_connected, false) {
            self.side.lost(self.now);
        }
    }

    fn hear(&mut self, bytes: &[u8]) {
        if self.is_connected {
            self.input.extend_from_slice(bytes);
            self.side.receive(self.now, &mut self.input, &mut self.orders);
            let left = self.input.len();
            self.obey();
            assert!(
                !self.is_connected || left <= 2 * MESSAGE_BYTES_MAX,
                "{left} bytes are kept unread"
            );
        }
    }

    fn tell(&mut self, news: News) {
        self.side.tell(self.now, news, &mut self.orders);
    }

    /// Something happens to a task that was given and has not ended.
    fn happen(&mut self, which: u8, payload: &[u8]) {
        if self.running.is_empty() {
            return;
        }
        let at = payload.first().map_or(0, |&at| usize::from(at)) % self.running.len();
        let key = self.running[at];
        let ends = |outcome| News::Ended {
            key,
            how: TaskEnd { outcome, message: Some("so it ended".into()), used: Used::default() },
        };
        let news = match which & 7 {
            0 => News::Started(key),
            1 => {
                let bytes = Bytes::copy_from_slice(payload);
                News::Wrote { key, stream: Stream::Out, bytes }
            }
            2 => News::Wrote { key, stream: Stream::Err, bytes: Bytes::from_static(b"RES: ok\n") },
            3 => ends(Outcome::Success),
            4 => ends(Outcome::Exit(i32::from(which))),
            5 => ends(Outcome::Signal(9)),
            6 => ends(Outcome::TimedOut),
            _ => News::Returned(key),
        };
        if matches!(news, News::Ended { .. } | News::Returned(_)) {
            self.running.swap_remove(at);
        }
        self.tell(news);
    }

    fn obey(&mut self) {
        self.orders.take_bytes();
        let orders: Vec<Order> = self.orders.orders.drain(..).collect();
        for order in orders {
            match order {
                Order::Start(assignment) => {
                    let key = assignment.key;
                    assert!(self.seen.insert(key), "{key:?} is used twice");
                    self.running.push(key);
                }
                Order::StopNow | Order::Fail(_) => self.is_over = true,
                // What is cancelled takes a while to end, and may have ended already.
                Order::Cancel(_)
                | Order::Welcome { .. }
                | Order::GiveUpSlots(_)
                | Order::Drain
                | Order::Say(_) => {}
            }
        }
        if let Some(parting) = self.orders.hang_up.take() {
            use laboro_dialects::worker::Parting::{Finished, Refused};
            self.is_over |= matches!(parting, Finished | Refused(_));
            self.lose();
        }
    }
}
