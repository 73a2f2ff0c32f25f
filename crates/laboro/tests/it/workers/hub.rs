//! A hub in a directory of its own, and workers of the real program.

use crate::rig::{Call, Live, Ran, Rig, until};
use laboro_core::*;
use laboro_hub::config::{Durability, Listen, Settings};
use laboro_hub::listen::DoorCounts;
use laboro_hub::process::{RunningHub, start};
use laboro_journal::outputs::{Key, Streams};
use std::cell::Cell;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

pub struct HubRig {
    pub rig: Rig,
    hub: Option<RunningHub>,
    pub address: SocketAddr,
    jobs: Cell<u32>,
}

impl HubRig {
    pub fn new() -> HubRig {
        HubRig::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut Settings)) -> HubRig {
        let rig = Rig::new();
        let mut settings = settings(&rig);
        change(&mut settings);
        let hub = start(&settings).unwrap();
        let address = hub.native.unwrap();
        HubRig { rig, hub: Some(hub), address, jobs: Cell::new(0) }
    }

    fn hub(&self) -> &RunningHub {
        self.hub.as_ref().unwrap()
    }

    pub fn stop(&mut self) {
        let hub = self.hub.take().unwrap();
        hub.stop();
        hub.wait().unwrap();
    }

    pub fn stop_if_there(&mut self) {
        if self.hub.is_some() {
            self.stop();
        }
    }

    /// A line of a shell that finds the commands which were installed in `bin`.
    pub fn sh(&self, line: &str) -> Ran {
        let mut command = std::process::Command::new("sh");
        let path = format!("{}:{}", self.rig.at("bin").display(), std::env::var("PATH").unwrap());
        command.args(["-c", line]).env("PATH", path);
        self.rig.call(command).env("LABORO_ACCESS", &self.access()).run()
    }

    /// What such a line prints, when it works.
    pub fn says(&self, line: &str) -> String {
        let ran = self.sh(line);
        ran.expect(0);
        String::from_utf8(ran.out.clone()).unwrap().trim().to_owned()
    }

    /// Where it was before.
    pub fn start_again(&mut self) {
        let settings = Settings { native: Listen::At(self.address), ..settings(&self.rig) };
        self.hub = Some(start(&settings).unwrap());
    }

    /// The same hub as a process of its own, for tests that kill it.
    pub fn start_apart(&self) -> Live {
        let (dir, address) = (self.rig.at("hub"), self.address.to_string());
        let words = ["hub", "--dir", dir.to_str().unwrap(), "--http", "off", "--native", &address];
        let hub = self.rig.laboro(words).start();
        until("the hub listens", || hub.out().contains(&address));
        hub
    }

    /// Where the door of this dialect is.
    pub fn door(&self, dialect: &str) -> SocketAddr {
        let mut doors = self.hub().doors.iter();
        doors.find(|door| door.dialect.word() == dialect).unwrap().address
    }

    /// What the door of this dialect has counted.
    pub fn door_counts(&self, dialect: &str) -> DoorCounts {
        let mut doors = self.hub().doors.iter();
        let door = doors.find(|door| door.dialect.word() == dialect).unwrap();
        door.stats.counts()
    }

    pub fn access(&self) -> String {
        self.rig.at("hub/access.toml").to_str().unwrap().to_owned()
    }

    /// A worker with one slot and these options, once the hub knows it.
    pub fn worker(&self, name: &str, options: &[&str]) -> Live {
        let worker = self.worker_unmet(name, options);
        until(&format!("{name} has joined"), || self.workers().iter().any(|known| known == name));
        worker
    }

    pub fn worker_unmet(&self, name: &str, options: &[&str]) -> Live {
        self.worker_call(name, options).start()
    }

    pub fn worker_call(&self, name: &str, options: &[&str]) -> Call {
        let access = self.access();
        let mut words = vec!["worker", "--access", &access, "--name", name, "--scratch", "."];
        if !options.contains(&"-j") {
            words.extend(["-j", "1"]);
        }
        words.extend(options);
        self.rig.laboro(words)
    }

    pub fn ask(&self, command: Command) -> Reply {
        visit(self.hub().handle.ask(command)).unwrap()
    }

    /// Those that are connected.
    pub fn workers(&self) -> Vec<String> {
        let query = Query::Workers { group: None, from: WorkerId(0), most: 100 };
        match self.ask(Command::Query(query)) {
            Reply::Workers(workers) => {
                let connected = workers.iter().filter(|worker| worker.connected);
                connected.map(|worker| worker.name.to_string()).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    /// A job of `count` tasks that run this line, in the rig's directory.
    pub fn submit(&self, count: u32, line: &str, profile: Profile) -> JobId {
        let setting = Setting {
            dir: Some(self.rig.dir().to_str().unwrap().as_bytes().into()),
            ..Setting::default()
        };
        let program = Program::Shell(line.as_bytes().into());
        let work = Work::Command(CommandWork { program, setting: Arc::new(setting) });
        // The first is called `array`; names are unique in a group.
        let number = self.jobs.replace(self.jobs.get() + 1);
        let name = if number == 0 { "array".to_owned() } else { format!("array{number}") };
        let submit = Submit {
            group: "default".into(),
            job: SubmitTo::New(JobOptions::default()),
            profiles: vec![profile],
            tasks: Vec::new(),
            arrays: vec![ArraySpec::numbered(name, count, work)],
            unknown_pred: UnknownPred::Refuse,
            if_taken: IfTaken::Refuse,
        };
        match self.ask(Command::Submit(submit)) {
            Reply::Submitted { job, .. } => job,
            other => panic!("{other:?}"),
        }
    }

    pub fn counts(&self, job: JobId) -> Counts {
        match self.ask(Command::Query(Query::Job(job))) {
            Reply::Jobs(jobs) => jobs[0].counts,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    pub fn until_done(&self, job: JobId) {
        until("the job is done", || {
            let counts = self.counts(job);
            assert_eq!(counts.of(State::Failed), 0, "{counts:?}");
            u64::from(counts.of(State::Done)) == counts.total()
        });
    }

    /// What the first attempt at a task has printed so far.
    pub fn printed(&self, job: JobId, index: u32) -> String {
        visit(async {
            let key = Key { job: job.0, index, attempt: 1 };
            let mut cursor = self.hub().outputs.cursor(key, Streams::Both).await.unwrap();
            let mut text = Vec::new();
            loop {
                let piece = cursor.next().await.unwrap();
                if piece.is_empty() {
                    return String::from_utf8(text).unwrap();
                }
                text.extend_from_slice(&piece);
            }
        })
    }

    /// Reads a file that a task writes, once there is a whole line in it.
    pub fn line_of(&self, name: &str) -> String {
        until(&format!("{name} has a line"), || self.rig.read(name).ends_with('\n'));
        self.rig.read(name).trim_end().to_owned()
    }
}

fn settings(rig: &Rig) -> Settings {
    Settings { durability: Durability::Os, ..Settings::in_dir(&rig.at("hub")) }
}

fn visit<T>(visit: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(visit)
}

/// Writes a line for each start, then runs until the file `go` is gone. The number comes last: whoever sees it may
/// kill the task.
pub const WAITS: &str = "echo started >> starts; echo $$ >> pids; while test -e go; do sleep 0.02; done; echo {} >> done";
