//! A hub in this process with the door of one dialect, tasks that dialect has words for, and workers of it: beside the
//! hub, or at the other end of a cable.

use super::cable::{Cable, HERE};
use crate::rig::{Call, Live, until};
use crate::workers::hub::HubRig;
use laboro_core::{
    ArraySpec, Command, CommandWork, IfTaken, JobId, JobOptions, Name, Profile, Program, Reply,
    Setting, Submit, SubmitTo, TaskSpec, UnknownPred, Work,
};
use laboro_hub::config::{Listen, Settings};
use laboro_hub::listen::DoorCounts;
use std::net::SocketAddr;
use std::sync::Arc;

/// Writes that it began and who it is, then waits for the file `go` to be gone. Tests look for the second and may
/// kill it at once, so the first is there by then.
const SCRIPT: &str = "#!/bin/sh\ncd $LABORO_TEST_DIR\necho x >> starts; echo $$ >> pids\n\
                      while test -e go; do sleep 0.02; done; echo x >> done; echo RES:ok\n";

pub struct Stage {
    pub hub: HubRig,
    /// `native`, `dwork`, `fuq1`, `fuq2`, `runexp`, and for a fuq door `websocket` and `polling`.
    dialect: &'static str,
    /// Of the door, with its options; the same in every life of the hub.
    address: SocketAddr,
    options: String,
    cable: Option<Cable>,
}

impl Stage {
    pub fn new(dialect: &'static str) -> Stage {
        Stage::with(dialect, short_lease(dialect))
    }

    pub fn with(dialect: &'static str, options: &str) -> Stage {
        Stage::set(dialect, options, None, |_| {})
    }

    /// With a cable to whoever is to be far away; `None` where there can be none.
    pub fn apart(
        dialect: &'static str,
        options: &str,
        change: impl FnOnce(&mut Settings),
    ) -> Option<Stage> {
        let cable = Cable::lay()?;
        Some(Stage::set(dialect, options, Some(cable), change))
    }

    fn set(
        dialect: &'static str,
        options: &str,
        cable: Option<Cable>,
        change: impl FnOnce(&mut Settings),
    ) -> Stage {
        let host = if cable.is_some() { HERE } else { "127.0.0.1" };
        let lock = if cable.is_some() && !dialect_has_lock(dialect) { ",insecure" } else { "" };
        let hub = HubRig::with(|settings| {
            settings.grace_ms = 300;
            settings.native = Listen::At(format!("{host}:0").parse().unwrap());
            if dialect != "native" {
                let door = format!("{}={host}:0{lock}{options}", door_of(dialect));
                settings.door.push(door.parse().unwrap());
            }
            change(settings);
        });
        hub.rig.write("go", "");
        hub.rig.write("task", SCRIPT);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(hub.rig.at("task"), mode).unwrap();
        let address = hub.door(door_of(dialect));
        Stage { hub, dialect, address, options: format!("{lock}{options}"), cable }
    }

    pub fn cable(&self) -> &Cable {
        self.cable.as_ref().expect("this stage has one")
    }

    pub fn submit(&self) -> JobId {
        self.submit_as("one")
    }

    pub fn submit_as(&self, name: &str) -> JobId {
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
            "native" => {
                let setting = Setting { dir: Some(path("")), ..Setting::default() };
                let program = Program::Shell(path("task"));
                let work = Work::Command(CommandWork { program, setting: Arc::new(setting) });
                arrays.push(ArraySpec::numbered(name, 1, work));
            }
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

    /// Far away, if there is a cable.
    pub fn worker(&self, name: &str) -> Live {
        let words = self.words(name);
        let call = match &self.cable {
            None => self.hub.rig.laboro(words),
            Some(cable) => {
                let mut command = cable.there();
                command.args(words);
                self.hub.rig.call(command)
            }
        };
        self.begin(call)
    }

    /// Beside the hub in any case.
    pub fn worker_here(&self, name: &str) -> Live {
        self.begin(self.hub.rig.laboro(self.words(name)))
    }

    fn begin(&self, call: Call) -> Live {
        call.env("LABORO_TEST_DIR", self.hub.rig.dir().to_str().unwrap()).start()
    }

    fn words(&self, name: &str) -> Vec<String> {
        let mut words = vec!["worker", "--name", name, "-j", "1", "--scratch", "."];
        let access = self.hub.access();
        if self.dialect == "native" {
            words.extend(["--access", &access, "--lease", "2s"]);
            return words.into_iter().map(str::to_owned).collect();
        }
        let scheme = match self.dialect {
            "fuq1" => "fuq1+tcp",
            "fuq2" => "fuq2+tcp",
            "websocket" => "fuq+wss",
            "polling" => "fuq+https",
            other => other,
        };
        let from = format!("{scheme}://{}", self.address);
        words.extend(["--from", &from]);
        let (password, task) = (self.hub.rig.at("hub/fuq.auth"), self.hub.rig.at("task"));
        match self.dialect {
            "websocket" | "polling" => {
                words.extend(["--insecure", "--auth-file", password.to_str().unwrap()]);
            }
            "dwork" => words.extend(["--stay", "--", task.to_str().unwrap()]),
            _ => {}
        }
        words.into_iter().map(str::to_owned).collect()
    }

    /// The same hub as a process of its own, which can be killed or made to stand still.
    pub fn hub_apart(&mut self) -> Live {
        self.hub.stop_if_there();
        self.hub.rig.write("hub.toml", "grace_ms = 300\n");
        let door = format!("--door={}={}{}", door_of(self.dialect), self.address, self.options);
        let words = ["hub", "--dir=hub", "--config=hub.toml", "--durability=os", &door];
        let hub =
            self.hub.rig.laboro([&words[..], &["--http=127.0.0.1:0", "--native=off"]].concat());
        let (hub, address) = (hub.start(), self.address.to_string());
        until("the hub listens", || hub.out().contains(&address));
        hub
    }

    /// Asks a hub that is apart.
    pub fn wait(&self, job: JobId) {
        let wait = ["wait", &job.0.to_string(), "--dir=hub", "--timeout=60s"];
        self.hub.rig.laboro(wait).run().expect(0);
    }

    pub fn starts(&self) -> usize {
        self.hub.rig.lines("starts").len()
    }

    /// Lets every task go on to its end.
    pub fn go(&self) {
        std::fs::remove_file(self.hub.rig.at("go")).unwrap();
    }

    /// What the door that is tried has counted.
    pub fn door_counts(&self) -> DoorCounts {
        self.hub.door_counts(door_of(self.dialect))
    }
}

/// For how long a worker that says nothing keeps what it has.
pub fn short_lease(dialect: &str) -> &'static str {
    match dialect {
        // What is stolen stays with a name, unless the door says how long.
        "dwork" => ",stay,lease_ms=1500,patience_ms=100",
        // One that works has no reason to say anything until its login runs out.
        "polling" => ",cookie_ms=3000",
        "runexp" => ",stay",
        _ => "",
    }
}

fn door_of(dialect: &str) -> &str {
    match dialect {
        "websocket" | "polling" => "fuq",
        other => other,
    }
}

/// Whether it may listen beyond this machine without a word about it.
fn dialect_has_lock(dialect: &str) -> bool {
    matches!(dialect, "native" | "websocket" | "polling")
}
