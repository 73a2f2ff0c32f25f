//! Starts the Python programs that are the other side of a test, and hears what they say.

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub struct Peer {
    child: Child,
    /// Closed when there is nothing more to come.
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Peer {
    pub fn start(first: &str, args: &[impl AsRef<str>]) -> Peer {
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/zmtp/peer.py");
        let mut child = Command::new(python())
            .arg(script)
            .arg(first)
            .args(args.iter().map(AsRef::as_ref))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 starts");
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Peer { child, stdin, stdout }
    }

    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim().into()
    }

    /// Waits for its end; all that it said since.
    pub fn end(&mut self) -> String {
        self.stdin = None;
        let mut said = String::new();
        self.stdout.read_to_string(&mut said).unwrap();
        self.child.wait().unwrap();
        said.trim().into()
    }

    /// Whoever waits at this address for a peer that failed to start gets a connection that says nothing.
    pub fn wakes(mut self, address: SocketAddr) -> std::thread::JoinHandle<String> {
        std::thread::spawn(move || {
            let said = self.end();
            drop(TcpStream::connect(address));
            said
        })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The one that `./check` made, with the packages of `tests/requirements.txt`.
fn python() -> PathBuf {
    if let Some(named) = std::env::var_os("LABORO_PYTHON") {
        return named.into();
    }
    let made = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/python/bin/python3");
    if made.exists() { made } else { "python3".into() }
}
