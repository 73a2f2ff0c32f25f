//! Working for a foreman of fuq: by websocket, or by asking again and again. Both begin with the same login; how
//! tasks are run is the agent's affair.

mod bridge;
mod persistent;
mod polling;
mod tasks;

use super::args::Worker;
use super::source::Source;
use crate::exit::usage;
use laboro_clients::fuq::{Foreman, NodeInfo};
use laboro_dialects::fuq2::{PlainSettings, PlainWorker};
use laboro_dialects::websocket;
use laboro_net::Trust;
use laboro_worker::agent::{AgentOptions, Link};
use persistent::Persistent;
use std::path::PathBuf;
use std::sync::Arc;

/// `fuq+wss://` or `fuq+https://`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Websocket,
    Polling,
}

pub(super) fn open(
    args: &Worker,
    options: &AgentOptions,
    way: Way,
    address: String,
) -> anyhow::Result<Source> {
    let Some(auth_file) = &args.auth_file else {
        return Err(usage("a fuq foreman requires a password: give its file with --auth-file"));
    };
    let trust = trust(args.ca.clone(), args.pin.clone(), args.insecure).map_err(usage)?;
    let password = laboro_net::secret_file::read_password(auth_file)?;
    let node = NodeInfo {
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        pid: std::process::id(),
        slots: options.slots,
        tags: args.with_tags.clone(),
    };
    let foreman = Foreman::new(address, &trust, args.cert_name.as_deref(), password, node)?;
    let foreman = Arc::new(foreman);
    match way {
        Way::Websocket => {
            let mut settings = PlainSettings::websocket(options.name.clone(), options.slots);
            settings.numbering = args.numbering;
            let (most, tag) = (settings.message_max, format!("w2f_{}", options.name));
            let side = websocket::Client::new(PlainWorker::new(settings), most, tag);
            let connect = Box::new(move || Link::new(Persistent(foreman)));
            Ok(Source { side: Box::new(side), connect, front: None })
        }
        Way::Polling => {
            let side = Box::new(polling::Polling::new(options.name.clone(), options.slots));
            let connect = Box::new(move || Link::new(bridge::Bridge(foreman)));
            Ok(Source { side, connect, front: None })
        }
    }
}

/// Whom to trust, as it was typed.
fn trust(ca: Option<PathBuf>, pin: Option<String>, insecure: bool) -> Result<Trust, &'static str> {
    match (ca, pin, insecure) {
        (Some(path), None, false) => Ok(Trust::File(path)),
        (None, Some(pin), false) => Ok(Trust::Pin(pin)),
        (None, None, true) => Ok(Trust::Anyone),
        _ => {
            Err("choose what to trust: --ca FILE with the foreman's certificate or its authority, \
                  --pin with its SHA-256, or --insecure to trust any server")
        }
    }
}
