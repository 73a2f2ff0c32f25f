//! A journal goes to NATS and back, and only to servers that keep it.

use super::cluster::Cluster;
use super::words;
use crate::rig::{Live, Ran, Rig, until};
use rustix::process::Signal;

fn hub(rig: &Rig, cluster: &Cluster) -> Live {
    let hub = rig.laboro(words(cluster, "hub", "1")).start();
    until("the hub listens", || hub.out().contains("native on"));
    hub
}

fn at_hub(rig: &Rig, words: &[&str]) -> Ran {
    rig.laboro(words.iter().copied()).env("LABORO_DIR", rig.at("hub").to_str().unwrap()).run()
}

#[test]
fn a_journal_moves_to_nats_and_back_and_is_the_same() {
    let (rig, cluster) = (Rig::new(), Cluster::start(1));
    let free = "127.0.0.1:0";
    let hub_here = rig.laboro(["hub", "--dir", "hub", "--http", free, "--native", free]).start();
    until("the hub listens", || hub_here.out().contains("native on"));
    at_hub(&rig, &["submit", "--array", "1-1000", "--", "true", "{}"]).expect(0);
    hub_here.signal(Signal::TERM);
    hub_here.wait().expect(0);

    let address = cluster.address();
    let nats = ["--name", "it", "--nats-replicas", "1", "--nats-accept-unsynced"];
    let copy = |from: &str, to: &str| {
        rig.laboro(["journal", "copy", from, to].into_iter().chain(nats)).run()
    };
    copy("hub", &address).expect(0);
    copy("hub", &address).expect(3).says("NATS has a journal named it already");
    let check = rig.laboro(["journal", "check", &address, "--name", "it"]).run();
    check.expect(0);
    assert!(check.out().contains("1000 ready") && check.out().contains("nothing is wrong"));

    let hub_there = hub(&rig, &cluster);
    at_hub(&rig, &["submit", "--", "echo", "{}", ":::", "a", "b"]).expect(0);
    assert!(at_hub(&rig, &["status"]).out().contains("1002"));
    hub_there.signal(Signal::TERM);
    hub_there.wait().expect(0);

    std::fs::remove_dir_all(rig.at("hub/journal")).unwrap();
    copy(&address, "hub").expect(0);
    let check = rig.laboro(["journal", "check", "hub"]).run();
    assert!(check.out().contains("1002 ready"), "{}", check.out());
}

#[test]
fn a_hub_on_servers_that_may_lose_things_says_what_to_do() {
    let (rig, cluster) = (Rig::new(), Cluster::start_with(1, "sync_interval: 2m", ""));
    let told = rig.laboro(words(&cluster, "hub", "1")).run();
    told.expect(3).says("set `sync_interval: always`");
}
