//! Pools at a hub of the real program, with a stand-in of PBS. A real Slurm is in `bench/slurm pools`.

use crate::rig::{Live, Ran, Rig, until};
use rustix::process::Signal;
use serde_json::Value;
use std::os::unix::fs::symlink;

struct Site {
    rig: Rig,
    hub: Option<Live>,
}

impl Site {
    fn new() -> Site {
        let rig = Rig::new();
        std::fs::create_dir(rig.at("pbs")).unwrap();
        std::fs::create_dir(rig.at("bin")).unwrap();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/pools/pbs");
        for name in ["qsub", "qselect", "qstat", "qdel"] {
            symlink(script, rig.at("bin").join(name)).unwrap();
        }
        rig.write(
            "hub.toml",
            "http = \"127.0.0.1:0\"\nnative = \"127.0.0.1:0\"\n[pools]\nlist_ms = 200\n",
        );
        let mut site = Site { rig, hub: None };
        site.start();
        site
    }

    fn start(&mut self) {
        let path = format!("{}:{}", self.rig.at("bin").display(), std::env::var("PATH").unwrap());
        let hub = self.rig.laboro(["hub", "--dir", "hub", "--config", "hub.toml"]);
        let hub =
            hub.env("PATH", &path).env("STAND_IN", self.rig.at("pbs").to_str().unwrap()).start();
        until("the hub listens", || hub.out().contains("native"));
        self.hub = Some(hub);
    }

    fn kill(&mut self) {
        let hub = self.hub.take().unwrap();
        hub.signal(Signal::KILL);
        hub.wait();
    }

    fn laboro(&self, line: &str) -> Ran {
        let words = line.split_whitespace();
        self.rig.laboro(words).env("LABORO_DIR", self.rig.at("hub").to_str().unwrap()).run()
    }

    fn says(&self, line: &str) -> String {
        let ran = self.laboro(line);
        ran.expect(0);
        ran.out()
    }

    fn pool(&self) -> Value {
        serde_json::from_str(&self.says("pool show night --json")).unwrap()
    }

    fn submitted(&self) -> usize {
        self.rig.read("pbs/calls").lines().filter(|line| line.starts_with("qsub")).count()
    }
}

const ADD: &str =
    "pool add night --kind pbs -j 2 --time-limit 1h --idle-timeout 1s --max 3 -- qsub -q night";

#[test]
fn workers_come_when_there_is_work_and_leave_after_it() {
    let site = Site::new();
    let made = site.says(ADD);
    assert!(made.contains("pool night was made") && made.contains("works: sh -c"), "{made}");
    site.laboro(ADD).expect(4).says("already");
    // Nothing that can never run there starts anything.
    site.says("submit --slots 3 -- true");
    site.says("submit --timeout 2h -- true");
    let job = site.says("submit --array 1-6 -- sh -c true");
    assert!(job.contains("job 3"), "{job}");
    site.says("wait 3");
    let told = site.says("explain 1/1");
    assert!(
        told.contains("pool night does not help: it needs 3 slots, and its workers have 2"),
        "{told}"
    );
    assert!(
        site.says("explain 2/1").contains("it may take 7200 s"),
        "{}",
        site.says("explain 2/1")
    );
    until("they have left", || site.pool()["allocations"] == Value::Array(Vec::new()));
    assert!(site.submitted() <= 3, "{}", site.rig.read("pbs/calls"));
    let pool = site.pool();
    assert_eq!((&pool["failures_total"], &pool["state"]), (&0.into(), &"active".into()), "{pool}");
    assert!(pool["reason"].as_str().unwrap().starts_with("no ready task fits"), "{pool}");
    // The token is in a file of its own and nowhere else.
    let token = site.rig.read("hub/pools/night/access.toml");
    let token = token
        .lines()
        .find_map(|line| line.strip_prefix("token = "))
        .unwrap()
        .trim_matches('"')
        .to_owned();
    let shown = site.rig.read("pbs/calls")
        + &site.rig.read("pbs/1.sh")
        + &site.says("pool show night --json");
    assert!(!shown.contains(&token));
    assert!(site.says("pool").contains("night"));
    site.says("pool remove night");
    until("it is gone", || site.says("pool --json").is_empty());
    site.laboro("pool show night").expect(4).says("no pool night");
    assert!(!site.rig.read("hub/tokens.toml").contains("pool-night"));
}

