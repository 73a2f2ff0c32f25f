//! What a transport promises, whatever it carries: real sockets, a real hub, a small dialect.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod lines;

use super::*;
use crate::inbox::{Handle, ServerOptions, server};
use crate::keep::{Keeper, OnWriteError};
use crate::listen::DoorStats;
use crate::security::{NewToken, Role, TokenAdmission, TokenBook, Tokens};
use laboro_core::{Command, Config, Hub, Ledger, Query, Reply, WorkerId};
use laboro_dialects::session::{Admission, OpenAdmission, SessionContext};
use laboro_journal::outputs::{self, Key};
use laboro_journal::{Journal, MemoryJournal};
use laboro_net::Clock;
use lines::Lines;
use std::net::SocketAddr;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// A door for the dialect of lines, with a hub behind it.
struct Rig {
    address: SocketAddr,
    handle: Handle,
    hall: Hall,
    dir: TempDir,
    partings: mpsc::UnboundedReceiver<Parting>,
}

fn limits() -> ConnectionLimits {
    ConnectionLimits {
        message_bytes: 1000,
        handshake_ms: 60_000,
        write_ms: 60_000,
        admission_ms: 10,
        lost_ms: 60_000,
    }
}

fn with_door<F: AsyncFnOnce(Rig)>(limits: ConnectionLimits, session_queue: usize, test: F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let dir = TempDir::new().unwrap();
    let outputs_dir = dir.path().join("outputs");
    let config = outputs::Config::default();
    let keeper = Keeper::open(&outputs_dir, config, 1, OnWriteError::Wait).unwrap();
    let outputs = Some(keeper.outputs());
    runtime.block_on(async {
        let clock = Clock::start();
        let mut journal = MemoryJournal::default();
        let (mut hub, first) = Hub::begin(Ledger::default(), Config::default(), clock.now(), 1);
        journal.commit(first).await.unwrap();
        let options = ServerOptions { session: session_queue, ..ServerOptions::default() };
        let (mut server, handle) = server(&options, clock);
        let (stats, stop) = (Arc::new(DoorStats::default()), CancellationToken::new());
        let hall = Hall { clock, outputs, stats, limits, lingers: true, stop };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (done, partings) = mpsc::unbounded_channel();
        let tokens = Arc::new(Tokens::open(dir.path()).unwrap());
        tokio::spawn(receive(listener, handle.clone(), hall.clone(), tokens, done));
        tokio::join!(
            async {
                let rig = Rig { address, handle: handle.clone(), hall, dir, partings };
                test(rig).await;
                let _ = handle.end().await;
            },
            async {
                crate::run(&mut hub, &mut server, &mut journal).await.unwrap();
                // Gone for good, for those who test that.
                drop(server);
            },
        );
    });
    drop(runtime);
    keeper.close();
}

async fn receive(
    listener: TcpListener,
    handle: Handle,
    hall: Hall,
    tokens: Arc<Tokens>,
    done: mpsc::UnboundedSender<Parting>,
) {
    while let Ok((stream, peer)) = listener.accept().await {
        let subscription = handle.open_session().await.unwrap();
        let admission = Arc::new(TokenAdmission::new(Arc::clone(&tokens)));
        let context = SessionContext {
            session: subscription.session,
            group: "default".into(),
            peer: Some(peer.ip()),
            message_max: hall.limits.message_bytes,
            grace_ms: 0,
            admission: Arc::clone(&admission) as Arc<dyn Admission>,
        };
        let (hall, done) = (hall.clone(), done.clone());
        tokio::spawn(async move {
            let session = Lines::new(context);
            let parting = drive(stream, session, subscription, Some(&admission), &hall).await;
            let _ = done.send(parting);
        });
    }
}

impl Rig {
    async fn connect(&self) -> Peer {
        let mut peer = Peer(BufReader::new(TcpStream::connect(self.address).await.unwrap()));
        assert_eq!(peer.hear().await, "lines 1");
        peer
    }

    async fn parting(&mut self) -> Parting {
        self.partings.recv().await.unwrap()
    }

    fn stats(&self) -> crate::listen::DoorCounts {
        self.hall.stats.counts()
    }

    async fn worker_is_connected(&self) -> bool {
        let query = Query::Workers { group: None, from: WorkerId(0), most: 10 };
        let Reply::Workers(workers) = self.handle.ask(Command::Query(query)).await.unwrap() else {
            panic!("no workers")
        };
        workers[0].connected
    }
}

struct Peer(BufReader<TcpStream>);

impl Peer {
    async fn say(&mut self, words: &str) {
        self.0.write_all(words.as_bytes()).await.unwrap();
        self.0.write_all(b"\n").await.unwrap();
    }

