//! The broker as a door of a hub: the same programs, and what the hub's other doors tell of it.

use super::rig::{Program, Server};
use crate::rig::{Rig, until};
use laboro_api as api;
use laboro_api::access::client_config;
use laboro_api::client::{Client, Target};
use laboro_hub::config::Settings;
use laboro_hub::process::{RunningHub, start};
use std::sync::Arc;

struct Hub {
    rig: Rig,
    hub: RunningHub,
    address: String,
}

impl Hub {
    fn start() -> Hub {
        let rig = Rig::new();
        let mut settings = Settings::in_dir(&rig.at("hub"));
        settings.door.push("rrmq=127.0.0.1:0,identity=tcp://front:6714".parse().unwrap());
        let hub = start(&settings).unwrap();
        let address = hub.doors[1].address.to_string();
        Hub { rig, hub, address }
    }

    fn client(&self) -> Client {
        let (http, access) = (self.hub.http.unwrap(), &self.hub.access);
        let tls = Some(Arc::new(client_config(access).unwrap()));
        let token = Some(access.token.expose().to_owned());
        let target = Target::new(http.ip().to_string(), http.port());
        Client::new(Target { tls, token, ..target })
    }

    fn broker(&self) -> api::Broker {
        let told: api::Brokers = visit(async || self.client().get("brokers").await.unwrap());
        told.brokers.into_iter().next().unwrap()
    }

    fn metrics(&self) -> String {
        visit(async || {
            let mut body = self.client().download("metrics", None).await.unwrap();
            let mut text = Vec::new();
            while let Some(part) = body.next().await.unwrap() {
                text.extend_from_slice(&part);
            }
            String::from_utf8(text).unwrap()
        })
    }
}

fn visit<T>(visit: impl AsyncFnOnce() -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(visit())
}

#[test]
fn a_hub_serves_requests_at_its_door_and_tells_of_them() {
    let hub = Hub::start();
    let mut worker = Program::laboro(&["worker", "-d", "0", "-s", &hub.address]);
    worker.until("registered with");
    let ran = hub.rig.laboro(["mq", "client", "-s", &hub.address, "bulkping", "100"]).run();
    ran.expect(0);
    // An original routes to the name of the server, not to its address.
    let port = hub.address.rsplit_once(':').unwrap().1;
    let mut client =
        Program::python(&["client", "--port", port, "--kind", "router", "--name=tcp://front:6714"]);
    assert_eq!(client.line(), "pings 200, data 1032 bytes");

    let shown = hub.rig.laboro(["mq", "workers", "-s", &hub.address]).run();
    let shown = shown.expect(0).out();
    let rows: Vec<Vec<&str>> =
        shown.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["address", "free", "slots", "away", "messages", "per", "s"]);
    assert_eq!(rows[1][1..5], ["10", "10", "-", "301"], "{shown}");
    let told = hub.broker();
    assert_eq!((&told.address, told.table.requests), (&hub.address, 301));
    assert_eq!((told.table.workers[0].free, told.table.workers[0].messages), (10, 301));

    worker.kill();
    until("it is away", || hub.broker().table.workers[0].away);
}

#[test]
fn what_a_door_drops_is_counted_by_reason_in_the_metrics() {
    let hub = Hub::start();
    let of = |reason: &str| {
        let labels = format!("{{address=\"{}\",reason=\"{reason}\"}}", hub.address);
        let line = format!("laboro_broker_dropped_total{labels} ");
        let text = hub.metrics();
        let found = text.lines().find_map(|at| at.strip_prefix(&line).map(str::to_owned));
        found.unwrap_or_else(|| panic!("{line} is not in\n{text}")).parse::<u64>().unwrap()
    };
    assert_eq!((of("malformed"), of("no_route")), (0, 0));
    // Whoever is named here is not there.
    let port = hub.address.rsplit_once(':').unwrap().1;
    let mut peer = Program::python(&["lost", "--port", port, "--count", "7"]);
    assert_eq!(peer.line(), "sent 7");
    until("they are counted", || of("no_route") == 7);
    let metrics = hub.metrics();
    assert!(metrics.contains("laboro_broker_workers{"), "{metrics}");
    for grows in ["requests", "dispatched", "passed", "dropped"] {
        assert!(metrics.contains(&format!("# TYPE laboro_broker_{grows} counter")), "{metrics}");
        assert!(metrics.contains(&format!("laboro_broker_{grows}_total{{")), "{metrics}");
    }
}

#[test]
fn a_thousand_streams_at_once_are_a_thousand_answers() {
    let server = Server::start(&[]);
    let _workers = [server.worker(&[]), server.worker(&["--slots", "3"])];
    let told = server.ask(&["bulkdata", "1000"]);
    assert_eq!((&told["successes"], &told["total"]), (&1000.into(), &1000.into()));
}