#[test]
fn a_killed_hub_knows_its_allocations_and_submits_no_other() {
    let mut site = Site::new();
    site.rig.write("pbs/hold", "");
    site.says(ADD);
    site.says("submit -- true");
    until("one is queued", || {
        site.pool()["queued"] == 1 && site.pool()["allocations"][0]["id"] != Value::Null
    });
    site.kill();
    site.start();
    let pool = site.pool();
    assert_eq!(pool["allocations"][0]["id"], "1.stand-in", "{pool}");
    until("it is listed", || {
        site.pool()["reason"].as_str().unwrap().contains("(as it was); backlog full")
    });
    std::fs::remove_file(site.rig.at("pbs/hold")).unwrap();
    site.says("wait 1");
    assert_eq!(site.submitted(), 1);
}

#[test]
fn a_batch_system_that_is_down_is_waited_for_with_its_own_words() {
    let site = Site::new();
    site.rig.write("pbs/hold", "");
    site.says(ADD);
    site.says("submit -- true");
    until("one is queued", || {
        site.pool()["queued"] == 1 && site.pool()["allocations"][0]["id"] != Value::Null
    });
    site.rig.write("pbs/down", "");
    until("it is noticed", || site.says("pool").contains("cannot connect to server stand-in"));
    assert_eq!(site.pool()["queued"], 1, "nothing is lost");
    let tested = site.laboro("pool test night");
    tested.expect(4);
    assert!(tested.out().contains("FAILS"), "{}", tested.out());
    std::fs::remove_file(site.rig.at("pbs/down")).unwrap();
    std::fs::remove_file(site.rig.at("pbs/hold")).unwrap();
    site.says("wait 1");
    until("it is said", || site.pool()["events"].to_string().contains("lists allocations again"));
}

#[test]
fn a_program_that_is_not_there_is_told_of_and_tried_again() {
    let site = Site::new();
    std::fs::remove_file(site.rig.at("bin/qsub")).unwrap();
    site.says(ADD);
    site.says("submit -- true");
    until("it failed", || site.pool()["failures"] == 1);
    let told = site.says("explain 1/1");
    assert!(told.contains("pool night: waits") && told.contains("qsub"), "{told}");
    site.says("pool pause night");
    assert!(site.says("pool").contains("paused"));
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/pools/pbs");
    symlink(script, site.rig.at("bin/qsub")).unwrap();
    // A person need not wait.
    site.says("pool resume night");
    site.says("wait 1");
}

#[test]
fn a_command_that_hangs_is_told_before_the_client_gives_up() {
    let site = Site::new();
    let ran = site
        .laboro("pool add stuck --kind command -j 1 --list sleep${IFS}1000 --cancel true -- true");
    let told = ran.expect(0).out();
    assert!(told.contains("did not end within 15 s"), "{told}");
}

#[test]
fn of_many_who_make_the_same_pool_at_once_one_does() {
    let site = Site::new();
    let made = std::thread::scope(|scope| {
        let ask = || scope.spawn(|| site.laboro(ADD));
        let asked: Vec<_> = std::iter::repeat_with(ask).take(8).collect();
        let answers = asked.into_iter().map(|one| one.join().unwrap());
        answers.filter(|ran| ran.status.success()).count()
    });
    assert_eq!(made, 1);
    let listed = site.says("pool list --json");
    assert_eq!(listed.lines().count(), 1, "{listed}");
}

#[test]
fn a_pool_of_the_hub_file_comes_and_goes_with_its_lines() {
    let mut site = Site::new();
    let plain = site.rig.read("hub.toml");
    let with = |slots: u32| {
        format!(
            "{plain}[[pool]]\nname = \"night\"\nkind = \"pbs\"\nslots = {slots}\nidle_ms = 1000\n"
        )
    };
    site.kill();
    site.rig.write("hub.toml", with(2));
    site.start();
    site.says("submit --wait -- true");
    assert_eq!(site.pool()["spec"]["slots"], 2);
    site.kill();
    site.rig.write("hub.toml", with(3));
    site.start();
    assert_eq!(site.pool()["spec"]["slots"], 3);
    assert!(site.pool()["events"].to_string().contains("changed in hub.toml"));
    site.kill();
    site.rig.write("hub.toml", &plain);
    site.start();
    until("it is gone", || !site.says("pool").contains("night"));
}
