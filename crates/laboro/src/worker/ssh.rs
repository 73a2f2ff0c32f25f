//! Workers on other machines, started by the `ssh` program: each gets the access text over its standard input,
//! its lines are shown with the machine's name before them, and an end here is an end there.

use super::args::Worker;
use super::front::END_OF_ACCESS;
use crate::exit::{Exit, usage};
use crate::output::{safe, say, shell_word};
use crate::run::Signals;
use anyhow::Context;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::task::JoinSet;

/// How one of them ended.
struct HostEnd {
    host: String,
    code: Option<i32>,
}

/// Lines longer than this are cut: they come from elsewhere.
const LINE_BYTES_MAX: usize = 4096;

pub(crate) fn run(args: &Worker, access: &str) -> anyhow::Result<Exit> {
    let words: Option<Vec<&str>> = args.words.iter().map(|word| word.to_str()).collect();
    let words = words.ok_or_else(|| usage("the workers' options are not all text"))?;
    let command = remote_command(args, &words);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(drive(&args.ssh, &command, access))
}

/// What a shell on the other machine is given. The access text comes first on standard input; that the rest
/// of it ends is how the worker knows that we are gone, also if ssh itself was killed.
fn remote_command(args: &Worker, words: &[&str]) -> String {
    let options = args.hub.as_deref().into_iter().chain(words.iter().copied());
    let command = remote_words(&args.remote_laboro, options);
    command.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
}

async fn drive(hosts: &[String], command: &str, access: &str) -> anyhow::Result<Exit> {
    let mut signals = Signals::listen()?;
    let mut workers = SshWorkers::new(access.to_owned(), false);
    for host in hosts {
        workers.watch(host, start(host, &[], command)?).await;
    }
    loop {
        tokio::select! {
            () = signals.next() => {
                workers.interrupt().await;
            }
            is_left = workers.next_end() => if !is_left {
                return Ok(if workers.has_failed { Exit::SomeFailed } else { Exit::Done });
            },
        }
    }
}

/// The words that start a worker which takes its access from standard input.
pub(crate) fn remote_words<'a>(
    laboro: &'a str,
    options: impl IntoIterator<Item = &'a str>,
) -> Vec<&'a str> {
    [laboro, "worker", "--access", "-"].into_iter().chain(options).collect()
}

/// Workers that were started, as long as they live.
pub(crate) struct SshWorkers {
    access: String,
    is_quiet: bool,
    watched: JoinSet<HostEnd>,
    stdins: Vec<ChildStdin>,
    interrupts: u32,
    has_failed: bool,
}

impl SshWorkers {
    pub(crate) fn new(access: String, is_quiet: bool) -> SshWorkers {
        SshWorkers {
            access,
            is_quiet,
            watched: JoinSet::new(),
            stdins: Vec::new(),
            interrupts: 0,
            has_failed: false,
        }
    }

    /// A worker on a host for a hub that listens on this port here; the connection of ssh leads to it. `:` is this machine.
    pub(crate) async fn start(
        &mut self,
        host: &str,
        port: u16,
        words: &[&str],
    ) -> anyhow::Result<()> {
        let child = match host {
            ":" => {
                let own = std::env::current_exe().context("this program cannot be found")?;
                spawn(Command::new(own).args(&words[1..]))?
            }
            host => {
                let words: Vec<String> = words.iter().map(|word| shell_word(word)).collect();
                let tunnel = format!("127.0.0.1:{port}:127.0.0.1:{port}");
                start(host, &["-R", &tunnel], &words.join(" "))?
            }
        };
        self.watch(host, child).await;
        Ok(())
    }

    async fn watch(&mut self, host: &str, mut child: Child) {
        let mut stdin = child.stdin.take().expect("it was asked for");
        // A host that cannot be reached closes it, and says why on its own.
        let _ = stdin.write_all(framed(&self.access).as_bytes()).await;
        self.stdins.push(stdin);
        self.watched.spawn(watch(host.to_owned(), child));
    }

    /// One has ended, which is told. False when none is left.
    pub(crate) async fn next_end(&mut self) -> bool {
        let Some(ended) = self.watched.join_next().await else { return false };
        let Ok(HostEnd { host, code }) = ended else { return !self.watched.is_empty() };
        self.has_failed |= code != Some(0);
        match code {
            Some(0) if self.is_quiet => {}
            Some(0) => say(format_args!("{host}: the worker has left")),
            Some(code) => say(format_args!("{host}: the worker ended with status {code}")),
            None => say(format_args!("{host}: ssh was killed")),
        }
        !self.watched.is_empty()
    }

    /// Has them take nothing more; a second time ends what they run. Gives how often that was asked.
    pub(crate) async fn interrupt(&mut self) -> u32 {
        say("stopping the workers; interrupt again to end their tasks");
        self.tell_to_stop().await;
        self.interrupts += 1;
        self.interrupts
    }

    /// Has them take nothing more, or end at once what they run.
    pub(crate) async fn leave(&mut self, is_now: bool) {
        self.tell_to_stop().await;
        if is_now {
            self.tell_to_stop().await;
        }
    }

    /// Has them go, and waits until they are gone.
    pub(crate) async fn stop(&mut self) {
        self.is_quiet = true;
        self.tell_to_stop().await;
        while self.next_end().await {}
    }

    /// One line is one signal; the worker reads them. Who is gone does not mind.
    async fn tell_to_stop(&mut self) {
        for stdin in &mut self.stdins {
            let _ = stdin.write_all(b"stop\n").await;
            let _ = stdin.flush().await;
        }
    }
}

/// The access text, and a line that ends it.
fn framed(access: &str) -> String {
    format!("{}\n{END_OF_ACCESS}\n", access.trim_end())
}

fn start(host: &str, options: &[&str], command: &str) -> anyhow::Result<Child> {
    if host.starts_with('-') || host.is_empty() {
        return Err(usage(format!("--ssh {host:?} is not the name of a machine")));
    }
    let mut ssh = Command::new("ssh");
    // Nobody is there to type a password once it runs; and no terminal, so that lines stay lines.
    ssh.args(["-T", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=15"]);
    spawn(ssh.args(options).args([host, command]))
        .context("ssh cannot be started: is it installed?")
}

fn spawn(command: &mut Command) -> anyhow::Result<Child> {
    let child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Ctrl-C at the terminal is ours to pass on, in order.
        .process_group(0)
        .kill_on_drop(true)
        .spawn();
    Ok(child?)
}

async fn watch(host: String, mut child: Child) -> HostEnd {
    let out = child.stdout.take().expect("it was asked for");
    let err = child.stderr.take().expect("it was asked for");
    tokio::join!(show(&host, out), show(&host, err));
    let code = child.wait().await.ok().and_then(|status| status.code());
    HostEnd { host, code }
}

async fn show(host: &str, stream: impl AsyncRead + Unpin) {
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        let Ok(available) = reader.fill_buf().await else { return };
        if available.is_empty() {
            break;
        }
        let (taken, ends) = match available.iter().position(|byte| *byte == b'\n') {
            Some(end) => (end + 1, true),
            None => (available.len(), false),
        };
        let room = LINE_BYTES_MAX.saturating_sub(line.len());
        line.extend_from_slice(&available[..taken.min(room)]);
        reader.consume(taken);
        if ends {
            show_line(host, &mut line);
        }
    }
    if !line.is_empty() {
        show_line(host, &mut line);
    }
}

fn show_line(host: &str, line: &mut Vec<u8>) {
    let text = String::from_utf8_lossy(line);
    say(format_args!("{host}: {}", safe(text.trim_end())));
    line.clear();
}
