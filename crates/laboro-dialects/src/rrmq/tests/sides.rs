//! Our clients and workers with our server between them.

use super::*;

const WORKER: PeerId = PeerId(1);
const CLIENT: PeerId = PeerId(2);

/// One of each, and everything that is said is carried until all are silent.
struct Trio {
    server: Server,
    worker: Worker,
    client: Client,
    answers: Vec<Answer>,
}

impl Trio {
    fn new(options: WorkerOptions) -> Trio {
        let mut server = Server::new(BrokerConfig::default(), 1);
        let mut worker = Worker::new(options);
        server.open(NOW, WORKER, b"worker", &mut Vec::new());
        server.open(NOW, CLIENT, b"client", &mut Vec::new());
        let mut said = Vec::new();
        worker.open(NOW, &mut said);
        worker.register(&mut said);
        let client = Client::new(1000, 10 << 20);
        let mut trio = Trio { server, worker, client, answers: Vec::new() };
        trio.carry(WORKER, said);
        trio.ask(|client, out| client.open(NOW, out));
        assert!(trio.worker.is_registered());
        trio
    }

    fn carry(&mut self, from: PeerId, said: Vec<Message>) {
        let mut unread: std::collections::VecDeque<_> =
            said.into_iter().map(|message| (from, message)).collect();
        while let Some((from, message)) = unread.pop_front() {
            let mut effects = Vec::new();
            let _ = self.server.receive(NOW, from, message, &mut effects);
            for effect in effects {
                let Effect::Send { to, message } = effect else { panic!("nobody is closed") };
                let mut said = Vec::new();
                if to == WORKER {
                    self.worker.receive(NOW, &message, &mut said).unwrap();
                } else {
                    self.answers.extend(self.client.receive(NOW, &message, &mut said).unwrap());
                }
                unread.extend(said.into_iter().map(|message| (to, message)));
            }
        }
    }

    fn ask(&mut self, ask: impl FnOnce(&mut Client, &mut Vec<Message>)) -> Vec<Answer> {
        let mut said = Vec::new();
        ask(&mut self.client, &mut said);
        self.carry(CLIENT, said);
        std::mem::take(&mut self.answers)
    }

    fn free(&self) -> u32 {
        self.server.broker().workers().next().unwrap().free
    }
}

fn stream(ones: u32) -> impl FnOnce(&mut Client, &mut Vec<Message>) {
    move |client, out| {
        client.stream(NOW, Bytes::from_static(b"STREAM_ID"), ones, out);
    }
}

#[test]
fn pings_come_back_and_slots_are_free_again() {
    let mut trio = Trio::new(WorkerOptions::default());
    let answers = trio.ask(|client, out| {
        for _ in 0..1000 {
            client.tracked_ping(NOW, out);
        }
    });
    assert_eq!(answers.len(), 1000);
    assert!(answers.iter().all(|answer| matches!(answer, Answer::Ponged(_))));
    assert_eq!(trio.ask(Client::ping), []);
    assert_eq!((trio.free(), trio.client.in_flight()), (10, 0));
    assert_eq!(trio.worker.tally(), WorkerTally { requests: 1001, answers: 1000, unknown: 0 });
}

#[test]
fn streams_of_any_length_arrive_raw_and_packed() {
    for pack in [Pack::Raw, Pack::Zlib] {
        let mut trio = Trio::new(WorkerOptions { pack, ..WorkerOptions::default() });
        for ones in [0, 1, 1024, 8173, 8174, 20_000, 3_000_000] {
            let answers = trio.ask(stream(ones));
            let [Answer::Data(_, data)] = &answers[..] else { panic!("{answers:?}") };
            assert_eq!(example::ones(data), Some(u64::from(ones)), "{pack:?}");
        }
        assert_eq!(trio.free(), 10);
    }
}

#[test]
fn a_thousand_streams_at_once_all_arrive() {
    let mut trio = Trio::new(WorkerOptions::default());
    let answers = trio.ask(|client, out| {
        for _ in 0..1000 {
            client.stream(NOW, Bytes::from_static(b"STREAM_ID"), 20_000, out);
        }
    });
    assert_eq!(answers.iter().filter(|answer| matches!(answer, Answer::Data(..))).count(), 1000);
}

#[test]
fn a_stream_that_is_too_large_for_the_worker_is_aborted() {
    let options = WorkerOptions { streams_bytes_max: 1000, ..WorkerOptions::default() };
    let mut trio = Trio::new(options);
    let answers = trio.ask(stream(1001));
    assert!(matches!(&answers[..], [Answer::Failed(_, Failure::Packet(PacketError::Aborted))]));
    assert_eq!(trio.free(), 10);
}

