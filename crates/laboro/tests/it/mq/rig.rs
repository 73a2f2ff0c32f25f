//! What the tests of `mq` share: a server, and processes that are spoken to line by line.

use crate::rig::{LABORO, PATIENCE, Rig, python};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

/// A process that is spoken to line by line.
pub struct Program {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Program {
    pub fn laboro(arguments: &[&str]) -> Program {
        let mut command = Command::new(LABORO);
        command.arg("mq").args(arguments);
        Program::start(command)
    }

    /// A peer of libzmq: `peer.py` with these arguments.
    pub fn python(arguments: &[&str]) -> Program {
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/mq/peer.py");
        let mut command = Command::new(python());
        command.arg(script).args(arguments);
        Program::start(command)
    }

    pub fn start(mut command: Command) -> Program {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (said, lines) = channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            out.lines().map_while(Result::ok).try_for_each(|l| said.send(l))
        });
        let stdin = child.stdin.take();
        Program { child, stdin, lines, seen: Vec::new() }
    }

    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    pub fn say(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// The next line; fails at the end of output.
    #[track_caller]
    pub fn line(&mut self) -> String {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => {
                self.seen.push(line.clone());
                line
            }
            Err(why) => panic!("{why} after {:#?}", self.seen),
        }
    }

    /// The next line with this in it.
    #[track_caller]
    pub fn until(&mut self, words: &str) -> String {
        loop {
            let line = self.line();
            if line.contains(words) {
                return line;
            }
        }
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_raw(self.pid()).unwrap(), signal)
            .unwrap();
    }

    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Ends its input, and waits: the exit status and the lines that were not looked at.
    #[track_caller]
    pub fn end(mut self) -> (i32, Vec<String>) {
        self.stdin = None;
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "does not end; it said {:#?}", self.seen);
            std::thread::yield_now();
        };
        (status.code().unwrap_or(-1), self.lines.iter().collect())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A server on a free port.
pub struct Server {
    pub program: Program,
    pub address: String,
}

impl Server {
    pub fn start(more: &[&str]) -> Server {
        Server::start_at("127.0.0.1:0", more)
    }

    pub fn start_at(address: &str, more: &[&str]) -> Server {
        let listen = ["server", "--listen", address, "--debug", "0"];
        let mut program = Program::laboro(&[&listen[..], more].concat());
        let line = program.until("rrmq on ");
        let address = line.strip_prefix("rrmq on ").unwrap().to_owned();
        Server { program, address }
    }

    pub fn port(&self) -> &str {
        self.address.rsplit_once(':').unwrap().1
    }

    /// What `laboro mq workers --json` says.
    pub fn table(&self) -> Value {
        let rig = Rig::new();
        let ran = rig.laboro(["mq", "workers", "--json", "-s", &self.address]).run();
        ran.expect(0);
        serde_json::from_slice(&ran.out).unwrap()
    }

    pub fn worker(&self, more: &[&str]) -> Program {
        let arguments = ["worker", "--debug", "0", "-s", &self.address];
        let mut worker = Program::laboro(&[&arguments[..], more].concat());
        worker.until("registered with");
        worker
    }

    /// A one-shot client, to its end, with its JSON.
    pub fn ask(&self, action: &[&str]) -> Value {
        let rig = Rig::new();
        let arguments = ["mq", "client", "--debug", "0", "--json", "-s", &self.address];
        let ran = rig.laboro([&arguments[..], action].concat()).run();
        serde_json::from_slice(&ran.out).unwrap_or_else(|e| panic!("{e}: {ran:?}"))
    }
}
