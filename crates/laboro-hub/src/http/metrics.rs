//! `GET metrics`: what the hub counts, as OpenMetrics text. Everything comes from counts that are kept anyway.

mod process;

use super::answer::Refused;
use super::entry::Visitor;
use super::operation::internal;
use super::{Api, Shared, brokers};
use crate::measures::SHORT_SECONDS;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use laboro_api::{self as api, Broker, DoorStatus};
use laboro_core::{Command, Dropped, GroupView, Name, OwnerView, Query, Reply, WorkerId};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Labels and their values.
type Labels = Vec<(&'static str, String)>;
type Gauges = Family<Labels, Gauge>;
type Counters = Family<Labels, Counter>;

/// How requests were answered. Bounded by the routes there are.
pub(super) struct RequestCounts {
    answered: Mutex<HashMap<(String, String, u16), u64>>,
    /// Until the answer begins, by route. A stream is over when its reader says so.
    took: Family<Labels, Histogram, fn() -> Histogram>,
    denied: AtomicU64,
}

impl Default for RequestCounts {
    fn default() -> RequestCounts {
        let took = Family::new_with_constructor(short_histogram as fn() -> Histogram);
        RequestCounts { answered: Mutex::default(), took, denied: AtomicU64::new(0) }
    }
}

fn short_histogram() -> Histogram {
    Histogram::new(SHORT_SECONDS)
}

impl RequestCounts {
    /// A token that was not good.
    pub(super) fn denied(&self) {
        self.denied.fetch_add(1, Ordering::Relaxed);
    }

    fn answered(&self, method: &str, route: &str, status: u16, took: Duration) {
        self.took.get_or_create(&vec![("route", route.to_owned())]).observe(took.as_secs_f64());
        let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        *answered.entry((method.to_owned(), route.to_owned(), status)).or_default() += 1;
    }
}

/// Counts every answer by its route.
pub(super) async fn count(
    State(api): Shared,
    route: Option<MatchedPath>,
    request: Request,
    next: Next,
) -> Response {
    let method = match request.method().as_str() {
        known @ ("GET" | "HEAD" | "POST" | "DELETE" | "PUT" | "PATCH" | "OPTIONS") => {
            known.to_owned()
        }
        // A peer may make up as many as it likes.
        _ => "other".to_owned(),
    };
    let began = Instant::now();
    let response = next.run(request).await;
    let route = route.as_ref().map_or("other", MatchedPath::as_str);
    api.requests.answered(&method, route, response.status().as_u16(), began.elapsed());
    response
}

/// Counts for Prometheus. A token bound to a group sees that group's tasks and workers only.
#[utoipa::path(get, path = "/metrics", tag = "hub",
    responses((status = 200, content((String = "application/openmetrics-text"), (String = "text/plain"))),
        (status = 403, body = api::Problem)))]