    /// Nothing: the connection is closed.
    async fn hear(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).await.unwrap();
        line.trim_end().to_owned()
    }

    async fn asks(&mut self, words: &str) -> String {
        self.say(words).await;
        self.hear().await
    }
}

#[test]
fn a_task_goes_from_one_peer_to_another_and_what_it_prints_is_kept() {
    with_door(limits(), 64, async |mut rig| {
        let (mut submitter, mut worker) = (rig.connect().await, rig.connect().await);
        assert_eq!(submitter.asks("submit 2").await, "submitted 1");
        worker.say("join w").await;
        let mut lines = [worker.hear().await, worker.hear().await, worker.hear().await];
        lines.sort();
        assert_eq!(lines[..2], ["answer 3", "answer 3"]);
        let first = lines[2].strip_prefix("work ").unwrap().to_owned();
        assert!(first.starts_with("1/1/"), "{first}");
        worker.say(&format!("print {first} something")).await;
        worker.say(&format!("done {first}")).await;
        let mut after = [worker.hear().await, worker.hear().await];
        after.sort();
        assert_eq!(after[0], "answer 4");
        assert!(after[1].starts_with("work 1/2/"), "{after:?}");
        let key = Key { job: 1, index: 1, attempt: 1 };
        let end = rig.hall.outputs.as_ref().unwrap().end(key).await.unwrap().unwrap();
        assert_eq!(end.stdout.kept, 9);
        assert_eq!(worker.asks("bye").await, "goodbye");
        assert_eq!(worker.hear().await, "");
        drop(worker);
        assert_eq!(rig.parting().await, Parting::Finished);
        let stats = rig.stats();
        assert!(stats.bytes_in > 0 && stats.bytes_out > 0 && stats.messages_out >= 8, "{stats:?}");
        assert_eq!(stats.commands, 1 + 2 + 1 + 1, "submit, join and offer, report, leave");
    });
}

#[test]
fn more_questions_at_once_than_its_queue_has_room_for_are_all_answered() {
    with_door(limits(), 16, async |mut rig| {
        let mut peer = rig.connect().await;
        let (mut reader, mut writer) = peer.0.get_mut().split();
        let questions = "ask\n".repeat(20_000);
        let ask = writer.write_all(questions.as_bytes());
        let mut answers = vec![0; 20_000 * "answer 1\n".len()];
        let (asked, heard) = tokio::join!(ask, reader.read_exact(&mut answers));
        asked.unwrap();
        heard.unwrap();
        drop(peer);
        assert_eq!(rig.parting().await, Parting::Left);
        assert_eq!(rig.stats().slow, 0);
    });
}

#[test]
fn a_peer_that_does_not_read_is_cut_off_after_a_while() {
    with_door(ConnectionLimits { write_ms: 100, ..limits() }, 64, async |mut rig| {
        let mut deaf = rig.connect().await;
        deaf.say("flood 100000000").await;
        assert_eq!(rig.parting().await, Parting::Slow);
        assert_eq!(rig.stats().slow, 1);
        assert_eq!(rig.connect().await.asks("hello").await, "hello", "others are served");
    });
}

#[test]
fn a_peer_that_reads_slowly_but_reads_is_left_alone() {
    with_door(ConnectionLimits { write_ms: 500, ..limits() }, 64, async |rig| {
        let mut slow = rig.connect().await;
        slow.say("flood 30000000").await;
        let mut left = 30_000_000;
        let mut buffer = vec![0; 1 << 16];
        while left > 0 {
            left -= slow.0.read(&mut buffer).await.unwrap();
            tokio::task::yield_now().await;
        }
        assert_eq!(slow.asks("hello").await, "hello");
        assert_eq!(rig.stats().slow, 0);
    });
}

#[test]
fn whoever_says_nothing_has_to_go() {
    with_door(ConnectionLimits { handshake_ms: 50, ..limits() }, 64, async |mut rig| {
        let mut silent = rig.connect().await;
        assert_eq!(rig.parting().await, Parting::Silent);
        assert_eq!(silent.hear().await, "");
        assert_eq!(rig.stats().silent, 1);
    });
}

#[test]
fn whoever_has_spoken_may_be_silent() {
    with_door(ConnectionLimits { handshake_ms: 50, ..limits() }, 64, async |rig| {
        let mut peer = rig.connect().await;
        assert_eq!(peer.asks("hello").await, "hello");
        assert_eq!(peer.asks("wake 200").await, "awake", "long after its first word was due");
        assert_eq!(rig.stats().silent, 0);
    });
}

