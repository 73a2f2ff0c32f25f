//! What tasks printed, for the hub that leads next: the files of the output store, which only grow, as messages of a
//! stream. A hub that follows copies from there, one that leads copies to there, on a thread of its own. Losing
//! some of it stops nothing, so trouble is told and waited out.

mod copier;
mod known;

use crate::journal::StreamError;
use crate::options::Options;
use copier::{Copier, CopyError};
use laboro_journal::{JournalError, wait};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout};

/// How much may be lost with a machine, and how far those who follow are behind.
const SHIP: Duration = Duration::from_millis(500);
const FOLLOW: Duration = Duration::from_secs(2);
/// The last words of a hub that stops.
const LAST: Duration = Duration::from_secs(5);

/// The files of one hub. Dropped, it ends as it is.
#[derive(Debug)]
pub struct Mirror {
    orders: mpsc::Sender<MirrorOrder>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
enum MirrorOrder {
    /// This hub leads: nobody else adds anything from now on.
    Lead(oneshot::Sender<Result<(), String>>),
    /// The files may grow.
    Ship,
    Close(oneshot::Sender<()>),
}

impl Mirror {
    /// Begins to copy from the stream to the directory. `bytes_max`: the stream takes no more.
    pub fn follow(
        options: Options,
        dir: PathBuf,
        bytes_max: Option<u64>,
    ) -> Result<Mirror, JournalError> {
        let no_thread = |source| JournalError::NoThread { source: Arc::new(source) };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(no_thread)?;
        let (orders, inbox) = mpsc::channel(4);
        let work = move || runtime.block_on(run(&options, dir, bytes_max, inbox));
        let thread = std::thread::Builder::new().name("outputs-copy".to_owned()).spawn(work);
        Ok(Mirror { orders, thread: Some(thread.map_err(no_thread)?) })
    }

    /// Blocks until all that others have kept is here. What went wrong is told; then nothing is copied any more,
    /// since two stores would mix.
    pub fn lead(&mut self) {
        let (done, answer) = oneshot::channel();
        let asked = wait(async {
            self.orders.send(MirrorOrder::Lead(done)).await.ok()?;
            answer.await.ok()
        });
        if let Some(Err(reason)) = asked {
            tracing::warn!("outputs of tasks are not copied to NATS: {reason}");
        }
    }

    /// From now on what is added to the files goes to the stream.
    pub fn ship(&self) {
        // With a full queue nobody is there to hear it.
        let _ = self.orders.try_send(MirrorOrder::Ship);
    }

    /// Copies what is left, for a while.
    pub fn close(mut self) {
        let (done, ended) = oneshot::channel();
        wait(async {
            if self.orders.send(MirrorOrder::Close(done)).await.is_ok() {
                let _ = ended.await;
            }
        });
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Follows,
    /// Everything is here, and nothing may grow yet.
    Leads,
    Ships,
    /// Another hub has gone on.
    Done,
}

async fn run(
    options: &Options,
    dir: PathBuf,
    bytes_max: Option<u64>,
    mut orders: mpsc::Receiver<MirrorOrder>,
) {
    let mut copier = Copier::new(options, dir, bytes_max);
    let mut role = Role::Follows;
    let mut complaint = Complaint::default();
    loop {
        let pause = match role {
            Role::Ships => SHIP,
            _ => FOLLOW,
        };
        let order = tokio::select! {
            order = orders.recv() => match order {
                None => return,
                some => some,
            },
            () = sleep(pause) => None,
        };
        let worked = match order {
            Some(MirrorOrder::Lead(done)) => {
                let led = patiently(options.patience, async || copier.lead().await).await;
                role = if led.is_ok() { Role::Leads } else { Role::Done };
                let _ = done.send(led.map_err(|error| error.to_string()));
                Ok(())
            }
            Some(MirrorOrder::Ship) if role == Role::Leads => {
                role = Role::Ships;
                copier.ship().await
            }
            Some(MirrorOrder::Ship) => Ok(()),
            Some(MirrorOrder::Close(done)) => {
                if role == Role::Ships && timeout(LAST, copier.ship()).await.is_err() {
                    tracing::warn!("not all output of tasks was copied to NATS before the end");
                }
                let _ = done.send(());
                return;
            }
            None => match role {
                Role::Follows => copier.catch_up().await.map(drop),
                Role::Ships => copier.ship().await,
                Role::Leads | Role::Done => Ok(()),
            },
        };
        if let Err(CopyError::Fenced) = worked {
            role = Role::Done;
        }
        complaint.note(worked);
    }
}

/// Servers may be without a leader for some seconds.
async fn patiently(
    patience: Duration,
    mut work: impl AsyncFnMut() -> Result<(), CopyError>,
) -> Result<(), CopyError> {
    let begun = Instant::now();
    loop {
        match work().await {
            Err(CopyError::Nats(error)) if begun.elapsed() < patience => {
                tracing::debug!("outputs: {error}");
                sleep(SHIP).await;
            }
            done => return done,
        }
    }
}

/// The same trouble is told once.
#[derive(Default)]
struct Complaint(String);

impl Complaint {
    fn note(&mut self, worked: Result<(), CopyError>) {
        let told = worked.err().map(|error| error.to_string()).unwrap_or_default();
        if !told.is_empty() && told != self.0 {
            tracing::warn!("output of tasks is not copied between hubs: {told}");
        }
        self.0 = told;
    }
}

impl From<StreamError> for CopyError {
    fn from(error: StreamError) -> CopyError {
        CopyError::Nats(error.to_string())
    }
}
