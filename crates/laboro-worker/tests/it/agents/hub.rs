//! A dialect of lines, both sides of it. The hub's side is the test itself: it says lines and expects lines.
//!
//! Hub: `start KEY SLOTS LINE`, `cancel KEY`, `drain`, `stop`, `ok KEY`, `took BYTES`, `refuse WHY`, `bye`, and
//! `hard` when it takes nothing back.
//! Worker: `hello KEY...` with what is not answered yet, then `started`, `wrote`, `ended`, `returned`, `ahead`,
//! `draining`, `leaving`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use laboro_core::{CommandWork, Program, Setting, Time, Work};
use laboro_dialects::worker::{
    Assignment, ElementValue, Key, News, Order, Orders, Parting, WorkerSide,
};
use laboro_worker::Until;
use laboro_worker::agent::{
    Agent, AgentError, AgentOptions, Crew, Farewell, LimitBy, Link, ScratchPlace, Tcp,
};
use tokio::sync::mpsc;

use crate::rig::{Dir, PATIENCE, options};

/// A task that runs this line in a shell.
pub fn shell(key: u64, line: &str) -> Assignment {
    let setting = Arc::new(Setting::default());
    let program = Program::Shell(line.as_bytes().into());
    task(key, Work::Command(CommandWork { program, setting }))
}

pub fn task(key: u64, work: Work) -> Assignment {
    Assignment {
        key: Key(key),
        name: format!("task{key}"),
        job: 1,
        index: key as u32,
        attempt: 1,
        work: Arc::new(work),
        value: None,
        slots: 1,
        memory: 0,
        time_limit_ms: None,
        resources: Vec::new(),
        role: laboro_core::Role::Only,
        access: None,
    }
}

pub fn element(key: u64, position: u32, value: &[u8], work: Work) -> Assignment {
    let bytes = value.to_vec().into();
    Assignment {
        name: format!("array.{}", position + 1),
        value: Some(ElementValue { position, bytes }),
        ..task(key, work)
    }
}

/// The worker's side of the dialect. Work beyond lines is known beforehand and started by `give KEY`.
#[derive(Default)]
struct Lines {
    known: BTreeMap<u64, Assignment>,
    is_up: bool,
    running: BTreeSet<u64>,
    /// Results without an answer.
    unanswered: BTreeMap<u64, String>,
    unsaid: usize,
    is_hard: bool,
    /// How often it was asked when it is due.
    turns: Arc<AtomicU64>,
}

impl Lines {
    fn say(&mut self, line: &str, out: &mut Orders) {
        if self.is_up {
            out.say.extend_from_slice(line.as_bytes());
            out.say.extend_from_slice(b"\n");
            out.end_message();
        }
    }

    fn result(&mut self, key: Key, line: String, out: &mut Orders) {
        self.running.remove(&key.0);
        self.say(&line, out);
        self.unanswered.insert(key.0, line);
    }

    fn hear(&mut self, line: &str, out: &mut Orders) {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let number = || rest.split(' ').next().unwrap().parse::<u64>().unwrap();
        match verb {
            "welcome" => out.order(Order::Welcome { name: rest.to_owned() }),
            "start" => {
                let [key, slots, line] = *rest.splitn(3, ' ').collect::<Vec<_>>() else { panic!() };
                let mut assignment = shell(key.parse().unwrap(), line);
                assignment.slots = slots.parse().unwrap();
                self.start(assignment, out);
            }
            "give" => {
                let assignment = self.known[&number()].clone();
                self.start(assignment, out);
            }
            "cancel" => out.order(Order::Cancel(Key(number()))),
            "drain" => out.order(Order::Drain),
            "hard" => self.is_hard = true,
            "stop" => out.order(Order::StopNow),
            "slots" => out.order(Order::GiveUpSlots(number() as u32)),
            "ok" => drop(self.unanswered.remove(&number())),
            "took" => self.unsaid -= number() as usize,
            "refuse" => out.hang_up(Parting::Refused(rest.to_owned())),
            "nonsense" => out.hang_up(Parting::Malformed(rest.to_owned())),
            "bye" => out.hang_up(Parting::Finished),
            _ => panic!("{line}"),
        }
    }

