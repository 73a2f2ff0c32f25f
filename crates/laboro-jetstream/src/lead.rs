//! How a hub comes to lead: it reads all there is, follows what others write, and when the one that led has
//! said good-bye or nothing at all for long enough, writes the next message itself. Of several that try, the
//! stream takes one.

use crate::journal::StreamError;
use crate::message::Kind;
use crate::options::About;
use crate::pen::{Pen, PenError};
use crate::read::{ReadError, Reader};
use crate::stream::Stream;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// How often one that follows looks for what is new.
const LOOK: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// Now: another hub that leads is an error.
    Lead,
    /// Whenever nobody else does.
    Follow,
}

/// Who wants to lead, and how.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    pub writer: u64,
    pub part_bytes: usize,
    pub lease: Duration,
    pub patience: Duration,
    pub wish: Wish,
    /// What its first message tells of it.
    pub about: About,
}

/// How far a hub that follows has come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Following {
    /// The last message that it has read.
    pub sequence: u64,
    /// The last one that there is.
    pub last: u64,
    /// Of the hub that wrote it.
    pub life: u32,
    /// Where the hub that leads is, if one does and was heard of.
    pub leader: Option<Arc<About>>,
}

/// What a hub leads with.
pub(crate) struct Led<S> {
    pub pen: Pen<S>,
    pub reader: Reader,
}

/// Returns when this hub leads.
pub(crate) async fn take_lead<S: Stream + Clone>(
    mut journal: S,
    snapshots: &mut S,
    terms: &Terms,
    following: &watch::Sender<Following>,
) -> Result<Led<S>, StreamError> {
    let Terms { writer, part_bytes, lease, patience, wish, about } = terms.clone();
    let mut reader = load(&mut journal, snapshots, terms).await?;
    let mut silence = Silence::new(lease);
    let mut answered = Instant::now();
    loop {
        let sent = Instant::now();
        match look(&mut reader, &mut journal, following).await {
            Ok(()) => answered = Instant::now(),
            // The one that leads has trimmed what was not read here yet.
            Err(ReadError::Gap { .. }) => {
                reader = load(&mut journal, snapshots, terms).await?;
                continue;
            }
            Err(ReadError::Unclear(reason)) => {
                if wish == Wish::Lead && answered.elapsed() > patience {
                    return Err(ReadError::Unclear(reason).into());
                }
                tracing::debug!("NATS: {reason}");
                sleep(LOOK).await;
                continue;
            }
            Err(error) => return Err(error.into()),
        }
        let is_heard = silence.hear(reader.mark().sequence, sent);
        let (is_free, life) = match reader.last() {
            None => (reader.mark().sequence == 0, reader.replay.ledger.life()),
            Some(head) => (head.kind == Kind::Bye, head.life),
        };
        if is_free || silence.is_over(sent) {
            let life = reader.replay.ledger.life() + 1;
            let mut pen = Pen::new(journal.clone(), reader.mark(), writer, life, part_bytes)
                .with_patience(patience);
            match pen.word(Kind::Alive, &about.text()).await {
                Ok(()) => return Ok(Led { pen, reader }),
                // Another one was quicker, or the old one is back.
                Err(PenError::Fenced { .. }) => {}
                Err(error) if wish == Wish::Lead => return Err(error.into()),
                Err(error) => tracing::warn!("cannot take over: {error}"),
            }
        } else if is_heard && wish == Wish::Lead {
            return Err(StreamError::Led { life });
        }
        sleep(LOOK).await;
    }
}

/// Reads on to the end.
async fn look<S: Stream>(
    reader: &mut Reader,
    journal: &mut S,
    following: &watch::Sender<Following>,
) -> Result<(), ReadError> {
    let last = journal.bounds().await?.last;
    let tell = |reader: &Reader| {
        let life = reader.last().map_or(reader.replay.ledger.life(), |head| head.life);
        let (sequence, leader) = (reader.mark().sequence, reader.leader());
        following.send_replace(Following { sequence, last, life, leader });
    };
    tell(reader);
    while reader.mark().sequence < last {
        reader.read_some(journal, last).await?;
        tell(reader);
    }
    Ok(())
}

async fn load<S: Stream>(
    journal: &mut S,
    snapshots: &mut S,
    terms: &Terms,
) -> Result<Reader, ReadError> {
    let begun = Instant::now();
    loop {
        match Reader::load(journal, snapshots, None).await {
            Err(ReadError::Unclear(reason))
                if terms.wish == Wish::Follow || begun.elapsed() < terms.patience =>
            {
                tracing::warn!("NATS: {reason}; trying again");
                sleep(LOOK).await;
            }
            loaded => return loaded,
        }
    }
}

/// For how long nothing was written, counted only while the stream could be asked: when NATS itself was away,
/// nobody could write, and the one that leads gets its time again.
#[derive(Debug)]
struct Silence {
    length: Duration,
    since: Option<Instant>,
    asked: Instant,
    sequence: u64,
}

impl Silence {
    fn new(length: Duration) -> Silence {
        Silence { length, since: None, asked: Instant::now(), sequence: 0 }
    }

    /// The stream, asked at `sent`, has just said that this is its last message. True if it is a new one.
    fn hear(&mut self, sequence: u64, sent: Instant) -> bool {
        let now = Instant::now();
        let is_new = self.since.is_some() && sequence != self.sequence;
        let was_away = sent.duration_since(self.asked) > self.length / 2;
        if self.since.is_none() || is_new || was_away {
            self.since = Some(now);
        }
        (self.asked, self.sequence) = (now, sequence);
        is_new
    }

    fn is_over(&self, sent: Instant) -> bool {
        self.since.is_some_and(|since| sent.saturating_duration_since(since) >= self.length)
    }
}
