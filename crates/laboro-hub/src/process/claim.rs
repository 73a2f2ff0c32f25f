//! Which machine has a hub's directory: a file in it names the machine, and a number that rises while the hub lives. File
//! locks need not reach from one machine to another that shares the directory; this does, and it compares no clocks. On
//! one machine the lock of the journal decides.

use super::HubError;
use crate::security::host_name;
use laboro_net::secret_file;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How often the number rises.
const BEAT: Duration = Duration::from_secs(2);

/// A hub whose number has not risen for this time is dead, or its machine is.
const PATIENCE: Duration = Duration::from_secs(8);

const LOOK_EVERY: Duration = Duration::from_millis(100);

#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Owner {
    host: String,
    /// Of the machine since it was started: names may be the same.
    boot: String,
    pid: u32,
    beat: u64,
}

/// Waits, where another machine has the directory, until it is known whether its hub lives.
pub(super) fn check(dir: &Path) -> Result<(), HubError> {
    check_within(dir, &boot(), PATIENCE)
}

fn check_within(dir: &Path, boot: &str, patience: Duration) -> Result<(), HubError> {
    let path = path(dir);
    let Some(first) = read(&path).filter(|owner| owner.boot != boot) else { return Ok(()) };
    tracing::info!(
        "a hub on {} had {}; waiting up to {} s to see whether it still runs",
        first.host,
        dir.display(),
        patience.as_secs()
    );
    let by = Instant::now() + patience;
    while Instant::now() < by {
        std::thread::sleep(LOOK_EVERY);
        match read(&path) {
            None => return Ok(()),
            Some(now) if now != first => {
                let Owner { host, pid, .. } = now;
                return Err(HubError::Elsewhere { dir: dir.to_owned(), host, pid });
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Held by a hub that lives; dropped, the directory is free.
#[derive(Debug)]
pub(super) struct Claim {
    pulse: Pulse,
    beating: Option<Beating>,
}

/// A thread of its own: the directory may be on a file server that takes its time, and a thread that only sleeps costs an
/// idle hub one wake-up per beat, where a timer of a runtime and its pool of threads took eight.
#[derive(Debug)]
struct Beating {
    /// Dropped, it ends the thread.
    enough: mpsc::Sender<()>,
    thread: JoinHandle<()>,
}

impl Claim {
    pub fn take(dir: &Path) -> Result<Claim, HubError> {
        let own = Owner { host: host_name(), boot: boot(), pid: std::process::id(), beat: 0 };
        let pulse = Pulse { path: path(dir), own };
        secret_file::replace(&pulse.path, &pulse.text())?;
        Ok(Claim { pulse, beating: None })
    }

    /// Shows from now on that the hub lives. What is sent is the name of the machine that has taken the directory meanwhile:
    /// this one slept past its time and was taken for dead, and nothing more may be written.
    pub fn beat(&mut self) -> std::io::Result<oneshot::Receiver<String>> {
        let (tell, lost) = oneshot::channel();
        let (enough, is_enough) = mpsc::channel::<()>();
        let mut pulse = self.pulse.clone();
        let beat = move || {
            while is_enough.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                if let Some(other) = pulse.rise() {
                    let _ = tell.send(other);
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("laboro-alive".into()).spawn(beat)?;
        self.beating = Some(Beating { enough, thread });
        Ok(lost)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(Beating { enough, thread }) = self.beating.take() {
            drop(enough);
            let _ = thread.join();
        }
        if read(&self.pulse.path).is_some_and(|found| self.pulse.is_own(&found)) {
            let _ = std::fs::remove_file(&self.pulse.path);
        }
    }
}

#[derive(Clone, Debug)]
struct Pulse {
    path: PathBuf,
    own: Owner,
}

impl Pulse {
    fn rise(&mut self) -> Option<String> {
        let other = read(&self.path).filter(|found| !self.is_own(found));
        if let Some(other) = other {
            return Some(other.host);
        }
        self.own.beat += 1;
        // Not synced: after a power cut nobody's pulse counts.
        let draft = self.path.with_extension("new");
        let written =
            std::fs::write(&draft, self.text()).and_then(|()| std::fs::rename(&draft, &self.path));
        if let Err(error) = written {
            let path = self.path.display();
            tracing::warn!("{path}: {error}; other machines may take this hub for dead");
        }
        None
    }

    fn is_own(&self, found: &Owner) -> bool {
        (found.boot.as_str(), found.pid) == (self.own.boot.as_str(), self.own.pid)
    }

    fn text(&self) -> String {
        toml::to_string(&self.own).expect("a table of plain values has a TOML form")
    }
}

fn path(dir: &Path) -> PathBuf {
    dir.join("alive.toml")
}

/// One that makes no sense is nobody's.
fn read(path: &Path) -> Option<Owner> {
    toml::from_str(&std::fs::read_to_string(path).ok()?).ok()
}

fn boot() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    id.map_or_else(|_| host_name(), |id| id.trim().to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
    use super::*;

    /// As another machine would write it.
    fn write(dir: &Path, beat: u64) {
        let owner = Owner { host: "login2".into(), boot: "another".into(), pid: 7, beat };
        secret_file::replace(&path(dir), &toml::to_string(&owner).unwrap()).unwrap();
    }

    #[test]
    fn a_hub_that_lives_on_another_machine_keeps_the_directory() {
        let dir = tempfile::TempDir::new().unwrap();
        write(dir.path(), 1);
        let (enough, is_enough) = mpsc::channel::<()>();
        let at = dir.path().to_owned();
        let other = std::thread::spawn(move || {
            for beat in 2.. {
                write(&at, beat);
                let pause = Duration::from_millis(20);
                if is_enough.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        });
        let refused = check_within(dir.path(), "own", Duration::from_secs(30)).unwrap_err();
        drop(enough);
        other.join().unwrap();
        let told = refused.to_string();
        assert!(told.contains("login2") && told.contains("process 7"), "{told}");
    }

    #[test]
    fn a_dead_hub_of_another_machine_is_not_waited_for_long() {
        let dir = tempfile::TempDir::new().unwrap();
        write(dir.path(), 1);
        check_within(dir.path(), "own", Duration::from_millis(1)).unwrap();
        // On one machine a lock decides.
        check_within(dir.path(), "another", Duration::from_secs(3600)).unwrap();
        std::fs::write(path(dir.path()), "rubbish").unwrap();
        check_within(dir.path(), "own", Duration::from_secs(3600)).unwrap();
    }

    #[test]
    fn a_claim_that_another_machine_took_is_lost_and_not_taken_back() {
        let dir = tempfile::TempDir::new().unwrap();
        let claim = Claim::take(dir.path()).unwrap();
        let mut pulse = claim.pulse.clone();
        assert_eq!(pulse.rise(), None);
        assert_eq!(read(&path(dir.path())).unwrap().beat, 1);
        write(dir.path(), 1);
        assert_eq!(pulse.rise(), Some("login2".to_owned()));
        drop(claim);
        assert_eq!(read(&path(dir.path())).unwrap().host, "login2");
        std::fs::remove_file(path(dir.path())).unwrap();
        drop(Claim::take(dir.path()).unwrap());
        assert_eq!(read(&path(dir.path())), None, "a hub that ended leaves nothing");
    }
}
