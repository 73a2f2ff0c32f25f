//! A hub with a runexp door: what people submit there is run by runners.

use crate::rig::{Live, Ran, Rig, until};
use rustix::process::Signal;
use std::ffi::OsStr;

struct Hub<'r> {
    rig: &'r Rig,
    live: Live,
    port: String,
}

impl<'r> Hub<'r> {
    fn start(rig: &'r Rig, options: &str, config: &str) -> Hub<'r> {
        rig.write("hub.toml", config);
        Hub::at(rig, &format!("0{options}"))
    }

    fn at(rig: &'r Rig, port: &str) -> Hub<'r> {
        let door = format!("--door=runexp=127.0.0.1:{port}");
        let words = ["hub", "--dir=hub", "--http=127.0.0.1:0", "--native=off", "--durability=os"];
        let live = rig.laboro(words.iter().copied().chain(["--config=hub.toml", &door])).start();
        let found = || {
            let out = live.out();
            let line = out.lines().find_map(|line| line.strip_prefix("runexp on 127.0.0.1:"))?;
            Some(line.split_once(',')?.0.to_owned())
        };
        until("the door listens", || found().is_some());
        let port = found().unwrap();
        Hub { rig, live, port }
    }

    #[track_caller]
    fn laboro<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Ran {
        self.rig.laboro(words).env("LABORO_DIR", self.rig.at("hub").to_str().unwrap()).run()
    }

    fn stop(self) {
        self.live.signal(Signal::TERM);
        self.live.wait().expect(0);
    }
}

#[test]
fn scripts_commands_and_arrays_are_run_by_runners() {
    let rig = Rig::new();
    rig.write("runs/good.sh", "echo here; echo RES:ok; exit 3\n");
    rig.write("runs/bad.sh", "echo RES: failed\n");
    rig.write("value", "from the directory");
    let hub = Hub::start(&rig, "", "");
    hub.laboro(["submit", "--runs", "runs"]).expect(0);
    hub.laboro(["submit", "--name", "plain", "--", "sh", "-c", "cat value; exit 4"]).expect(0);
    let array = ["submit", "--name", "sweep", "--env", "X=it's", "--"];
    let line = ["sh", "-c", "echo \"$1 $X $LABORO_INDEX\"", "sh", "{}"];
    let values = [":::", "a b", "-n", "'"];
    hub.laboro(array.iter().chain(&line).chain(&values)).expect(0);
    rig.other("runner.py", &[&hub.port, "2", "py"]).wait().expect(0);
    let states = hub.laboro(["jobs", "--json"]).expect(0).events();
    let count = |at: usize, state: &str| states[at]["counts"][state].clone();
    let by_name = |name: &str| states.iter().position(|job| job["name"] == name).unwrap();
    let (plain, sweep) = (by_name("plain"), by_name("sweep"));
    let runs = (0..3).find(|at| *at != plain && *at != sweep).unwrap();
    assert_eq!((count(runs, "done"), count(runs, "failed")), (1.into(), 1.into()), "{states:?}");
    assert_eq!(count(plain, "failed"), 1, "a command goes by its exit status: {states:?}");
    assert_eq!(count(sweep, "done"), 3, "{states:?}");
    let printed = |task: &str| hub.laboro(["logs", task]).expect(0).out();
    for (task, line) in [("3/1", "a b it's 1\n"), ("3/2", "-n it's 2\n"), ("3/3", "' it's 3\n")] {
        assert!(printed(task).ends_with(line), "{task}: {}", printed(task));
    }
    assert!(printed("2/1").ends_with("from the directory"), "{}", printed("2/1"));
    let shown = hub.laboro(["show", "3/2", "--json"]).expect(0).events();
    let attempts = shown[0]["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 1, "elements keep theirs, too: {shown:?}");
    assert_eq!(attempts[0]["worker_name"], "py@127.0.0.1");
    assert_eq!(
        (&attempts[0]["attempt"], &attempts[0]["outcome"]["kind"]),
        (&1.into(), &"success".into())
    );
    assert!(attempts[0]["ended_ms"].as_u64() >= attempts[0]["started_ms"].as_u64());
    assert!(attempts[0]["used"].is_null(), "a runner does not tell: {shown:?}");
    hub.stop();
}

#[test]
fn a_runner_that_fails_is_shown_with_the_reason_and_may_be_pardoned() {
    let rig = Rig::new();
    let hub = Hub::start(&rig, ",stay", "[conduct]\nrule = \"fixed\"\nresults_min = 2\n");
    hub.laboro(["submit", "--", "false", "{}", ":::", "1", "2", "3", "4"]).expect(0);
    let runner = rig.other("runner.py", &[&hub.port, "1", "py"]);
    runner.wait().expect(0);
    let listed = hub.laboro(["workers"]).expect(0).out();
    assert!(listed.contains("py@127.0.0.1"), "{listed}");
    assert!(listed.contains("ejected: only 0 % of its results were good"), "{listed}");
    let again = rig.other("runner.py", &[&hub.port, "1", "py"]).wait();
    again.expect(0);
    hub.laboro(["workers", "pardon", "py@127.0.0.1"]).expect(0);
    let listed = hub.laboro(["workers", "--json"]).expect(0).events();
    assert_eq!(listed[0]["conduct"]["standing"], "good");
    assert_eq!(listed[0]["failed"], 2, "it got nothing while it was ejected");
    hub.stop();
}

#[test]
fn exit_statuses_may_decide_and_runners_may_be_kept() {
    let rig = Rig::new();
    rig.write("runs/a.sh", "exit 0\n");
    let hub = Hub::start(&rig, ",exit_code,stay,group=exp", "");
    let runner = rig.laboro([
        "worker",
        "--from",
        &format!("runexp://127.0.0.1:{}", hub.port),
        "-j1",
        "--group=exp",
        "--host=r1",
    ]);
    let runner = runner.start();
    hub.laboro(["submit", "--group=exp", "--wait", "--runs", "runs"]).expect(0);
    runner.signal(Signal::TERM);
    runner.wait().expect(0);
    hub.stop();
}

/// A runner without work waits for its answer: it is not asked to come back in ten seconds.
#[test]
fn a_hub_tells_runners_at_once_that_all_is_done() {
    let rig = Rig::new();
    rig.write("runs/a.sh", "touch began; until [ -e go ]; do sleep 0.01; done; echo RES:ok\n");
    let hub = Hub::start(&rig, "", "");
    let from = format!("runexp://127.0.0.1:{}", hub.port);
    let start = |host: &str| rig.laboro(["worker", "--from", &from, "-j1", "--host", host]).start();
    let early = start("r1");
    until("it is there", || early.err().contains("connected as"));
    hub.laboro(["submit", "--runs", "runs"]).expect(0);
    until("it runs", || rig.at("began").exists());
    let idle = start("r2");
    until("another one is there", || idle.err().contains("connected as"));
    rig.write("go", "");
    early.wait().expect(0);
    let since = std::time::Instant::now();
    idle.wait().expect(0);
    assert!(since.elapsed() < std::time::Duration::from_secs(1), "{:?}", since.elapsed());
    hub.stop();
}

#[test]
fn a_killed_hub_goes_on_where_it_was_and_so_do_its_runners() {
    let rig = Rig::new();
    rig.write("runs/a.sh", "echo a >> ran; until [ -e go ]; do sleep 0.01; done; echo RES:ok\n");
    rig.write("runs/b.sh", "echo b >> ran; echo RES:ok\n");
    let hub = Hub::start(&rig, "", "");
    hub.laboro(["submit", "--runs", "runs"]).expect(0);
    let port = hub.port.clone();
    let runner = rig.runner(&port, "1");
    until("the first one runs", || rig.read("ran") == "a\n");
    hub.live.signal(Signal::KILL);
    hub.live.wait();
    let hub = Hub::at(&rig, &port);
    until("the runner is back", || runner.err().matches("connected as").count() == 2);
    rig.write("go", "");
    runner.wait().expect(0);
    assert_eq!(rig.read("ran"), "a\nb\n", "what it had given counts");
    let jobs = hub.laboro(["jobs", "--json"]).expect(0).events();
    assert_eq!(jobs[0]["counts"]["done"], 2, "{jobs:?}");
    hub.stop();
}

#[test]
fn a_group_that_cannot_be_said_is_refused_at_the_start() {
    let rig = Rig::new();
    let door = "--door=runexp=127.0.0.1:0,group=two words";
    let ran = rig.laboro(["hub", "--dir=hub", door]).run();
    ran.expect(2).says("`two words` has white space in it");
    let door = "--door=fuq1=127.0.0.1:0,exit_code";
    rig.laboro(["hub", "--dir=hub", door]).run().expect(2).says("an option of runexp doors");
}
