//! Moves a whole journal: reads one that no hub has open, and writes a new one from its state.

use crate::journal::JournalError;
use crate::log::{Durability, Log, LogError, Options};
use crate::replay::Replay;
use std::path::Path;

/// All of a journal. Nobody else can open it until `hold` is dropped.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Taken {
    pub replay: Replay,
    pub hold: Log,
}

/// Reads the journal in `dir`, which no hub may have open.
pub fn take(dir: &Path) -> Result<Taken, JournalError> {
    let mut replay = Replay::default();
    let (hold, _) =
        Log::open(dir, Options::default(), None, &mut |_, _, payload| replay.absorb(payload))?;
    Ok(Taken { replay, hold })
}

/// Writes a journal into the new directory `dir`, which gets its name when all of it is on the disk.
pub fn put(dir: &Path, replay: &Replay) -> Result<(), JournalError> {
    if dir.exists() {
        return Err(LogError::Occupied { to: dir.to_owned() }.into());
    }
    let mut partial = dir.as_os_str().to_owned();
    partial.push(".partial");
    let partial = Path::new(&partial);
    let io = |doing| {
        let path = dir.to_owned();
        move |source| LogError::Io { path, doing, source: std::sync::Arc::new(source) }
    };
    if partial.exists() {
        std::fs::remove_dir_all(partial).map_err(io("remove what an earlier copy left"))?;
    }
    let options = Options { durability: Durability::Os, ..Options::default() };
    let (mut log, _) = Log::open(partial, options, None, &mut |_, _, _| Ok(()))?;
    let mut failed = None;
    let written = replay.condense(&mut |record| match log.commit(record) {
        Ok(_) => Ok(()),
        Err(error) => {
            failed = Some(error);
            Err(std::io::Error::other("the log takes no more"))
        }
    });
    if let Some(error) = failed {
        return Err(error.into());
    }
    written.map_err(io("write the journal"))?;
    log.close()?;
    // Opened once more with the wish to be safe, everything is synced.
    Log::open(partial, Options::default(), None, &mut |_, _, _| Ok(()))?.0.close()?;
    std::fs::rename(partial, dir).map_err(io("rename the copy to this name"))?;
    let above = dir.parent().filter(|above| !above.as_os_str().is_empty());
    let above = std::fs::File::open(above.unwrap_or(Path::new(".")));
    above.and_then(|above| above.sync_all()).map_err(io("sync the directory above"))?;
    Ok(())
}
