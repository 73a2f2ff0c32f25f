//! Files that people name on the command line: those with secrets.

use crate::output::say;
use laboro_hub::security::{Access, SecurityError};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Reads an access file. One that other users can read is used all the same, since so many are: but it is said.
pub(crate) fn read_access(path: &Path) -> Result<Access, SecurityError> {
    let access = Access::read(path)?;
    // A group may be meant to read it; nobody else may change where our commands go.
    if let Ok(about) = std::fs::metadata(path)
        && about.is_file()
        && about.permissions().mode() & 0o026 != 0
    {
        let (file, mode) = (path.display(), about.permissions().mode() & 0o777);
        say(format_args!(
            "warning: {file} holds a token, and other users can read or change it (mode {mode:03o}): \
             run `chmod 600 {file}`"
        ));
    }
    Ok(access)
}
