//! The client's rows.

use crate::fuq1::codec::{CANNOT_RUN_JOB, Message};
use crate::fuq1::{Client, ClientSettings};
use crate::fuq2::{AT_ONCE, JobStatusUpdate, Task};
use crate::worker::{Key, News, Order, Orders, Parting, TaskEnd, Used, WorkerSide};
use bytes::BytesMut;
use laboro_core::{Outcome, Time};

const NOW: Time = Time(1000);

struct Peer {
    client: Client,
    said: Vec<Message>,
    orders: Vec<Order>,
    parting: Option<Parting>,
}

impl Peer {
    fn new(slots: u32) -> Peer {
        let client = Client::new(ClientSettings::new("c", slots));
        let mut peer = Peer { client, said: Vec::new(), orders: Vec::new(), parting: None };
        let mut out = Orders::default();
        peer.client.open(NOW, &mut out);
        peer.collect(out);
        peer
    }

    /// In the loop.
    fn ready(slots: u32) -> Peer {
        let mut peer = Peer::new(slots);
        peer.hear(&Message::Ok(0));
        peer.hear(&Message::Ok(slots));
        peer
    }

    fn collect(&mut self, mut out: Orders) {
        self.orders = std::mem::take(&mut out.orders);
        self.parting = out.hang_up.take();
        let mut said = out.take_bytes();
        self.said.clear();
        while let Ok(Some(message)) = Message::take(&mut said, 1 << 20) {
            self.said.push(message);
        }
    }

    fn hear(&mut self, message: &Message) {
        let mut bytes = BytesMut::new();
        message.write(&mut bytes);
        let mut out = Orders::default();
        self.client.receive(NOW, &mut bytes, &mut out);
        self.collect(out);
    }

    /// Takes a task; gives its key.
    fn start(&mut self, task: i64) -> Key {
        self.hear(&job(task));
        match &self.orders[..] {
            [Order::Start(assignment)] => assignment.key,
            other => panic!("not started: {other:?}"),
        }
    }

    fn tell(&mut self, news: News) {
        let mut out = Orders::default();
        self.client.tell(NOW, news, &mut out);
        self.collect(out);
    }

    fn end(&mut self, key: Key) {
        let outcome = Outcome::Success;
        let how = TaskEnd { outcome, message: None, used: Used::default() };
        let mut out = Orders::default();
        self.client.tell(NOW, News::Ended { key, how }, &mut out);
        self.collect(out);
    }
}

fn job(task: i64) -> Message {
    Message::Job(Task { task, ..Task::default() })
}

fn update(task: i64) -> Message {
    let status = "done".into();
    Message::Update(JobStatusUpdate { task, success: true, status, ..JobStatusUpdate::default() })
}

#[test]
fn init0_on_ok_says_what_it_has() {
    let mut peer = Peer::new(3);
    assert!(peer.said.is_empty());
    peer.hear(&Message::Ok(0));
    assert_eq!(peer.said, [Message::Ok(3)]);
}

#[test]
fn init1_on_ok_begins_the_loop() {
    let peer = Peer::ready(3);
    assert!(matches!(peer.orders[..], [Order::Welcome { .. }]));
}

#[test]
fn loop0_on_job_starts_it_as_long_as_there_is_room() {
    let mut peer = Peer::ready(2);
    peer.start(1);
    peer.start(2);
    peer.hear(&job(3));
    assert_eq!(peer.said, [Message::Error(CANNOT_RUN_JOB)]);
    assert!(peer.orders.is_empty());
}

#[test]
fn loop0_on_stop_has_less() {
    let mut peer = Peer::ready(3);
    peer.hear(&Message::Stop(2));
    assert!(matches!(peer.orders[..], [Order::GiveUpSlots(2)]));
    peer.start(1);
    peer.hear(&job(2));
    assert_eq!(peer.said, [Message::Error(CANNOT_RUN_JOB)]);
}

#[test]
fn loop0_on_stop_zero_has_nothing_and_leaves_when_nothing_runs() {
    let mut peer = Peer::ready(3);
    let key = peer.start(1);
    peer.hear(&Message::Stop(0));
    assert!(matches!(peer.orders[..], [Order::Drain]));
    assert_eq!(peer.parting, None);
    peer.end(key);
    peer.hear(&Message::Ok(0));
    assert_eq!(peer.parting, Some(Parting::Finished));
}

