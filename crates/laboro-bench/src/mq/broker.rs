//! What is measured: a server of ours, one that is there, or a proxy of libzmq.

use crate::process;
use anyhow::Context;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Broker {
    pub(super) name: &'static str,
    /// Where clients connect, and where workers do.
    pub(super) front: String,
    pub(super) back: String,
    /// Workers have to register, and to give slots back.
    pub(super) has_slots: bool,
    child: Option<Ours>,
}

const PROXY: &str = "
import zmq
c = zmq.Context()
f, b = c.socket(zmq.ROUTER), c.socket(zmq.DEALER)
ports = [s.bind_to_random_port('tcp://127.0.0.1') for s in (f, b)]
print('proxy on 127.0.0.1:%d 127.0.0.1:%d' % tuple(ports), flush=True)
zmq.proxy(f, b)
";

impl Broker {
    pub(super) fn at(address: &str) -> Broker {
        let (front, back) = (address.to_owned(), address.to_owned());
        Broker { name: "rrmq", front, back, has_slots: true, child: None }
    }

    pub(super) fn ours(program: &Path) -> anyhow::Result<Broker> {
        let mut command = Command::new(program);
        command.args(["mq", "server", "--listen", "127.0.0.1:0", "--debug", "0"]);
        let (child, addresses) = start(command, "rrmq on ")?;
        Ok(Broker { child: Some(child), ..Broker::at(addresses.trim()) })
    }

    pub(super) fn proxy(python: &Path) -> anyhow::Result<Broker> {
        let mut command = Command::new(python);
        command.arg("-c").arg(PROXY);
        let (child, addresses) = start(command, "proxy on ")?;
        let (front, back) =
            addresses.split_once(' ').context("the proxy says both its addresses")?;
        let (front, back) = (front.to_owned(), back.trim().to_owned());
        Ok(Broker { name: "zmq_proxy", front, back, has_slots: false, child: Some(child) })
    }

    /// Processor time so far.
    pub(super) fn cpu(&self) -> Option<Duration> {
        process::cpu(self.child.as_ref()?.0.id())
    }
}

/// Waits for the line that begins so, and gives the rest of it.
fn start(mut command: Command, begins: &str) -> anyhow::Result<(Ours, String)> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("{} cannot be started", command.get_program().display()))?;
    let out = child.stdout.take().context("its output is a pipe")?;
    let ours = Ours(child);
    for line in BufReader::new(out).lines() {
        if let Some(rest) = line?.strip_prefix(begins) {
            return Ok((ours, rest.to_owned()));
        }
    }
    anyhow::bail!(
        "{} ended without a word; does it run by itself?",
        command.get_program().display()
    )
}

#[derive(Debug)]
struct Ours(Child);

impl Drop for Ours {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