#[test]
fn whoever_is_known_may_wait_with_its_first_word() {
    with_door(ConnectionLimits { handshake_ms: 50, ..limits() }, 64, async |mut rig| {
        let subscription = rig.handle.open_session().await.unwrap();
        let context = SessionContext {
            session: subscription.session,
            group: "default".into(),
            peer: None,
            message_max: 1000,
            grace_ms: 0,
            admission: Arc::new(OpenAdmission),
        };
        let (here, there) = tokio::io::duplex(1000);
        let hall = rig.hall.clone();
        let known = tokio::spawn(async move {
            drive_known(there, Lines::new(context), subscription, &hall).await
        });
        let mut here = BufReader::new(here);
        let mut line = String::new();
        here.read_line(&mut line).await.unwrap();
        let _stranger = rig.connect().await;
        assert_eq!(rig.parting().await, Parting::Silent, "a stranger that came later");
        here.write_all(b"hello\n").await.unwrap();
        here.read_line(&mut line).await.unwrap();
        assert_eq!(line, "lines 1\nhello\n");
        drop(here);
        assert_eq!(known.await.unwrap(), Parting::Left);
    });
}

#[test]
fn the_last_word_reaches_a_peer_that_makes_no_sense_and_goes_on_talking() {
    with_door(limits(), 64, async |mut rig| {
        let mut peer = rig.connect().await;
        peer.say(&"rubbish\n".repeat(1000)).await;
        assert_eq!(peer.hear().await, "what?");
        drop(peer);
        assert!(matches!(rig.parting().await, Parting::Malformed(_)));
        assert_eq!(rig.stats().malformed, 1);
    });
}

#[test]
fn a_message_without_an_end_is_not_waited_for() {
    with_door(limits(), 64, async |mut rig| {
        let mut peer = rig.connect().await;
        // Whether all of it can be written depends on when the other side has had enough.
        let _ = peer.0.write_all(&vec![b'x'; 10 << 20]).await;
        let parting = rig.parting().await;
        assert_eq!(parting, Parting::Malformed("a message is longer than 1000 bytes".into()));
    });
}

#[test]
fn the_hub_hears_of_a_worker_whose_connection_is_gone() {
    with_door(limits(), 64, async |mut rig| {
        let mut worker = rig.connect().await;
        assert_eq!(worker.asks("join w").await, "answer 3");
        assert!(rig.worker_is_connected().await);
        drop(worker);
        assert_eq!(rig.parting().await, Parting::Left);
        assert!(!rig.worker_is_connected().await);
    });
}

#[test]
fn when_the_hub_stops_conversations_end_in_order() {
    with_door(limits(), 64, async |mut rig| {
        let mut worker = rig.connect().await;
        assert_eq!(worker.asks("join w").await, "answer 3");
        assert_eq!(worker.hear().await, "answer 3");
        rig.hall.stop.cancel();
        assert_eq!(worker.hear().await, "", "closed");
        drop(worker);
        assert_eq!(rig.parting().await, Parting::Stopped);
        assert!(!rig.worker_is_connected().await);
    });
}

#[test]
fn what_was_on_its_way_when_the_hub_stopped_is_answered_by_who_has_a_word_for_it() {
    with_door(limits(), 64, async |mut rig| {
        let mut peer = rig.connect().await;
        assert_eq!(peer.asks("answer late").await, "fine");
        rig.hall.stop.cancel();
        assert_eq!(peer.hear().await, "stopping");
        assert_eq!(peer.asks("hello").await, "too late");
        assert_eq!(peer.hear().await, "", "closed");
        drop(peer);
        assert_eq!(rig.parting().await, Parting::Stopped);
    });
}

#[test]
fn without_a_hub_conversations_end_too() {
    with_door(limits(), 64, async |mut rig| {
        let mut peer = rig.connect().await;
        rig.handle.end().await.unwrap();
        assert_eq!(peer.hear().await, "");
        drop(peer);
        assert_eq!(rig.parting().await, Parting::Stopped);
    });
}

#[test]
fn a_wrong_token_is_denied_and_a_revoked_one_ends_the_conversation() {
    with_door(limits(), 64, async |mut rig| {
        let mut stranger = rig.connect().await;
        assert_eq!(stranger.asks("secret laboro_wrong").await, "");
        drop(stranger);
        let Parting::Denied(why) = rig.parting().await else { panic!("not denied") };
        assert!(why.contains("laboro access"), "{why}");

        let book = TokenBook::of(rig.dir.path());
        let new =
            NewToken { name: None, role: Role::Work, owner: None, group: None, expires_ms: None };
        let (secret, token) = book.add(new, Clock::start().now()).unwrap();
        let mut worker = rig.connect().await;
        assert_eq!(worker.asks(&format!("secret {}", secret.expose())).await, "welcome");
        book.revoke(&token.name).unwrap();
        assert_eq!(worker.hear().await, "");
        drop(worker);
        assert!(matches!(rig.parting().await, Parting::Denied(_)));
        assert_eq!(rig.stats().denied, 2);
    });
}
