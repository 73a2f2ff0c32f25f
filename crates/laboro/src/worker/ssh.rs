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
    let mut command = vec![args.remote_laboro.as_str(), "worker", "--access", "-"];
    command.extend(args.hub.as_deref());
    command.extend(words);
    command.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
}

async fn drive(hosts: &[String], command: &str, access: &str) -> anyhow::Result<Exit> {
    let mut signals = Signals::listen()?;
    let mut workers = JoinSet::new();
    let mut stdins = Vec::new();
    for host in hosts {
        let mut child = start(host, command)?;
        let mut stdin = child.stdin.take().expect("it was asked for");
        // A host that cannot be reached closes it, and says why on its own.
        let _ = stdin.write_all(framed(access).as_bytes()).await;
        stdins.push(stdin);
        workers.spawn(watch(host.clone(), child));
    }
    let mut exit = Exit::Done;
    loop {
        tokio::select! {
            () = signals.next() => interrupt(&mut stdins).await,
            ended = workers.join_next() => match ended {
                None => return Ok(exit),
                Some(ended) => {
                    let HostEnd { host, code } = ended.context("a watcher of a worker failed")?;
                    match code {
                        Some(0) => say(format_args!("{host}: the worker has left")),
                        Some(code) => say(format_args!("{host}: the worker ended with status {code}")),
                        None => say(format_args!("{host}: ssh was killed")),
                    }
                    if code != Some(0) {
                        exit = Exit::SomeFailed;
                    }
                }
            },
        }
    }
}

/// The access text, and a line that ends it.
fn framed(access: &str) -> String {
    format!("{}\n{END_OF_ACCESS}\n", access.trim_end())
}

fn start(host: &str, command: &str) -> anyhow::Result<Child> {
    if host.starts_with('-') || host.is_empty() {
        return Err(usage(format!("--ssh {host:?} is not the name of a machine")));
    }
    Command::new("ssh")
        // Nobody is there to type a password once it runs; and no terminal, so that lines stay lines.
        .args(["-T", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=15", host, command])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Ctrl-C at the terminal is ours to pass on, in order.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .context("ssh cannot be started: is it installed?")
}

/// One line is one signal; the worker reads them. Who is gone does not mind.
async fn interrupt(stdins: &mut [ChildStdin]) {
    say("ending the workers; once more ends what they run");
    for stdin in stdins {
        let _ = stdin.write_all(b"stop\n").await;
        let _ = stdin.flush().await;
    }
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
