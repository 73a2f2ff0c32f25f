//! Files that hold secrets: read only when nobody else can read them, and replaced as a whole, so that a
//! reader finds the old text or the new one.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecurityError {
    #[error("{}: cannot {doing}: {source}", .path.display())]
    Io { path: PathBuf, doing: &'static str, source: io::Error },

    #[error(
        "{path}: other users can read it (mode {mode:03o}): run `chmod 600 {path}`, and replace or \
         `laboro access revoke` what others may have seen",
        path = .path.display()
    )]
    Exposed { path: PathBuf, mode: u32 },

    #[error(
        "{path}: other users can write to it (mode {mode:03o}), and replace the tokens and the journal in it: \
         run `chmod 700 {path}`, or choose another directory",
        path = .path.display()
    )]
    Writable { path: PathBuf, mode: u32 },

    #[error("{}: {reason}", .path.display())]
    Malformed { path: PathBuf, reason: String },

    #[error("the access text cannot be used: {reason}: make a new one with `laboro access`")]
    BadAccess { reason: String },

    #[error("there is a token named {name} already: revoke it first or choose another name")]
    NameTaken { name: String },

    #[error("there is no token {name}: `laboro access list` shows them")]
    NoSuchToken { name: String },

    #[error(
        "the name {name:?} of a token is not 1 to 64 letters, digits, dots, dashes or underlines"
    )]
    BadName { name: String },

    #[error("the certificate cannot be made or used: {reason}")]
    Certificate { reason: String },

    #[error("the system gives no random bytes")]
    NoRandom,
}

impl SecurityError {
    pub fn io(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> SecurityError {
        move |source| SecurityError::Io { path: path.to_owned(), doing, source }
    }

    pub fn malformed(path: &Path, reason: impl ToString) -> SecurityError {
        SecurityError::Malformed { path: path.to_owned(), reason: reason.to_string() }
    }
}

/// A directory that only its owner may enter. One that is there already stays as it is, but must not be one that
/// anybody can write to: who can replace the files of tokens needs none.
pub fn make_dir(dir: &Path) -> Result<(), SecurityError> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(dir).map_err(SecurityError::io(dir, "create it"))?;
    let about = std::fs::metadata(dir).map_err(SecurityError::io(dir, "look at it"))?;
    let mode = about.permissions().mode() & 0o7777;
    if mode & 0o002 != 0 {
        return Err(SecurityError::Writable { path: dir.to_owned(), mode });
    }
    // A group of one is common, and harmless.
    if mode & 0o020 != 0 {
        tracing::warn!(
            "{}: its group can write to it (mode {mode:03o}) and replace tokens: `chmod 700` it",
            dir.display()
        );
    }
    Ok(())
}

/// More than any of these files can need.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// `None` when there is no such file.
pub fn read(path: &Path) -> Result<Option<String>, SecurityError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(SecurityError::io(path, "open it")(error)),
    };
    let about = file.metadata().map_err(SecurityError::io(path, "look at it"))?;
    let mode = about.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(SecurityError::Exposed { path: path.to_owned(), mode });
    }
    read_text(file, path).map(Some)
}

/// For files that came from elsewhere, whose permissions are their owner's business.
pub fn read_text(file: File, path: &Path) -> Result<String, SecurityError> {
    let mut text = String::new();
    let read = file.take(FILE_BYTES_MAX).read_to_string(&mut text);
    read.map_err(SecurityError::io(path, "read it"))?;
    Ok(text)
}

/// The password of a fuq foreman, from a file that is the password, or that has a line `auth PASSWORD` as the original's settings do.
pub fn read_password(path: &Path) -> Result<String, SecurityError> {
    let malformed = |reason: &str| SecurityError::malformed(path, reason);
    let missing = "there is no such file: put the password of the fuq nodes into it";
    let text = read(path)?.ok_or_else(|| malformed(missing))?;
    let unclear = "it is to hold the password alone on one line, or a line `auth PASSWORD`";
    password_in(&text).map(str::to_owned).ok_or_else(|| malformed(unclear))
}

/// The password in a file's text.
pub fn password_in(text: &str) -> Option<&str> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let named = lines.filter_map(|line| line.strip_prefix("auth")).find_map(|rest| {
        let password = rest.trim();
        (rest.len() > password.len() && !password.is_empty()).then_some(password)
    });
    let alone = text.trim_end_matches(['\r', '\n']);
    named.or((!alone.is_empty() && !alone.contains('\n')).then_some(alone))
}

/// Whoever looks afterwards, also after a power cut, finds all of this text in the file.
pub fn replace(path: &Path, text: &str) -> Result<(), SecurityError> {
    let draft = path.with_extension("new");
    // One that was left behind may have been made with other permissions.
    match std::fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(SecurityError::io(&draft, "remove it")(error));
        }
        _ => {}
    }
    let written = || {
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(&draft)?;
        file.set_permissions(Permissions::from_mode(0o600))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    written().map_err(SecurityError::io(&draft, "write it"))?;
    std::fs::rename(&draft, path).map_err(SecurityError::io(path, "replace it"))?;
    let parent = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    let dir = parent.unwrap_or(Path::new("."));
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(SecurityError::io(dir, "sync it"))
}
