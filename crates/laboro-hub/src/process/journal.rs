//! Which journal a hub has: in its directory, or in NATS. While it waits to lead there, its doors redirect to the one that leads.

use super::bind::Front;
use super::standby_redirect::RedirectThread;
use super::{HubError, shared_identity};
use crate::config::Settings;
use laboro_core::{Batch, Effect, Ledger, counted};
use laboro_jetstream::{JetStreamJournal, Mirror, Opening, Options, Sharer, Wish};
use laboro_journal::log::LogError;
use laboro_journal::{FileJournal, Journal, JournalError};
use std::fs::{File, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

#[derive(Debug)]
pub(super) enum HubJournal {
    File(FileJournal),
    Stream(NatsJournal),
}

#[derive(Debug)]
pub(super) struct NatsJournal {
    journal: JetStreamJournal,
    /// What tasks printed goes the same way, if it shall.
    mirror: Option<Mirror>,
    /// On the hub's directory, which the other kind has in its journal.
    _lock: File,
}

impl HubJournal {
    /// Blocks until this hub may write. Sockets that were needed meanwhile come along.
    pub fn open(settings: &Settings) -> Result<(HubJournal, Ledger, Front), HubError> {
        let Some(options) = settings.stream() else {
            let dir = settings.dir.join("journal");
            let (journal, ledger, recovery) = FileJournal::open(&dir, settings.journal_log())?;
            recovery.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
            return Ok((HubJournal::File(journal), ledger, Front::default()));
        };
        HubJournal::open_stream(settings, options)
    }

    fn open_stream(
        settings: &Settings,
        options: Options,
    ) -> Result<(HubJournal, Ledger, Front), HubError> {
        let lock = lock(&settings.dir)?;
        let wish = if settings.standby { Wish::Follow } else { Wish::Lead };
        let front = Front::bind(settings)?;
        let about = front.about(settings);
        let options = Options { about, ..options };
        let mut mirror = match settings.outputs.in_nats {
            true => Some(Mirror::follow(
                options.clone(),
                settings.outputs_dir(),
                settings.outputs.store().total_bytes_max,
            )?),
            false => None,
        };
        let opening = Opening::begin(options, wish)?;
        let redirect = RedirectThread::put_up(
            settings,
            &front,
            opening.following(),
            opening.shared_identity(),
        )?;
        let opened = opening.wait();
        redirect.take_down();
        let (journal, ledger, found) = opened?;
        shared_identity::take(&settings.dir, &found.shared_identity)?;
        mirror.iter_mut().for_each(Mirror::lead);
        tracing::info!(
            "journal in NATS: {}, {} read after a snapshot of {} bytes, in {:?}",
            counted(found.last_number, "record"),
            counted(found.messages, "message"),
            found.snapshot_bytes,
            found.elapsed
        );
        Ok((HubJournal::Stream(NatsJournal { journal, mirror, _lock: lock }), ledger, front))
    }

    pub fn commit_blocking(&mut self, batch: Batch) -> Result<Vec<Effect>, JournalError> {
        match self {
            HubJournal::File(journal) => journal.commit_blocking(batch),
            HubJournal::Stream(stream) => stream.journal.commit_blocking(batch),
        }
    }

    /// The store of outputs is open: what is added to it may be copied.
    pub fn copy_outputs(&self) {
        if let HubJournal::Stream(NatsJournal { mirror: Some(mirror), .. }) = self {
            mirror.ship();
        }
    }

    /// Told when this hub must stop although it has nothing to write.
    pub fn lost(&self) -> Option<impl Future<Output = JournalError> + Send + use<>> {
        match self {
            HubJournal::File(_) => None,
            HubJournal::Stream(stream) => Some(stream.journal.lost()),
        }
    }

    /// Told when somebody asks this hub to let another one lead.
    pub fn asked_to_leave(&self) -> Option<impl Future<Output = ()> + Send + use<>> {
        match self {
            HubJournal::File(_) => None,
            HubJournal::Stream(stream) => Some(stream.journal.asked_to_leave()),
        }
    }

    /// Tells hubs to come what they need to be this hub.
    pub fn sharer(&self) -> Option<Sharer> {
        match self {
            HubJournal::File(_) => None,
            HubJournal::Stream(stream) => Some(stream.journal.sharer()),
        }
    }

    pub fn close(self) -> Result<(), JournalError> {
        match self {
            HubJournal::File(mut journal) => {
                let warnings = journal.take_warnings();
                warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
                journal.close()
            }
            HubJournal::Stream(stream) => {
                // Before the good-bye, after which another hub reads it.
                if let Some(mirror) = stream.mirror {
                    mirror.close();
                }
                stream.journal.close()
            }
        }
    }
}

impl Journal for HubJournal {
    async fn commit(&mut self, batch: Batch) -> Result<Vec<Effect>, JournalError> {
        match self {
            HubJournal::File(journal) => journal.commit(batch).await,
            HubJournal::Stream(stream) => stream.journal.commit(batch).await,
        }
    }
}

/// Two hubs must not share a directory: tokens and what tasks printed are in it.
fn lock(dir: &Path) -> Result<File, JournalError> {
    let path = dir.join("lock");
    let io = |doing| {
        let path = path.clone();
        move |source| LogError::Io { path, doing, source: Arc::new(source) }
    };
    let file = File::options().create(true).truncate(false).write(true).mode(0o600).open(&path);
    let file = file.map_err(io("open the lock file"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(LogError::Locked { dir: dir.to_owned(), pid: None }.into())
        }
        Err(TryLockError::Error(error)) => Err(io("lock the file")(error).into()),
    }
}
