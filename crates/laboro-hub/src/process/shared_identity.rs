//! What makes a hub the same hub to everybody, wherever it runs: certificate, tokens, keys. Hubs that share a
//! journal in NATS share these files too, through it.

use crate::security::{SecurityError, read_secret, write_secret};
use laboro_jetstream::Sharer;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tokio::time::sleep;

const FILES: [&str; 8] = [
    "tls.pem",
    "tokens.toml",
    "access.toml",
    "curve.key",
    "fuq.auth",
    "jobs.key",
    "hook.secret",
    "pools.toml",
];
/// Tokens may be made and revoked at any time; others know within this.
const LOOK: Duration = Duration::from_secs(1);

/// Makes the files what the last hub that led had.
pub(super) fn take(dir: &Path, identity: &[(String, Vec<u8>)]) -> Result<(), SecurityError> {
    for (file, (_, text)) in FILES
        .iter()
        .filter_map(|file| Some((file, identity.iter().find(|(k, _)| *k == key(file))?)))
    {
        let path = dir.join(file);
        let text = String::from_utf8_lossy(text);
        if read_secret(&path)?.is_none_or(|old| old != text) {
            write_secret(&path, &text)?;
        }
    }
    Ok(())
}

/// Shares them now and whenever they change.
pub(super) async fn share(dir: PathBuf, sharer: Sharer) {
    let mut known: [Option<SystemTime>; FILES.len()] = [None; FILES.len()];
    loop {
        for (file, known) in FILES.iter().zip(&mut known) {
            let path = dir.join(file);
            let changed = std::fs::metadata(&path).and_then(|about| about.modified()).ok();
            if changed.is_some() && changed != *known {
                *known = changed;
                match read_secret(&path) {
                    Ok(Some(text)) => sharer.share(&key(file), text.into_bytes()),
                    Ok(None) => {}
                    Err(error) => tracing::warn!("not shared with other hubs: {error}"),
                }
            }
        }
        sleep(LOOK).await;
    }
}

/// Whether there is all that it takes to be known as this hub.
pub(super) fn is_known(identity: &[(String, Vec<u8>)]) -> bool {
    identity.iter().any(|(known, _)| *known == key(FILES[0]))
}

/// Without dots, which mean something in NATS.
fn key(file: &str) -> String {
    file.replace('.', "-")
}
