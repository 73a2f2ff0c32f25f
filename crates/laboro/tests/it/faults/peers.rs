//! A worker of each dialect, and the hub itself, killed or made to stand still in the middle of a task.

use super::Hub;
use crate::rig::{Life, Live, Rig, until};
use crate::workers::hub::HubRig;
use laboro_core::{
    ArraySpec, Command, IfTaken, JobId, JobOptions, Name, Profile, Reply, Submit, SubmitTo,
    TaskSpec, UnknownPred, Work,
};
use rustix::process::Signal;
use std::sync::Arc;

/// Writes that it began and who it is, then waits for the file `go` to be gone. Tests look for the second and may
/// kill it at once, so the first is there by then.
const SCRIPT: &str = "#!/bin/sh\ncd $LABORO_TEST_DIR\necho x >> starts; echo $$ >> pids\n\
                      while test -e go; do sleep 0.02; done; echo x >> done; echo RES:ok\n";

/// A hub with doors of four dialects, and one task for the one that is tried.
struct Stage {
    hub: HubRig,
    dialect: &'static str,
}

impl Stage {
    fn new(dialect: &'static str) -> Stage {
        // What a dwork worker has stolen stays with its name, unless the door says how long.
        Stage::with(dialect, if dialect == "dwork" { ",lease_ms=1500,patience_ms=100" } else { "" })
    }

    fn with(dialect: &'static str, options: &str) -> Stage {
        let hub = HubRig::with(|settings| {
            settings.grace_ms = 300;
            settings.door.push(format!("{dialect}=127.0.0.1:0{options}").parse().unwrap());
        });
        hub.rig.write("go", "");
        hub.rig.write("task", SCRIPT);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(hub.rig.at("task"), mode).unwrap();
        Stage { hub, dialect }
    }

    fn submit(&self) -> JobId {
        self.submit_as("one")
    }

    fn submit_as(&self, name: &str) -> JobId {
        let path = |name: &str| self.hub.rig.at(name).to_str().unwrap().as_bytes().into();
        let named = |work: Work| TaskSpec {
            name: Name::from(name),
            profile: 0,
            work: Some(Arc::new(work)),
            preds: Default::default(),
            memo: None,
        };
        let (mut tasks, mut arrays) = (Vec::new(), Vec::new());
        match self.dialect {
            "dwork" => tasks.push(named(Work::Named)),
            "runexp" => {
                tasks.push(named(Work::script(
                    ".sh",
                    Arc::from(SCRIPT.as_bytes()),
                    Arc::default(),
                )));
            }
            _ => {
                let (program, dir, log_dir) = (path("task"), path(""), path(""));
                arrays.push(ArraySpec::numbered(name, 1, Work::indexed(program, dir, log_dir)));
            }
        }
        let submitted = self.hub.ask(Command::Submit(Submit {
            group: "default".into(),
            job: SubmitTo::New(JobOptions::default()),
            profiles: vec![Profile::default()],
            tasks,
            arrays,
            unknown_pred: UnknownPred::Refuse,
            if_taken: IfTaken::Refuse,
        }));
        match submitted {
            Reply::Submitted { job, .. } => job,
            other => panic!("{other:?}"),
        }
    }

    fn worker(&self, name: &str) -> Live {
        let carrier = match self.dialect {
            "fuq1" | "fuq2" => "+tcp",
            _ => "",
        };
        let door = self.hub.door(self.dialect);
        let from = format!("{}{carrier}://{door}", self.dialect);
        let mut words = vec!["worker", "--from", &from, "--name", name, "--slots", "1"];
        let task = self.hub.rig.at("task");
        if self.dialect == "dwork" {
            words.extend(["--stay", "--", task.to_str().unwrap()]);
        }
        let dir = self.hub.rig.dir().to_str().unwrap().to_owned();
        self.hub.rig.laboro(words).env("LABORO_TEST_DIR", &dir).start()
    }
}

fn a_killed_worker_costs_one_more_run(dialect: &'static str) {
    let stage = Stage::new(dialect);
    let job = stage.submit();
    let first = stage.worker("first");
    let life = Life::of(&stage.hub.line_of("pids"));
    first.signal(Signal::KILL);
    until("its task is gone", || life.is_over());
    let _second = stage.worker("second");
    until("it runs a second time", || stage.hub.rig.lines("starts").len() == 2);
    std::fs::remove_file(stage.hub.rig.at("go")).unwrap();
    stage.hub.until_done(job);
    assert_eq!(stage.hub.rig.lines("done").len(), 1);
}

#[test]
fn what_a_killed_dwork_worker_had_is_run_by_another() {
    a_killed_worker_costs_one_more_run("dwork");
}

#[test]
fn what_a_killed_fuq2_worker_had_is_run_by_another() {
    a_killed_worker_costs_one_more_run("fuq2");
}

#[test]
fn what_a_killed_fuq1_worker_had_is_run_by_another() {
    a_killed_worker_costs_one_more_run("fuq1");
}

#[test]
fn what_a_killed_runexp_worker_had_is_run_by_another() {
    a_killed_worker_costs_one_more_run("runexp");
}

