//! Runs a command of a batch system: with an end to its time and to what it may print, so that one that hangs or prints
//! without end holds up nobody. Everything that it started is ended with it.

use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

/// A command and what it reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    pub words: Vec<String>,
    pub stdin: String,
    /// Beside those of this program.
    pub env: Vec<(String, String)>,
}

#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error("{0}")]
    Failed(String),
    /// Whether it did its work is not known.
    #[error("{command} did not end within {seconds} s")]
    Late { command: String, seconds: u64 },
}

/// Slurm's own commands give up after some minutes; people would before.
const TIME_MAX: Duration = Duration::from_secs(60);
/// The queue of one user is smaller.
const OUTPUT_BYTES_MAX: u64 = 16 << 20;
const ERROR_BYTES_MAX: u64 = 64 << 10;

/// Words of an error that are kept.
const WORDS_MAX: usize = 500;

/// What it printed, if it went well.
pub async fn run(call: &Call) -> Result<String, CallError> {
    run_within(call, TIME_MAX).await
}

/// The same with another end to its time.
pub async fn run_within(call: &Call, patience: Duration) -> Result<String, CallError> {
    let command = call.words.first().cloned().unwrap_or_default();
    let failed = |why: String| CallError::Failed(format!("{command}: {why}"));
    let mut child = Command::new(&command)
        .args(call.words.iter().skip(1))
        .envs(call.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let group = child.id();
    let (mut stdin, stdout, stderr) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let told = async {
        if let Some(mut stdin) = stdin.take() {
            // One that does not read what it is told says why in another way.
            let _ = stdin.write_all(call.stdin.as_bytes()).await;
        }
    };
    let all = async {
        let (out, err, ()) =
            tokio::join!(read(stdout, OUTPUT_BYTES_MAX), read(stderr, ERROR_BYTES_MAX), told);
        (child.wait().await, out, err)
    };
    let Ok((status, out, err)) = tokio::time::timeout(patience, all).await else {
        end(group);
        return Err(CallError::Late { command, seconds: patience.as_secs() });
    };
    let status = status.map_err(|error| failed(error.to_string()))?;
    if out.1 {
        end(group);
        return Err(failed(format!("it printed more than {OUTPUT_BYTES_MAX} bytes")));
    }
    let said = |text: &str| crate::scheduler::one_line(text, WORDS_MAX);
    if !status.success() {
        let words = [said(&err.0), said(&out.0)].into_iter().find(|words| !words.is_empty());
        return Err(CallError::Failed(words.unwrap_or_else(|| format!("{command}: {status}"))));
    }
    Ok(out.0)
}

/// The text, and whether there was more. What is too much is not read: its writer is ended.
async fn read(from: Option<impl AsyncRead + Unpin>, most: u64) -> (String, bool) {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        // What came before an error is all that there is.
        let _ = from.take(most + 1).read_to_end(&mut bytes).await;
    }
    let is_more = bytes.len() as u64 > most;
    (String::from_utf8_lossy(&bytes).into_owned(), is_more)
}

/// The command, and what it may have started. Dropping it has ended the first of them.
fn end(group: Option<u32>) {
    let group =
        group.and_then(|pid| i32::try_from(pid).ok()).and_then(rustix::process::Pid::from_raw);
    if let Some(group) = group {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}
