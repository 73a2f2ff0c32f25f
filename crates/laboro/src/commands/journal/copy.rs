//! `laboro journal copy`: one place to the other, read once more at the end.

use super::found;
use crate::exit::{Exit, usage};
use crate::output::print;
use anyhow::bail;
use laboro_jetstream::{JetStreamJournal, Options};
use laboro_journal::{Replay, copy, read_ledger};
use std::path::{Path, PathBuf};

pub(super) fn run(
    from: PathBuf,
    from_nats: Option<Options>,
    to: PathBuf,
    to_nats: Option<Options>,
) -> anyhow::Result<Exit> {
    match (from_nats, to_nats) {
        (None, Some(options)) => up(&found(from)?, options)?,
        (Some(options), None) => down(options, &to.join("journal"))?,
        (None, None) => {
            return Err(usage(
                "copy moves to NATS or from it; `laboro journal backup` copies here",
            ));
        }
        (Some(_), Some(_)) => return Err(usage("one of the two places has to be a directory")),
    }
    print(format_args!("copied to {}; read once more, it holds the same", to.display()))?;
    Ok(Exit::Done)
}

fn up(dir: &Path, options: Options) -> anyhow::Result<()> {
    let taken = copy::take(dir)?;
    let written = taken.replay.ledger.describe();
    let (mut journal, _, found) = JetStreamJournal::open(options.clone())?;
    if found.last_number > 0 || found.snapshot_bytes > 0 {
        journal.close()?;
        bail!("NATS has a journal named {} already; choose another --name", options.name);
    }
    journal.install_blocking(taken.replay)?;
    journal.close()?;
    let (check, ledger) = laboro_jetstream::check(&options)?;
    if let Some(problem) = check.problem {
        bail!("the copy is not sound: {problem}");
    }
    same(&written, &ledger.describe())
}

fn down(options: Options, dir: &Path) -> anyhow::Result<()> {
    let (journal, ledger, found) = JetStreamJournal::open(options)?;
    let written = ledger.describe();
    let put = copy::put(dir, &Replay::of(ledger, found.at));
    journal.close()?;
    put?;
    same(&written, &read_ledger(dir)?.describe())
}

fn same(written: &str, found: &str) -> anyhow::Result<()> {
    if written != found {
        bail!("the copy does not hold the same; it is of no use");
    }
    Ok(())
}
