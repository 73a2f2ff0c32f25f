//! Programs that answer requests: one for each request, or kept running and spoken to in frames with their
//! lengths before them. A program that fails, takes too long or says too much is ended and there is no
//! answer: the wire has no word for a failure.

use bytes::Bytes;
use laboro_core::Name;
use laboro_dialects::rrmq::{Envelope, Parts};
use laboro_worker::inherited;
use rustix::process::{Pid, Signal, kill_process_group};
use std::io;
use std::process::Stdio;
use std::sync::Mutex;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// What an answer may hold, in all its frames.
const ANSWER_BYTES_MAX: usize = 16 << 20;
const ANSWER_FRAMES_MAX: u32 = 1000;

pub(super) struct Programs {
    line: String,
    limit: Option<Duration>,
    /// `None`: a new program for every request.
    idle: Option<Mutex<Vec<KeptProgram>>>,
    idle_max: usize,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum NoAnswer {
    #[error("the program cannot be started or spoken to: {0}")]
    Io(#[from] io::Error),
    #[error("the program ended with {0}")]
    Failed(std::process::ExitStatus),
    #[error("the program took longer than {0:?}")]
    Late(Duration),
    #[error("the answer has more than {ANSWER_BYTES_MAX} bytes")]
    Long,
    #[error("the answer has {0} frames, more than {ANSWER_FRAMES_MAX}")]
    ManyFrames(u32),
    #[error("the answer has an empty frame, which means the end of a message here")]
    EmptyFrame,
}

impl Programs {
    pub(super) fn new(line: String, kept: bool, limit: Option<Duration>, slots: u32) -> Programs {
        let idle = kept.then(|| Mutex::new(Vec::new()));
        Programs { line, limit, idle, idle_max: slots as usize }
    }

    pub(super) async fn run(&self, asked: &Envelope) -> Result<Parts, NoAnswer> {
        let answering = async {
            match &self.idle {
                None => self.once(asked).await,
                Some(idle) => self.exchange(asked, idle).await,
            }
        };
        match self.limit {
            None => answering.await,
            Some(limit) => {
                let limited = tokio::time::timeout(limit, answering).await;
                limited.unwrap_or(Err(NoAnswer::Late(limit)))
            }
        }
    }

    /// The arguments go in one after the other, what is printed is the answer.
    async fn once(&self, asked: &Envelope) -> Result<Parts, NoAnswer> {
        let arguments = asked.args.get(1..).unwrap_or_default();
        let lengths: Vec<String> = arguments.iter().map(|frame| frame.len().to_string()).collect();
        let command = asked.args.first().map(|command| Name::new(command).to_string());
        let mut shell = self.shell();
        shell.env("LABORO_MQ_COMMAND", command.unwrap_or_default());
        shell.env("LABORO_MQ_LENGTHS", lengths.join(" "));
        let mut kept = KeptProgram::start(shell)?;
        let (mut stdin, stdout) = (kept.stdin.take(), &mut kept.stdout);
        let write = async {
            if let Some(stdin) = &mut stdin {
                for frame in arguments {
                    // A program that does not want to know everything is none the worse for it.
                    if stdin.write_all(frame).await.is_err() {
                        break;
                    }
                }
            }
            drop(stdin);
        };
        let mut answer = Vec::new();
        let mut limited = stdout.take(ANSWER_BYTES_MAX as u64 + 1);
        let read = limited.read_to_end(&mut answer);
        let ((), read) = tokio::join!(write, read);
        read?;
        if answer.len() > ANSWER_BYTES_MAX {
            return Err(NoAnswer::Long);
        }
        let status = kept.child.wait().await?;
        kept.group = None;
        match status.success() {
            true => {
                Ok(Some(answer).filter(|a| !a.is_empty()).map(Bytes::from).into_iter().collect())
            }
            false => Err(NoAnswer::Failed(status)),
        }
    }

    async fn exchange(
        &self,
        asked: &Envelope,
        idle: &Mutex<Vec<KeptProgram>>,
    ) -> Result<Parts, NoAnswer> {
        let lock = || idle.lock().expect("no thread panics while holding it");
        let idler = lock().pop();
        let mut kept = match idler {
            Some(kept) => kept,
            None => KeptProgram::start(self.shell())?,
        };
        // On any failure it is dropped, and so ended: nobody knows what it would say next.
        let stdin = kept.stdin.as_mut().expect("only those that answer once lose it");
        let (written, answer) = tokio::join!(write(stdin, &asked.args), read(&mut kept.stdout));
        written?;
        let answer = answer?;
        let mut idlers = lock();
        if idlers.len() < self.idle_max {
            idlers.push(kept);
        }
        Ok(answer)
    }

    fn shell(&self) -> Command {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(&self.line);
        // As for tasks: who may ask a worker something need not be allowed what this program is.
        command.env_clear().envs(inherited());
        command
    }
}

struct KeptProgram {
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    /// Ended with everything it has started, unless that is over.
    group: Option<ProcessGroup>,
    child: Child,
}

impl KeptProgram {
    fn start(mut command: Command) -> io::Result<KeptProgram> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).process_group(0);
        let mut child = command.spawn()?;
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed())).map(ProcessGroup);
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().expect("it was asked for");
        Ok(KeptProgram { stdin, stdout, group, child })
    }
}

struct ProcessGroup(Pid);

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // The program is not waited for yet, so the number is still its own.
        let _ = kill_process_group(self.0, Signal::KILL);
    }
}

async fn write(to: &mut (impl AsyncWrite + Unpin), frames: &[Bytes]) -> io::Result<()> {
    let length = |count: usize| u32::try_from(count).map_err(|_| io::ErrorKind::InvalidInput);
    let mut all = Vec::with_capacity(frames.iter().map(|frame| frame.len() + 4).sum::<usize>() + 4);
    all.extend_from_slice(&length(frames.len())?.to_be_bytes());
    for frame in frames {
        all.extend_from_slice(&length(frame.len())?.to_be_bytes());
        all.extend_from_slice(frame);
    }
    to.write_all(&all).await?;
    to.flush().await
}

async fn read(from: &mut (impl AsyncRead + Unpin)) -> Result<Parts, NoAnswer> {
    let count = from.read_u32().await?;
    if count > ANSWER_FRAMES_MAX {
        return Err(NoAnswer::ManyFrames(count));
    }
    let (mut frames, mut left) = (Parts::new(), ANSWER_BYTES_MAX);
    for _ in 0..count {
        let length = from.read_u32().await? as usize;
        if length == 0 {
            return Err(NoAnswer::EmptyFrame);
        }
        left = left.checked_sub(length).ok_or(NoAnswer::Long)?;
        let mut frame = vec![0; length];
        from.read_exact(&mut frame).await?;
        frames.push(frame.into());
    }
    Ok(frames)
}
