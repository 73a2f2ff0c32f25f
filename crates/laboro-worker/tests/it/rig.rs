//! What the tests share: a runner, the outcome of a launch, and waiting for a condition.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use laboro_worker::{Ending, EventSource, Launch, Options, Runner, RunnerEvent, Stream, Usage};

pub const PROBE: &str = env!("CARGO_BIN_EXE_runner-probe");

/// Longer than anything takes on a machine that is very busy.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Rig {
    pub runner: Runner,
    pub events: EventSource,
}

#[derive(Debug)]
pub struct Outcome {
    pub ending: Ending,
    pub usage: Usage,
    pub started: SystemTime,
    pub pid: Option<u32>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl Outcome {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap().trim_end()
    }
}

pub fn options() -> Options {
    Options { guardian: PROBE.into(), at_once: crate::AT_ONCE, ..Options::default() }
}

impl Rig {
    pub fn new() -> Rig {
        let (runner, events) = Runner::start(options()).unwrap();
        Rig { runner, events }
    }

    pub fn next(&mut self) -> Vec<RunnerEvent> {
        let batch = self.events.wait(Some(PATIENCE)).unwrap().expect("the runner is not shut down");
        assert!(!batch.is_empty(), "nothing happened for {PATIENCE:?}");
        batch
    }

    pub fn run(&mut self, launch: Launch) -> Outcome {
        let id = launch.id;
        self.runner.launch(launch);
        self.finish(id)
    }

    /// Takes events until this task has ended.
    pub fn finish(&mut self, wanted: u64) -> Outcome {
        let (mut out, mut err, mut at) = (Vec::new(), Vec::new(), None);
        loop {
            for event in self.next() {
                match event {
                    RunnerEvent::Started { id, pid } if id == wanted => at = Some(pid),
                    RunnerEvent::Output { id, stream, bytes } if id == wanted => match stream {
                        Stream::Stdout => out.extend(bytes),
                        Stream::Stderr => err.extend(bytes),
                    },
                    RunnerEvent::Ended { id, ending, usage, started } if id == wanted => {
                        return Outcome {
                            ending,
                            usage,
                            started,
                            pid: at,
                            stdout: out,
                            stderr: err,
                        };
                    }
                    _ => {}
                }
            }
        }
    }

    /// Takes events until this task has said this much on stdout, and gives that back.
    pub fn said(&mut self, wanted: u64, lines: usize) -> Vec<String> {
        let mut text = String::new();
        while text.matches('\n').count() < lines {
            for event in self.next() {
                match event {
                    RunnerEvent::Output { id, stream: Stream::Stdout, bytes } if id == wanted => {
                        text.push_str(std::str::from_utf8(&bytes).unwrap());
                    }
                    RunnerEvent::Ended { id, ending, .. } if id == wanted => {
                        panic!("it ended: {ending:?}, after {text:?}")
                    }
                    _ => {}
                }
            }
        }
        text.lines().map(str::to_owned).collect()
    }
}

pub fn command(id: u64, argv: &[&str]) -> Launch {
    let path = std::env::var_os("PATH").unwrap();
    Launch { env: vec![("PATH".into(), path)], ..Launch::new(id, argv.iter().map(OsString::from)) }
}

pub fn shell(id: u64, script: &str) -> Launch {
    command(id, &["sh", "-c", script])
}

/// One process, not to be mistaken for a later one with its number.
#[derive(Clone, Debug, PartialEq)]
pub struct Life {
    pid: u32,
    born: String,
}

impl Life {
    pub fn of(pid: &str) -> Life {
        let pid = pid.trim().parse().unwrap();
        let (born, _) = look(pid).unwrap_or_else(|| panic!("process {pid} is not there"));
        Life { pid, born }
    }

    pub fn is_over(&self) -> bool {
        look(self.pid).is_none_or(|(born, state)| born != self.born || state == "Z")
    }

    pub fn parent(&self) -> u32 {
        fields(self.pid).unwrap()[1].parse().unwrap()
    }
}

fn look(pid: u32) -> Option<(String, String)> {
    let fields = fields(pid)?;
    Some((fields[19].clone(), fields[0].clone()))
}

fn fields(pid: u32) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let rest = &stat[stat.rfind(')')? + 2..];
    Some(rest.split(' ').map(str::to_owned).collect())
}

/// Looks again and again until it holds.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A directory of its own, removed at the end.
pub struct Dir(pub PathBuf);

impl Dir {
    pub fn new(name: &str) -> Dir {
        let path =
            std::env::temp_dir().join(format!("laboro-worker-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Dir(path)
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
