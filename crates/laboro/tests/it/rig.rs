//! What the tests share: a directory of its own, the program called as a person would call it, and waiting
//! for a condition with an end to it.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub const LABORO: &str = env!("CARGO_BIN_EXE_laboro");

/// Longer than anything takes on a machine that is very busy.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A directory in which `laboro` is called.
pub struct Rig {
    dir: TempDir,
}

impl Rig {
    pub fn new() -> Rig {
        Rig { dir: TempDir::with_prefix("laboro-it-").unwrap() }
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.dir().join(name)
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Empty if it is not there (yet).
    pub fn read(&self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.at(name)).unwrap_or_default()).into_owned()
    }

    pub fn lines(&self, name: &str) -> Vec<String> {
        self.read(name).lines().map(str::to_owned).collect()
    }

    pub fn sorted_lines(&self, name: &str) -> Vec<String> {
        let mut lines = self.lines(name);
        lines.sort();
        lines
    }

    /// The program with these arguments, not started yet.
    pub fn laboro<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Call {
        let mut command = Command::new(LABORO);
        command.args(arguments);
        self.call(command)
    }

    /// Any other program, in this directory.
    pub fn call(&self, mut command: Command) -> Call {
        command.current_dir(self.dir());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("LABORO_") {
                command.env_remove(name);
            }
        }
        Call { command, input: None }
    }

    /// `laboro run` with these arguments, to its end.
    pub fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Ran {
        let arguments = arguments.into_iter().map(|word| word.as_ref().to_owned());
        self.laboro(std::iter::once("run".into()).chain(arguments)).run()
    }

    /// The directory of the only run there is.
    pub fn run_dir(&self) -> PathBuf {
        let entries = fs::read_dir(self.at(".laboro")).unwrap();
        let mut dirs = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
        let dir = dirs.next().expect("there is a run");
        assert_eq!(dirs.next(), None, "there is one run");
        dir
    }

    /// What `laboro journal check --json` says of the only run; fails if it finds something wrong.
    pub fn journal(&self) -> Value {
        let dir = self.run_dir().join("journal");
        let check = self.laboro(["journal", "check", "--json", dir.to_str().unwrap()]).run();
        check.expect(0);
        serde_json::from_slice(&check.out).unwrap()
    }
}

pub struct Call {
    command: Command,
    input: Option<Vec<u8>>,
}

impl Call {
    /// Given through a pipe. Without it there is no standard input.
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Call {
        self.input = Some(bytes.into());
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Call {
        self.command.env(name, value);
        self
    }

    pub fn run(self) -> Ran {
        self.start().wait()
    }

    pub fn start(mut self) -> Live {
        let stdin = if self.input.is_some() { Stdio::piped() } else { Stdio::null() };
        self.command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().unwrap();
        if let Some(input) = self.input {
            let mut pipe = child.stdin.take().unwrap();
            // Small enough for the pipe, or read by the program before it writes much.
            std::thread::spawn(move || drop(pipe.write_all(&input)));
        }
        let out = Collector::start(child.stdout.take().unwrap());
        let err = Collector::start(child.stderr.take().unwrap());
        Live { child, out, err }
    }
}

/// A program that runs.
pub struct Live {
    child: Child,
    out: Collector,
    err: Collector,
}

impl Live {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.out.bytes.lock().unwrap()).into_owned()
    }

    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.err.bytes.lock().unwrap()).into_owned()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.pid() as i32).unwrap(), signal).unwrap();
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    pub fn wait(mut self) -> Ran {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > deadline {
                let _ = self.child.kill();
                panic!("not over within {PATIENCE:?}\n{}\n{}", self.out(), self.err());
            }
            pause();
        };
        Ran { status, out: self.out.finish(), err: self.err.finish() }
    }
}

impl Drop for Live {
    /// A test that fails leaves nothing running.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Collector {
    bytes: Arc<Mutex<Vec<u8>>>,
    thread: Option<JoinHandle<()>>,
}

impl Collector {
    fn start(mut pipe: impl Read + Send + 'static) -> Collector {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&bytes);
        let thread = std::thread::spawn(move || {
            let mut buffer = vec![0; 65536];
            while let Ok(read @ 1..) = pipe.read(&mut buffer) {
                shared.lock().unwrap().extend_from_slice(&buffer[..read]);
            }
        });
        Collector { bytes, thread: Some(thread) }
    }

    fn finish(&mut self) -> Vec<u8> {
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
        std::mem::take(&mut self.bytes.lock().unwrap())
    }
}

/// A program that has ended.
#[derive(Debug)]
pub struct Ran {
    pub status: ExitStatus,
    pub out: Vec<u8>,
    err: Vec<u8>,
}

impl Ran {
    #[track_caller]
    pub fn expect(&self, code: i32) -> &Ran {
        assert_eq!(self.status.code(), Some(code), "\n{}\n{}", self.out(), self.err());
        self
    }

    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.out).into_owned()
    }

    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.err).into_owned()
    }

    #[track_caller]
    pub fn says(&self, words: &str) -> &Ran {
        assert!(self.err().contains(words), "{words:?} is not in\n{}", self.err());
        self
    }

    #[track_caller]
    pub fn events(&self) -> Vec<Value> {
        events(&self.out())
    }
}

/// Every line of a `--json` run; fails if one is not JSON.
#[track_caller]
pub fn events(out: &str) -> Vec<Value> {
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    out.lines().map(parse).collect()
}

pub fn of_kind<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["event"] == kind).collect()
}

/// This machine does not let us: `./check` says so at its end, and what for.
pub fn not_tried(why: &str) {
    let name = std::thread::current().name().unwrap_or_default().to_owned();
    let line = format!("{name}: {why}\n");
    eprint!("NOT TRIED {line}");
    if let Some(list) = std::env::var_os("LABORO_NOT_TRIED") {
        let mut list = fs::File::options().append(true).create(true).open(list).unwrap();
        list.write_all(line.as_bytes()).unwrap();
    }
}

/// Looks again and again until it holds.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        pause();
    }
}

/// Between two looks at a condition.
fn pause() {
    std::thread::sleep(Duration::from_millis(2));
}

/// One process, not to be mistaken for a later one with its number.
#[derive(Debug)]
pub struct Life {
    pid: u32,
    born: String,
}

impl Life {
    /// Of a number that the process itself has written.
    #[track_caller]
    pub fn of(pid: &str) -> Life {
        let pid = pid.trim().parse().unwrap();
        let (born, _) = look(pid).unwrap_or_else(|| panic!("process {pid} is not there"));
        Life { pid, born }
    }

    pub fn parent(&self) -> u32 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap();
        let rest = &stat[stat.rfind(')').unwrap() + 2..];
        rest.split(' ').nth(1).unwrap().parse().unwrap()
    }

    pub fn is_over(&self) -> bool {
        look(self.pid).is_none_or(|(born, state)| born != self.born || state == "Z")
    }
}

fn look(pid: u32) -> Option<(String, String)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat[stat.rfind(')')? + 2..].split(' ').collect();
    Some((fields[19].to_owned(), fields[0].to_owned()))
}

/// The one that `./check` made, with all that its tests need.
pub fn python() -> PathBuf {
    if let Some(named) = std::env::var_os("LABORO_PYTHON") {
        return named.into();
    }
    let made = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/python/bin/python3");
    if made.exists() { made } else { "python3".into() }
}

/// The packages of npm that `./check` installs, where it can.
pub fn node_modules() -> Option<PathBuf> {
    let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/node/node_modules");
    let modules = std::env::var_os("LABORO_NODE_MODULES").map_or(made, PathBuf::from);
    modules.exists().then_some(modules)
}
