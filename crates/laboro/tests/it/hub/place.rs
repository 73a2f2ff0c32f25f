//! A hub for one test, and a worker that does what the test says.

use crate::rig::{Call, Ran, Rig};
use laboro_api::access::{Access, Role};
use laboro_core::{
    Capacity, Command, Config, Grant, Hub, JobId, Join, Kinds, LeaseNo, LeaseRef, Ledger, Name,
    Offer, Outcome, Patience, Reply, Report, Route, TaskId, TaskResult, Time, WorkerId, WorkerRef,
};
use laboro_dialects::session::{AttemptEnd, Chunk, Ends, Stream};
use laboro_dialects::worker::Used;
use laboro_hub::history::History;
use laboro_hub::http::{Limits, Services, router, serve};
use laboro_hub::keep::{Keeper, Outputs};
use laboro_hub::security::{Identity, NewToken, TokenBook, Tokens};
use laboro_hub::{Handle, ServerOptions, Subscription};
use laboro_journal::{Journal, MemoryJournal};
use laboro_net::Clock;
use serde_json::Value;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

pub struct Place {
    pub rig: Rig,
    handle: Handle,
    outputs: Outputs,
    runtime: Runtime,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Place {
    pub fn new() -> Place {
        let rig = Rig::new();
        let dir = rig.at("hub");
        std::fs::create_dir(&dir).unwrap();
        let (ready, started) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(hub(&dir, ready, stopped));
        });
        let (handle, outputs) = started.recv().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        Place { rig, handle, outputs, runtime, stop: Some(stop), thread: Some(thread) }
    }

    /// `laboro` with these words and this hub.
    pub fn laboro(&self, words: &[&str]) -> Call {
        self.rig
            .laboro(words.iter().copied())
            .env("LABORO_DIR", self.rig.at("hub").to_str().unwrap())
    }

    #[track_caller]
    pub fn run(&self, words: &[&str]) -> Ran {
        self.laboro(words).run()
    }

    /// Goes well; gives what was printed.
    #[track_caller]
    pub fn out(&self, words: &[&str]) -> String {
        self.run(words).expect(0).out().trim_end().to_owned()
    }

    /// Goes well; gives the JSON lines.
    #[track_caller]
    pub fn json(&self, words: &[&str]) -> Vec<Value> {
        self.run(words).expect(0).events()
    }

    pub fn ask(&self, command: Command) -> Reply {
        self.runtime.block_on(self.handle.ask(command)).unwrap()
    }

    /// A worker with so many slots in the default group.
    pub fn worker(&self, name: &str, slots: u32) -> Worker<'_> {
        let session = self.runtime.block_on(self.handle.open_session()).unwrap();
        let join = Join {
            group: "default".into(),
            name: name.into(),
            dialect: "test",
            session: session.session,
            life: None,
            kinds: Kinds::ALL,
            tags: Vec::new(),
            capacity: Capacity::slots(slots),
            period_ms: None,
            running: None,
            acknowledges: false,
            host: Default::default(),
        };
        let joined = self.ask(Command::Join(join));
        assert!(matches!(joined, Reply::Joined { .. }), "{joined:?}");
        Worker { place: self, name: name.into(), _session: session }
    }

    /// Keeps this as what a first attempt printed.
    pub fn prints(&self, job: u32, index: u32, out: &str, err: &str) {
        let (task, lease, attempt) = (TaskId::new(JobId(job), index), LeaseNo::new(1, 1), 1);
        let chunk = |(stream, text): (Stream, &str)| {
            let bytes = text.as_bytes().to_vec().into();
            Chunk { task, lease, attempt, stream, offset: None, bytes }
        };
        let chunks = [(Stream::Out, out), (Stream::Err, err)].map(chunk).to_vec();
        let (outcome, used) = (Outcome::Exit(3), Used { wall_us: 1_500_000, ..Used::default() });
        let ended = Time(1_700_000_000_000);
        let ends = vec![AttemptEnd { task, lease, attempt, outcome, ended, used }];
        let ends = Ends { worker: WorkerId(0), name: Name::from("w"), ends };
        self.runtime.block_on(async {
            self.outputs.keep(chunks).await.unwrap();
            self.outputs.note_ends(&mut vec![ends]).await.unwrap();
        });
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

pub struct Worker<'a> {
    place: &'a Place,
    name: Name,
    _session: Subscription,
}

