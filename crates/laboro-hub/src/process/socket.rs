//! Where a hub serves its API to its own user: a unix socket in its directory, or, where that cannot hold one, in the user's
//! runtime directory. A hub without a socket is a hub all the same.

use rustix::process::geteuid;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// Bound and listening; the file goes when this does.
#[derive(Debug)]
pub struct LocalSocket {
    /// Does not block.
    pub listener: UnixListener,
    /// Removed with this.
    pub file: SocketFile,
}

/// The name of a socket in the file system.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    inode: u64,
}

impl SocketFile {
    /// As it stands in access files, which are text.
    pub(super) fn text(&self) -> Option<String> {
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

impl LocalSocket {
    /// In the first place that can have one.
    pub fn open(places: &[PathBuf]) -> io::Result<LocalSocket> {
        let mut failed = io::Error::from(io::ErrorKind::NotFound);
        for path in places {
            match bind(path.clone()) {
                Ok(bound) => return Ok(bound),
                Err(why) => {
                    tracing::debug!("no socket at {}: {why}", path.display());
                    failed = why;
                }
            }
        }
        Err(failed)
    }
}

/// Where a socket of this name may be: in its directory, or, under a name that no other has, in the runtime directory. The
/// path of a socket has at most 108 bytes, and not every file system can have one.
pub fn socket_places(dir: &Path, name: &str, elsewhere: &str) -> Vec<PathBuf> {
    let here = fs::canonicalize(dir).map(|dir| dir.join(name));
    here.into_iter().chain(runtime_dir().map(|dir| dir.join(elsewhere))).collect()
}

pub(super) fn open(dir: &Path, name: &str) -> Option<LocalSocket> {
    match LocalSocket::open(&socket_places(dir, name, name)) {
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
