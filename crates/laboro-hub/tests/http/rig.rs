//! A hub with its API at a free port, clients for it, and a worker that does what it is told.

use laboro_api as api;
use laboro_api::access::Role;
use laboro_api::client::{Client, Target};
use laboro_core::*;
use laboro_dialects::session::{AttemptEnd, Chunk, Ends, Stream};
use laboro_dialects::worker::Used;
use laboro_hub::history::History;
use laboro_hub::http::{self, Audit, AuditOptions, Limits, ServeStats, Services};
use laboro_hub::keep::Keeper;
use laboro_hub::security::{Denied, Doorman, Who};
use laboro_hub::{Handle, ServerOptions};
use laboro_journal::MemoryJournal;
use laboro_net::Clock;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub struct Rig {
    pub handle: Handle,
    pub address: SocketAddr,
    pub stats: Arc<ServeStats>,
    pub dir: tempfile::TempDir,
    keeper: Keeper,
}

/// The secret says who it is: `ROLE` or `ROLE@GROUP`, all of them of one owner, or `ROLE:OWNER`.
struct Porter;

impl Doorman for Porter {
    fn identify(&self, secret: &[u8], _: Option<IpAddr>, _: Time) -> Result<Who, Denied> {
        let secret = std::str::from_utf8(secret).map_err(|_| Denied::Unknown)?;
        let (role, owner) = secret.split_once(':').unwrap_or((secret, "rig"));
        let (role, group) = match role.split_once('@') {
            Some((role, group)) => (role, Some(Name::from(group))),
            None => (role, None),
        };
        let role = match role {
            "watch" => Role::Watch,
            "submit" => Role::Submit,
            "work" => Role::Work,
            "admin" => Role::Admin,
            "old" => return Err(Denied::Expired("old".to_owned())),
            "eager" => return Err(Denied::TooMany(7)),
            _ => return Err(Denied::Unknown),
        };
        let token = secret.to_owned();
        Ok(Who { id: token.clone(), owner: owner.to_owned(), token, role, group, job: None })
    }

    fn still_holds(&self, _: &Who, _: Time) -> bool {
        true
    }
}

impl Rig {
    pub async fn start() -> Rig {
        Rig::with(Limits::default()).await
    }

    pub async fn with(limits: Limits) -> Rig {
        let clock = Clock::start();
        let mut journal = MemoryJournal::default();
        let (mut hub, first) = Hub::begin(Ledger::default(), Config::default(), clock.now(), 1);
        laboro_journal::Journal::commit(&mut journal, first).await.unwrap();
        let (mut server, handle) = laboro_hub::server(&ServerOptions::default(), clock);
        let (history, mut journal, recorder) = History::new(journal);
        tokio::spawn(recorder.run(handle.clone(), clock));
        tokio::spawn(async move { laboro_hub::run(&mut hub, &mut server, &mut journal).await });

        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("outputs");
        let keeper = Keeper::open(&store, Default::default(), 1, Default::default()).unwrap();
        let audit = Audit::open(dir.path(), AuditOptions::default()).unwrap();
        let stats: Arc<ServeStats> = Arc::default();
        let services = Services {
            outputs: Some(keeper.outputs()),
            audit: Some(Arc::new(audit)),
            doors: Arc::new(|| {
                let (dialect, address) = ("dwork".to_owned(), "127.0.0.1:6125".to_owned());
                vec![api::DoorStatus {
                    dialect,
                    address,
                    malformed: 3,
                    ..api::DoorStatus::default()
                }]
            }),
            history: Some(history),
            dir: Some(dir.path().to_owned()),
            serving: stats.clone(),
            limits: limits.clone(),
            ..Services::new(handle.clone(), clock, Arc::new(Porter))
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let never = std::future::pending();
        let router = http::router(services);
        tokio::spawn(http::serve(listener, None, router, limits, stats.clone(), never));
        Rig { handle, address, stats, dir, keeper }
    }

    /// Only what needs no hub's state, over TLS. Gives the port.
    pub async fn start_tls(tls: Arc<rustls::ServerConfig>) -> u16 {
        let clock = Clock::start();
        let (_, handle) = laboro_hub::server(&ServerOptions::default(), clock);
        let services = Services::new(handle, clock, Arc::new(Porter));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let router = http::router(services);
        let (limits, stats) = (Limits::default(), Arc::default());
        let never = std::future::pending();
        tokio::spawn(http::serve(listener, Some(tls), router, limits, stats, never));
        port
    }

    pub fn client(&self, token: &str) -> Client {
        let token = Some(token.to_owned());
        let target = Target::new(self.address.ip().to_string(), self.address.port());
        Client::new(Target { token, ..target })
    }

    /// A job of this JSON, by an admin.
    pub async fn submit(&self, json: &str) -> api::Submitted {
        self.client("admin").post("jobs", &json_of(json)).await.unwrap()
    }

    /// Says a request as it stands, with the token of an admin, and gives back head and body.
    pub async fn raw(&self, request: &str, headers: &str, body: &str) -> (String, String) {
        let length = body.len();
        let text = format!(
            "{request} HTTP/1.1\r\nhost: hub\r\nauthorization: Bearer admin\r\nconnection: close\r\n\
             content-length: {length}\r\n{headers}\r\n{body}"
        );
        self.say(&text).await
    }

    pub async fn say(&self, text: &str) -> (String, String) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        (head.to_owned(), body.to_owned())
    }

