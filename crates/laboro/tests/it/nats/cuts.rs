//! A hub that is cut off from NATS, and a server of NATS whose disk is full. Both need root, and are left to machines
//! where that is to be had.

use super::cluster::{Cluster, Ground};
use super::pair::Pair;
use super::words;
use crate::rig::{LABORO, Rig, not_tried, until};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A network of its own, joined to this one by a link that can be cut.
struct Net {
    name: String,
    subnet: String,
}

impl Net {
    /// `None` where nobody may make one.
    fn new() -> Option<Net> {
        let pid = std::process::id();
        let name = format!("lab{}", pid % 100_000);
        let subnet = format!("10.214.{}", pid % 250);
        let net = Net { name, subnet };
        let made = net.ip(&format!("netns add {}", net.name))
            && net.ip(&format!("link add {0}a type veth peer name {0}b netns {0}", net.name))
            && net.ip(&format!("addr add {}/30 dev {}a", net.here(), net.name))
            && net.ip(&format!("link set {}a up", net.name))
            && net.ip(&format!("-n {0} addr add {1}/30 dev {0}b", net.name, net.there()))
            && net.ip(&format!("-n {} link set lo up", net.name))
            && net.cut(false);
        if !made {
            not_tried("no network can be made");
        }
        made.then_some(net)
    }

    fn here(&self) -> String {
        format!("{}.1", self.subnet)
    }

    fn there(&self) -> String {
        format!("{}.2", self.subnet)
    }

    fn cut(&self, is_cut: bool) -> bool {
        let state = if is_cut { "down" } else { "up" };
        self.ip(&format!("-n {0} link set {0}b {state}", self.name))
    }

    fn ip(&self, words: &str) -> bool {
        let ran = Command::new("ip").args(words.split(' ')).output();
        ran.is_ok_and(|done| done.status.success())
    }

    /// `laboro` on the far side.
    fn laboro(&self, words: &[String]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, LABORO]).args(words);
        command
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        self.ip(&format!("netns del {}", self.name));
    }
}

#[test]
fn a_hub_that_is_cut_off_is_replaced_and_acknowledges_nothing() {
    let Some(net) = Net::new() else { return };
    let here = net.here();
    let cluster = Cluster::build(1, &Ground { host: &here, ..Ground::default() });
    let rig = Rig::new();
    rig.write("hub.toml", "[nats]\nlease_ms = 1500\npatience_ms = 40000\n");
    let hub = |dir: &str, address: &str| {
        let mut words = words(&cluster, dir, "1");
        words[4] = address.to_owned();
        words[6] = address.to_owned();
        words.extend(["--standby", "--config", "hub.toml"].map(str::to_owned));
        words
    };
    let mut far = hub("far", "0.0.0.0:0");
    far.extend(["--advertise".to_owned(), net.there()]);
    let far = rig.call(net.laboro(&far)).start();
    until("the one far away leads", || far.out().contains("native on"));
    let near = rig.laboro(hub("near", &format!("{here}:0"))).start();
    let submit = |dir: &str, key: &str| {
        let words =
            ["submit", "--quiet", "--dir", dir, "--key", key, "--", "true", "{}", ":::", "1"];
        words.map(str::to_owned)
    };
    rig.laboro(submit("far", "before")).run().expect(0);
    // The one that follows has the certificate and where the other one is.
    until("the other one follows", || rig.at("near/access.toml").exists());

    assert!(net.cut(true));
    let port = rig.read("far/access.toml");
    let port = port.lines().find(|line| line.starts_with("http")).unwrap();
    let port = port.trim_end_matches('"').rsplit(':').next().unwrap().to_owned();
    let alone = rig.read("far/access.toml").replace(&net.there(), "127.0.0.1");
    assert!(alone.contains(&format!("127.0.0.1:{port}")), "{alone}");
    rig.write("alone/access.toml", alone);
    let late = rig.call(net.laboro(&submit("alone", "late"))).start();
    until("the near one leads", || near.out().contains("native on"));
    rig.laboro(submit("near", "after")).run().expect(0);

    assert!(net.cut(false));
    far.wait().expect(3).says("another hub has taken over");
    assert_ne!(late.wait().status.code(), Some(0));
    let jobs = rig.laboro(["jobs", "--json", "--dir", "near"]).run().expect(0).events();
    assert_eq!(jobs.len(), 2, "what the cut off one was asked for is not there");
}

/// A small disk, which goes away with the test.
struct Disk(PathBuf);

impl Disk {
    fn mount(path: &Path, options: &str) -> bool {
        std::fs::create_dir_all(path).unwrap();
        let words = ["-t", "tmpfs", "-o", options, "tmpfs"];
        Command::new("mount").args(words).arg(path).output().is_ok_and(|done| done.status.success())
    }

    fn is_full(&self) -> bool {
        let room = rustix::fs::statvfs(&self.0).unwrap();
        room.f_bavail * 20 < room.f_blocks
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn slow_a_nats_server_whose_disk_is_full_stops_nobody() {
    let mounted = std::cell::RefCell::new(None);
    let prepare = |dir: &Path| {
        let store = dir.join("n0");
        *mounted.borrow_mut() = Disk::mount(&store, "size=24m").then_some(Disk(store));
    };
    // Without the limit the server would stop short of what it takes for the end of the disk.
    let jetstream = "sync_interval: always, max_file_store: 1G";
    let ground = Ground { jetstream, prepare: &prepare, ..Ground::default() };
    let cluster = Cluster::build(3, &ground);
    let Some(disk) = mounted.take() else {
        not_tried("nothing can be mounted");
        return;
    };
    let mut pair = Pair::on(cluster);
    pair.rig.write("lines", format!("true {}\n", "x".repeat(1000)).repeat(600));
    let mut promised = 0;
    while !disk.is_full() {
        let key = format!("job {promised}");
        let submit = ["submit", "--quiet", "--key", &key, "lines"];
        until("it is taken", || pair.call(&submit).status.success());
        promised += 1;
        assert!(promised < 200, "the disk is never full");
    }
    for n in 0..10 {
        let key = format!("late {n}");
        let submit = ["submit", "--quiet", "--key", &key, "lines"];
        until("it is taken by the other two", || pair.call(&submit).status.success());
    }
    let count = |pair: &Pair| pair.call(&["jobs", "--json", "--limit", "0"]).events().len();
    assert_eq!(count(&pair), promised + 10);
    // And a hub that reads it all anew finds the same.
    pair.signal(0, rustix::process::Signal::KILL);
    drop(pair.hubs[0].take());
    until("the other one leads", || pair.leads(1));
    assert_eq!(count(&pair), promised + 10);
    let address = pair.cluster.address();
    pair.rig.laboro(["journal", "check", &address, "--name", "it"]).run().expect(0);
}
