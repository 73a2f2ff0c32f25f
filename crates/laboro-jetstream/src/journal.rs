//! The journal of a hub in NATS: batches become records of a stream, written by a thread of their own, so that
//! the hub is heard of while its engine is busy or idle.

mod lease;
mod open;
mod scribe;

use crate::lead::Wish;
use crate::nats::NatsError;
use crate::options::Options;
use crate::pen::PenError;
use crate::read::ReadError;
use laboro_core::{Archive, Batch, Effect, Event, Ledger, Time};
use laboro_journal::{Journal, JournalError, Replay, wait};
pub(crate) use lease::Lease;
pub use open::{Opening, SharedIdentity};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};

#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    #[error(transparent)]
    Nats(#[from] NatsError),
    #[error("journal in NATS: {0}")]
    Read(#[from] ReadError),
    #[error("journal in NATS: {0}")]
    Write(#[from] PenError),
    #[error(
        "another hub of this name is the leader (life {life}); start this one with --standby to follow it, or \
         under another --name"
    )]
    Led { life: u32 },
}

impl From<StreamError> for JournalError {
    fn from(error: StreamError) -> JournalError {
        JournalError::Elsewhere(Arc::new(error))
    }
}

/// What opening found.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Recovery {
    /// Of the last record.
    pub last_number: u64,
    /// When the newest batch happened.
    pub at: Time,
    /// Read after the snapshot.
    pub messages: u64,
    pub bytes: u64,
    pub snapshot_bytes: u64,
    pub elapsed: Duration,
    /// What hubs of this name share, by its key.
    pub shared_identity: SharedIdentity,
}

/// One hub at a time has it.
#[derive(Debug)]
pub struct JetStreamJournal {
    orders: mpsc::Sender<ScribeOrder>,
    lease: Arc<Lease>,
    lost: watch::Receiver<Option<JournalError>>,
    leave: watch::Receiver<bool>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
enum ScribeOrder {
    /// No events: only make sure that this hub still leads.
    Commit {
        at: Time,
        events: Vec<Event>,
        done: CommitAnswer,
    },
    Condense {
        done: CommitAnswer,
    },
    /// A journal without a record begins with this.
    Install {
        replay: Box<Replay>,
        done: CommitAnswer,
    },
    Share {
        key: String,
        text: Vec<u8>,
    },
    /// Others are told that this hub is about to go.
    Leave,
    /// Nothing follows.
    Close {
        done: CommitAnswer,
    },
}

/// Tells other hubs what they have to know.
#[derive(Debug, Clone)]
pub struct Sharer(mpsc::WeakSender<ScribeOrder>);

impl Sharer {
    /// Hubs that follow send nobody here any more; whoever comes to them waits until one of them leads.
    pub fn leave(&self) {
        if let Some(orders) = self.0.upgrade() {
            let _ = orders.try_send(ScribeOrder::Leave);
        }
    }

    pub fn share(&self, key: &str, text: Vec<u8>) {
        if let Some(orders) = self.0.upgrade() {
            let _ = orders.try_send(ScribeOrder::Share { key: key.to_owned(), text });
        }
    }
}

type CommitAnswer = oneshot::Sender<Result<(), JournalError>>;

impl JetStreamJournal {
    /// Reads the hub's streams, or makes them, and becomes the one who writes there. Waits until a hub that
    /// died is sure to be gone; one that lives is an error.
    pub fn open(options: Options) -> Result<(JetStreamJournal, Ledger, Recovery), JournalError> {
        Opening::begin(options, Wish::Lead)?.wait()
    }

    /// Resolves when this hub must stop, also if it has nothing to write.
    pub fn lost(&self) -> impl Future<Output = JournalError> + Send + use<> {
        let mut lost = self.lost.clone();
        async move {
            match lost.wait_for(Option::is_some).await {
                Ok(error) => error.clone().unwrap_or(JournalError::Died),
                Err(_) => JournalError::Died,
            }
        }
    }

    /// Resolves when somebody asks this hub to let another one lead.
    pub fn asked_to_leave(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut leave = self.leave.clone();
        async move {
            if leave.wait_for(|is_asked| *is_asked).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Lets hubs to come have this text under this key, in which there is no dot. Nobody waits for it.
    pub fn share(&self, key: &str, text: Vec<u8>) {
        // With a full queue the next change tells it.
        let _ = self.orders.try_send(ScribeOrder::Share { key: key.to_owned(), text });
    }

    /// Shares from elsewhere, for as long as the journal is open.
    pub fn sharer(&self) -> Sharer {
        Sharer(self.orders.downgrade())
    }

    /// Condenses now, and waits for it. Without this it is done in the background when it pays.
    pub fn condense_blocking(&mut self) -> Result<(), JournalError> {
        wait(self.order(|done| ScribeOrder::Condense { done }))
    }

    /// Makes a journal that holds no record yet begin with what another one came to.
    pub fn install_blocking(&mut self, replay: Replay) -> Result<(), JournalError> {
        wait(self.order(|done| ScribeOrder::Install { replay: Box::new(replay), done }))
    }

    /// For callers without a runtime.
    pub fn commit_blocking(&mut self, batch: Batch) -> Result<Vec<Effect>, JournalError> {
        wait(self.commit(batch))
    }

    /// Says good-bye, so that the next hub need not wait.
    pub fn close(mut self) -> Result<(), JournalError> {
        let closed = wait(self.order(|done| ScribeOrder::Close { done }));
        if let Some(thread) = self.thread.take() {
            thread.join().map_err(|_| JournalError::Died)?;
        }
        closed
    }

    async fn order(
        &self,
        order: impl FnOnce(CommitAnswer) -> ScribeOrder,
    ) -> Result<(), JournalError> {
        let (done, answer) = oneshot::channel();
        self.orders.send(order(done)).await.map_err(|_| self.error())?;
        answer.await.unwrap_or_else(|_| Err(self.error()))
    }

    fn error(&self) -> JournalError {
        self.lost.borrow().clone().unwrap_or(JournalError::Died)
    }
}

impl Archive for JetStreamJournal {}

impl Journal for JetStreamJournal {
    async fn commit(&mut self, mut batch: Batch) -> Result<Vec<Effect>, JournalError> {
        let (at, events) = (batch.at, std::mem::take(&mut batch.events));
        // What is only read is true as long as nobody else can have begun to write.
        if events.is_empty() && self.lost.borrow().is_none() && self.lease.is_held() {
            return Ok(batch.release(self.receipt()));
        }
        self.order(|done| ScribeOrder::Commit { at, events, done }).await?;
        Ok(batch.release(self.receipt()))
    }
}

/// Without a good-bye: whoever follows waits, as after a crash.
impl Drop for JetStreamJournal {
    fn drop(&mut self) {
        let (gone, _) = mpsc::channel(1);
        self.orders = gone;
        if let Some(thread) = self.thread.take() {
            // It ends when its orders do; how it ended was told before.
            let _ = thread.join();
        }
    }
}