    pub async fn print(&self, job: u32, index: u32, attempt: u16, stream: Stream, bytes: &[u8]) {
        let (task, lease) = (TaskId::new(JobId(job), index), LeaseNo::new(1, attempt.into()));
        let bytes = bytes.to_vec().into();
        let chunk = Chunk { task, lease, attempt, stream, offset: None, bytes };
        self.keeper.outputs().keep(vec![chunk]).await.unwrap();
    }

    pub async fn end_output(&self, job: u32, index: u32, attempt: u16, outcome: Outcome) {
        let (task, lease) = (TaskId::new(JobId(job), index), LeaseNo::new(1, attempt.into()));
        let used = Used { wall_us: 2_500_000, user_us: 1_000, system_us: 500, peak_kib: 2048 };
        let end = AttemptEnd { task, lease, attempt, outcome, ended: Time(10_000), used };
        let ends = Ends { worker: WorkerId(0), name: Name::from("node-1"), ends: vec![end] };
        self.keeper.outputs().note_ends(&mut vec![ends]).await.unwrap();
        // Nobody else passes it on here.
        self.keeper.outputs().attempts(task).await.unwrap();
    }

    pub async fn join(&self, name: &str, group: &str, slots: u32) -> WorkerRef {
        let session = self.handle.open_session().await.unwrap();
        let join = Join {
            group: group.into(),
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
        match self.handle.ask(Command::Join(join)).await.unwrap() {
            Reply::Joined { worker, .. } => WorkerRef::Id(worker),
            other => panic!("{other:?}"),
        }
    }

    /// Takes up to so many tasks.
    pub async fn take(&self, worker: &WorkerRef, most: u32) -> Vec<Grant> {
        let route = Route::Answer { most, patience: Patience::None };
        let offer = Offer { worker: worker.clone(), route, lease_ms: None };
        match self.handle.ask(Command::Offer(offer)).await.unwrap() {
            Reply::Work { grants, .. } => grants,
            Reply::Nothing(_) => Vec::new(),
            other => panic!("{other:?}"),
        }
    }

    pub async fn report(&self, worker: &WorkerRef, grants: &[Grant], outcome: Outcome) {
        let results = grants.iter().map(|grant| TaskResult {
            lease: LeaseRef::Number { task: grant.task, lease: grant.lease },
            outcome,
            message: None,
            memo: None,
        });
        let report = Report { worker: worker.clone(), results: results.collect() };
        self.handle.ask(Command::Report(report)).await.unwrap();
    }
}

pub fn json_of(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

/// Waits for what must come to be, and not for ever.
pub async fn eventually(mut is_so: impl AsyncFnMut() -> bool) {
    let looked = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), looked).await.expect("it came to be in time");
}
