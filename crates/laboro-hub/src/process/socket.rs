//! Where a hub serves its API to its own user: a unix socket in its directory, or, where that cannot hold one, in the user's
//! runtime directory. A hub without a socket is a hub all the same.

use crate::security::Identity;
use rustix::process::geteuid;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// Bound and listening; the file goes when this does.
#[derive(Debug)]
pub(super) struct LocalSocket {
    pub listener: UnixListener,
    pub file: SocketFile,
}

#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    inode: u64,
}

impl SocketFile {
    /// As it stands in access files, which are text.
    pub fn text(&self) -> Option<String> {
        self.path.to_str().map(str::to_owned)
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // A hub with the same certificate may have taken over, and have one of its own there.
        if fs::symlink_metadata(&self.path).is_ok_and(|found| found.ino() == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

pub(super) fn open(dir: &Path, identity: &Identity) -> Option<LocalSocket> {
    let name = identity.socket_name();
    let here = fs::canonicalize(dir).and_then(|dir| bind(dir.join(&name)));
    let bound = here.or_else(|why| {
        tracing::debug!("no socket in {}: {why}", dir.display());
        bind(runtime_dir()?.join(&name))
    });
    match bound {
        Ok(bound) => Some(bound),
        Err(error) => {
            tracing::warn!("no local socket, commands use the address of http: {error}");
            None
        }
    }
}

/// One that is there is of an earlier hub: of those that are alive only one has the directory with this certificate.
fn bind(path: PathBuf) -> io::Result<LocalSocket> {
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&path)?;
    let file = SocketFile { inode: fs::symlink_metadata(&path)?.ino(), path };
    fs::set_permissions(&file.path, Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok(LocalSocket { listener, file })
}

/// `$XDG_RUNTIME_DIR`, or one of the user's own below `/tmp`, where others may have made something of that name.
fn runtime_dir() -> io::Result<PathBuf> {
    let own = geteuid().as_raw();
    let given = std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| !dir.is_empty());
    let dir = match given {
        Some(dir) => PathBuf::from(dir),
        None => {
            let dir = PathBuf::from(format!("/tmp/laboro-{own}"));
            match DirBuilder::new().mode(0o700).create(&dir) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => dir,
            }
        }
    };
    let found = fs::symlink_metadata(&dir)?;
    if found.is_dir() && found.uid() == own && found.mode() & 0o077 == 0 {
        Ok(dir)
    } else {
        let why = format!("{} is not a directory of this user alone", dir.display());
        Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
    use super::*;

    #[test]
    fn a_socket_is_its_owners_and_goes_with_the_hub() {
        let dir = tempfile::TempDir::new().unwrap();
        let path = dir.path().join("x.sock");
        let first = bind(path.clone()).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        // Left by one that was killed.
        std::mem::forget(first.file);
        let second = bind(path.clone()).unwrap();
        drop(second);
        assert!(!path.exists());
        let long = dir.path().join("x".repeat(120));
        assert!(bind(long).is_err(), "108 bytes is all that a path to a socket may have");
    }
}
