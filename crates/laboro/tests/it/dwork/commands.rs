//! Tasks of the dwork door and the other commands: what one makes, the others see.

use crate::rig::{Live, Ran, Rig, until};
use rustix::process::Signal;
use serde_json::Value;

/// A hub with its HTTP API, a native door and a dwork door.
struct Whole {
    rig: Rig,
    live: Live,
    dwork: String,
}

impl Whole {
    fn start(options: &str) -> Whole {
        let rig = Rig::new();
        let door = format!("--door=dwork=127.0.0.1:0,patience_ms=0{options}");
        let ports = ["--http=127.0.0.1:0", "--native=127.0.0.1:0", "--durability=os"];
        let words = [&["hub", "--dir=hub"], &ports[..], &[&door]].concat();
        let live = rig.laboro(words).start();
        until("it listens", || live.out().contains("dwork on ") && live.out().ends_with('\n'));
        let out = live.out();
        let (_, rest) = out.split_once("dwork on ").unwrap();
        let dwork = rest.split(',').next().unwrap().to_owned();
        Whole { rig, live, dwork }
    }

    fn dwork(&self, words: &[&str]) -> Ran {
        self.rig.laboro([&["dwork", "-s", &self.dwork], words].concat()).run()
    }

    fn call(&self, words: &[&str]) -> Ran {
        self.rig.laboro(words).env("LABORO_DIR", self.rig.at("hub").to_str().unwrap()).run()
    }

    /// The tasks of the door's job, by name, with their states.
    fn tasks(&self) -> Vec<(String, String)> {
        let listed = self.call(&["tasks", "dwork", "--json"]);
        let word = |task: &Value, key: &str| task[key].as_str().unwrap().to_owned();
        let tasks = listed.expect(0).events();
        tasks.iter().map(|task| (word(task, "name"), word(task, "state"))).collect()
    }

    fn state(&self, name: &str) -> String {
        self.tasks().into_iter().find(|task| task.0 == name).unwrap().1
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        self.live.signal(Signal::TERM);
    }
}

#[test]
fn tasks_of_the_door_are_seen_held_and_waited_for_by_the_other_commands() {
    let hub = Whole::start("");
    hub.dwork(&["create", "a"]).expect(0);
    hub.dwork(&["create", "b", "a"]).expect(0);
    assert_eq!((hub.state("a"), hub.state("b")), ("ready".into(), "waiting".into()));
    let shown = hub.call(&["show", "b"]).expect(0).out();
    assert!(shown.contains("waiting"), "{shown}");

    hub.call(&["hold", "dwork"]).expect(0);
    hub.dwork(&["steal", "w"]).expect(1).says("nothing is ready");
    hub.call(&["release", "dwork"]).expect(0);
    assert_eq!(hub.dwork(&["steal", "-q", "w"]).expect(0).out(), "a\n");
    assert_eq!(hub.state("a"), "running");
    let workers = hub.call(&["workers", "--json"]).expect(0).events();
    assert!(workers.iter().any(|worker| worker["name"] == "w"), "{workers:?}");

    hub.dwork(&["complete", "a", "--location", "w"]).expect(0);
    assert_eq!(hub.dwork(&["steal", "-q", "w"]).expect(0).out(), "b\n");
    hub.call(&["close", "dwork"]).expect(0);
    let words = ["wait", "dwork", "--dir", "hub"];
    let waits = hub.rig.laboro(words).start();
    hub.dwork(&["complete", "b", "--location", "w"]).expect(0);
    waits.wait().expect(0);
}

#[test]
fn a_task_of_the_door_that_failed_elsewhere_is_retried_and_stolen() {
    let hub = Whole::start(",stay");
    hub.dwork(&["create", "a"]).expect(0);
    hub.dwork(&["create", "b", "a"]).expect(0);
    let native = ["worker", "hub", "-j1", "--idle-timeout", "200ms", "--", "false"];
    hub.rig.laboro(native).run().expect(0);
    assert_eq!((hub.state("a"), hub.state("b")), ("failed".into(), "blocked".into()));
    hub.dwork(&["steal", "w"]).expect(1);
    hub.call(&["retry", "dwork/failed"]).expect(0);
    assert_eq!(hub.dwork(&["steal", "-q", "w"]).expect(0).out(), "a\n");
    hub.dwork(&["complete", "a", "--location", "w"]).expect(0);
    assert_eq!((hub.state("a"), hub.state("b")), ("done".into(), "ready".into()));
    hub.call(&["cancel", "b"]).expect(0);
    hub.dwork(&["steal", "w"]).expect(1);

    // What is printed bare can be said again, whatever characters it has.
    hub.dwork(&["create", r"odd\name"]).expect(0);
    let stolen = hub.dwork(&["steal", "-q", "w"]).expect(0).out();
    assert_eq!(stolen, "odd\\name\n");
    hub.dwork(&["complete", stolen.trim_end(), "--location", "w"]).expect(0);
}

const FLOW: &str = r#"
[[task]]
name = "first"
command = "true"
[[task]]
name = "second"
command = "true"
after = ["first"]
"#;

#[test]
fn tasks_submitted_elsewhere_are_stolen_only_where_the_door_says_so() {
    for (options, stolen) in [("", 0), (",any", 3)] {
        let hub = Whole::start(options);
        hub.rig.write("flow.toml", FLOW);
        hub.call(&["submit", "flow.toml"]).expect(0);
        hub.call(&["submit", "--name", "many", "--", "echo", "{}", ":::", "x"]).expect(0);
        let names: Vec<String> = std::iter::from_fn(|| {
            let ran = hub.dwork(&["steal", "-q", "w"]);
            let name = ran.out().trim().to_owned();
            (ran.status.success()).then(|| {
                hub.dwork(&["complete", &name, "--location", "w"]).expect(0);
                name
            })
        })
        .collect();
        assert_eq!(names.len(), stolen, "{options}: {names:?}");
        if stolen > 0 {
            let at = |wanted: &str| names.iter().position(|name| name == wanted).unwrap();
            // They belong to a job, and are said with it.
            assert!(at("1/first") < at("1/second"), "{names:?}");
        }
    }
}