#[test]
fn loop0_on_stop_at_once_leaves() {
    let mut peer = Peer::ready(3);
    peer.start(1);
    peer.hear(&Message::Stop(AT_ONCE));
    assert!(matches!(peer.orders[..], [Order::StopNow]));
    assert_eq!(peer.parting, Some(Parting::Finished));
}

#[test]
fn update0_tells_what_is_done() {
    let mut peer = Peer::ready(1);
    let key = peer.start(4);
    peer.end(key);
    assert_eq!(peer.said, [update(4)]);
}

#[test]
fn update1_on_ok_goes_on_with_the_loop() {
    let mut peer = Peer::ready(1);
    let key = peer.start(4);
    peer.end(key);
    peer.hear(&Message::Ok(1));
    assert_eq!(peer.parting, None);
    peer.start(5);
}

#[test]
fn update1_on_ok_zero_leaves_when_the_rest_is_done() {
    let mut peer = Peer::ready(2);
    let (one, other) = (peer.start(1), peer.start(2));
    peer.end(one);
    peer.hear(&Message::Ok(0));
    assert_eq!(peer.parting, None);
    peer.end(other);
    peer.hear(&Message::Ok(0));
    assert_eq!(peer.parting, Some(Parting::Finished));
}

#[test]
fn update1_keeps_what_comes_until_the_ok() {
    let mut peer = Peer::ready(2);
    let key = peer.start(1);
    peer.end(key);
    peer.hear(&job(2));
    peer.hear(&Message::Stop(1));
    assert!(peer.orders.is_empty());
    peer.hear(&Message::Ok(2));
    assert!(matches!(peer.orders[..], [Order::Start(_), Order::GiveUpSlots(1)]));
}

#[test]
fn what_was_not_answered_is_said_again_on_the_next_connection() {
    let mut peer = Peer::ready(1);
    let key = peer.start(4);
    peer.end(key);
    peer.client.lost(NOW);
    let mut out = Orders::default();
    peer.client.open(NOW, &mut out);
    peer.hear(&Message::Ok(0));
    peer.hear(&Message::Ok(1));
    assert_eq!(peer.said, [update(4)]);
    peer.hear(&Message::Ok(1));
    assert!(peer.client.is_settled());
}

#[test]
fn a_client_that_comes_back_has_all_its_slots_and_stays() {
    for busy in [1, 3] {
        let mut peer = Peer::ready(3);
        let keys: Vec<Key> = (1..=busy).map(|task| peer.start(task)).collect();
        peer.client.lost(NOW);
        peer.client.open(NOW, &mut Orders::default());
        peer.hear(&Message::Ok(0));
        assert_eq!(peer.said, [Message::Ok(3)], "{busy} of 3 are busy");
        peer.hear(&Message::Ok(0));
        assert_eq!(peer.parting, None, "the answer to the greeting is not the end");
        // As many as it said are taken, and wait here for what runs.
        for task in 4..7 {
            peer.start(task);
        }
        peer.hear(&job(7));
        assert_eq!(peer.said, [Message::Error(CANNOT_RUN_JOB)]);
        for (key, task) in keys.into_iter().zip(1..) {
            peer.end(key);
            assert_eq!(peer.said, [update(task)]);
            peer.hear(&Message::Ok(1));
        }
        peer.hear(&job(8));
        assert_eq!(peer.said, [Message::Error(CANNOT_RUN_JOB)], "three of the server's run");
        assert_eq!(peer.parting, None);
    }
}

#[test]
fn who_leaves_says_nothing_of_what_it_has_not_finished() {
    let mut peer = Peer::ready(1);
    let key = peer.start(1);
    assert!(!peer.client.takes_back());
    peer.tell(News::Returned(key));
    let [Order::Start(again)] = &peer.orders[..] else { panic!("it does not leave yet") };
    let key = again.key;
    peer.tell(News::Draining);
    peer.tell(News::Returned(key));
    assert_eq!((&peer.said[..], &peer.parting), (&[][..], &Some(Parting::Finished)));
}
