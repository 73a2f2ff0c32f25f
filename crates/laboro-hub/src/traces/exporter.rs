//! The thread that sends spans: gathers for a moment, asks the core which jobs have ended, and posts what is ready. A
//! receiver that does not answer is tried again with growing pauses, while what waits has an end.

use super::TraceCounts;
use super::note::{JobTrace, Notes};
use super::otlp::body;
use super::spans::Spans;
use crate::config::TraceSettings;
use crate::hooks::post_json;
use crate::inbox::Handle;
use crate::security::host_name;
use laboro_core::{Command, JobId, JobView, Query, Reply, TaskId, TaskRef, Time};
use laboro_net::Clock;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const GATHER: Duration = Duration::from_millis(500);
const SPANS_PER_REQUEST: usize = 512;
const PAGE: u32 = 200;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// For what is ready when the hub stops.
const AT_STOP: Duration = Duration::from_secs(2);

struct Exporter {
    handle: Handle,
    notes: mpsc::Receiver<Notes>,
    spans: Spans,
    counts: TraceCounts,
    target: hyper::Uri,
    time_limit: Duration,
    instance: String,
    host: String,
    /// The last job whose end was seen.
    cursor: (Time, JobId),
    /// When something is sent again after a failure, and how long the pause was.
    pause: Option<(Instant, Duration)>,
}

/// Starts the thread; it ends with the hub. `instance` is what tells this hub from others.
pub(crate) fn start(
    settings: &TraceSettings,
    target: hyper::Uri,
    instance: String,
    handle: Handle,
    clock: Clock,
    (notes, counts): (mpsc::Receiver<Notes>, TraceCounts),
    stop: CancellationToken,
) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut exporter = Exporter {
        handle,
        notes,
        spans: Spans::new(settings.max_pending, counts.clone()),
        counts,
        target,
        time_limit: Duration::from_millis(settings.time_limit_ms),
        instance,
        host: host_name(),
        cursor: (clock.now(), JobId(0)),
        pause: None,
    };
    let run = move || {
        runtime.block_on(async move {
            tokio::select! {
                () = exporter.run() => {}
                () = stop.cancelled() => {}
            }
            let last = async {
                exporter.gather().await;
                exporter.pause = None;
                exporter.send().await;
            };
            let _ = tokio::time::timeout(AT_STOP, last).await;
        });
    };
    std::thread::Builder::new().name("laboro-traces".into()).spawn(run).map(drop)
}

impl Exporter {
    async fn run(&mut self) {
        loop {
            let again = self.pause.map(|(at, _)| at);
            tokio::select! {
                notes = self.notes.recv() => match notes {
                    Some(notes) => {
                        self.spans.hear(notes);
                        tokio::time::sleep(GATHER).await;
                    }
                    None => return,
                },
                () = at(again) => {}
            }
            self.gather().await;
            self.send().await;
        }
    }

    async fn gather(&mut self) {
        while let Ok(notes) = self.notes.try_recv() {
            self.spans.hear(notes);
        }
        loop {
            let query = Query::Ended { after: self.cursor, most: PAGE };
            let Ok(Reply::Jobs(jobs)) = self.handle.ask(Command::Query(query)).await else {
                return;
            };
            let Some(last) = jobs.last() else { return };
            self.cursor = (last.ended.unwrap_or(Time(0)), last.job);
            let is_last = jobs.len() < PAGE as usize;
            for view in jobs {
                if let Some(trace) = self.trace_of(&view).await {
                    self.spans.end_job(&view, trace);
                }
            }
            if is_last {
                return;
            }
        }
    }

    /// A job of an earlier life of the hub, or one of which nothing has run, is known by its first task.
    async fn trace_of(&self, view: &JobView) -> Option<JobTrace> {
        if let Some(known) = self.spans.trace_of(view.job) {
            return Some(known);
        }
        let task = TaskRef::Id(TaskId::new(view.job, 1));
        let query = Query::Task { group: view.group.clone(), task };
        match self.handle.ask(Command::Query(query)).await {
            Ok(Reply::Task(view)) => JobTrace::of(view.work.as_deref()?),
            _ => None,
        }
    }

    async fn send(&mut self) {
        if self.pause.is_some_and(|(at, _)| Instant::now() < at) {
            return;
        }
        loop {
            let spans = self.spans.take(SPANS_PER_REQUEST);
            if spans.is_empty() {
                return;
            }
            let text = body(&spans, &self.host, &self.instance);
            let sent = tokio::time::timeout(self.time_limit, post_json(&self.target, &[], text));
            let why = match sent.await {
                Ok(Ok(())) => {
                    self.counts.0.sent.fetch_add(spans.len() as u64, super::Ordering::Relaxed);
                    self.pause = None;
                    continue;
                }
                Ok(Err(why)) => why,
                Err(_) => format!("no answer within {} s", self.time_limit.as_secs()),
            };
            self.counts.0.failures.fetch_add(1, super::Ordering::Relaxed);
            let pause = self.pause.map_or(FIRST_PAUSE, |(_, last)| (last * 2).min(LONGEST_PAUSE));
            // Once, until it works again.
            if self.pause.is_none() {
                tracing::warn!(event = "traces_failed", "spans cannot be sent: {why}");
            }
            self.pause = Some((Instant::now() + pause, pause));
            self.spans.put_back(spans);
            return;
        }
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}