/// These dialects have no sign of life: a worker that stands still is waited for while its connection is there.
fn a_worker_that_stands_still_goes_on(dialect: &'static str) {
    let stage = Stage::with(dialect, "");
    let job = stage.submit();
    let worker = stage.worker("first");
    stage.hub.line_of("pids");
    worker.signal(Signal::STOP);
    std::fs::remove_file(stage.hub.rig.at("go")).unwrap();
    until("the task is over", || stage.hub.rig.lines("done").len() == 1);
    worker.signal(Signal::CONT);
    stage.hub.until_done(job);
    assert_eq!(stage.hub.rig.lines("starts").len(), 1);
}

#[test]
fn a_fuq2_worker_that_stood_still_hands_in_what_it_has() {
    a_worker_that_stands_still_goes_on("fuq2");
}

#[test]
fn a_fuq1_worker_that_stood_still_hands_in_what_it_has() {
    a_worker_that_stands_still_goes_on("fuq1");
}

#[test]
fn a_runexp_worker_that_stood_still_hands_in_what_it_has() {
    a_worker_that_stands_still_goes_on("runexp");
}

#[test]
fn a_dwork_worker_that_stood_still_hands_in_what_it_has() {
    a_worker_that_stands_still_goes_on("dwork");
}

#[test]
fn a_dwork_worker_that_stood_still_for_too_long_does_not_overwrite_another() {
    let stage = Stage::new("dwork");
    let job = stage.submit();
    let first = stage.worker("first");
    stage.hub.line_of("pids");
    first.signal(Signal::STOP);
    let second = stage.worker("second");
    until("it runs a second time", || stage.hub.rig.lines("starts").len() == 2);
    std::fs::remove_file(stage.hub.rig.at("go")).unwrap();
    stage.hub.until_done(job);
    second.signal(Signal::TERM);
    second.wait().expect(0);
    // It says Complete for what is not its own any more, and works on.
    first.signal(Signal::CONT);
    let next = stage.submit_as("two");
    stage.hub.until_done(next);
    assert_eq!(stage.hub.rig.lines("starts").len(), 3);
    first.signal(Signal::TERM);
    first.wait().expect(0);
}

/// The lease is over when the hub goes on, and the task too: what was said meanwhile is heard first.
#[test]
fn what_dwork_peers_say_while_the_hub_stands_still_counts() {
    let rig = Rig::new();
    let hub = Hub::start(&rig, &["dwork,lease_ms=1500,stay"], "");
    let door = hub.address("dwork");
    rig.write("go", "");
    let line = "echo x >> starts; while test -e go; do sleep 0.02; done; echo x >> done";
    let from = format!("dwork://{door}");
    let worker = |name: &str| {
        let words = ["worker", "--from", &from, "--name", name, "--slots", "1", "--stay", "--"];
        rig.laboro(words.iter().copied().chain(["sh", "-c", line])).start()
    };
    let workers = ["first", "second"].map(worker);
    until("both ask", || hub.out(&["workers", "--json"]).lines().count() == 2);
    hub.out(&["dwork", "-s", &door, "create", "one"]);
    until("it runs", || rig.lines("starts").len() == 1);
    hub.live.signal(Signal::STOP);
    std::fs::remove_file(rig.at("go")).unwrap();
    let create = rig.laboro(["dwork", "-s", &door, "--timeout", "60s", "create", "two"]).start();
    until("the task is over", || rig.lines("done").len() == 1);
    // Nothing can be seen of time that passes for nobody: it has to pass.
    std::thread::sleep(std::time::Duration::from_millis(2000));
    hub.live.signal(Signal::CONT);
    create.wait().expect(0);
    until("both are done", || {
        hub.laboro(&["dwork", "-s", &door, "--json", "status"]).events()[0]["active"] == 0
    });
    assert_eq!((rig.lines("starts").len(), rig.lines("done").len()), (2, 2));
    for worker in workers {
        worker.signal(Signal::TERM);
        worker.wait().expect(0);
    }
    hub.stop();
}

#[test]
fn a_hub_that_stood_still_for_longer_than_its_leases_takes_no_task_away() {
    let rig = Rig::new();
    let hub = Hub::start(&rig, &[], "");
    rig.write("go", "");
    let line = "echo x >> starts; while test -e go; do sleep 0.02; done; echo x >> done";
    let job = hub.out(&["submit", "-q", "--", "sh", "-c", line]);
    let _worker = hub.worker("one", &["--lease", "1s"]);
    until("it runs", || rig.lines("starts").len() == 1);
    hub.live.signal(Signal::STOP);
    // Nothing can be seen of time that passes for nobody: it has to pass.
    std::thread::sleep(std::time::Duration::from_millis(2500));
    hub.live.signal(Signal::CONT);
    std::fs::remove_file(rig.at("go")).unwrap();
    hub.laboro(&["wait", &job, "--timeout", "30s"]).expect(0);
    assert_eq!((rig.lines("starts").len(), rig.lines("done").len()), (1, 1));
    hub.stop();
}
