//! Our worker at an original foreman, word by word and byte by byte against a conversation of the original programs.

use super::plain::{NOW, bytes, with_body};
use super::rig::ended;
use crate::fuq2::frame::{self, Frame};
use crate::fuq2::header::{AT_ONCE, LABORO, MessageKind, Numbering, SAY_HELLO, Trouble};
use crate::fuq2::payload::{self, JobDescription, JobStatusUpdate, PlainHello, Task, TaskPair};
use crate::fuq2::{PlainSettings, PlainWorker};
use crate::worker::{Key, News, Order, Orders, Parting, WorkerSide};
use bytes::BytesMut;
use laboro_core::Outcome;

/// The worker alone, with the test as the foreman.
struct Lone {
    worker: PlainWorker,
    orders: Vec<Order>,
    said: Vec<Frame>,
    parting: Option<Parting>,
}

impl Lone {
    /// Known to its foreman, with so many slots.
    fn new(slots: u32) -> Lone {
        let worker = PlainWorker::new(PlainSettings::tcp("vm", slots));
        let mut lone = Lone { worker, orders: Vec::new(), said: Vec::new(), parting: None };
        let mut out = Orders::default();
        lone.worker.open(NOW, &mut out);
        lone.collect(out);
        assert!(lone.said.is_empty(), "the foreman speaks first");
        lone.hear(bytes(MessageKind::Ok, 1, 0, 0));
        let hello = lone.said[0].header;
        assert_eq!(
            (hello.kind, hello.padding),
            (MessageKind::Hello, LABORO),
            "two of ours know each other"
        );
        lone.hear(bytes(MessageKind::Ok, 0, 0, slots << 16));
        lone
    }

    /// The same on a websocket, where originals are.
    fn on_websocket(slots: u32, padding: u32) -> Lone {
        let worker = PlainWorker::new(PlainSettings::websocket("vm", slots));
        let mut lone = Lone { worker, orders: Vec::new(), said: Vec::new(), parting: None };
        lone.open();
        assert_eq!(lone.said[0].header.kind, MessageKind::Hello);
        let mut answer = bytes(MessageKind::Ok, 0, 0, slots << 16);
        answer[8..12].copy_from_slice(&padding.to_le_bytes());
        lone.hear(answer);
        lone
    }

    fn open(&mut self) {
        let mut out = Orders::default();
        self.worker.open(NOW, &mut out);
        self.collect(out);
    }

    fn end(&mut self, key: Key) {
        self.tell(News::Ended { key, how: ended(Outcome::Success) });
    }

    /// The only thing said.
    fn update(&self) -> JobStatusUpdate {
        let [update] = &self.said[..] else { panic!("one message: {:?}", self.said()) };
        assert_eq!(update.header.kind, MessageKind::Update);
        JobStatusUpdate::read(&mut crate::fuq2::pack::PackReader::new(&update.body)).unwrap()
    }

    fn collect(&mut self, mut out: Orders) {
        self.orders = std::mem::take(&mut out.orders);
        self.parting = out.hang_up.take();
        let mut said = out.take_bytes();
        self.said.clear();
        while let Ok(Some(message)) = frame::take(&mut said, Numbering::Current, 1 << 20) {
            self.said.push(message);
        }
    }

    fn hear(&mut self, bytes: BytesMut) {
        let (mut bytes, mut out) = (bytes, Orders::default());
        self.worker.receive(NOW, &mut bytes, &mut out);
        self.collect(out);
    }

    fn tell(&mut self, news: News) {
        let mut out = Orders::default();
        self.worker.tell(NOW, news, &mut out);
        self.collect(out);
    }

    fn started(&self) -> Vec<Key> {
        let key = |order: &Order| match order {
            Order::Start(assignment) => Some(assignment.key),
            _ => None,
        };
        self.orders.iter().filter_map(key).collect()
    }

    fn said(&self) -> Vec<(MessageKind, u32, u32)> {
        self.said.iter().map(|m| (m.header.kind, m.header.seq, m.header.arg0)).collect()
    }
}

