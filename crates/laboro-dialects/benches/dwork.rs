//! What dwork requests cost from the bytes that come to the bytes that go, with a real core and no sockets
//! or disk between: connection, session and scheduling together. Prints a table; asserts nothing.

use bytes::BytesMut;
use laboro_core::{Archive, Ask, Command, Config, Effect, Hub, Ledger, SessionId, Time, Token};
use laboro_dialects::dwork::{Client, Dep, HubDoor, HubSide, Kind, QueryWriter, Settings};
use laboro_dialects::session::{Delivery, OpenAdmission, Output, Session, SessionContext};
use laboro_dialects::zmtp::Mechanism;
use std::sync::Arc;
use std::time::{Duration, Instant};

const NOW: Time = Time(1_794_769_000_000);

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    // `cargo bench` passes --bench; `cargo test --benches` does not, and wants a quick look only.
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    let tasks = if is_bench { 1_000_000 } else { 1000 };
    println!("{:<28} {:>10} {:>12} {:>12}", "case", "tasks", "us/request", "us/task");
    for batch in [1, 100] {
        let mut bench = Bench::new();
        bench.measure("create", tasks, batch, |number, batch, to| {
            create(number, batch, None, to);
        });
        bench.steal_and_complete(tasks, batch);
        // The same names once more: finished tasks run again.
        bench.measure("create again", tasks, batch, |number, batch, to| {
            create(number, batch, None, to);
        });
    }
    let mut bench = Bench::new();
    bench.measure("create in layers of 1000", tasks, 100, |number, batch, to| {
        create(number, batch, Some(1000), to);
    });
    bench.steal_and_complete(tasks, 100);
}

fn create(number: usize, batch: usize, layer: Option<usize>, to: &mut BytesMut) {
    let mut query = QueryWriter::new(Kind::Create, to);
    for at in number..number + batch {
        let pred = layer.and_then(|layer| at.checked_sub(layer)).map(|at| format!("task-{at}"));
        let pred = pred.as_ref().map(|name| Dep::new(name.as_bytes()));
        query = query.task(format!("task-{at}").as_bytes(), b"bench", pred.into_iter(), &[]);
    }
}

struct Bench {
    hub: Hub,
    side: HubSide,
    client: Client,
    out: Output,
    to_hub: BytesMut,
    to_client: BytesMut,
}

impl Bench {
    fn new() -> Bench {
        let (hub, _) = Hub::begin(Ledger::default(), Config::default(), NOW, 1);
        let context = SessionContext {
            session: SessionId(1),
            group: "default".into(),
            peer: None,
            message_max: 16 << 20,
            grace_ms: 0,
            admission: Arc::new(OpenAdmission),
        };
        let mut bench = Bench {
            hub,
            side: HubSide::new(context, HubDoor::new(Settings::default())),
            client: Client::new(Mechanism::Null),
            out: Output::default(),
            to_hub: BytesMut::new(),
            to_client: BytesMut::new(),
        };
        bench.side.open(NOW, &mut bench.out);
        bench.client.open(NOW, &mut bench.to_hub);
        while !bench.client.is_ready() {
            bench.turn();
            let none = bench.client.receive(NOW, &mut bench.to_client, &mut bench.to_hub);
            assert!(matches!(none, Ok(None)), "a handshake has no replies");
        }
        bench
    }

    /// All that the hub does between reading and writing.
    fn turn(&mut self) {
        self.side.receive(NOW, &mut self.to_hub, &mut self.out);
        while !self.out.ask.is_empty() {
            let asks = self.out.ask.drain(..).map(|(tag, command)| {
                debug_assert!(!matches!(command, Command::Withdraw(_)), "nothing waits here");
                Ask { token: Token(tag), command }
            });
            let batch = self.hub.step(NOW, asks.collect());
            for effect in batch.release(Nowhere.receipt()) {
                if let Effect::Reply { token: Token(tag), reply } = effect {
                    self.side.deliver(NOW, Delivery::Reply { tag, reply }, &mut self.out);
                }
            }
        }
        self.to_client.unsplit(self.out.take_bytes());
    }

    /// One request in lock step; the time that the hub's side took.
    fn ask(&mut self, request: &[u8]) -> (Duration, laboro_dialects::dwork::Reply) {
        self.client.ask(request, &mut self.to_hub);
        let began = Instant::now();
        self.turn();
        let took = began.elapsed();
        let reply = self.client.receive(NOW, &mut self.to_client, &mut self.to_hub);
        (took, reply.expect("a good reply").expect("an answer at once"))
    }

    fn measure(
        &mut self,
        case: &str,
        tasks: usize,
        batch: usize,
        write: impl Fn(usize, usize, &mut BytesMut),
    ) {
        let mut request = BytesMut::new();
        let mut took = Duration::ZERO;
        for number in (0..tasks).step_by(batch) {
            request.clear();
            write(number, batch, &mut request);
            let (time, reply) = self.ask(&request);
            assert_eq!(reply.query().expect("a good reply").kind, Kind::Ok);
            took += time;
        }
        show(case, tasks, batch, took);
    }

    fn steal_and_complete(&mut self, tasks: usize, batch: usize) {
        let (mut stealing, mut completing) = (Duration::ZERO, Duration::ZERO);
        let mut done = 0;
        while done < tasks {
            let mut request = BytesMut::new();
            QueryWriter::new(Kind::Steal, &mut request).n(batch as i32).location(b"w");
            let (time, reply) = self.ask(&request);
            stealing += time;
            request.clear();
            let mut query = QueryWriter::new(Kind::Complete, &mut request);
            let stolen = reply.query().expect("a good reply");
            for task in &stolen.tasks {
                query = query.task(task.name, task.origin, [].into_iter(), &[]);
            }
            query.location(b"w");
            done += stolen.tasks.len();
            let (time, reply) = self.ask(&request);
            assert_eq!(reply.query().expect("a good reply").kind, Kind::Ok);
            completing += time;
        }
        show("steal", tasks, batch, stealing);
        show("complete", tasks, batch, completing);
    }
}

fn show(case: &str, tasks: usize, batch: usize, took: Duration) {
    let us = took.as_secs_f64() * 1e6;
    let case = format!("{case}, {batch} a request");
    let requests = tasks.div_ceil(batch);
    println!("{case:<28} {tasks:>10} {:>12.2} {:>12.2}", us / requests as f64, us / tasks as f64);
}

/// Nobody waits for what is decided here to be safe.
struct Nowhere;

impl Archive for Nowhere {}
