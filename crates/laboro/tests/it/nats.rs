//! Hubs whose journal is in NATS: real servers, real hubs and workers, killed and stopped.

#[path = "../../../laboro-jetstream/src/tests/cluster.rs"]
mod cluster;

use crate::rig::{Live, Ran, Rig, until};
use cluster::Cluster;
use rustix::process::Signal;

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

/// Two hubs of one name, and an access file that knows both.
struct Pair {
    rig: Rig,
    cluster: Cluster,
    hubs: [Option<Live>; 2],
}

const DIRS: [&str; 2] = ["a", "b"];

impl Pair {
    fn new(nodes: usize) -> Pair {
        let (rig, cluster) = (Rig::new(), Cluster::start(nodes));
        rig.write("hub.toml", "[nats]\nlease_ms = 1500\n");
        let mut pair = Pair { rig, cluster, hubs: [None, None] };
        let ports = cluster::free_ports(4);
        for (n, dir) in DIRS.iter().enumerate() {
            let [http, native] = [0, 2].map(|kind| format!("127.0.0.1:{}", ports[kind + n]));
            pair.rig.write(&format!("{dir}.words"), format!("{http}\n{native}"));
        }
        pair.start(0);
        until("the first leads", || pair.out(0).contains("native on"));
        pair.start(1);
        let access = pair.rig.read("a/access.toml");
        let [a, b] = DIRS.map(|dir| pair.rig.lines(&format!("{dir}.words")));
        let access = access.replace(&a[0], &format!("{},{}", a[0], b[0]));
        pair.rig.write("access.toml", access.replace(&a[1], &format!("{},{}", a[1], b[1])));
        until("the other follows", || pair.status().len() == 2);
        pair
    }

    fn start(&mut self, n: usize) {
        let listen = self.rig.lines(&format!("{}.words", DIRS[n]));
        let replicas = if self.cluster.monitors().len() > 1 { "3" } else { "1" };
        let mut words = words(&self.cluster, DIRS[n], replicas);
        words[4].clone_from(&listen[0]);
        words[6].clone_from(&listen[1]);
        words.extend(["--standby", "--config", "hub.toml"].map(str::to_owned));
        self.hubs[n] = Some(self.rig.laboro(words).start());
    }

    fn out(&self, n: usize) -> String {
        self.hubs[n].as_ref().map(Live::out).unwrap_or_default()
    }

    fn signal(&self, n: usize, signal: Signal) {
        self.hubs[n].as_ref().unwrap().signal(signal);
    }

    fn leads(&self, n: usize) -> bool {
        self.out(n).contains("native on")
    }

    fn call(&self, words: &[&str]) -> Ran {
        let access = self.rig.at("access.toml");
        let call = self.rig.laboro(words.iter().copied());
        call.env("LABORO_ACCESS", access.to_str().unwrap()).run()
    }

    fn worker(&self) -> Live {
        let words = ["worker", "--access", "access.toml", "--slots", "4", "--scratch", "."];
        self.rig.laboro(words).start()
    }

    fn status(&self) -> Vec<serde_json::Value> {
        let address = self.cluster.address();
        let words = ["hub", "status", "--journal", &address, "--name", "it", "--json"];
        self.rig.laboro(words).run().events()
    }
}

#[test]
fn a_hub_that_is_killed_is_replaced_and_the_work_goes_on() {
    let mut pair = Pair::new(1);
    let _worker = pair.worker();
    let line = "sleep 0.02; echo $1 >> ran";
    let submit = ["submit", "--quiet", "--array", "1-300", "--", "sh", "-c", line, "x", "{}"];
    pair.call(&submit).expect(0);
    until("some have run", || pair.rig.lines("ran").len() > 30);
    pair.signal(0, Signal::KILL);
    drop(pair.hubs[0].take());
    pair.call(&["wait", "last", "--timeout", "40s", "--quiet"]).expect(0);
    assert!(pair.leads(1));
    let mut ran = pair.rig.sorted_lines("ran");
    let all = ran.len();
    ran.dedup();
    assert_eq!(ran.len(), 300);
    // Only what ran when the hub died may run again.
    assert!(all <= 300 + 8, "{all} runs");
    let status = pair.status();
    assert!(status[0]["leads"] == true && status[0]["life"] == 2, "{status:?}");

    // The dead one comes back, follows, and is handed the lead.
    pair.start(0);
    until("it follows", || pair.status().iter().any(|hub| hub["leads"] == false));
    let address = pair.cluster.address();
    let over = ["hub", "hand-over", "--journal", &address, "--name", "it"];
    let told = pair.rig.laboro(over).run();
    assert!(told.expect(0).out().contains("leads now"));
    until("the first leads again", || pair.leads(0));
    pair.hubs[1].take().unwrap().wait().expect(0);
    pair.call(&["submit", "--wait", "--", "true", "{}", ":::", "1"]).expect(0);
}