    fn start(&mut self, assignment: Assignment, out: &mut Orders) {
        self.running.insert(assignment.key.0);
        out.order(Order::Start(Box::new(assignment)));
    }
}

impl WorkerSide for Lines {
    fn open(&mut self, _: Time, out: &mut Orders) {
        self.is_up = true;
        let running: Vec<String> = self.running.iter().map(u64::to_string).collect();
        self.say(&format!("hello {}", running.join(" ")), out);
        for line in self.unanswered.values().cloned().collect::<Vec<_>>() {
            self.say(&line, out);
        }
    }

    fn receive(&mut self, _: Time, input: &mut BytesMut, out: &mut Orders) {
        while let Some(end) = input.iter().position(|byte| *byte == b'\n') {
            let line = String::from_utf8(input[..end].to_vec()).unwrap();
            input.advance(end + 1);
            self.hear(&line, out);
        }
    }

    fn tell(&mut self, _: Time, news: News, out: &mut Orders) {
        match news {
            News::Started(key) => self.say(&format!("started {}", key.0), out),
            News::Wrote { key, stream, bytes } => {
                self.unsaid += bytes.len();
                let text = String::from_utf8_lossy(&bytes[..bytes.len().min(100)]);
                let line = format!("wrote {} {stream:?} {} {text:?}", key.0, bytes.len());
                self.say(&line, out);
            }
            News::Ended { key, how } => {
                let message = how.message.map_or_else(String::new, |words| format!(": {words}"));
                let line = format!("ended {} {}{message}", key.0, how.outcome);
                self.result(key, line, out);
            }
            News::Returned(key) => self.result(key, format!("returned {}", key.0), out),
            News::Ahead(ahead) => self.say(&format!("ahead {ahead}"), out),
            News::Draining => self.say("draining", out),
            News::Leaving => self.say("leaving", out),
        }
    }

    fn deadline(&self) -> Option<Time> {
        self.turns.fetch_add(1, Ordering::Relaxed);
        None
    }

    fn tick(&mut self, _: Time, _: &mut Orders) {}

    fn lost(&mut self, _: Time) {
        self.is_up = false;
    }

    fn unsaid(&self) -> usize {
        self.unsaid
    }

    fn takes_back(&self) -> bool {
        !self.is_hard
    }

    fn is_settled(&self) -> bool {
        self.unanswered.is_empty()
    }
}

/// An agent and the hub it works for.
pub struct Rig {
    pub dir: Dir,
    listener: TcpListener,
    signals: mpsc::UnboundedSender<()>,
    agent: Option<JoinHandle<Result<Farewell, AgentError>>>,
    /// Each turn of the agent counts at least once.
    pub turns: Arc<AtomicU64>,
    peer: Option<Peer>,
    /// Lines that were read and not expected yet.
    heard: Vec<String>,
}

struct Peer {
    reader: BufReader<TcpStream>,
    writer: TcpStream,
}

impl Rig {
    pub fn new(name: &str, change: impl FnOnce(&mut AgentOptions)) -> Rig {
        Rig::with(name, change, Vec::new(), true)
    }

