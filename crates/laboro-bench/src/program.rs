//! Which `laboro` is measured. Beside this program lies the one of the same build; whether it is as new as the source
//! only cargo knows, so where cargo runs this, cargo is asked to build it first.

use crate::exit::say;
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) struct Program(Option<PathBuf>);

impl Program {
    pub(crate) fn new(named: Option<PathBuf>) -> Program {
        Program(named)
    }

    /// Found, or built; only once something is to be started.
    pub(crate) fn path(&self) -> anyhow::Result<PathBuf> {
        if let Some(named) = &self.0 {
            return Ok(named.clone());
        }
        let this = std::env::current_exe().context("the path of this program is not known")?;
        let dir = this.parent().context("this program is in a directory")?;
        if let Some(cargo) = std::env::var_os("CARGO") {
            build(Path::new(&cargo), dir)?;
        }
        let beside = dir.join("laboro");
        if !beside.is_file() {
            bail!(
                "there is no laboro program beside {}: build it with `cargo build --release`, or name one with --program",
                this.display()
            );
        }
        Ok(beside)
    }
}

/// With the profile by whose name the directory is called.
fn build(cargo: &Path, dir: &Path) -> anyhow::Result<()> {
    let profile = match dir.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let mut built = Command::new(cargo);
    built.args(["build", "--quiet", "-p", "laboro", "--profile", profile]);
    let status = built.status().context("cargo cannot be started")?;
    if !status.success() {
        say("the laboro program could not be built; what is there is measured");
    }
    Ok(())
}
