//! `laboro mq server`: the server in the foreground, until a signal, `quit`, or the end of its console.

use super::args::ServerArgs;
use super::console::{Console, unknown};
use super::table::show;
use crate::exit::{Exit, usage};
use crate::output::{print, say};
use crate::run::Signals;
use anyhow::Context;
use laboro_clients::mq::Target;
use laboro_core::BrokerConfig;
use laboro_dialects::zmtp::{KeyBytes, Mechanism, key_from_text};
use laboro_hub::config::Address;
use laboro_hub::mq::{self, MqSettings, RunningBroker};
use laboro_hub::security::read_curve_keys;
use serde_json::json;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

const COMMANDS: &str = "workers, quit";

pub(super) fn run(args: &ServerArgs) -> anyhow::Result<Exit> {
    super::log(args.words.debug);
    crate::hub::raise_open_files();
    let runtime = super::runtime()?;
    // Before anything can be asked to end.
    let signals = runtime.block_on(async { Signals::listen() })?;
    let typed: Address = Target::host(&args.listen).map_err(usage)?.parse().map_err(usage)?;
    let listener = listen(args, &typed)?;
    let address = listener.local_addr()?;
    // What was typed is what clients connect to, and so what they send to.
    let identity = format!("tcp://{}", typed.typed(address.port()));
    let (told, ended) = tokio::sync::oneshot::channel();
    let server = mq::serve_then(listener, settings(args, identity)?, move || drop(told))?;
    match args.words.json {
        true => print(json!({ "event": "listening", "address": address.to_string() }))?,
        false => print(format_args!("rrmq on {address}"))?,
    }
    let console = if args.console { Some(Console::open("server> ")?) } else { None };
    runtime.block_on(serve(args, &server, console, signals, ended))?;
    server.stop();
    server.wait()?;
    Ok(Exit::Done)
}

async fn serve(
    args: &ServerArgs,
    server: &RunningBroker,
    mut console: Option<Console>,
    mut signals: Signals,
    ended: tokio::sync::oneshot::Receiver<()>,
) -> anyhow::Result<()> {
    let mut ended = std::pin::pin!(ended);
    loop {
        let words = tokio::select! {
            words = next(&mut console) => words,
            () = signals.next() => return Ok(()),
            _ = &mut ended => return Ok(()),
        };
        match words.as_deref().and_then(<[String]>::first).map(String::as_str) {
            Some("workers") => match server.table() {
                Some(table) => show(&table, args.words.json)?,
                None => return Ok(()),
            },
            None | Some("quit") => return Ok(()),
            Some(word) => unknown(word, COMMANDS),
        }
    }
}

async fn next(console: &mut Option<Console>) -> Option<Vec<String>> {
    match console {
        Some(console) => console.next().await,
        None => std::future::pending().await,
    }
}

fn listen(args: &ServerArgs, typed: &Address) -> anyhow::Result<TcpListener> {
    let address = typed.at();
    let is_locked = !args.curve_allow.is_empty();
    if !address.ip().is_loopback() && !is_locked && !args.insecure {
        return Err(usage(format!(
            "{address}: other machines can reach it, and there is no authentication; name the keys of allowed clients with --curve-key-file and --curve-allow, or add --insecure"
        )));
    }
    let listener = TcpListener::bind(address).with_context(|| {
        format!("cannot listen on {address}; choose another address, or port 0 for a free one")
    })?;
    Ok(listener)
}

fn settings(args: &ServerArgs, usual_identity: String) -> anyhow::Result<MqSettings> {
    let mut settings = MqSettings::new(args.identity.clone().unwrap_or(usual_identity));
    settings.mechanism = mechanism(args)?;
    settings.connections_max = args.max_connections;
    settings.unsent_bytes_max = usize::try_from(args.unread_bytes).unwrap_or(usize::MAX);
    settings.unsent_bytes_all_max = usize::try_from(args.unread_bytes_all).unwrap_or(usize::MAX);
    settings.broker = BrokerConfig {
        workers_max: args.max_workers,
        queue_messages_max: args.queue,
        queue_bytes_max: usize::try_from(args.queue_bytes).unwrap_or(usize::MAX),
        queue_ms: millis(args.ttl),
        grace_ms: millis(args.grace),
        probe_ms: millis(args.probe),
        slot_ms: args.slot_time.map(millis),
        ..BrokerConfig::default()
    };
    Ok(settings)
}

fn mechanism(args: &ServerArgs) -> anyhow::Result<Mechanism> {
    let Some(path) = &args.curve_key_file else { return Ok(Mechanism::Null) };
    let keys = read_curve_keys(path).map_err(usage)?;
    let allowed: Vec<KeyBytes> = args
        .curve_allow
        .iter()
        .map(|key| key_from_text(key).map_err(|error| usage(format!("--curve-allow: {error}"))))
        .collect::<anyhow::Result<_>>()?;
    if allowed.is_empty() {
        say("every client that has a key may connect; --curve-allow limits them");
    }
    let allow = move |key: &KeyBytes| allowed.is_empty() || allowed.contains(key);
    Ok(Mechanism::curve_server(&keys, Arc::new(allow)))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
