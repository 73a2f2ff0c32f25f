//! `laboro mq worker`: registers and works until a signal, or as its console says. Leaving is orderly: first
//! nothing more is taken, then what was taken is answered.

mod crowd;
mod member;
mod programs;

use super::args::MqWorkerArgs;
use super::console::{Console, unknown};
use super::target::target;
use crate::exit::{Exit, usage};
use crate::output::{counted, print, say};
use crate::run::Signals;
use crowd::Crowd;
use laboro_clients::mq::Target;
use laboro_dialects::rrmq::{Pack, WorkerOptions};
use member::{Member, MemberOrder, Trade};
use programs::Programs;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const COMMANDS: &str = "register, bulk [N], endbulk, deregister, quit";

/// Beside the one that the console is about, so that together there are ten.
const BULK: usize = 9;
const BULK_MAX: usize = 1000;

/// How long a person waits for the server to answer REGISTER.
const REGISTER: Duration = Duration::from_secs(10);

pub(super) fn run(args: &MqWorkerArgs) -> anyhow::Result<Exit> {
    super::log(args.words.debug);
    if args.slots == 0 {
        return Err(usage(
            "--slots: a worker without slots is never asked anything; give it 1 or more",
        ));
    }
    let target = target(&args.to)?;
    let trade = Trade {
        options: WorkerOptions {
            slots: args.slots,
            pack: if args.pack { Pack::Zlib } else { Pack::Raw },
            ..WorkerOptions::default()
        },
        programs: args.exec.as_ref().map(|line| {
            Arc::new(Programs::new(line.clone(), args.long_lived, args.time_limit, args.slots))
        }),
    };
    super::runtime()?.block_on(async {
        let signals = Signals::listen()?;
        match args.console {
            true => converse(args, &target, trade, signals).await,
            false => work(args, &target, trade, signals).await,
        }
    })
}

async fn work(
    args: &MqWorkerArgs,
    target: &Target,
    trade: Trade,
    mut signals: Signals,
) -> anyhow::Result<Exit> {
    let mut member = Member::start(target.clone(), trade);
    member.order(MemberOrder::Register);
    let mut is_patient = true;
    loop {
        tokio::select! {
            () = member.registered() => {
                tell(args, format_args!("registered with {target}, {}", counted(args.slots, "slot")), || {
                    json!({ "event": "registered", "server": target.to_string(), "slots": args.slots })
                })?;
                signals.next().await;
                break;
            }
            () = signals.next() => break,
            () = tokio::time::sleep(REGISTER), if is_patient => {
                is_patient = false;
                let seconds = REGISTER.as_secs();
                say(format_args!(
                    "laboro: no answer to REGISTER from {target} for {seconds} s: is it an rrmq server, and does it \
                     allow {}? Still waiting",
                    counted(args.slots, "slot")
                ));
            }
        }
    }
    member.order(MemberOrder::Leave);
    tokio::select! {
        tally = member.gone() => {
            tell(args, format_args!("left after {}", counted(tally.requests, "request")), || {
                json!({ "event": "left", "requests": tally.requests, "answers": tally.answers })
            })?;
            Ok(Exit::Done)
        }
        () = signals.next() => Ok(Exit::Interrupted),
    }
}

async fn converse(
    args: &MqWorkerArgs,
    target: &Target,
    trade: Trade,
    mut signals: Signals,
) -> anyhow::Result<Exit> {
    let mut console = Console::open("worker> ")?;
    let mut parent = Member::start(target.clone(), trade.clone());
    let mut crowd = Crowd::new(target.clone(), trade);
    loop {
        let words = tokio::select! {
            words = console.next() => words.unwrap_or_else(|| vec!["quit".into()]),
            () = signals.next() => vec!["quit".into()],
        };
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            ["register"] => {
                parent.order(MemberOrder::Register);
                let is_in = tokio::time::timeout(REGISTER, parent.registered()).await.is_ok();
                let words =
                    if is_in { "registered with" } else { "not registered: no answer from" };
                tell(
                    args,
                    format_args!("{words} {target}"),
                    || json!({ "event": "register", "registered": is_in }),
                )?;
            }
            ["bulk", ref rest @ ..] => match rest {
                [] => bulk(args, &mut crowd, BULK).await?,
                [count] => match count.parse() {
                    Ok(count @ 1..=BULK_MAX) => bulk(args, &mut crowd, count).await?,
                    _ => unknown(count, &format!("bulk N with N from 1 to {BULK_MAX}")),
                },
                _ => unknown(&words.join(" "), COMMANDS),
            },
            ["endbulk"] => endbulk(args, &mut crowd).await?,
            ["deregister"] => {
                parent.order(MemberOrder::Deregister);
                parent.deregistered().await;
                tell(args, format_args!("deregistered"), || json!({ "event": "deregister" }))?;
            }
            ["quit"] => break,
            _ => unknown(words.first().unwrap_or(&""), COMMANDS),
        }
    }
    tokio::select! {
        left = async { crowd.leave().await; parent.order(MemberOrder::Leave); parent.gone().await } => {
            tracing::debug!("{left:?}");
            Ok(Exit::Done)
        }
        () = signals.next() => Ok(Exit::Interrupted),
    }
}

async fn bulk(args: &MqWorkerArgs, crowd: &mut Crowd, count: usize) -> anyhow::Result<()> {
    let registered = crowd.grow(count, REGISTER).await;
    tell(
        args,
        format_args!("{registered} of {count} more workers have registered"),
        || json!({ "event": "bulk", "asked": count, "registered": registered }),
    )
}

async fn endbulk(args: &MqWorkerArgs, crowd: &mut Crowd) -> anyhow::Result<()> {
    let tallies = crowd.leave().await;
    for (number, tally) in tallies.iter().enumerate().filter(|_| args.words.debug >= 2) {
        let (requests, answers) = (tally.requests, tally.answers);
        tell(
            args,
            format_args!(
                "worker {}: {}, {}",
                number + 1,
                counted(requests, "request"),
                counted(answers, "answer")
            ),
            || json!({ "event": "child", "requests": requests, "answers": answers }),
        )?;
    }
    tell(
        args,
        format_args!("{} deregistered", counted(tallies.len(), "worker")),
        || json!({ "event": "endbulk", "left": tallies.len() }),
    )
}

fn tell(
    args: &MqWorkerArgs,
    words: std::fmt::Arguments<'_>,
    value: impl FnOnce() -> Value,
) -> anyhow::Result<()> {
    match args.words.json {
        true => print(value())?,
        false => print(words)?,
    }
    Ok(())
}
