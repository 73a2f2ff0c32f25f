//! The thread of the engine, which is also that of the doors unless told otherwise: a hop between threads
//! costs more than most of what is said. Ends in order: doors, then the loop, then the files.

use super::HubError;
use super::claim::Claim;
use super::journal::HubJournal;
use super::shared_identity;
use crate::config::DoorsThread;
use crate::history::Observed;
use crate::inbox::{Handle, Server};
use crate::keep::{Keeper, OnWriteError, housekeeping, pass_on_ends};
use crate::listen::{Reception, listen};
use crate::ring;
use laboro_core::Hub;
use laboro_jetstream::Sharer;
use laboro_journal::JournalError;
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub(super) struct Engine {
    pub hub: Hub,
    pub server: Server,
    pub journal: Observed<HubJournal>,
    pub keeper: Keeper,
    pub handle: Handle,
    pub receptions: Vec<(TcpListener, Reception)>,
    pub doors_thread: DoorsThread,
    /// Told when the HTTP API has ended its last request.
    pub http_ended: Option<oneshot::Receiver<()>>,
    pub stop: CancellationToken,
    pub stop_ms: u64,
    pub dir: PathBuf,
    pub claim: Claim,
}

impl Engine {
    pub fn run(self) -> Result<(), HubError> {
        let runtime = runtime()?;
        let Engine { mut hub, mut server, mut journal, keeper, .. } = self;
        let (handle, stop) = (self.handle, self.stop);
        let (receptions, doors_thread) = (self.receptions, self.doors_thread);
        let (http_ended, dir, mut claim) = (self.http_ended, self.dir, self.claim);
        let taken_over = claim.beat().map_err(HubError::Thread)?;
        let patience = Duration::from_millis(self.stop_ms);
        let outputs = keeper.outputs();
        let kept = outputs.clone();
        let ring: Result<RingEnd, HubError> = runtime.block_on(async {
            let mut helpers = JoinSet::new();
            let doors = serve(receptions);
            let doors_ended = match doors_thread {
                DoorsThread::Shared => {
                    let (done, ended) = oneshot::channel();
                    helpers.spawn(async move {
                        doors.await;
                        let _ = done.send(());
                    });
                    ended
                }
                DoorsThread::Own => on_own_thread(doors)?,
            };
            helpers.spawn(pass_on_ends(outputs.clone()));
            let (unwritable, told) = (outputs.fatal(), stop.clone());
            helpers.spawn(async move {
                unwritable.await;
                told.cancel();
            });
            helpers.spawn(housekeeping(outputs, handle.clone()));
            let all_ended = async move {
                let _ = doors_ended.await;
                if let Some(ended) = http_ended {
                    let _ = ended.await;
                }
            };
            if let Some(sharer) = journal.journal().sharer() {
                helpers.spawn(shared_identity::share(dir, sharer.clone()));
                let (asked, stop) = (journal.journal().asked_to_leave(), stop.clone());
                helpers.spawn(hand_over(asked, sharer, stop));
            }
            {
                let (handle, stop) = (handle.clone(), stop.clone());
                helpers.spawn(async move {
                    if let Ok(host) = taken_over.await {
                        tracing::error!(
                            "a hub on {host} has taken over this directory: this one stops"
                        );
                        // Not in order: nobody may be told anything more.
                        let _ = handle.end().await;
                        stop.cancel();
                    }
                });
            }
            if let Some(lost) = journal.journal().lost() {
                let (handle, stop) = (handle.clone(), stop.clone());
                helpers.spawn(async move {
                    tracing::error!("{}", lost.await);
                    // Not in order: nobody may be told anything more.
                    let _ = handle.end().await;
                    stop.cancel();
                });
            }
            helpers.spawn(end_in_order(stop.clone(), all_ended, patience, handle));
            // A task like any other: what the runtime waits for itself is woken through the kernel, which costs as
            // much as the rest of a small request.
            let ring = tokio::spawn(async move {
                let ran = ring::run(&mut hub, &mut server, &mut journal).await;
                RingEnd { ran, journal }
            });
            ring.await.map_err(|error| match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(error) => HubError::Thread(error.into()),
            })
        });
        // Whatever ended the loop, nobody is to go on.
        stop.cancel();
        drop(runtime);
        keeper.close();
        let RingEnd { ran, journal } = ring?;
        let closed: Result<(), JournalError> = journal.into_journal().close();
        // Only now may a hub on another machine begin.
        drop(claim);
        ran?;
        closed?;
        match kept.trouble().filter(|_| kept.on_error() == OnWriteError::Stop) {
            None => Ok(()),
            Some(why) => Err(HubError::Outputs(why)),
        }
    }
}

/// What is left of the loop.
struct RingEnd {
    ran: Result<(), JournalError>,
    journal: Observed<HubJournal>,
}

/// Those who follow look every 100 ms.
const HEARD: Duration = Duration::from_millis(300);

/// Hubs that follow hear of it before this one stops to listen, so that nobody is sent to a closed door.
async fn hand_over(
    asked: Option<impl Future<Output = ()>>,
    sharer: Sharer,
    stop: CancellationToken,
) {
    if let Some(asked) = asked {
        tokio::select! {
            () = asked => {
                tracing::info!("asked to hand over to another hub");
                sharer.leave();
                tokio::time::sleep(HEARD).await;
                stop.cancel();
            }
            () = stop.cancelled() => sharer.leave(),
        }
    }
}

fn runtime() -> Result<Runtime, HubError> {
    Builder::new_current_thread().enable_all().build().map_err(HubError::Thread)
}

/// All doors, until the hub stops and everyone has left.
async fn serve(receptions: Vec<(TcpListener, Reception)>) {
    let mut doors = JoinSet::new();
    for (listener, reception) in receptions {
        match tokio::net::TcpListener::from_std(listener) {
            Ok(listener) => drop(doors.spawn(listen(listener, reception))),
            Err(error) => tracing::error!("{}: cannot listen: {error}", reception.door),
        }
    }
    while doors.join_next().await.is_some() {}
}

fn on_own_thread(
    doors: impl Future<Output = ()> + Send + 'static,
) -> Result<oneshot::Receiver<()>, HubError> {
    let (done, ended) = oneshot::channel();
    let runtime = runtime()?;
    let serve = move || {
        runtime.block_on(doors);
        let _ = done.send(());
    };
    std::thread::Builder::new()
        .name("laboro-doors".into())
        .spawn(serve)
        .map_err(HubError::Thread)?;
    Ok(ended)
}

/// Once the hub shall stop: those inside may end what they say, then the loop ends.
async fn end_in_order(
    stop: CancellationToken,
    all_ended: impl Future<Output = ()>,
    patience: Duration,
    handle: Handle,
) {
    stop.cancelled().await;
    if tokio::time::timeout(patience, all_ended).await.is_err() {
        tracing::warn!("some connections did not end within {patience:?} and are closed");
    }
    // If it fails, the loop has ended already.
    let _ = handle.end().await;
}