    pub fn with(
        name: &str,
        change: impl FnOnce(&mut AgentOptions),
        known: Vec<Assignment>,
        has_crew: bool,
    ) -> Rig {
        let dir = Dir::new(name);
        let mut settings = AgentOptions {
            name: "tester".into(),
            slots: 2,
            shell: "/bin/sh".into(),
            dir: Some(dir.0.clone()),
            scratch: ScratchPlace::Among(dir.0.clone()),
            task_dirs: true,
            command: Vec::new(),
            nice: None,
            grace: Duration::from_secs(5),
            drain: Some(PATIENCE),
            haste: Duration::ZERO,
            launch_ahead: u32::MAX,
            ahead: 0,
            memory_free: None,
            delay: None,
            load_max: None,
            idle_timeout: None,
            time_limit: None,
            output_limit: u64::MAX,
            until: Until::default(),
            limit_by: LimitBy::Nothing,
            pin: None,
            items: Vec::new(),
            shares_signals: false,
            access: None,
        };
        change(&mut settings);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (signals, mut received) = mpsc::unbounded_channel();
        let known = known.into_iter().map(|task| (task.key.0, task)).collect();
        let turns = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&turns);
        let agent = std::thread::spawn(move || {
            let crew = has_crew.then(|| Crew::start(options(), settings.slots).unwrap());
            let side = Box::new(Lines { known, turns: counted, ..Lines::default() });
            let say = Box::new(|words: &str| eprintln!("worker: {words}"));
            let agent = Agent::new(settings, side, crew, say)?;
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let signal = async || match received.recv().await {
                    Some(()) => {}
                    None => std::future::pending().await,
                };
                agent.run(Link::new(Tcp { address }), signal).await
            })
        });
        let mut rig = Rig {
            dir,
            listener,
            signals,
            agent: Some(agent),
            turns,
            peer: None,
            heard: Vec::new(),
        };
        rig.meet("hello ");
        rig
    }

    /// Takes the next connection, which begins with this greeting.
    #[track_caller]
    pub fn meet(&mut self, greeting: &str) {
        self.meet_either(&[greeting]);
    }

    #[track_caller]
    pub fn meet_either(&mut self, greetings: &[&str]) {
        let (stream, _) = self.listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let writer = stream.try_clone().unwrap();
        self.peer = Some(Peer { reader: BufReader::new(stream), writer });
        self.heard.clear();
        let greeting = self.next();
        assert!(greetings.contains(&greeting.as_str()), "{greeting}");
        self.say("welcome tester");
    }

    /// The connection is gone from one moment to the next.
    pub fn cut(&mut self) {
        let peer = self.peer.take().unwrap();
        peer.writer.shutdown(std::net::Shutdown::Both).unwrap();
    }

    pub fn say(&mut self, line: &str) {
        let peer = self.peer.as_mut().unwrap();
        peer.writer.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn next(&mut self) -> String {
        let mut line = String::new();
        let read = self.peer.as_mut().unwrap().reader.read_line(&mut line);
        assert!(read.unwrap() > 0, "the worker hung up, after {:?}", self.heard);
        line.trim_end_matches('\n').to_owned()
    }

    /// Reads until this line comes. Those before it can be expected later.
    #[track_caller]
    pub fn expect(&mut self, wanted: &str) {
        self.expect_first(|line| line == wanted);
    }

    /// The first line that begins so, wherever it stands.
    #[track_caller]
    pub fn expect_begin(&mut self, wanted: &str) -> String {
        self.expect_first(|line| line.starts_with(wanted))
    }

    #[track_caller]
    fn expect_first(&mut self, is_wanted: impl Fn(&str) -> bool) -> String {
        if let Some(at) = self.heard.iter().position(|line| is_wanted(line)) {
            return self.heard.remove(at);
        }
        loop {
            let line = self.next();
            if is_wanted(&line) {
                return line;
            }
            self.heard.push(line);
        }
    }

    /// What came and was not expected so far.
    pub fn heard(&self) -> &[String] {
        &self.heard
    }

    /// The end of a task, answered.
    #[track_caller]
    pub fn ends(&mut self, key: u64, how: &str) {
        self.expect(&format!("ended {key} {how}"));
        self.say(&format!("ok {key}"));
    }

    #[track_caller]
    pub fn returns(&mut self, key: u64) {
        self.expect(&format!("returned {key}"));
        self.say(&format!("ok {key}"));
    }

    /// Says goodbye to a worker that does, and gives what it ended with.
    #[track_caller]
    pub fn leaves(mut self) -> Farewell {
        self.expect("leaving");
        self.say("bye");
        self.finish().unwrap()
    }

    pub fn finish(mut self) -> Result<Farewell, AgentError> {
        self.agent.take().unwrap().join().unwrap()
    }

    pub fn signal(&self) {
        self.signals.send(()).unwrap();
    }

    /// Reads a file that a task writes, once there is a whole line in it.
    pub fn line_of(&self, name: &str) -> String {
        let path = self.dir.at(name);
        let read = || std::fs::read_to_string(&path).unwrap_or_default();
        crate::rig::until(&format!("{name} has a line"), || read().ends_with('\n'));
        read().trim_end().to_owned()
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.dir.at(name), text).unwrap();
    }
}