#[test]
fn a_stream_that_is_too_large_for_the_client_is_given_up_on_both_sides() {
    let mut trio = Trio::new(WorkerOptions::default());
    let answers = trio.ask(stream(11 << 20));
    let too_long = PacketError::TooLong { max: 10 << 20 };
    let [Answer::Failed(_, Failure::Packet(error))] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!((error, trio.client.in_flight()), (&too_long, 0));
    // Only heartbeats are left to wait for: the worker holds no stream.
    assert_eq!(trio.worker.deadline(), Some(NOW.after_ms(120_000)));
}

#[test]
fn a_worker_says_whether_it_still_has_something() {
    let mut worker = Worker::new(WorkerOptions::default());
    let mut out = Vec::new();
    let begin = message("\"\"|LMQv100|\\x04|1|\\x0a|host|20000|\"\"|C");
    let ongoing = |host| message(&format!("\"\"|LMQv100|\\x04|2|ongoing|{host}|\"\"|C"));
    worker.receive(NOW, &begin, &mut out).unwrap();
    worker.receive(NOW, &ongoing("host"), &mut out).unwrap();
    worker.receive(NOW, &ongoing("other"), &mut out).unwrap();
    let said: Vec<_> = out.iter().map(text).collect();
    assert_eq!(said[2], "C|\"\"|LMQv100|\\x06|2|\\x14\\x00|\"\"");
    assert_eq!(said[3], "C|\"\"|LMQv100|\\x06|2|(\\x00|\"\"");
    // It may have come by any way, so a slot goes back.
    assert_eq!(said[4], "\"\"|LMQv100|\\x03|\\x02\\x00\\x00\\x00|\\x07|\"\"");
    assert_eq!(said.len(), 5);
    assert!(worker.tick(NOW.after_ms(119_999), &mut out));
    assert!(worker.tick(NOW.after_ms(120_000), &mut out));
    out.clear();
    worker.receive(NOW.after_ms(120_000), &ongoing("host"), &mut out).unwrap();
    assert_eq!(text(&out[0]), "C|\"\"|LMQv100|\\x06|2|(\\x00|\"\"");
}

#[test]
fn a_request_that_the_worker_does_not_know_gives_its_slot_back() {
    let mut trio = Trio::new(WorkerOptions::default());
    trio.carry(CLIENT, vec![message("\"\"|LMQv100|\\x04|1|what|\"\"")]);
    assert_eq!((trio.free(), trio.worker.tally().unknown), (10, 1));
}

#[test]
fn questions_about_streams_of_others_cost_no_slot() {
    let mut trio = Trio::new(WorkerOptions { slots: 1, ..WorkerOptions::default() });
    for _ in 0..3 {
        // Without the hops of a packet they go to any worker, and take a slot as everything does.
        trio.carry(CLIENT, vec![message("\"\"|LMQv100|\\x04|1|ongoing|nobody|\"\"")]);
        assert_eq!(trio.free(), 1);
    }
}

#[test]
fn a_worker_registers_again_on_a_new_connection() {
    let mut worker = Worker::new(WorkerOptions::default());
    let mut out = Vec::new();
    worker.open(NOW, &mut out);
    assert_eq!(out.len(), 1);
    worker.register(&mut out);
    worker.lost();
    out.clear();
    worker.open(NOW, &mut out);
    let commands: Vec<_> = out.iter().map(|said| Envelope::parse(said).unwrap().app()).collect();
    assert_eq!(commands, [None, Some(App::Register)]);
    worker.deregister(&mut out);
    out.clear();
    worker.open(NOW, &mut out);
    assert_eq!(out.len(), 1);
}

#[test]
fn a_server_that_does_not_answer_is_given_up() {
    let mut worker = Worker::new(WorkerOptions::default());
    let mut out = Vec::new();
    worker.open(NOW, &mut out);
    assert!(worker.tick(NOW.after_ms(9_999), &mut out));
    assert!(!worker.tick(NOW.after_ms(10_000), &mut out));
    let pong = message("\"\"|LMQv100|\\x02|x|\"\"");
    worker.open(NOW, &mut out);
    worker.receive(NOW, &pong, &mut out).unwrap();
    assert_eq!(worker.deadline(), Some(NOW.after_ms(120_000)));
    out.clear();
    assert!(worker.tick(NOW.after_ms(120_000), &mut out));
    assert_eq!(Envelope::parse(&out[0]).unwrap().command, Command::Ping);
}

#[test]
fn a_request_without_an_answer_fails_in_time() {
    let mut client = Client::new(1000, 1000);
    let (mut out, mut failed) = (Vec::new(), Vec::new());
    let request = client.tracked_ping(NOW, &mut out);
    assert_eq!(client.deadline(), Some(NOW.after_ms(1000)));
    assert!(client.tick(NOW.after_ms(1000), &mut out, &mut failed));
    assert_eq!(failed, [Answer::Failed(request, Failure::Late { ms: 1000 })]);
    assert_eq!((client.in_flight(), client.deadline()), (0, None));
}
