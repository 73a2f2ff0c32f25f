//! `laboro journal`: check, copy, backup, repair, and whether there is a way back.

mod copy;
mod downgrade;
mod stream;

use crate::args::journal::{Journal, JournalCommand};
use crate::exit::{Exit, usage};
use crate::output::{bytes, counted, print};
use laboro_core::State;
use laboro_journal::log;
use serde_json::json;
use std::path::{Path, PathBuf};

pub(crate) fn run(args: Journal) -> anyhow::Result<Exit> {
    match args.command {
        JournalCommand::Check { dir, json, config, nats } => {
            match nats.options(&dir, config.as_ref())? {
                Some(options) => stream::check(&dir, &options, json),
                None => check(&found(dir)?, json),
            }
        }
        JournalCommand::Copy { from, to, config, nats } => {
            let there = nats.options(&from, config.as_ref())?;
            let here = nats.options(&to, config.as_ref())?;
            copy::run(from, there, to, here)
        }
        JournalCommand::Backup { dir, to } => {
            let dir = found(dir)?;
            let report = log::backup(&dir, &to)?;
            print(format_args!(
                "copied {} to {}: {} up to number {}",
                dir.display(),
                to.display(),
                counted(report.records, "record"),
                report.last_number
            ))?;
            Ok(Exit::Done)
        }
        JournalCommand::DowngradeCheck { dir, older, config } => {
            downgrade::run(&found(dir)?, &older, config.as_deref())
        }
        JournalCommand::Repair { dir } => {
            let repair = log::repair(&found(dir)?)?;
            let exit = if repair.lost.is_some() { Exit::Trouble } else { Exit::Done };
            print(repair)?;
            Ok(exit)
        }
    }
}

/// A journal, or that of the hub whose directory this is. Any other directory would pass for an empty one.
fn found(dir: PathBuf) -> anyhow::Result<PathBuf> {
    let inner = dir.join("journal");
    match () {
        () if log::is_here(&dir) => Ok(dir),
        () if log::is_here(&inner) => Ok(inner),
        () => Err(usage(format_args!(
            "{} holds no journal: name a hub's directory, or the `journal` of a run in .laboro",
            dir.display()
        ))),
    }
}

fn contents(jobs: u64, workers: u64, tasks: &[(State, u64)]) -> String {
    format!("{}, {}, {}", counted(jobs, "job"), counted(workers, "worker"), words(tasks))
}

fn words(tasks: &[(State, u64)]) -> String {
    let tasks = tasks.iter().filter(|(_, count)| *count > 0);
    let tasks: Vec<String> =
        tasks.map(|(state, count)| format!("{count} {}", state.word())).collect();
    if tasks.is_empty() { "no tasks".to_owned() } else { tasks.join(", ") }
}

fn as_map(tasks: &[(State, u64)]) -> serde_json::Map<String, serde_json::Value> {
    let tasks = tasks.iter().filter(|(_, count)| *count > 0);
    tasks.map(|(state, count)| (state.word().to_owned(), (*count).into())).collect()
}

fn check(dir: &Path, as_json: bool) -> anyhow::Result<Exit> {
    let check = laboro_journal::check(dir)?;
    let exit = if check.problem.is_some() { Exit::Trouble } else { Exit::Done };
    if as_json {
        let tasks = as_map(&check.tasks);
        let report = json!({
            "dir": dir.display().to_string(),
            "problem": check.problem,
            "records": check.log.records,
            "last_number": check.log.last_number,
            "segments": check.log.segments,
            "log_bytes": check.log.log_bytes,
            "events": check.events,
            "jobs": check.jobs,
            "workers": check.workers,
            "tasks": tasks,
            "notes": check.log.notes,
        });
        print(report)?;
        return Ok(exit);
    }
    print(format_args!(
        "{}: {} up to number {} in {}, {}; {}",
        dir.display(),
        counted(check.log.records, "record"),
        check.log.last_number,
        counted(check.log.segments as u64, "segment"),
        bytes(check.log.log_bytes),
        counted(check.events, "event")
    ))?;
    print(contents(check.jobs as u64, check.workers as u64, &check.tasks))?;
    for note in &check.log.notes {
        print(format_args!("note: {note}"))?;
    }
    match &check.problem {
        Some(problem) => print(format_args!(
            "wrong: {problem}\n`laboro journal repair {}` saves what can be saved",
            dir.display()
        ))?,
        None if !check.log.notes.is_empty() => {
            print("no record is missing; the notes above say what is damaged or unfinished")?;
        }
        None => print("nothing is wrong with it")?,
    }
    Ok(exit)
}
