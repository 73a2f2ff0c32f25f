//! Where a page is run: a directory of its own, which is also its home, and where the page starts a hub or another
//! server a network of its own, so that usual ports are free and nobody else is reached. What a page started ends with it.

use crate::page::{Mark, blocks};
use crate::printed::check_lines;
use crate::repository;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::{NamedTempFile, TempDir};

/// Until a server is ready, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// What hubs, workers and brokers say when others may come.
const READY: [&str; 3] = [" on ", "connected as", "registered with"];

pub fn run_page(page: &str) {
    let blocks = blocks(page);
    let has_servers = blocks.iter().any(|block| matches!(block.mark, Mark::Stays));
    let network = has_servers.then(Network::make);
    if matches!(network, Some(None)) {
        return not_tried(
            page,
            "no network can be made: root may, or unprivileged users where allowed",
        );
    }
    let dir = tempfile::tempdir().unwrap();
    let mut place = Place { network: network.flatten(), servers: Vec::new(), dir };
    place.fill(page);
    let mut printed: Option<String> = None;
    for block in blocks {
        let at = format!("{page}:{}", block.line);
        match block.mark {
            Mark::Shown => {}
            Mark::File(name) => fs::write(place.dir.path().join(name), block.text).unwrap(),
            Mark::Run { status } => {
                let (code, output) = place.run(&block.text);
                assert_eq!(code, Some(status), "{at}: status; it printed:\n{output}");
                printed = Some(output);
            }
            Mark::Stays => printed = Some(place.start(&at, &block.text)),
            Mark::Prints(numbers) => {
                let output = printed.as_deref().expect("what is printed follows what is run");
                check_lines(&at, &block.text, output, numbers);
            }
        }
    }
}

struct Place {
    network: Option<Network>,
    servers: Vec<Child>,
    dir: TempDir,
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(self.network.take());
        for server in &mut self.servers {
            drop(server.wait());
        }
    }
}

impl Place {
    /// An example finds what is in its folder, every other page the files of these tests and the examples.
    fn fill(&self, page: &str) {
        let root = repository();
        match page.strip_suffix("/README.md").filter(|folder| folder.starts_with("examples/")) {
            Some(folder) => copy(&root.join(folder), self.dir.path()),
            None => {
                copy(&root.join("crates/laboro/tests/manual/files"), self.dir.path());
                copy(&root.join("examples"), &self.dir.path().join("examples"));
            }
        }
    }

    /// What a person would see: both streams, in order. Stops at the first command that fails.
    fn run(&self, commands: &str) -> (Option<i32>, String) {
        let seen = NamedTempFile::new().unwrap();
        let status = self.shell(commands, &seen).status().unwrap();
        (status.code(), read(&seen))
    }

    /// Returns when it is ready: it has said where it listens, or that it is connected.
    fn start(&mut self, at: &str, commands: &str) -> String {
        let seen = NamedTempFile::new().unwrap();
        let child = self.shell(commands, &seen).spawn().unwrap();
        self.servers.push(child);
        let child = self.servers.last_mut().expect("it was just pushed");
        let deadline = Instant::now() + PATIENCE;
        loop {
            let printed = read(&seen);
            if READY.iter().any(|words| printed.contains(words)) {
                return printed;
            }
            let ended = child.try_wait().unwrap();
            assert!(ended.is_none(), "{at}: it ended, {ended:?}:\n{printed}");
            assert!(Instant::now() < deadline, "{at}: not ready after {PATIENCE:?}:\n{printed}");
            std::thread::sleep(Duration::from_millis(5)); // Between two looks.
        }
    }

    fn shell(&self, commands: &str, seen: &NamedTempFile) -> Command {
        let program = Path::new(env!("CARGO_BIN_EXE_laboro"));
        let mut path = program.parent().unwrap().as_os_str().to_owned();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap());
        let to = || Stdio::from(File::options().append(true).open(seen.path()).unwrap());
        let mut shell = match &self.network {
            Some(network) => network.command(),
            None => Command::new("sh"),
        };
        shell.args(["-e", "-c", commands]).current_dir(self.dir.path());
        for variable in ["LABORO_ACCESS", "LABORO_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"] {
            shell.env_remove(variable);
        }
        shell.env("HOME", self.dir.path()).env("PATH", path).env("LC_ALL", "C.UTF-8");
        shell.stdin(Stdio::null()).stdout(to()).stderr(to());
        shell
    }
}

fn read(seen: &NamedTempFile) -> String {
    String::from_utf8_lossy(&fs::read(seen.path()).unwrap()).into_owned()
}

/// A network with nothing but a loopback, and the process that keeps it. Everything that is started in it is in that
/// process's group, which the process ends when this is dropped, and also when the test itself is killed.
struct Network {
    keeper: Child,
    has_users: bool,
}

impl Network {
    /// `None` where this user may not.
    fn make() -> Option<Network> {
        [false, true].into_iter().find_map(|has_users| {
            let mut unshare = Command::new("unshare");
            unshare.arg("--net").args(has_users.then_some("--map-root-user"));
            unshare.args(["sh", "-c", "ip link set lo up && echo up && cat; kill -KILL 0"]);
            unshare.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
            let mut keeper = unshare.process_group(0).spawn().ok()?;
            let mut word = String::new();
            BufReader::new(keeper.stdout.take()?).read_line(&mut word).ok()?;
            let network = Network { keeper, has_users };
            (word == "up\n").then_some(network)
        })
    }

    /// A shell in it.
    fn command(&self) -> Command {
        let pid = self.keeper.id();
        let mut enter = Command::new("nsenter");
        enter.arg(format!("--target={pid}")).arg("--net");
        if self.has_users {
            enter.args(["--user", "--preserve-credentials"]);
        }
        enter.arg("sh").process_group(i32::try_from(pid).unwrap());
        enter
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        drop(self.keeper.wait());
    }
}

/// This machine does not let us: `./check` says so at its end, and what for.
fn not_tried(page: &str, why: &str) {
    let line = format!("{page}: {why}\n");
    eprint!("NOT TRIED {line}");
    if let Some(list) = std::env::var_os("LABORO_NOT_TRIED") {
        let mut list = File::options().append(true).create(true).open(list).unwrap();
        list.write_all(line.as_bytes()).unwrap();
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap();
        // What runs in the examples left there is not part of them.
        if name == ".laboro" || name == "out" {
            continue;
        }
        let to = to.join(name);
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).unwrap();
        }
    }
}