#[test]
fn a_hub_that_was_stopped_for_too_long_acknowledges_nothing_when_it_goes_on() {
    let mut pair = Pair::new(1);
    pair.call(&["submit", "--quiet", "--", "true", "{}", ":::", "1"]).expect(0);
    pair.signal(0, Signal::STOP);
    until("the other leads", || pair.leads(1));
    // Asked while it is stopped, it would answer when it goes on.
    let old = pair.rig.laboro(["submit", "--quiet", "--", "true", "{}", ":::", "1"]);
    let old = old.env("LABORO_DIR", pair.rig.at("a").to_str().unwrap()).start();
    pair.call(&["submit", "--quiet", "--", "true", "{}", ":::", "1"]).expect(0);
    pair.signal(0, Signal::CONT);
    let ended = pair.hubs[0].take().unwrap().wait();
    ended.expect(3).says("another hub has taken over");
    assert_ne!(old.wait().status.code(), Some(0));
    let jobs = pair.call(&["jobs", "--json"]).events().len();
    assert_eq!(jobs, 2, "what the stopped one was asked for is not there");
}

/// So many rounds; `LABORO_ROUNDS` asks for others.
const ROUNDS: u64 = 2;

#[test]
fn slow_nothing_acknowledged_is_lost_whatever_is_killed() {
    let mut pair = Pair::new(3);
    let worker = pair.worker();
    let rounds = std::env::var("LABORO_ROUNDS").ok().and_then(|text| text.parse().ok());
    let seed = std::env::var("LABORO_SEED").ok().and_then(|text| text.parse().ok());
    let mut dice: u64 = seed.unwrap_or(7);
    for round in 0..rounds.unwrap_or(ROUNDS) {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let line = format!("sleep 0.1; echo $1 >> ran.{round}");
        let key = format!("round {round}");
        let mut submit = vec!["submit", "--quiet", "--key", &key, "--array", "1-60", "--"];
        submit.extend(["sh", "-c", &line, "x", "{}"]);
        // The same words with the same key until they are acknowledged.
        until("the job is taken", || pair.call(&submit).status.success());
        let ran = format!("ran.{round}");
        until("some have run", || pair.rig.lines(&ran).len() > 8);
        let job = (round + 1).to_string();
        let done = pair.done(&job);
        pair.disturb((dice >> 33) as usize);
        let waited = pair.call(&["wait", &job, "--timeout", "50s", "--quiet"]);
        assert!(
            waited.status.success(),
            "round {round}: {}\nworker: {}",
            waited.err(),
            worker.err()
        );
        let runs = pair.rig.sorted_lines(&ran);
        let mut each = runs.clone();
        each.dedup();
        assert_eq!(each.len(), 60, "round {round}");
        for task in done {
            let count = runs.iter().filter(|run| **run == task).count();
            assert_eq!(count, 1, "round {round}: task {task} was done and ran again");
        }
    }
    let jobs = pair.call(&["jobs", "--json", "--limit", "0"]).events();
    assert_eq!(jobs.len() as u64, rounds.unwrap_or(ROUNDS), "a submit counted twice or not at all");
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

impl Pair {
    /// The numbers of tasks whose end was acknowledged, as the hub says.
    fn done(&self, job: &str) -> Vec<String> {
        let ran = self.call(&["tasks", &format!("{job}/done"), "--json"]);
        ran.events().iter().map(|task| task["task"].to_string()).collect()
    }

    fn disturb(&mut self, dice: usize) {
        let leads = if self.leads(0) { 0 } else { 1 };
        eprintln!("{dice}: {}, hub {leads} leads", dice % 4);
        match dice % 4 {
            0 => {
                let leader = self.cluster.leader("LABORO_it_JOURNAL").unwrap_or(0);
                self.cluster.kill(leader);
                self.cluster.revive(leader);
            }
            1 => {
                self.signal(leads, Signal::KILL);
                self.replace(leads);
            }
            2 => {
                self.signal(leads, Signal::STOP);
                until("the other leads", || self.leads(1 - leads));
                self.signal(leads, Signal::CONT);
                let ended = self.hubs[leads].take().unwrap().wait();
                ended.expect(3).says("another hub has taken over");
                self.replace(leads);
            }
            _ => {
                (0..3).for_each(|node| self.cluster.kill(node));
                (0..3).for_each(|node| self.cluster.revive(node));
            }
        }
        self.cluster.settle();
    }

    /// Once another one leads, this one starts again and follows.
    fn replace(&mut self, n: usize) {
        drop(self.hubs[n].take());
        until("the other leads", || self.leads(1 - n));
        self.start(n);
    }
}