impl Worker<'_> {
    fn reference(&self) -> WorkerRef {
        WorkerRef::Name { group: "default".into(), name: self.name.clone() }
    }

    /// As much as there is for it now.
    pub fn take(&self, most: u32) -> Vec<Grant> {
        let route = Route::Answer { most, patience: Patience::None };
        let offer = Offer { worker: self.reference(), route, lease_ms: None };
        match self.place.ask(Command::Offer(offer)) {
            Reply::Work { grants, .. } => grants,
            Reply::Nothing(_) => Vec::new(),
            other => panic!("{other:?}"),
        }
    }

    pub fn report(&self, grant: &Grant, outcome: Outcome) {
        let lease = LeaseRef::Number { task: grant.task, lease: grant.lease };
        let result = TaskResult { lease, outcome, message: None, memo: None };
        let report = Report { worker: self.reference(), results: vec![result] };
        match self.place.ask(Command::Report(report)) {
            Reply::Reported(verdicts) => assert_eq!(verdicts, [Ok(())]),
            other => panic!("{other:?}"),
        }
    }

    /// Takes all and lets those with these numbers fail.
    pub fn work_off(&self, failing: &[u32]) -> u32 {
        let grants = self.take(1000);
        for grant in &grants {
            let fails = failing.contains(&grant.task.index);
            self.report(grant, if fails { Outcome::Exit(3) } else { Outcome::Success });
        }
        grants.len() as u32
    }
}

/// Runs until told to stop.
async fn hub(dir: &Path, ready: mpsc::Sender<(Handle, Outputs)>, stopped: oneshot::Receiver<()>) {
    let clock = Clock::start();
    let (mut hub, first) = Hub::begin(Ledger::default(), Config::default(), clock.now(), 7);
    let mut journal = MemoryJournal::default();
    journal.commit(first).await.unwrap();
    let (mut server, handle) = laboro_hub::server(&ServerOptions::default(), clock);
    let identity = Identity::open(dir, &[]).unwrap();
    let new =
        NewToken { name: None, role: Role::Admin, owner: None, group: None, expires_ms: None };
    let (token, _) = TokenBook::of(dir).add(new, clock.now()).unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let access = Access {
        socket: None,
        host: None,
        prepared: false,
        http: Some(listener.local_addr().unwrap().to_string()),
        native: None,
        role: Role::Admin,
        group: None,
        token,
        certificate: identity.certificate_pem().to_owned(),
    };
    std::fs::write(Access::path_in(dir), access.text()).unwrap();
    let own = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(Access::path_in(dir), own).unwrap();
    let tokens = Arc::new(Tokens::open(dir).unwrap());
    let keeper =
        Keeper::open(&dir.join("outputs"), Default::default(), 1, Default::default()).unwrap();
    let mut services = Services::new(handle.clone(), clock, tokens);
    let (history, mut journal, recorder) = History::new(journal);
    services.history = Some(history);
    tokio::spawn(recorder.run(handle.clone(), clock));
    services.outputs = Some(keeper.outputs());
    let stats = services.serving.clone();
    let tls = Some(Arc::new(identity.server_config().unwrap()));
    ready.send((handle, keeper.outputs())).unwrap();
    let stop = async { drop(stopped.await) };
    let limits = Limits { farewell: std::time::Duration::ZERO, ..Limits::default() };
    tokio::select! {
        ended = laboro_hub::run(&mut hub, &mut server, &mut journal) => ended.unwrap(),
        () = serve(listener, tls, router(services), limits, stats, stop) => {}
    }
}
