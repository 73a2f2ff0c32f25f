//! One connection of the load: asks, waits for the answer, notes how long it took, asks again.

use anyhow::{Context, bail};
use bytes::BytesMut;
use laboro_clients::dwork::DworkLink;
use laboro_dialects::dwork::{Dep, Kind, QueryWriter, Reply};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The tasks of one case, shared by its connections.
#[derive(Debug)]
pub(super) struct Work {
    prefix: String,
    /// Numbers are filled up to so many digits.
    digits: usize,
    pub(super) tasks: usize,
    done: AtomicUsize,
}

impl Work {
    pub(super) fn new(prefix: String, tasks: usize) -> Arc<Work> {
        Arc::new(Work { prefix, digits: 0, tasks, done: AtomicUsize::new(0) })
    }

    /// With names of 16 bytes.
    pub(super) fn of_sixteen(tasks: usize) -> Arc<Work> {
        let (prefix, done) = ("bench-".to_owned(), AtomicUsize::new(0));
        Arc::new(Work { prefix, digits: 10, tasks, done })
    }

    pub(super) fn name(&self, number: usize) -> String {
        format!("{}{number:0width$}", self.prefix, width = self.digits)
    }
}

/// What a connection does in a case.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    /// Its share of the tasks; with `layer` each comes after the one so many before it.
    Create { batch: usize, layer: Option<usize> },
    /// Until all are done.
    Steal { batch: usize },
}

#[derive(Debug)]
pub(super) struct Worker {
    link: DworkLink,
    number: usize,
    /// How many there are of its kind.
    of: usize,
    work: Arc<Work>,
    request: BytesMut,
    pub(super) latencies: Vec<Duration>,
    /// When its last task was answered for.
    pub(super) last_at: Instant,
}

impl Worker {
    pub(super) fn new(link: DworkLink, number: usize, of: usize, work: Arc<Work>) -> Worker {
        let (request, latencies) = (BytesMut::new(), Vec::new());
        Worker { link, number, of, work, request, latencies, last_at: Instant::now() }
    }

    pub(super) async fn act(mut self, act: Act) -> anyhow::Result<Worker> {
        match act {
            Act::Create { batch, layer } => self.create(batch, layer).await?,
            Act::Steal { batch } => self.steal(batch).await?,
        }
        Ok(self)
    }

    async fn create(&mut self, batch: usize, layer: Option<usize>) -> anyhow::Result<()> {
        let share = |number: usize| self.work.tasks * number / self.of;
        let (first, end) = (share(self.number), share(self.number + 1));
        for start in (first..end).step_by(batch) {
            self.request.clear();
            let mut query = QueryWriter::new(Kind::Create, &mut self.request);
            for at in start..(start + batch).min(end) {
                let pred =
                    layer.and_then(|layer| at.checked_sub(layer)).map(|at| self.work.name(at));
                let pred = pred.as_ref().map(|name| Dep::new(name.as_bytes()));
                query = query.task(self.work.name(at).as_bytes(), b"bench", pred.into_iter(), &[]);
            }
            let reply = self.ask().await?;
            expect(&reply, Kind::Ok, "a create")?;
        }
        Ok(())
    }

    async fn steal(&mut self, batch: usize) -> anyhow::Result<()> {
        let location = format!("bench-{}", self.number);
        loop {
            self.request.clear();
            let n = i32::try_from(batch).context("a batch is small")?;
            QueryWriter::new(Kind::Steal, &mut self.request).n(n).location(location.as_bytes());
            // Whoever waits at the end has no task to be measured with.
            let (before, asked) = (self.last_at, self.latencies.len());
            let stolen = self.ask().await?;
            let query = stolen.query()?;
            match query.kind {
                Kind::Transfer => {}
                Kind::NotFound | Kind::Exit => {
                    self.last_at = before;
                    self.latencies.truncate(asked);
                    if self.work.done.load(Ordering::Relaxed) >= self.work.tasks {
                        return Ok(());
                    }
                    // An original answers at once; let it and the others get on.
                    tokio::task::yield_now().await;
                    continue;
                }
                kind => bail!("the hub answered a steal with {kind:?}"),
            }
            self.request.clear();
            let mut complete = QueryWriter::new(Kind::Complete, &mut self.request);
            for task in &query.tasks {
                complete = complete.task(task.name, task.origin, [].into_iter(), &[]);
            }
            complete.location(location.as_bytes());
            let count = query.tasks.len();
            let reply = self.ask().await?;
            expect(&reply, Kind::Ok, "a complete")?;
            if self.work.done.fetch_add(count, Ordering::Relaxed) + count >= self.work.tasks {
                return Ok(());
            }
        }
    }

    async fn ask(&mut self) -> anyhow::Result<Reply> {
        let began = Instant::now();
        let reply = self.link.ask(&self.request).await?;
        self.last_at = Instant::now();
        self.latencies.push(self.last_at - began);
        Ok(reply)
    }
}

pub(super) fn expect(reply: &Reply, kind: Kind, to: &str) -> anyhow::Result<()> {
    match reply.query()?.kind {
        found if found == kind => Ok(()),
        other => bail!("the hub answered {to} with {other:?}"),
    }
}

/// How many tasks the hub has that are not finished.
pub(super) async fn active(link: &mut DworkLink) -> anyhow::Result<u64> {
    let mut request = BytesMut::new();
    QueryWriter::new(Kind::Ok, &mut request);
    let reply = link.ask(&request).await?;
    let words = String::from_utf8_lossy(reply.query()?.name.unwrap_or_default()).into_owned();
    let active = words.strip_prefix("dhub: ").and_then(|rest| rest.split(' ').next()?.parse().ok());
    active.with_context(|| format!("the hub's status is not understood: {words}"))
}
