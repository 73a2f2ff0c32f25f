//! The hub that is measured: one that is there, or one of our own, started for the measurement in a
//! directory that goes with it.

use anyhow::{Context, bail};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Hub {
    pub(super) address: String,
    /// The process whose time is counted.
    pid: Option<u32>,
    /// Ended when the measurement is over.
    _own: Option<Own>,
}

#[derive(Debug)]
struct Own {
    child: Child,
    dir: PathBuf,
}

impl Hub {
    pub(super) fn at(address: String, pid: Option<u32>) -> Hub {
        Hub { address, pid, _own: None }
    }

    /// Starts a hub with one door and waits until it listens.
    pub(super) fn start(program: &Path, door: &str, durability: &str) -> anyhow::Result<Hub> {
        let dir = std::env::temp_dir().join(format!("laboro-bench-{}", std::process::id()));
        let mut child = Command::new(program)
            .args(["hub", "--http", "off", "--native", "off", "--durability", durability])
            .args(["--door", &format!("{door}=127.0.0.1:0"), "--dir"])
            .arg(&dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("{} cannot be started", program.display()))?;
        let lines =
            child.stdout.take().map(BufReader::new).context("the hub's output is a pipe")?;
        let mut hub =
            Hub { address: String::new(), pid: Some(child.id()), _own: Some(Own { child, dir }) };
        // Each door says where it listens: `dwork on 127.0.0.1:6125, group default`.
        for line in lines.lines() {
            if let Some(rest) = line?.strip_prefix(&format!("{door} on ")) {
                hub.address = rest.split(',').next().unwrap_or_default().trim().to_owned();
                return Ok(hub);
            }
        }
        bail!("no hub could be started; start one and say where it listens with -s")
    }

    /// Processor time of the hub so far, in user space and in the kernel.
    pub(super) fn cpu(&self) -> Option<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid?)).ok()?;
        // The name of the program may hold anything; the numbers begin behind its bracket.
        let numbers: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks = numbers.get(11)?.parse::<u64>().ok()? + numbers.get(12)?.parse::<u64>().ok()?;
        Some(Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second().max(1)))
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
