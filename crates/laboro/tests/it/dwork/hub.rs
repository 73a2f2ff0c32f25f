//! A dwork door with a whole engine behind it, in a thread of the test: the real ring, the real sessions,
//! the plainest driver there can be.

use laboro_core::{Config, Hub as Core, Ledger};
use laboro_dialects::dwork::{Door, HubSide, Settings};
use laboro_dialects::session::{OpenGate, Output, Place, Session};
use laboro_hub::{Clock, Handle, ServerOptions};
use laboro_journal::{Journal, MemoryJournal};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

pub struct Hub {
    pub address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Hub {
    pub fn start(settings: Settings) -> Hub {
        let (tell, told) = std::sync::mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                tell.send(listener.local_addr().unwrap()).unwrap();
                tokio::select! {
                    () = serve(listener, Door::new(settings)) => {}
                    _ = stopped => {}
                }
            });
        });
        Hub { address: told.recv().unwrap(), stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn serve(listener: TcpListener, door: Arc<Door>) {
    let clock = Clock::start();
    let mut journal = MemoryJournal::default();
    let (mut core, first) = Core::begin(Ledger::default(), Config::default(), clock.now(), 1);
    journal.commit(first).await.unwrap();
    let (mut server, handle) = laboro_hub::server(&ServerOptions::default(), clock);
    let accept = async {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(converse(stream, handle.clone(), door.clone(), clock));
        }
    };
    tokio::select! {
        () = accept => {}
        ended = laboro_hub::run(&mut core, &mut server, &mut journal) => ended.unwrap(),
    }
}

async fn converse(stream: TcpStream, handle: Handle, door: Arc<Door>, clock: Clock) {
    stream.set_nodelay(true).unwrap();
    let mut subscription = handle.open_session().await.unwrap();
    let place = Place {
        session: subscription.session,
        group: "default".into(),
        peer: None,
        message_max: 16 << 20,
        grace_ms: 0,
        gate: Arc::new(OpenGate),
    };
    let (mut side, mut out) = (HubSide::new(place, door), Output::default());
    let mut input = bytes::BytesMut::new();
    side.open(clock.now(), &mut out);
    loop {
        if !out.ask.is_empty() {
            subscription.ask_all(std::mem::take(&mut out.ask)).await.unwrap();
        }
        if send(&stream, &out.take_bytes()).await.is_err() || out.hang_up.is_some() {
            break;
        }
        let wait = side.deadline().map(|at| clock.until(at));
        tokio::select! {
            delivery = subscription.next() => match delivery {
                Some(delivery) => side.deliver(clock.now(), delivery, &mut out),
                None => return,
            },
            _ = stream.readable() => {
                let mut chunk = [0; 65536];
                match stream.try_read(&mut chunk) {
                    Ok(0) => break,
                    Ok(read) => {
                        input.extend_from_slice(&chunk[..read]);
                        side.receive(clock.now(), &mut input, &mut out);
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(_) => break,
                }
            }
            () = tokio::time::sleep(wait.unwrap_or_default()), if wait.is_some() => {
                side.tick(clock.now(), &mut out);
            }
        }
    }
    side.close(clock.now(), &mut out);
    let _ = subscription.ask_all(out.ask).await;
}

async fn send(stream: &TcpStream, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        stream.writable().await?;
        match stream.try_write(bytes) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
