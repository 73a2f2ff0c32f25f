//! The hub that is measured: one that is there, or one of our own, started for the measurement in a
//! directory that goes with it.

use super::process;
use anyhow::{Context, bail};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Hub {
    pub(super) address: String,
    /// The process whose time is counted.
    pid: Option<u32>,
    /// Ended when the measurement is over.
    own: Option<OwnHub>,
}

#[derive(Debug)]
struct OwnHub {
    child: Child,
    dir: PathBuf,
}

impl Hub {
    pub(super) fn at(address: String, pid: Option<u32>) -> Hub {
        Hub { address, pid, own: None }
    }

    /// Starts a hub with one door and waits until it listens.
    pub(super) fn start(program: &Path, door: &str, durability: &str) -> anyhow::Result<Hub> {
        let only = ["--http", "off", "--native", "off", "--door", &format!("{door}=127.0.0.1:0")];
        Hub::launch(program, &only, durability, door)
    }

    /// Starts a hub as people have it: the API and the native door, with certificates and tokens.
    pub(super) fn start_native(program: &Path, durability: &str) -> anyhow::Result<Hub> {
        let both = ["--http", "127.0.0.1:0", "--native", "127.0.0.1:0"];
        Hub::launch(program, &both, durability, "native")
    }

    /// Starts one with the API, to which workers can come by dwork.
    pub(super) fn start_with_dwork(program: &Path, durability: &str) -> anyhow::Result<Hub> {
        let both = ["--http", "127.0.0.1:0", "--native", "off", "--door", "dwork=127.0.0.1:0"];
        Hub::launch(program, &both, durability, "dwork")
    }

    fn launch(program: &Path, doors: &[&str], durability: &str, door: &str) -> anyhow::Result<Hub> {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let dir = format!("laboro-bench-{}-{number}", std::process::id());
        let dir = std::env::temp_dir().join(dir);
        let mut child = Command::new(program)
            .args(["hub", "--durability", durability])
            .args(doors)
            .arg("--dir")
            .arg(&dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("{} cannot be started", program.display()))?;
        let lines =
            child.stdout.take().map(BufReader::new).context("the hub's output is a pipe")?;
        let mut hub =
            Hub { address: String::new(), pid: Some(child.id()), own: Some(OwnHub { child, dir }) };
        // Each door says where it listens: `dwork on 127.0.0.1:6125, group default`.
        for line in lines.lines() {
            if let Some(rest) = line?.strip_prefix(&format!("{door} on ")) {
                hub.address = rest.split(',').next().unwrap_or_default().trim().to_owned();
                return Ok(hub);
            }
        }
        bail!("no hub could be started; start one and say where it listens with -s")
    }

    /// The directory of a hub of our own.
    pub(super) fn dir(&self) -> Option<&Path> {
        self.own.as_ref().map(|own| own.dir.as_path())
    }

    /// Processor time of the hub so far.
    pub(super) fn cpu(&self) -> Option<Duration> {
        process::cpu(self.pid?)
    }

    /// Memory of the hub now.
    pub(super) fn memory(&self) -> Option<u64> {
        process::memory(self.pid?)
    }
}

impl Drop for OwnHub {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
