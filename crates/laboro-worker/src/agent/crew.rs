//! The processes of an agent: a runner and what becomes of its tasks, as something a runtime can wait for.

use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use tokio::io::unix::AsyncFd;

use crate::{EventSource, Launch, Options, Orphans, Runner, RunnerError, RunnerEvent};

/// A guardian on its way up, before there is a runtime.
#[derive(Debug)]
pub struct Crew {
    pub(super) runner: Runner,
    source: EventSource,
    readiness: Option<AsyncFd<OwnedFd>>,
}

impl Crew {
    /// Tasks beyond `at_once` wait at the guardian, which starts the next the moment one ends.
    pub fn start(guardian: Options, at_once: u32) -> Result<Crew, RunnerError> {
        let at_once = NonZeroUsize::new(at_once as usize);
        let options = Options { orphans: Orphans::All, at_once, ..guardian };
        let (runner, source) = Runner::start(options)?;
        Ok(Crew { runner, source, readiness: None })
    }

    /// One with a guardian of its own, and room for any number of processes.
    pub(crate) fn another(&self) -> Result<Crew, RunnerError> {
        let options = Options { at_once: None, ..self.runner.options().clone() };
        let (runner, source) = Runner::start(options)?;
        Ok(Crew { runner, source, readiness: None })
    }

    pub(crate) fn launch(&self, launch: Launch) {
        self.runner.launch(launch);
    }

    pub(crate) fn stop(&self, id: u64, grace: Duration) {
        self.runner.stop(id, grace);
    }

    /// The mark of its processes.
    pub fn nonce(&self) -> &str {
        self.runner.nonce()
    }

    /// Those that can be had without waiting.
    pub(crate) fn events_now(&mut self) -> Result<Vec<RunnerEvent>, RunnerError> {
        Ok(self.source.wait(Some(Duration::ZERO))?.unwrap_or_default())
    }

    /// The next events. May be dropped and called again.
    pub(crate) async fn events(&mut self) -> Result<Vec<RunnerEvent>, RunnerError> {
        if self.readiness.is_none() {
            self.readiness = Some(readiness(&self.source)?);
        }
        let readiness = self.readiness.as_ref().expect("made just now");
        loop {
            let mut ready = readiness.readable().await?;
            let events = self.source.wait(Some(Duration::ZERO))?.unwrap_or_default();
            if !events.is_empty() {
                return Ok(events);
            }
            ready.clear_ready();
        }
    }
}

/// The source's descriptor, for the runtime to wait on.
fn readiness(source: &EventSource) -> io::Result<AsyncFd<OwnedFd>> {
    let descriptor = source.as_fd().try_clone_to_owned()?;
    // SAFETY: an `OwnedFd` is open and stays the same until it is dropped, which `AsyncFd` does last.
    unsafe { AsyncFd::register(descriptor) }.map_err(|error| error.into_parts().1)
}