fn job(seq: u32, tasks: &[(u64, i64)]) -> BytesMut {
    let task = |&(id, task): &(u64, i64)| Task {
        task,
        job: JobDescription { id, name: "two".into(), ..JobDescription::default() },
    };
    let tasks: Vec<Task> = tasks.iter().map(task).collect();
    with_body(MessageKind::Job, seq, |to| payload::write_tasks(to, &tasks))
}

#[test]
fn a_job_is_taken_whole_or_not_at_all() {
    let mut lone = Lone::new(2);
    lone.hear(job(3, &[(1, 1), (1, 2)]));
    assert_eq!(lone.said(), [(MessageKind::Ok, 3, 2)]);
    assert_eq!(lone.orders.len(), 2);
    lone.hear(job(5, &[(1, 3)]));
    assert_eq!(lone.said(), [(MessageKind::Error, 5, 2)]);
    assert_eq!(Trouble::of(lone.said[0].header.subtype), Trouble::NoProcs);
    assert!(lone.orders.is_empty());
}

#[test]
fn a_cancelled_task_reports_how_it_ended() {
    let mut lone = Lone::new(2);
    lone.hear(job(3, &[(3, 1), (3, 2)]));
    let whole = [TaskPair { job: 3, task: -1, lease: None }];
    lone.hear(with_body(MessageKind::Cancel, 5, |to| payload::write_pairs(to, &whole)));
    assert_eq!(lone.said(), [(MessageKind::Ok, 5, 2 << 16)]);
    let Order::Cancel(key) = lone.orders[0] else { panic!("a cancel") };
    let mut out = Orders::default();
    let news = News::Ended { key, how: ended(Outcome::Signal(9)) };
    lone.worker.tell(NOW, news, &mut out);
    lone.collect(out);
    let mut from = crate::fuq2::pack::PackReader::new(&lone.said[0].body);
    let update = JobStatusUpdate::read(&mut from).unwrap();
    assert_eq!(&update.status[..], b"error encountered: signal: killed");
    let unknown = [TaskPair { job: 9, task: 1, lease: None }];
    lone.hear(bytes(MessageKind::Ok, 6, 0, 0));
    lone.hear(with_body(MessageKind::Cancel, 7, |to| payload::write_pairs(to, &unknown)));
    assert_eq!(lone.said(), [(MessageKind::Ok, 7, 0)], "originals know no error for it");
}

#[test]
fn who_leaves_says_nothing_of_what_it_has_not_finished() {
    let mut lone = Lone::new(2);
    lone.hear(job(3, &[(1, 1), (1, 2)]));
    let keys = lone.started();
    assert!(!lone.worker.takes_back());
    lone.tell(News::Returned(keys[0]));
    let again = lone.started();
    assert_eq!((lone.said(), again.len()), (vec![], 1), "it does not leave yet");
    lone.tell(News::Draining);
    lone.tell(News::Returned(again[0]));
    assert_eq!((lone.said(), &lone.parting), (vec![], &None), "the other one runs");
    lone.tell(News::Returned(keys[1]));
    assert_eq!((lone.said(), &lone.parting), (vec![], &Some(Parting::Finished)));
}