pub(super) async fn metrics(
    State(api): Shared,
    visitor: Visitor,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let mut all = Registry::default();
    let registry = all.sub_registry_with_prefix("laboro");
    let groups = match api.ask(Command::Query(Query::Groups)).await? {
        Reply::Groups(groups) => groups.into_iter().filter(|group| visitor.sees(&group.name)),
        reply => return Err(Refused::unexpected(&reply)),
    };
    let groups: Vec<GroupView> = groups.collect();
    register_owners(registry, &api, &groups).await?;
    register_groups(registry, groups.into_iter());
    register_workers(registry, &api, &visitor).await?;
    if visitor.bound_to().is_none() {
        register_doors(registry, &(api.services.doors)());
        register_brokers(registry, &brokers::tables(&api).await?);
        register_self(registry, &api);
        register_pools(registry, &api);
        register_attempts(registry, &api);
        register_traces(registry, &api);
        process::register(&mut all);
    }
    let mut text = String::new();
    encode(&mut text, &all).map_err(|error| internal(&error))?;
    let accepts = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
    let kind = if accepts.contains("text/plain") && !accepts.contains("openmetrics") {
        text = plain(&text);
        "text/plain; version=0.0.4; charset=utf-8"
    } else {
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    };
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

/// The older form, in which the description of a counter has the name of its series too.
fn plain(text: &str) -> String {
    let word = |line: &str, at: usize| line.split(' ').nth(at).unwrap_or_default().to_owned();
    let is_counter = |line: &&str| line.starts_with("# TYPE ") && line.ends_with(" counter");
    let counters: HashSet<String> =
        text.lines().filter(is_counter).map(|line| word(line, 2)).collect();
    let mut plain = String::with_capacity(text.len());
    for line in text.lines().filter(|line| *line != "# EOF" && !line.starts_with("# UNIT ")) {
        let name = word(line, 2);
        match line.starts_with("# ") && counters.contains(&name) {
            true => plain.push_str(&line.replacen(&name, &format!("{name}_total"), 1)),
            false => plain.push_str(line),
        }
        plain.push('\n');
    }
    plain
}

fn set(gauges: &Gauges, labels: Labels, value: u64) {
    gauges.get_or_create(&labels).set(i64::try_from(value).unwrap_or(i64::MAX));
}

fn register_groups(registry: &mut Registry, groups: impl Iterator<Item = GroupView>) {
    let (tasks, paused) = (Gauges::default(), Gauges::default());
    for group in groups {
        let name = group.name.to_string();
        for state in laboro_core::State::ALL {
            let word = state.word();
            let labels = vec![("group", name.clone()), ("state", word.to_owned())];
            set(&tasks, labels, group.counts.of(state).into());
        }
        set(&paused, vec![("group", name)], group.paused.into());
    }
    registry.register("tasks", "Tasks by group and state", tasks);
    registry.register("group_paused", "1 if the group is paused", paused);
}

/// How many owners get series of their own, those with the most slots in use first: every label costs the monitoring
/// system room. And how many owners of a group are looked at for that.
const OWNERS_MAX: usize = 100;
const OWNERS_LOOKED_AT_MAX: u32 = 1000;

async fn register_owners(
    registry: &mut Registry,
    api: &Api,
    groups: &[GroupView],
) -> Result<(), Refused> {
    let mut found: Vec<(&Name, OwnerView)> = Vec::new();
    for group in groups.iter().filter(|group| group.counts.total() > 0) {
        let (name, most) = (group.name.clone(), OWNERS_LOOKED_AT_MAX);
        let query = Query::Owners { group: name, after: None, most };
        match api.services.handle.ask(Command::Query(query)).await? {
            Reply::Owners(owners) => found.extend(owners.into_iter().map(|own| (&group.name, own))),
            // Forgotten a moment ago.
            Reply::Refused(_) => {}
            reply => return Err(Refused::unexpected(&reply)),
        }
    }
    // Those without a name are nobody's.
    found.retain(|(_, view)| view.owner.is_some());
    found.sort_by_key(|(_, view)| {
        (std::cmp::Reverse(view.slots_used), std::cmp::Reverse(view.jobs))
    });
    let (slots, jobs) = (Gauges::default(), Gauges::default());
    for (group, view) in found.into_iter().take(OWNERS_MAX) {
        let owner = view.owner.map(|owner| owner.to_string()).unwrap_or_default();
        let labels = vec![("group", group.to_string()), ("owner", owner)];
        set(&slots, labels.clone(), view.slots_used);
        set(&jobs, labels, view.jobs.into());
    }
    registry.register("owner_slots_used", "Slots in use by owner, the largest 100", slots);
    registry.register("owner_jobs", "Jobs by owner that are remembered, of the same owners", jobs);
    Ok(())
}

fn register_pools(registry: &mut Registry, api: &Api) {
    let Some(pools) = &api.services.pools else { return };
    let (allocations, failures, submitted) =
        (Gauges::default(), Counters::default(), Counters::default());
    for pool in pools.list() {
        let name = || pool.spec.name.clone();
        for (state, count) in [("queued", pool.queued), ("running", pool.running)] {
            let labels = vec![("pool", name()), ("state", state.to_owned())];
            set(&allocations, labels, count.into());
        }
        failures.get_or_create(&vec![("pool", name())]).inc_by(pool.failures_total);
        submitted.get_or_create(&vec![("pool", name())]).inc_by(pool.submitted_total);
    }
    registry.register("pool_allocations", "Allocations of a pool by state", allocations);
    registry.register("pool_failures", "Allocations of a pool that failed", failures);
    registry.register("pool_submitted", "Allocations that a pool submitted", submitted);
}

/// Looks at so many pages of a thousand at most.
const WORKER_PAGES_MAX: usize = 20;

async fn register_workers(
    registry: &mut Registry,
    api: &Api,
    visitor: &Visitor,
) -> Result<(), Refused> {
    let mut counted: BTreeMap<(String, bool), (u64, u64, u64)> = BTreeMap::new();
    let mut from = WorkerId(0);
    for _ in 0..WORKER_PAGES_MAX {
        let query = Query::Workers { group: visitor.bound_to().cloned(), from, most: 1000 };
        let workers = match api.services.handle.ask(Command::Query(query)).await? {
            Reply::Workers(workers) => workers,
            // The token's group is not there yet.
            Reply::Refused(_) => break,
            reply => return Err(Refused::unexpected(&reply)),
        };
        for worker in &workers {
            let (count, slots, used) =
                counted.entry((worker.group.to_string(), worker.connected)).or_default();
            *count += 1;
            *slots += u64::from(worker.slots);
            *used += u64::from(worker.slots_used);
        }
        match workers.last() {
            Some(last) if workers.len() == 1000 => from = WorkerId(last.worker.0 + 1),
            _ => break,
        }
    }
    let (workers, slots, used) = (Gauges::default(), Gauges::default(), Gauges::default());
    for ((group, connected), (count, all, busy)) in counted {
        let labels = vec![("group", group), ("connected", connected.to_string())];
        set(&workers, labels.clone(), count);
        set(&slots, labels.clone(), all);
        set(&used, labels, busy);
    }
    registry.register("workers", "Known workers", workers);
    registry.register("worker_slots", "Slots of workers", slots);
    registry.register("worker_slots_used", "Slots of workers in use", used);
    Ok(())
}

/// Name of the metric, what it is, and the count.
type DoorMetric = (&'static str, &'static str, fn(&DoorStatus) -> u64);

/// All of these only grow; the text adds `_total` to their names.
const DOOR_COUNTERS: [DoorMetric; 11] = [
    ("door_connections_opened", "Connections since the hub started", |door| door.connections_total),
    ("door_received_messages", "Messages received", |door| door.messages_in),
    ("door_sent_messages", "Messages sent", |door| door.messages_out),
    ("door_received_bytes", "Bytes received", |door| door.bytes_in),
    ("door_sent_bytes", "Bytes sent", |door| door.bytes_out),
    ("door_refused", "Connections refused before any data", |door| door.refused),
    ("door_dropped", "Messages that could not be answered", |door| door.dropped),
    ("door_malformed", "Connections closed after malformed input", |door| door.malformed),
    ("door_denied", "Connections without a valid token", |door| door.denied),
    ("door_silent", "Connections closed because they were silent", |door| door.silent),
    ("door_slow", "Connections closed because they did not read", |door| door.slow),
];

fn register_doors(registry: &mut Registry, doors: &[DoorStatus]) {
    let labels = |door: &DoorStatus| {
        vec![("dialect", door.dialect.clone()), ("address", door.address.clone())]
    };
    let connections = Gauges::default();
    doors.iter().for_each(|door| set(&connections, labels(door), door.connections));
    registry.register("door_connections", "Connections now", connections);
    for (name, help, value) in DOOR_COUNTERS {
        let counters = Counters::default();
        for door in doors {
            counters.get_or_create(&labels(door)).inc_by(value(door));
        }
        registry.register(name, help, counters);
    }
}

fn register_attempts(registry: &mut Registry, api: &Api) {
    let Some(history) = &api.services.history else { return };
    let totals = history.totals();
    let started = ConstCounter::new(totals.started);
    registry.register("attempts_started", "Attempts started since the hub started", started);
    let ended = Counters::default();
    let ends = [
        ("done", totals.done),
        ("failed", totals.failed),
        ("again", totals.again),
        ("lost", totals.lost),
    ];
    for (how, count) in ends {
        ended.get_or_create(&vec![("how", how.to_owned())]).inc_by(count);
    }
    registry.register("attempts_ended", "Attempts ended since the hub started", ended);
    let missed = ConstCounter::new(history.missed());
    registry.register("history_missed", "Events that are not in the history", missed);
    let measures = history.measures();
    let what = "How long attempts took, as their workers measured it";
    registry.register("attempt_seconds", what, measures.attempt.clone());
    let what = "From the submit of a task to its first start, with the wait for tasks before it";
    registry.register("queue_seconds", what, measures.queue.clone());
    let what = "Until a batch of events was written, with the wait for the disk";
    registry.register("journal_commit_seconds", what, measures.commit.clone());
    registry.register("journal_batch_events", "Events in a batch", measures.batch.clone());
}

fn register_traces(registry: &mut Registry, api: &Api) {
    let traces = api.services.traces.clone().unwrap_or_default();
    let mut register = |name, help, count| registry.register(name, help, ConstCounter::new(count));
    register("trace_spans_sent", "Spans that the receiver has taken", traces.sent());
    register("trace_spans_dropped", "Spans left out because too many waited", traces.dropped());
    register("trace_requests_failed", "Requests the receiver did not take", traces.failures());
}

/// Name, help, and the count itself.
type BrokerMetric = (&'static str, &'static str, fn(&Broker) -> u64);

const BROKER_GAUGES: [BrokerMetric; 3] = [
    ("broker_workers", "Workers that have registered", |broker| broker.table.workers.len() as u64),
    ("broker_waiting", "Requests that wait for a slot", |broker| broker.table.waiting),
    ("broker_unread_bytes", "Bytes sent and not read yet", |broker| broker.table.unread_bytes),
];

/// As those of doors, these only grow.
const BROKER_COUNTERS: [BrokerMetric; 3] = [
    ("broker_requests", "Requests received", |broker| broker.table.requests),
    ("broker_dispatched", "Requests given to workers", |broker| broker.table.dispatched),
    ("broker_passed", "Messages forwarded to the peer they name", |broker| broker.table.passed),
];

fn register_brokers(registry: &mut Registry, brokers: &[Broker]) {
    if brokers.is_empty() {
        return;
    }
    let labels = |broker: &Broker| vec![("address", broker.address.clone())];
    for (name, help, value) in BROKER_GAUGES {
        let gauges = Gauges::default();
        brokers.iter().for_each(|broker| set(&gauges, labels(broker), value(broker)));
        registry.register(name, help, gauges);
    }
    for (name, help, value) in BROKER_COUNTERS {
        let counters = Counters::default();
        for broker in brokers {
            counters.get_or_create(&labels(broker)).inc_by(value(broker));
        }
        registry.register(name, help, counters);
    }
    let dropped = Counters::default();
    for broker in brokers {
        // All reasons from the start, so that the first one that happens is seen as a change.
        for why in Dropped::ALL {
            let labels =
                vec![("address", broker.address.clone()), ("reason", why.name().to_owned())];
            let count = broker.table.dropped.get(why.name()).copied().unwrap_or(0);
            dropped.get_or_create(&labels).inc_by(count);
        }
    }
    registry.register("broker_dropped", "Messages dropped, by reason", dropped);
}

fn register_self(registry: &mut Registry, api: &Api) {
    let requests = Counters::default();
    let answered = api.requests.answered.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for ((method, route, status), count) in answered {
        let status = status.to_string();
        let labels = vec![("method", method), ("route", route), ("status", status)];
        requests.get_or_create(&labels).inc_by(count);
    }
    registry.register("http_requests", "Requests answered", requests);
    let what = "Until the answer of a request began";
    registry.register("http_request_seconds", what, api.requests.took.clone());
    let denied = ConstCounter::new(api.requests.denied.load(Ordering::Relaxed));
    registry.register("http_denied", "Requests without a valid token", denied);
    let serving = &api.services.serving;
    let gauge = |value: u64| ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
    registry.register("http_connections", "Connections now", gauge(serving.connections()));
    let refused = ConstCounter::new(serving.refused());
    registry.register("http_refused", "Connections refused because of a limit", refused);
    registry.register("event_viewers", "Viewers of events", gauge(api.feed.viewers() as u64));
    let (waiting, most) = api.services.handle.inbox();
    let what = "Turns of sessions that wait for the engine, each of one command or more";
    registry.register("inbox_turns", what, gauge(waiting as u64));
    registry.register("inbox_turns_max", "Turns of sessions that may wait", gauge(most as u64));
    if let Some(outputs) = &api.services.outputs {
        let lost = ConstCounter::new(outputs.bytes_lost());
        registry.register(
            "output_bytes_lost",
            "Output of tasks that was received and not kept",
            lost,
        );
        let attempts = ConstCounter::new(outputs.attempts_with_loss());
        let what = "Attempts that ended and lost output";
        registry.register("output_attempts_lost", what, attempts);
        let writable = gauge(u64::from(outputs.trouble().is_none()));
        registry.register("output_writable", "1: output of tasks can be written", writable);
    }
    if let Some(disk) = api.disk() {
        registry.register(
            "disk_free_bytes",
            "Free space on the hub's disk",
            gauge(disk.free_bytes),
        );
        registry.register("disk_size_bytes", "Size of the hub's disk", gauge(disk.total_bytes));
    }
    let started = gauge(api.started_ms / 1000);
    registry.register("start_time_seconds", "When the hub was started, Unix time", started);
    let build = Gauges::default();
    set(&build, vec![("version", api::VERSION.to_owned())], 1);
    registry.register("build_info", "The program", build);
}
