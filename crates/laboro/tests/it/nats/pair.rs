//! Two hubs of one name, one of which leads.

use super::cluster::{Cluster, free_ports};
use super::words;
use crate::rig::{Call, Live, Ran, Rig, python, until};
use rustix::process::Signal;
use std::path::PathBuf;
use std::process::Command;

/// Two hubs of one name, and an access file that knows both.
pub struct Pair {
    pub rig: Rig,
    pub cluster: Cluster,
    pub hubs: [Option<Live>; 2],
}

const DIRS: [&str; 2] = ["a", "b"];

impl Pair {
    pub fn new(nodes: usize) -> Pair {
        Pair::on(Cluster::start(nodes))
    }

    pub fn on(cluster: Cluster) -> Pair {
        Pair::with(cluster, "")
    }

    pub fn with(cluster: Cluster, settings: &str) -> Pair {
        let rig = Rig::new();
        rig.write("hub.toml", format!("[nats]\nlease_ms = 1500\n{settings}"));
        let mut pair = Pair { rig, cluster, hubs: [None, None] };
        let ports = free_ports(6);
        for (n, dir) in DIRS.iter().enumerate() {
            let each = [0, 2, 4].map(|kind| format!("127.0.0.1:{}", ports[kind + n]));
            pair.rig.write(&format!("{dir}.words"), each.join("\n"));
        }
        pair.start(0);
        until("the first leads", || pair.out(0).contains("native on"));
        pair.start(1);
        let access = pair.rig.read("a/access.toml");
        let [a, b] = DIRS.map(|dir| pair.rig.lines(&format!("{dir}.words")));
        let both = access.replace(&a[0], &format!("{},{}", a[0], b[0]));
        pair.rig.write("access.toml", both.replace(&a[1], &format!("{},{}", a[1], b[1])));
        pair.rig.write("b.toml", access.replace(&a[0], &b[0]).replace(&a[1], &b[1]));
        until("the other follows", || pair.status().len() == 2);
        pair
    }

    pub fn start(&mut self, n: usize) {
        let listen = self.rig.lines(&format!("{}.words", DIRS[n]));
        let replicas = if self.cluster.monitors().len() > 1 { "3" } else { "1" };
        let mut words = words(&self.cluster, DIRS[n], replicas);
        words[4].clone_from(&listen[0]);
        words[6].clone_from(&listen[1]);
        words.push(format!("--door=dwork={},group=dwork,stay", listen[2]));
        words.extend(["--standby", "--config", "hub.toml"].map(str::to_owned));
        self.hubs[n] = Some(self.rig.laboro(words).start());
    }

    pub fn out(&self, n: usize) -> String {
        self.hubs[n].as_ref().map(Live::out).unwrap_or_default()
    }

    pub fn signal(&self, n: usize, signal: Signal) {
        self.hubs[n].as_ref().unwrap().signal(signal);
    }

    pub fn leads(&self, n: usize) -> bool {
        self.out(n).contains("native on")
    }

    pub fn call(&self, words: &[&str]) -> Ran {
        self.call_with("access.toml", words)
    }

    /// With a file that knows one of them, or both.
    pub fn call_with(&self, access: &str, words: &[&str]) -> Ran {
        let access = self.rig.at(access);
        let call = self.rig.laboro(words.iter().copied());
        call.env("LABORO_ACCESS", access.to_str().unwrap()).run()
    }

    pub fn worker(&self) -> Live {
        self.worker_with("access.toml")
    }

    pub fn worker_with(&self, access: &str) -> Live {
        let words = ["worker", "--access", access, "-j", "4", "--scratch", "."];
        self.rig.laboro(words).start()
    }

    /// One of the programs beside these tests, with what it needs to know.
    pub fn python(&self, program: &str, words: &[&str]) -> Call {
        let here = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/nats");
        let mut command = Command::new(python());
        command.arg(here.join(program)).args(words);
        self.rig.call(command)
    }

    /// Where each hub listens for dwork when it leads.
    pub fn dwork(&self) -> String {
        DIRS.map(|dir| self.rig.lines(&format!("{dir}.words"))[2].clone()).join(",")
    }

    /// Asks the one that leads to go, and waits until the other one leads.
    pub fn hand_over(&self) -> Ran {
        let address = self.cluster.address();
        self.rig.laboro(["hub", "hand-over", "--journal", &address, "--name", "it"]).run()
    }

    pub fn status(&self) -> Vec<serde_json::Value> {
        let address = self.cluster.address();
        let words = ["hub", "status", "--journal", &address, "--name", "it", "--json"];
        self.rig.laboro(words).run().events()
    }
}

/// Whoever looks for the cause wants to know what they said.
impl Drop for Pair {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for hub in self.hubs.iter().flatten() {
                eprintln!("hub {}:\n{}\n{}", hub.pid(), hub.out(), hub.err());
            }
            eprintln!("{:?}", self.status());
        }
    }
}
