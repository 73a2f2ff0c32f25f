//! What people name on the command line: directories to write to, files for what would go to standard output, files
//! with secrets.

use crate::output::{data, say};
use anyhow::{Context, bail};
use laboro_api::access::Access;
use laboro_net::SecurityError;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Creates the directory, and what is missing above it, unless it is there.
pub(crate) fn make_dir(dir: &Path) -> anyhow::Result<()> {
    match std::fs::create_dir_all(dir) {
        Err(_) if dir.exists() => bail!("{} is not a directory", dir.display()),
        made => made.with_context(|| format!("{} cannot be created", dir.display())),
    }
}

/// Writes to the file, or to standard output if there is none or it is `-`. Gives the path that was written.
pub(crate) fn write_output<'a>(
    path: Option<&'a Path>,
    text: &str,
) -> anyhow::Result<Option<&'a Path>> {
    let path = path.filter(|path| *path != Path::new("-"));
    match path {
        Some(path) => std::fs::write(path, text)
            .with_context(|| format!("{} cannot be written", path.display()))?,
        None => {
            let mut out = data();
            out.write_all(text.as_bytes())?;
            out.flush()?;
        }
    }
    Ok(path)
}

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
