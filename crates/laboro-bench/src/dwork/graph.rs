//! Graphs that grow edge by edge, in bad orders: tasks first, their dependencies later. Meanwhile another connection
//! asks for the status in lock step; what the case shows as latencies are its waits, not those of the creates.

use super::client::{self, Act, Work, Worker, expect};
use super::{DworkRun, Figures};
use bytes::BytesMut;
use laboro_dialects::dwork::{Dep, Kind, QueryWriter};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// From predecessor to successor.
type Edge = (usize, usize);

struct GraphCase {
    name: &'static str,
    tasks: usize,
    edges: Vec<Edge>,
    /// How many edges go in one request.
    batch: usize,
}

pub(super) async fn all(bench: &DworkRun<'_>, tasks: usize) -> anyhow::Result<()> {
    let few = tasks.min(5000);
    let cases = [
        GraphCase {
            name: "edges of a chain, in one request",
            tasks: few,
            edges: (1..few).map(|at| (at - 1, at)).collect(),
            batch: few,
        },
        GraphCase {
            name: "edges of a chain, last first, 40 a request",
            tasks,
            edges: (1..tasks).rev().map(|at| (at - 1, at)).collect(),
            batch: 40,
        },
        GraphCase {
            name: "edges of a chain against its order, 40 a request",
            tasks,
            edges: (1..tasks).rev().map(|at| (at, at - 1)).collect(),
            batch: 40,
        },
        GraphCase {
            name: "edges in random order, 1000 a request",
            tasks: tasks * 5,
            edges: random_edges(tasks * 5, tasks * 50),
            batch: 1000,
        },
    ];
    for case in cases {
        case.measure(bench).await?;
    }
    transfer(bench, tasks * 3).await
}

impl GraphCase {
    async fn measure(&self, bench: &DworkRun<'_>) -> anyhow::Result<()> {
        let work = Work::new(format!("g{}-{}-", std::process::id(), self.edges.len()), self.tasks);
        let create = Act::Create { batch: 1000, layer: None };
        Worker::new(bench.connect().await?, 0, 1, work.clone()).act(create).await?;
        let mut link = bench.connect().await?;
        let status = Status::begin(bench).await?;
        let began = Instant::now();
        let mut request = BytesMut::new();
        for edges in self.edges.chunks(self.batch) {
            request.clear();
            let mut query = QueryWriter::new(Kind::Create, &mut request);
            for &(pred, succ) in edges {
                let (pred, succ) = (work.name(pred), work.name(succ));
                let pred = [Dep::new(pred.as_bytes())];
                query = query.task(succ.as_bytes(), b"bench", pred.into_iter(), &[]);
            }
            expect(&link.ask(&request).await?, Kind::Ok, "a create")?;
        }
        let took = began.elapsed();
        status.show(bench, self.name, self.edges.len(), took).await?;
        finish(bench, &work).await
    }
}

/// Tasks that are held go back behind one that is ready, and much comes after them.
async fn transfer(bench: &DworkRun<'_>, tasks: usize) -> anyhow::Result<()> {
    const HELD: usize = 200;
    let work = Work::new(format!("h{}-", std::process::id()), HELD + 1 + tasks);
    let mut link = bench.connect().await?;
    let mut request = BytesMut::new();
    let mut query = QueryWriter::new(Kind::Create, &mut request);
    for at in 0..HELD {
        query = query.task(work.name(at).as_bytes(), b"bench", [].into_iter(), &[]);
    }
    expect(&link.ask(&request).await?, Kind::Ok, "a create")?;
    request.clear();
    QueryWriter::new(Kind::Steal, &mut request).n(HELD as i32).location(b"holder");
    expect(&link.ask(&request).await?, Kind::Transfer, "a steal")?;
    for start in (0..tasks).step_by(1000) {
        request.clear();
        let mut query = QueryWriter::new(Kind::Create, &mut request);
        if start == 0 {
            query = query.task(work.name(HELD).as_bytes(), b"bench", [].into_iter(), &[]);
        }
        for at in start..(start + 1000).min(tasks) {
            let preds = [work.name(HELD), work.name(at % HELD)];
            let preds = preds.each_ref().map(|pred| Dep::new(pred.as_bytes()));
            let name = work.name(HELD + 1 + at);
            query = query.task(name.as_bytes(), b"bench", preds.into_iter(), &[]);
        }
        expect(&link.ask(&request).await?, Kind::Ok, "a create")?;
    }
    let status = Status::begin(bench).await?;
    let began = Instant::now();
    request.clear();
    let mut query = QueryWriter::new(Kind::Transfer, &mut request);
    let ready = work.name(HELD);
    for at in 0..HELD {
        let pred = [Dep::new(ready.as_bytes())];
        query = query.task(work.name(at).as_bytes(), b"bench", pred.into_iter(), &[]);
    }
    query.location(b"holder");
    expect(&link.ask(&request).await?, Kind::Ok, "a transfer")?;
    let took = began.elapsed();
    status.show(bench, "200 transferred behind one with much after it", HELD, took).await?;
    finish(bench, &work).await
}

/// The next case wants an idle hub.
async fn finish(bench: &DworkRun<'_>, work: &Arc<Work>) -> anyhow::Result<()> {
    let act = Act::Steal { batch: 10_000 };
    Worker::new(bench.connect().await?, 0, 1, work.clone()).act(act).await?;
    Ok(())
}

/// Edges of a hidden order, so that there is no cycle, mixed.
fn random_edges(tasks: usize, edges: usize) -> Vec<Edge> {
    let mut state = 88_172_645_463_325_252_u64;
    let mut below = |end: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % end as u64) as usize
    };
    let mut order: Vec<usize> = (0..tasks).collect();
    for at in (1..tasks).rev() {
        order.swap(at, below(at + 1));
    }
    let mut edge = || loop {
        let (a, b) = (below(tasks), below(tasks));
        if a != b {
            return (order[a.min(b)], order[a.max(b)]);
        }
    };
    (0..edges).map(|_| edge()).collect()
}

/// The other connection.
struct Status {
    over: Arc<AtomicBool>,
    asking: tokio::task::JoinHandle<anyhow::Result<Vec<Duration>>>,
    cpu: Option<Duration>,
}

impl Status {
    async fn begin(bench: &DworkRun<'_>) -> anyhow::Result<Status> {
        let over = Arc::new(AtomicBool::new(false));
        let mut link = bench.connect().await?;
        let until = over.clone();
        let asking = tokio::spawn(async move {
            let mut waits = Vec::new();
            while !until.load(Ordering::Relaxed) {
                let began = Instant::now();
                client::active(&mut link).await?;
                waits.push(began.elapsed());
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            Ok(waits)
        });
        Ok(Status { over, asking, cpu: bench.hub.cpu() })
    }

    async fn show(
        self,
        bench: &DworkRun<'_>,
        case: &str,
        tasks: usize,
        took: Duration,
    ) -> anyhow::Result<()> {
        self.over.store(true, Ordering::Relaxed);
        let latencies = self.asking.await??;
        let cpu = bench.hub.cpu().zip(self.cpu);
        let hub_cpu = cpu.map(|(after, before)| after.saturating_sub(before));
        let mut figures = Figures { case: case.to_owned(), tasks, took, latencies, hub_cpu };
        Ok(figures.show(&bench.args.durability, bench.args.json)?)
    }
}