#[test]
fn who_leaves_an_original_tells_its_results_on_a_connection_without_a_hello() {
    let mut lone = Lone::on_websocket(3, 0);
    lone.hear(job(3, &[(1, 1), (1, 2)]));
    let mut keys = lone.started();
    assert!(lone.worker.must_finish());
    lone.end(keys[0]);
    assert_eq!(lone.update().task, 1);
    lone.hear(job(5, &[(1, 3)]));
    assert!(lone.orders.is_empty(), "the answer comes first");
    lone.tell(News::Draining);
    assert!(matches!(lone.parting, Some(Parting::Again(_))), "no word for it is understood");
    keys.extend(lone.started());
    assert_eq!(keys.len(), 3, "what waited is taken: the foreman gives it to nobody else");
    lone.hear(job(7, &[(1, 4)]));
    keys.extend(lone.started());
    assert_eq!((lone.said(), keys.len()), (vec![], 4), "and so is what comes until it is closed");
    assert!(!lone.worker.is_settled());

    lone.worker.lost(NOW);
    lone.open();
    assert_eq!(lone.update().task, 1, "what had no answer, and no HELLO");
    lone.hear(bytes(MessageKind::Ok, 0, 0, SAY_HELLO));
    assert_eq!((lone.said(), lone.worker.is_settled()), (vec![], true), "it is taken all the same");
    for (key, task) in [(keys[1], 2), (keys[2], 3)] {
        lone.end(key);
        assert_eq!(lone.update().task, task);
        lone.hear(bytes(MessageKind::Ok, lone.said[0].header.seq, 0, 1 << 16));
        assert_eq!(lone.parting, None);
    }
    lone.tell(News::Returned(keys[3]));
    let update = lone.update();
    assert_eq!((update.task, update.success), (4, false), "nobody else would ever run it");
    lone.hear(bytes(MessageKind::Ok, lone.said[0].header.seq, 0, 1 << 16));
    assert_eq!(lone.parting, Some(Parting::Finished));
}

#[test]
fn who_leaves_an_original_idle_takes_what_comes_until_it_is_closed() {
    let mut lone = Lone::on_websocket(1, 0);
    lone.tell(News::Draining);
    assert!(matches!(lone.parting, Some(Parting::Again(_))) && !lone.worker.is_settled());
    lone.worker.lost(NOW);
    assert!(lone.worker.is_settled(), "nothing came");
    lone.open();
    assert_eq!((lone.said(), &lone.parting), (vec![], &Some(Parting::Finished)));
}

#[test]
fn a_foreman_that_knows_of_it_is_left_on_the_same_connection() {
    let mut ours = Lone::on_websocket(2, LABORO);
    ours.hear(job(3, &[(1, 1)]));
    let key = ours.started()[0];
    ours.tell(News::Draining);
    assert_eq!((ours.said(), &ours.parting), (vec![], &None));
    ours.hear(job(5, &[(1, 2)]));
    assert_eq!(Trouble::of(ours.said[0].header.subtype), Trouble::NoProcs, "a hub gives it on");
    ours.tell(News::Returned(key));
    assert_eq!((ours.said(), &ours.parting), (vec![], &Some(Parting::Finished)));
    let mut told = Lone::on_websocket(2, 0);
    told.hear(job(3, &[(1, 1)]));
    let key = told.started()[0];
    told.hear(bytes(MessageKind::Stop, 5, 0, 2));
    told.tell(News::Draining);
    assert_eq!(told.parting, None, "an original that said STOP gives nothing more");
    told.end(key);
    assert_eq!(told.update().task, 1);
}

#[test]
fn what_is_cancelled_before_it_began_is_told_all_the_same() {
    let mut lone = Lone::new(1);
    lone.hear(job(3, &[(1, 1)]));
    let keys = lone.started();
    let whole = [TaskPair { job: 1, task: -1, lease: None }];
    lone.hear(with_body(MessageKind::Cancel, 5, |to| payload::write_pairs(to, &whole)));
    lone.tell(News::Returned(keys[0]));
    let mut from = crate::fuq2::pack::PackReader::new(&lone.said[0].body);
    let update = JobStatusUpdate::read(&mut from).unwrap();
    assert_eq!(&update.status[..], b"error encountered: signal: killed");
}

