//! Two networks of a test's own, with a cable between them that can be cut: packets go to a hardware address that
//! nobody has, so that nothing is refused or reset, and whoever waits for an answer waits.

use crate::rig::{LABORO, not_tried, until};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::fs::read_link;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Where the test itself is, and whatever it starts.
pub const HERE: &str = "10.213.77.1";
const THERE: &str = "10.213.77.2";
const HERE_HARDWARE: &str = "02:00:00:00:00:01";
const THERE_HARDWARE: &str = "02:00:00:00:00:02";
const NOBODY: &str = "02:00:00:00:00:99";

/// The thread that laid it, and what that starts from then on, is at one end.
pub struct Cable {
    /// Keeps the other network; ends with its input.
    keeper: Child,
}

impl Cable {
    /// `None` where nobody may make a network.
    pub fn lay() -> Option<Cable> {
        // SAFETY: only the network is this thread's own from now on; what it has open it shares as before.
        if let Err(error) = unsafe { unshare_unsafe(UnshareFlags::NEWNET) } {
            not_tried(&format!("no network can be made ({error}): root may, with CAP_SYS_ADMIN"));
            return None;
        }
        let mut keeper = Command::new("unshare");
        keeper.args(["--net", "cat"]).stdin(Stdio::piped());
        let cable = Cable { keeper: keeper.spawn().unwrap() };
        let here = read_link("/proc/thread-self/ns/net").unwrap();
        until("there is another network", || read_link(cable.network()).unwrap() != here);
        let pid = cable.keeper.id();
        cable.ip_here(&format!(
            "link set lo up\n\
             link add cable address {HERE_HARDWARE} type veth peer name cable address {THERE_HARDWARE} netns {pid}\n\
             addr add {HERE}/30 dev cable\n\
             link set cable up\n"
        ));
        cable.ip_there(&format!(
            "link set lo up\naddr add {THERE}/30 dev cable\nlink set cable up\n"
        ));
        cable.mend();
        Some(cable)
    }

    pub fn cut(&self) {
        self.lead_to(NOBODY, NOBODY);
    }

    pub fn mend(&self) {
        self.lead_to(THERE_HARDWARE, HERE_HARDWARE);
    }

    /// The program, to be started at the other end.
    pub fn there(&self) -> Command {
        let mut command = self.enter();
        command.arg(LABORO);
        command
    }

    fn lead_to(&self, there: &str, here: &str) {
        let lead = |to: &str, hardware: &str| {
            format!("neigh replace {to} lladdr {hardware} dev cable nud permanent\n")
        };
        self.ip_here(&lead(THERE, there));
        self.ip_there(&lead(HERE, here));
    }

    fn ip_here(&self, lines: &str) {
        batch(Command::new("ip"), lines);
    }

    fn ip_there(&self, lines: &str) {
        let mut command = self.enter();
        command.arg("ip");
        batch(command, lines);
    }

    fn enter(&self) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", self.network().display())).arg("--");
        command
    }

    fn network(&self) -> PathBuf {
        format!("/proc/{}/ns/net", self.keeper.id()).into()
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
    }
}

/// Several commands of `ip`, from Debian's package `iproute2`; `./check` installs it.
fn batch(mut command: Command, lines: &str) {
    let mut ip = command.args(["-batch", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    ip.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    assert!(ip.wait().unwrap().success(), "{lines}");
}
