//! What the tests share: a hub in a directory of its own, and a worker that speaks the native protocol.

use bytes::BytesMut;
use laboro_api::access::{Access, Secret, client_config};
use laboro_api::client::{Client, Target};
use laboro_core::*;
use laboro_dialects::fuq2::{NativeWorker, WorkerSettings};
use laboro_dialects::session::Stream;
use laboro_dialects::worker::{Assignment, News, Order, Orders, TaskEnd, Used, WorkerSide};
use laboro_hub::Handle;
use laboro_hub::config::Settings;
use laboro_hub::process::{RunningHub, start};
use laboro_net::Clock;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub fn dir() -> TempDir {
    TempDir::with_prefix("laboro-process-").unwrap()
}

pub fn settings(dir: &TempDir) -> Settings {
    Settings { durability: laboro_hub::config::Durability::Os, ..Settings::in_dir(dir.path()) }
}

pub fn hub(dir: &TempDir) -> RunningHub {
    start(&settings(dir)).unwrap()
}

pub fn stop(hub: RunningHub) {
    hub.stop();
    hub.wait().unwrap();
}

/// The hub has its own threads; this one is for its visitors.
pub fn visit<T>(visit: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(visit)
}

pub async fn connect(access: &Access) -> std::io::Result<TlsStream<TcpStream>> {
    connect_to(access, access.native.as_ref().unwrap()).await
}

/// To another door with the same certificate.
pub async fn connect_to(access: &Access, address: &str) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let connector = TlsConnector::from(Arc::new(client_config(access).unwrap()));
    let name = rustls::pki_types::ServerName::try_from("hub.invalid").unwrap();
    connector.connect(name, stream).await
}

/// A worker in the hands of a test.
pub struct Worker {
    side: NativeWorker,
    stream: TlsStream<TcpStream>,
    input: BytesMut,
    orders: Orders,
    clock: Clock,
}

impl Worker {
    pub async fn connect(access: &Access, token: &Secret, name: &str) -> Worker {
        Worker::with(access, token, WorkerSettings::new(name, 1)).await
    }

    pub async fn with(access: &Access, token: &Secret, mut settings: WorkerSettings) -> Worker {
        settings.token = token.expose().as_bytes().to_vec();
        let mut worker = Worker {
            side: NativeWorker::new(settings),
            stream: connect(access).await.unwrap(),
            input: BytesMut::new(),
            orders: Orders::default(),
            clock: Clock::start(),
        };
        worker.side.open(worker.clock.now(), &mut worker.orders);
        worker
    }

    /// The next thing it is told, or why it is told nothing more.
    pub async fn next(&mut self) -> Result<Order, String> {
        loop {
            let said = self.orders.take_bytes();
            if !said.is_empty() && self.stream.write_all(&said).await.is_err() {
                return Err("closed".into());
            }
            if !self.orders.orders.is_empty() {
                return Ok(self.orders.orders.remove(0));
            }
            if let Some(why) = self.orders.hang_up.take() {
                return Err(format!("{why:?}"));
            }
            match self.stream.read_buf(&mut self.input).await {
                Ok(0) | Err(_) => return Err("closed".into()),
                Ok(_) => {
                    self.side.receive(self.clock.now(), &mut self.input, &mut self.orders);
                }
            }
        }
    }

    pub async fn is_welcome(&mut self) {
        let order = self.next().await;
        assert!(matches!(order, Ok(Order::Welcome { .. })), "{order:?}");
    }

    pub async fn task(&mut self) -> Assignment {
        loop {
            if let Order::Start(assignment) = self.next().await.unwrap() {
                return *assignment;
            }
        }
    }

    /// Does whatever it is given at once, until the connection ends.
    pub async fn work_on(mut self) {
        while let Ok(order) = self.next().await {
            if let Order::Start(task) = order {
                let (outcome, used) = (Outcome::Success, Used::default());
                let how = TaskEnd { outcome, message: None, used };
                let news = News::Ended { key: task.key, how };
                self.side.tell(self.clock.now(), news, &mut self.orders);
            }
        }
    }

    /// Says its first words and then never reads anything.
    pub async fn turn_deaf(mut self) -> TlsStream<TcpStream> {
        let said = self.orders.take_bytes();
        self.stream.write_all(&said).await.unwrap();
        self.stream.flush().await.unwrap();
        self.stream
    }

    /// Everything is said and answered when this returns.
    pub async fn finish(&mut self, task: &Assignment, printed: &str) {
        let now = self.clock.now();
        let bytes = bytes::Bytes::copy_from_slice(printed.as_bytes());
        let wrote = News::Wrote { key: task.key, stream: Stream::Out, bytes };
        self.side.tell(now, wrote, &mut self.orders);
        let how = TaskEnd {
            outcome: Outcome::Success,
            message: None,
            used: Used { wall_us: 1500, user_us: 700, system_us: 300, peak_kib: 4096 },
        };
        self.side.tell(now, News::Ended { key: task.key, how }, &mut self.orders);
        while !self.side.is_settled() {
            let said = self.orders.take_bytes();
            self.stream.write_all(&said).await.unwrap();
            assert_ne!(self.stream.read_buf(&mut self.input).await.unwrap(), 0, "closed");
            self.side.receive(self.clock.now(), &mut self.input, &mut self.orders);
        }
    }
}

pub async fn submit(handle: &Handle, count: u32) -> JobId {
    submit_array(handle, |work| ArraySpec::numbered("", count, work), Profile::default()).await
}

pub async fn submit_array(
    handle: &Handle,
    array: impl FnOnce(Work) -> ArraySpec,
    profile: Profile,
) -> JobId {
    let command = Work::Command(CommandWork {
        program: Program::Shell((*b"true").into()),
        setting: Arc::default(),
    });
    let submit = Submit {
        group: "default".into(),
        job: SubmitTo::New(JobOptions::default()),
        profiles: vec![profile],
        tasks: Vec::new(),
        arrays: vec![array(command)],
        unknown_pred: UnknownPred::Refuse,
        if_taken: IfTaken::Refuse,
    };
    match handle.ask(Command::Submit(submit)).await.unwrap() {
        Reply::Submitted { job, .. } => job,
        other => panic!("{other:?}"),
    }
}

pub async fn done(handle: &Handle, job: JobId) -> u32 {
    let Reply::Jobs(jobs) = handle.ask(Command::Query(Query::Job(job))).await.unwrap() else {
        panic!("no job {job}")
    };
    jobs[0].counts.of(State::Done)
}

/// Waits for what must come to be, and not for ever.
pub async fn eventually(mut is_so: impl AsyncFnMut() -> bool) {
    let looked = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), looked).await.expect("it came to be in time");
}

/// Of the HTTP API, with this token.
pub fn client(hub: &RunningHub, token: &Secret) -> Client {
    let address = hub.http.unwrap();
    let mut target = Target::new(address.ip().to_string(), address.port());
    target.tls = Some(Arc::new(client_config(&hub.access).unwrap()));
    target.token = Some(token.expose().to_owned());
    Client::new(target)
}