#[test]
fn stop_counts_down_and_zero_means_all() {
    let mut lone = Lone::new(3);
    lone.hear(bytes(MessageKind::Stop, 3, 0, 1));
    assert_eq!(lone.said(), [(MessageKind::Ok, 3, 2 << 16)]);
    lone.hear(job(5, &[(1, 1)]));
    lone.hear(bytes(MessageKind::Stop, 7, 0, 0));
    assert_eq!(lone.said(), [(MessageKind::Ok, 7, 1)]);
    assert_eq!(lone.parting, None);
    let mut idle = Lone::new(2);
    idle.hear(bytes(MessageKind::Stop, 3, 0, 2));
    assert_eq!(
        (idle.said(), &idle.parting),
        (vec![(MessageKind::Ok, 3, 0)], &Some(Parting::Finished))
    );
    let mut busy = Lone::new(2);
    busy.hear(job(3, &[(1, 1)]));
    busy.hear(bytes(MessageKind::Stop, 5, 0, AT_ONCE));
    assert!(matches!(busy.orders[..], [Order::StopNow]));
    assert_eq!(
        (busy.said(), &busy.parting),
        (vec![(MessageKind::Ok, 5, 0)], &Some(Parting::Finished))
    );
}

#[test]
fn a_foreman_that_forgot_the_worker_is_told_again() {
    let mut lone = Lone::new(2);
    lone.hear(job(3, &[(1, 1)]));
    let Order::Start(assignment) = &lone.orders[0] else { panic!("a start") };
    let news = News::Ended { key: assignment.key, how: ended(Outcome::Success) };
    let mut out = Orders::default();
    lone.worker.tell(NOW, news, &mut out);
    lone.collect(out);
    assert_eq!(lone.said()[0].0, MessageKind::Update);
    lone.hear(bytes(MessageKind::Ok, 4, 0, SAY_HELLO));
    assert_eq!(lone.said()[0].0, MessageKind::Hello);
    let told = PlainHello::read(&lone.said[0].body).unwrap();
    assert_eq!(told.running.len(), 1, "until its result is answered, it counts as running");
    assert_eq!(told.free, 1, "and its slot is not free");
    lone.hear(bytes(MessageKind::Ok, 6, 0, 0));
    assert_eq!(lone.said()[0].0, MessageKind::Update);
    lone.hear(bytes(MessageKind::Ok, 8, 0, 0));
    assert!(lone.worker.is_settled());
}

/// The node's half of a real conversation is fed to our foreman, and the foreman's half to our worker: each
/// answers what the original answered.
#[test]
fn our_worker_answers_an_original_foreman_as_an_original_does() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/golden/fuq-conversation.jsonl");
    let text = std::fs::read_to_string(path).expect("the golden data is in the tree");
    let mut worker = PlainWorker::new(PlainSettings::websocket("vm", 2));
    let mut said = BytesMut::new();
    let mut keys = Vec::new();
    let mut out = Orders::default();
    worker.open(NOW, &mut out);
    said.unsplit(out.take_bytes());
    for line in text.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let Some(hex) = line["hex"].as_str() else { continue };
        let mut bytes: BytesMut = (0..hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
            .collect();
        let mut out = Orders::default();
        if line["dir"] == "foreman->node" {
            worker.receive(NOW, &mut bytes, &mut out);
        } else {
            // A task ends when the original's did.
            if line["decoded"]["type"] == "UPDATE" {
                let data = &line["decoded"]["data"];
                let meant = (data["JobId"].as_u64().unwrap(), data["Task"].as_u64().unwrap());
                let outcome = match data["Status"].as_str().unwrap() {
                    "done" => Outcome::Success,
                    "error encountered: exit status 1" => Outcome::Exit(1),
                    _ => Outcome::Signal(9),
                };
                let at = keys.iter().position(|(task, _)| *task == meant).unwrap();
                let (_, key) = keys.remove(at);
                worker.tell(NOW, News::Ended { key, how: ended(outcome) }, &mut out);
            }
            said.unsplit(out.take_bytes());
            if line["decoded"]["type"] == "HELLO" {
                assert_eq!(said[8..12], LABORO.to_le_bytes(), "originals do not look at it");
                said[8..12].fill(0);
            }
            assert_eq!(said.split_to(bytes.len().min(said.len())), bytes, "{line}");
        }
        said.unsplit(out.take_bytes());
        keys.extend(out.orders.iter().filter_map(|order| match order {
            Order::Start(start) => Some(((start.job, u64::from(start.index)), start.key)),
            _ => None,
        }));
    }
    assert!(said.is_empty(), "nothing more was said");
}
