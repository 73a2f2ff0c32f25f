//! `--exit-with PID`: ends this program when another process has ended, however that ended, also by SIGKILL.
//! `PR_SET_PDEATHSIG` would not do: it tells the end of the thread that started this program, not of its process.

use anyhow::Context;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::OwnedFd;
use tokio::io::unix::AsyncFd;

/// A process whose end matters to this one, if there is such a process.
pub(crate) enum ProcessWatch {
    Nobody,
    Runs(AsyncFd<OwnedFd>),
    HasEnded,
}

impl ProcessWatch {
    /// Only within a runtime.
    pub(crate) fn open(process: Option<i32>) -> anyhow::Result<ProcessWatch> {
        let Some(number) = process else { return Ok(ProcessWatch::Nobody) };
        let process = Pid::from_raw(number).filter(|_| number > 0);
        let process = process.ok_or_else(|| {
            crate::exit::usage(format!("--exit-with {number}: not the number of a process"))
        })?;
        let descriptor = match pidfd_open(process, PidfdFlags::NONBLOCK) {
            Err(Errno::INVAL) => pidfd_open(process, PidfdFlags::empty()),
            opened => opened,
        };
        let descriptor = match descriptor {
            Err(Errno::SRCH) => return Ok(ProcessWatch::HasEnded),
            Err(Errno::NOSYS) => anyhow::bail!("--exit-with needs Linux 5.3 or newer"),
            opened => opened.context("the process of --exit-with cannot be watched")?,
        };
        // SAFETY: an `OwnedFd` is open and stays the same until it is dropped, which `AsyncFd` does last.
        let watched = unsafe { AsyncFd::register(descriptor) };
        let watched = watched.map_err(|error| error.into_parts().1);
        Ok(ProcessWatch::Runs(watched.context("the process of --exit-with cannot be watched")?))
    }

    /// Ready at once, each time it is asked, when the process has ended; never if there is none.
    pub(crate) async fn ended(&self) {
        match self {
            ProcessWatch::Nobody => std::future::pending().await,
            // A descriptor that cannot be waited for any more tells nothing of the process: better to end.
            ProcessWatch::Runs(descriptor) => drop(descriptor.readable().await),
            ProcessWatch::HasEnded => {}
        }
    }
}
