//! Hubs whose journal is in NATS: real servers, real hubs and workers, killed, stopped, cut off and handed over.

#[path = "../../../laboro-jetstream/src/tests/cluster.rs"]
mod cluster;
mod pair;

mod cuts;
mod follows;
mod handover;
mod moves;
mod rounds;
mod takeovers;

use cluster::Cluster;

/// What every hub here is told.
fn words(cluster: &Cluster, dir: &str, replicas: &str) -> Vec<String> {
    let free = "127.0.0.1:0";
    let mut words: Vec<String> = ["hub", "--dir", dir, "--http", free, "--native", free]
        .iter()
        .map(ToString::to_string)
        .collect();
    words.extend(["--journal".into(), cluster.address(), "--name".into(), "it".into()]);
    words.extend(["--nats-replicas".into(), replicas.into()]);
    words.extend(cluster.monitors().into_iter().flat_map(|url| ["--nats-monitor".into(), url]));
    words
}
