//! `laboro mq client`: one question for a script, or a console of them.

mod bulk;
mod send;
mod talk;

use super::args::{Action, ClientArgs};
use super::console::{Console, unknown};
use super::target::target;
use crate::exit::{Exit, usage};
use crate::output::{print, say};
use crate::run::Signals;
use bulk::{Bulk, BulkKind, Outcome};
use serde_json::json;
use talk::Talk;

const COMMANDS: &str = "ping, pingt, data, bulkping N, bulkdata N, quit";

/// What a request for data asks for, unless told otherwise.
const ONES: u32 = 1024;

const PINGS_AT_ONCE: u64 = 10;

pub(super) fn run(args: &ClientArgs) -> anyhow::Result<Exit> {
    super::log(args.words.debug);
    let target = target(&args.to)?;
    super::runtime()?.block_on(async {
        let mut signals = Signals::listen()?;
        match &args.action {
            Some(_) if args.console => {
                Err(usage("--console takes commands, none is given with it"))
            }
            Some(Action::Send { frames, untracked }) => {
                let sent = send::run(args, &target, frames, *untracked);
                tokio::select! {
                    exit = sent => exit,
                    () = signals.next() => Ok(Exit::Interrupted),
                }
            }
            Some(action) => {
                let mut talk = tokio::select! {
                    talk = Talk::open(target, args.timeout) => talk?,
                    () = signals.next() => return Ok(Exit::Interrupted),
                };
                act(args, &mut talk, action, &mut signals).await
            }
            None if args.console => {
                let talk = Talk::open(target, args.timeout).await?;
                converse(args, talk, &mut signals).await
            }
            None => Err(usage(
                "say what to ask: ping, pingt, data, bulkping N, bulkdata N, send; or --console",
            )),
        }
    })
}

async fn converse(
    args: &ClientArgs,
    mut talk: Talk,
    signals: &mut Signals,
) -> anyhow::Result<Exit> {
    let mut console = Console::open("client> ")?;
    loop {
        let words = tokio::select! {
            words = console.next() => words,
            never = talk.stay() => match never {},
            () = signals.next() => return Ok(Exit::Interrupted),
        };
        let Some(words) = words else { return Ok(Exit::Done) };
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let action = match words[..] {
            ["ping"] => Action::Ping,
            ["pingt"] => Action::Pingt,
            ["data"] => Action::Data { ones: ONES },
            ["bulkping", count] | ["bulkdata", count] => match count.parse() {
                Ok(count) if words[0] == "bulkping" => Action::Bulkping { count },
                Ok(count) => Action::Bulkdata { count },
                Err(_) => {
                    unknown(count, "numbers, as in bulkping 100");
                    continue;
                }
            },
            ["quit"] => return Ok(Exit::Done),
            _ => {
                unknown(words.first().unwrap_or(&""), COMMANDS);
                continue;
            }
        };
        if act(args, &mut talk, &action, signals).await? == Exit::Interrupted {
            return Ok(Exit::Interrupted);
        }
    }
}

async fn act(
    args: &ClientArgs,
    talk: &mut Talk,
    action: &Action,
    signals: &mut Signals,
) -> anyhow::Result<Exit> {
    match *action {
        Action::Ping => {
            talk.ping().await?;
            match args.words.json {
                true => print(json!({ "type": "PING", "sent": 1 }))?,
                false => print("sent a PING, which has no answer")?,
            }
            Ok(Exit::Done)
        }
        Action::Pingt => single(args, talk, BulkKind::Ping, signals).await,
        Action::Data { ones } => single(args, talk, BulkKind::Stream { ones }, signals).await,
        Action::Bulkping { count } => {
            let bulk =
                Bulk { kind: BulkKind::Ping, count, at_once: PINGS_AT_ONCE, has_marks: true };
            many(args, talk, bulk, signals).await
        }
        Action::Bulkdata { count } => {
            let kind = BulkKind::Stream { ones: ONES };
            many(args, talk, Bulk { kind, count, at_once: u64::MAX, has_marks: true }, signals)
                .await
        }
        Action::Send { .. } => unreachable!("it is sent on a connection of its own"),
    }
}

async fn single(
    args: &ClientArgs,
    talk: &mut Talk,
    kind: BulkKind,
    signals: &mut Signals,
) -> anyhow::Result<Exit> {
    let bulk = Bulk { kind, count: 1, at_once: 1, has_marks: false };
    let outcome = bulk.run(talk, signals).await?;
    if outcome.is_interrupted {
        return Ok(Exit::Interrupted);
    }
    match (args.words.json, &outcome.failure) {
        (true, _) => print(outcome.json())?,
        (false, None) => {
            let (name, ms) = (kind.name(), outcome.took.as_secs_f64() * 1000.0);
            print(format_args!("{name} was answered in {ms:.2} ms"))?;
        }
        (false, Some(why)) => say(format_args!("{} failed: {why}", kind.name())),
    }
    Ok(outcome.exit())
}

async fn many(
    args: &ClientArgs,
    talk: &mut Talk,
    bulk: Bulk,
    signals: &mut Signals,
) -> anyhow::Result<Exit> {
    let bulk = Bulk { has_marks: bulk.has_marks && !args.words.json, ..bulk };
    let outcome = bulk.run(talk, signals).await?;
    match args.words.json {
        true => print(outcome.json())?,
        false => print(outcome.table())?,
    }
    if let Some(why) = &outcome.failure {
        say(format_args!("the first failure: {why}"));
    }
    if outcome.is_interrupted {
        say(format_args!("interrupted: {} of {} are over", outcome.total, bulk.count));
    }
    Ok(outcome.exit())
}

impl Outcome {
    fn exit(&self) -> Exit {
        match self.successes == self.total {
            _ if self.is_interrupted => Exit::Interrupted,
            true => Exit::Done,
            false => Exit::SomeFailed,
        }
    }
}
