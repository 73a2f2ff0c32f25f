//! What the native protocol costs a task: grants to bytes to assignments, results to bytes to a report, all of
//! it on one thread, with the foreman and the worker joined by buffers and a hub that only answers. No sockets
//! and no core: what those cost is measured with them.

use bytes::BytesMut;
use laboro_core::{
    Command, CommandWork, Element, Grant, JobId, LeaseNo, Name, Outcome, Profile, Program, Reply,
    Role, SessionId, TaskId, Time, Values, Work, WorkerId,
};
use laboro_dialects::fuq2::{Foreman, Mode, NativeWorker, WorkerSettings};
use laboro_dialects::session::{Delivery, OpenAdmission, Output, Session, SessionContext};
use laboro_dialects::worker::{News, Order, Orders, TaskEnd, Used, WorkerSide};
use std::sync::Arc;
use std::time::Instant;

const NOW: Time = Time(1);
const WORKER: WorkerId = WorkerId(1);

struct Pair {
    foreman: Foreman,
    worker: NativeWorker,
    out: Output,
    orders: Orders,
    bytes: usize,
}

impl Pair {
    fn new() -> Pair {
        let context = SessionContext {
            session: SessionId(1),
            group: Name::from("default"),
            peer: None,
            message_max: 16 << 20,
            grace_ms: 10_000,
            admission: Arc::new(OpenAdmission),
        };
        let mut pair = Pair {
            foreman: Foreman::new(context, Mode::Native),
            worker: NativeWorker::new(WorkerSettings::new("w", 64)),
            out: Output::default(),
            orders: Orders::default(),
            bytes: 0,
        };
        pair.foreman.open(NOW, &mut pair.out);
        pair.worker.open(NOW, &mut pair.orders);
        pair.settle();
        pair.orders.orders.clear();
        pair
    }

    /// Carries bytes and answers what is asked, until nobody has anything to say.
    fn settle(&mut self) -> usize {
        let mut reported = 0;
        loop {
            let mut input: BytesMut = self.orders.take_bytes();
            self.bytes += input.len();
            self.foreman.receive(NOW, &mut input, &mut self.out);
            for (tag, command) in std::mem::take(&mut self.out.ask) {
                let reply = match command {
                    Command::Join(_) => Reply::Joined { worker: WORKER, unknown: Vec::new() },
                    Command::Report(report) => {
                        reported += report.results.len();
                        Reply::Reported(report.results.iter().map(|_| Ok(())).collect())
                    }
                    _ => Reply::Ok,
                };
                self.foreman.deliver(NOW, Delivery::Reply { tag, reply }, &mut self.out);
            }
            let mut input = self.out.take_bytes();
            self.bytes += input.len();
            if input.is_empty() && self.orders.say.is_empty() {
                return reported;
            }
            self.worker.receive(NOW, &mut input, &mut self.orders);
        }
    }

    /// One batch there and back: every task a success at once.
    fn turn(&mut self, grants: Vec<Grant>) -> usize {
        let work = Delivery::Work { worker: WORKER, grants };
        self.foreman.deliver(NOW, work, &mut self.out);
        let mut reported = self.settle();
        let how = TaskEnd {
            outcome: Outcome::Success,
            message: None,
            used: Used { wall_us: 1000, ..Used::default() },
        };
        for order in std::mem::take(&mut self.orders.orders) {
            if let Order::Start(assignment) = order {
                let news = News::Ended { key: assignment.key, how: how.clone() };
                self.worker.tell(NOW, news, &mut self.orders);
            }
        }
        reported += self.settle();
        reported
    }
}

fn grants(
    from: u32,
    count: u32,
    values: &Values,
    work: &Arc<Work>,
    profile: &Arc<Profile>,
) -> Vec<Grant> {
    (from..from + count)
        .map(|n| Grant {
            lease: LeaseNo::new(3, n.into()),
            task: TaskId::new(JobId(7), n + 1),
            name: Name::from("sim"),
            job_name: Name::from("sim"),
            own_names: false,
            element: Some(Element { position: n, count: from + count, values: values.clone() }),
            attempt: 1,
            fails: 0,
            work: Some(work.clone()),
            profile: profile.clone(),
            share: None,
            memo: None,
            role: Role::Only,
        })
        .collect()
}

fn main() {
    let program = Program::Argv(["true"].into_iter().collect());
    let command = CommandWork { program, setting: Arc::default() };
    let (work, profile) = (Arc::new(Work::Command(command)), Arc::new(Profile::default()));
    let list = (0..1_000_000).map(|n| format!("input-{n}.dat")).collect();
    let cases = [
        ("numbers", Values::Numbers { first: 1, step: 1 }, 1000),
        ("numbers", Values::Numbers { first: 1, step: 1 }, 10),
        ("numbers", Values::Numbers { first: 1, step: 1 }, 1),
        ("list", list, 1000),
    ];
    for (name, values, batch) in cases {
        let total = if batch == 1 { 200_000 } else { 1_000_000 };
        let mut best = f64::MAX;
        let mut bytes = 0;
        for _ in 0..5 {
            let mut pair = Pair::new();
            pair.bytes = 0;
            let (mut done, mut spent) = (0, 0.0);
            while done < total {
                let given = grants(done, batch, &values, &work, &profile);
                let start = Instant::now();
                let reported = pair.turn(given);
                spent += start.elapsed().as_secs_f64();
                assert_eq!(reported, batch as usize, "every task is reported");
                done += batch;
            }
            best = best.min(spent / f64::from(total));
            bytes = pair.bytes / total as usize;
        }
        println!("{name:8} batch {batch:5}: {:6.0} ns a task, {bytes} bytes a task", best * 1e9);
    }
}
