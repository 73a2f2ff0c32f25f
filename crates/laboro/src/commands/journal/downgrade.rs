//! `laboro journal downgrade-check`: whether an older program could go on with a journal. Nobody knows that better than the
//! older program itself, so it is asked: it reads a copy, and what it finds there has to be what this one finds.

use crate::exit::Exit;
use crate::output::print;
use anyhow::{Context, bail};
use laboro_journal::log;
use serde_json::Value;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What both have to find. Words for states are not among it: they may have changed.
const COMPARED: [&str; 4] = ["last_number", "events", "jobs", "workers"];

pub(super) fn run(dir: &Path, older: &Path, config: Option<&Path>) -> anyhow::Result<Exit> {
    let version = asked(Command::new(older).arg("--version"))?;
    if !version.status.success() {
        bail!("{}: it does not run: {}", older.display(), said(&version));
    }
    let version = String::from_utf8_lossy(&version.stdout).trim().to_owned();
    let scratch = Scratch::new().context("no directory for a copy can be made")?;
    let copy = scratch.0.join("journal");
    log::backup(dir, &copy)?;
    if let Some(why) = journal_trouble(&copy, older)? {
        return refused(&version, &why);
    }
    if let Some(config) = config {
        let read =
            Command::new(older).args(["hub", "--print-config", "--config"]).arg(config).output();
        let read = read.with_context(|| older.display().to_string())?;
        if !read.status.success() {
            return refused(&version, &said(&read));
        }
    }
    print(format_args!("the way back is open: {version} reads {} as it is", dir.display()))?;
    Ok(Exit::Done)
}

/// A directory that only this user can read, as the journal is, and that is gone in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> std::io::Result<Scratch> {
        let path = std::env::temp_dir().join(format!("laboro-downgrade-{}", std::process::id()));
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn refused(version: &str, why: &str) -> anyhow::Result<Exit> {
    print(format_args!(
        "there is no way back to {version}: {why}\nrestore a backup that was made before the upgrade, or stay with this version"
    ))?;
    Ok(Exit::Trouble)
}

/// Why the older program could not go on with this copy.
fn journal_trouble(copy: &Path, older: &Path) -> anyhow::Result<Option<String>> {
    let read = asked(Command::new(older).args(["journal", "check", "--json"]).arg(copy))?;
    let found: Option<Value> = serde_json::from_slice(&read.stdout).ok();
    let Some(found) = found else { return Ok(Some(said(&read))) };
    if let Some(problem) = found["problem"].as_str() {
        return Ok(Some(problem.to_owned()));
    }
    if !read.status.success() {
        return Ok(Some(said(&read)));
    }
    let own = laboro_journal::check(copy)?;
    if let Some(problem) = &own.problem {
        bail!("the journal is damaged: {problem}");
    }
    let own = [own.log.last_number, own.events, own.jobs, own.workers];
    let other = COMPARED.map(|key| found[key].as_u64());
    let differs = (0..COMPARED.len()).find(|&at| other[at] != Some(own[at]));
    Ok(differs.map(|at| {
        let other = other[at].map_or("nothing".to_owned(), |count| count.to_string());
        format!("it finds {other} as {}, and there is {}", COMPARED[at].replace('_', " "), own[at])
    }))
}

fn asked(command: &mut Command) -> anyhow::Result<Output> {
    let program = command.get_program().display().to_string();
    command.output().with_context(|| format!("{program}: it cannot be run"))
}

/// The last line of what it complained about.
fn said(ran: &Output) -> String {
    let text = String::from_utf8_lossy(&ran.stderr);
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    last.map_or_else(|| ran.status.to_string(), |line| line.trim().to_owned())
}
