//! `laboro mq workers` and the consoles' `workers`: the table of a server, as text or JSON. Asked for over
//! the wire, so it can be seen from wherever requests can be sent.

use super::args::{KeysArgs, WorkersArgs};
use super::target::{open, target};
use crate::exit::Exit;
use crate::output::{counted, print};
use anyhow::{Context, bail};
use bytes::Bytes;
use laboro_api::BrokerTable;
use laboro_clients::mq::Target;
use laboro_dialects::rrmq::{Command, Envelope};
use laboro_dialects::zmtp::{KeyPair, key_to_text};
use laboro_hub::mq::TABLE_ADDRESS;
use laboro_hub::security::make_curve_keys;
use laboro_net::Clock;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn run(args: &WorkersArgs) -> anyhow::Result<Exit> {
    super::log(args.words.debug);
    let target = target(&args.to)?;
    let table = super::runtime()?.block_on(async {
        let asked = tokio::time::timeout(PATIENCE, ask(&target));
        asked.await.with_context(|| {
            format!("{target} does not answer; is it a Laboro server, not an original?")
        })?
    })?;
    show(&table, args.words.json)?;
    Ok(Exit::Done)
}

async fn ask(target: &Target) -> anyhow::Result<BrokerTable> {
    let mut link = open(target, Clock::start()).await?;
    let mut question =
        Envelope::new(Command::TrackExec, Bytes::from_static(b"1"), [Bytes::from_static(b"table")]);
    question.hops.push(Bytes::from_static(TABLE_ADDRESS));
    link.say(&question.to_message());
    let mut messages = Vec::new();
    link.hear(&mut messages).await?;
    for message in messages {
        let said = Envelope::parse(&message)?;
        if said.command == Command::Response
            && let Some(json) = said.args.first()
        {
            return Ok(serde_json::from_slice(json)?);
        }
    }
    bail!("{target} did not answer with its table")
}

pub(super) fn show(table: &BrokerTable, as_json: bool) -> anyhow::Result<()> {
    if as_json {
        return Ok(print(serde_json::to_string(table)?)?);
    }
    Ok(print(text(table))?)
}

fn text(table: &BrokerTable) -> String {
    let width = table.workers.iter().map(|w| w.address.chars().count()).max().unwrap_or(0).max(7);
    let mut text = format!(
        "{:<width$} {:>6} {:>6} {:>5} {:>10} {:>9}",
        "address", "free", "slots", "away", "messages", "per s"
    );
    for worker in &table.workers {
        let away = if worker.away { "away" } else { "-" };
        text.push_str(&format!(
            "\n{:<width$} {:>6} {:>6} {:>5} {:>10} {:>9.1}",
            worker.address, worker.free, worker.slots, away, worker.messages, worker.per_s
        ));
    }
    let dropped: u64 = table.dropped.values().sum();
    let wait = if table.waiting == 1 { "request waits" } else { "requests wait" };
    text.push_str(&format!(
        "\n{}, {} {wait}, {dropped} dropped",
        counted(table.workers.len() as u64, "worker"),
        table.waiting,
    ));
    text
}

/// `laboro mq keys`.
pub(super) fn make_keys(args: &KeysArgs) -> anyhow::Result<Exit> {
    if let Some(path) = &args.file {
        let keys = make_curve_keys(path)?;
        print(key_to_text(&keys.public))?;
        return Ok(Exit::Done);
    }
    let keys = KeyPair::generate();
    print(format_args!(
        "public {}\nsecret {}",
        key_to_text(&keys.public),
        key_to_text(&keys.secret)
    ))?;
    Ok(Exit::Done)
}
