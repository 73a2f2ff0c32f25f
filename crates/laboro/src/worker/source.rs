//! Where work comes from: a hub of our own, or another system whose language we speak.

use super::access;
use super::allocation::Allocation;
use super::args::{OnFailure, Worker};
use super::front::Front;
use super::fuq;
use super::settings::lease_ms;
use crate::args::Success;
use crate::exit::usage;
use crate::machine::Machine;
use crate::output::safe;
use crate::runexp::config::Config as Home;
use crate::view::now_ms;
use anyhow::{Context, anyhow};
use laboro_api::access::{Access, Role, Secret, client_config, host_name};
use laboro_core::{Fields, Setting, Time};
use laboro_dialects::fuq2::{NativeWorker, PlainSettings, PlainWorker, WorkerSettings};
use laboro_dialects::fuq2::{STANDBY_REDIRECT_PROTOCOL, WORKER_PROTOCOL};
use laboro_dialects::worker::WorkerSide;
use laboro_dialects::{dwork, fuq1, runexp};
use laboro_worker::agent::{AgentOptions, LimitBy, Link, Several, Tcp, Tls, Ways};
use laboro_worker::{MemoryGuard, Until};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::rustls::pki_types::ServerName;

pub(crate) struct Source {
    pub(crate) side: Box<dyn WorkerSide>,
    /// Only within a runtime.
    pub(crate) connect: Box<dyn FnOnce() -> Link>,
    pub(crate) front: Option<Front>,
}

pub(super) fn open(
    args: &Worker,
    options: &mut AgentOptions,
    allocation: Option<&Allocation>,
) -> anyhow::Result<Source> {
    match &args.from {
        Some(url) => elsewhere(url, args, options),
        None if args.curve.is_given() => Err(usage(
            "--curve-server-key: a hub's own workers need none; it is for --from dwork://",
        )),
        None => hub(args, options, allocation),
    }
}

fn hub(
    args: &Worker,
    options: &mut AgentOptions,
    allocation: Option<&Allocation>,
) -> anyhow::Result<Source> {
    let (access, front) = access::find(args)?;
    if access.native.is_none() && !access.prepared {
        return Err(anyhow!("the access file names no native door: give HOST:PORT"));
    }
    options.access = for_tasks(&access, args.group.as_deref());
    let ways = ways(&access)?;
    // The hub may begin anew elsewhere, or for the first time: its file tells then where.
    let file = access::file(args).filter(|_| args.hub.as_deref().is_none_or(access::is_dir));
    let machine = Machine::new(&args.with)?;
    let settings = WorkerSettings {
        group: args.group.clone().or_else(|| access.group.clone()),
        token: access.token.expose().as_bytes().to_vec(),
        tags: args.with_tags.clone(),
        memory: memory(&machine, allocation),
        resources: machine.resources,
        period_ms: lease_ms(args)?,
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        pid: std::process::id(),
        life: life(),
        takes_names: !options.command.is_empty(),
        until: until(options),
        fields: match laboro_worker::on_path("bash") {
            true => Fields::known(),
            false => Fields::known().without_shell(),
        },
        ..WorkerSettings::new(options.name.clone(), options.slots)
    };
    let patience = Duration::from_millis(settings.period_ms);
    let side = Box::new(NativeWorker::new(settings));
    let connect = Box::new(move || {
        let several = match file {
            Some(file) => {
                Several::reading(ways, move || self::ways(&Access::read(&file).ok()?).ok())
            }
            None => Several::new(ways.ways),
        };
        Link::new(several).within(patience)
    });
    Ok(Source { side, connect, front })
}

/// How the hub of this access file is reached from here, and what to say if it is not.
fn ways(access: &Access) -> anyhow::Result<Ways> {
    let mut config = client_config(access)?;
    config.alpn_protocols = [WORKER_PROTOCOL, STANDBY_REDIRECT_PROTOCOL].map(<[u8]>::to_vec).into();
    let config = Arc::new(config);
    // The certificate is known to the letter, so no name is looked at; but one has to be said.
    let name = ServerName::try_from("laboro").context("a plain word is a server name")?;
    let way = |address: &str| Tls {
        address: address.to_owned(),
        name: name.clone(),
        config: Arc::clone(&config),
    };
    let addresses = access.native.as_deref().unwrap_or_default();
    let here = host_name();
    let ways = access.in_order(addresses, &here).into_iter().map(way).collect();
    Ok(Ways { ways, hint: hint(access, addresses, &here) })
}

/// The text of an access file for a task, before and after its secret. Its tasks are all of one group.
fn for_tasks(access: &Access, group: Option<&str>) -> Option<(String, String)> {
    const SECRET: &str = "@secret@";
    access.http.as_ref()?;
    let group = group.or(access.group.as_deref()).unwrap_or(laboro_api::DEFAULT_GROUP);
    let (role, group, token) = (Role::Submit, Some(group.to_owned()), Secret::from_text(SECRET));
    let text = Access { role, group, token, native: None, ..access.clone() }.text();
    text.split_once(SECRET).map(|(head, tail)| (head.to_owned(), tail.to_owned()))
}

fn hint(access: &Access, addresses: &str, here: &str) -> String {
    let host = access.host.as_deref().map_or_else(|| "the hub's machine".to_owned(), safe);
    if access.prepared {
        return format!("it was not started yet: start it with `laboro hub` on {host}");
    }
    let is_here = access.host.as_deref() == Some(here);
    if !is_here && Access::is_local(addresses) {
        return format!(
            "it listens only on its own machine, {host}: start it there with `laboro hub --native 0.0.0.0:7911`"
        );
    }
    match is_here {
        true => "is it running? Start it with `laboro hub`".to_owned(),
        false => format!(
            "is it running on {host}, and does a firewall let {} connect to it?",
            safe(here)
        ),
    }
}

/// What tasks may take together.
pub(super) fn memory(machine: &Machine, allocation: Option<&Allocation>) -> u64 {
    let allowed = allocation.and_then(|allocation| allocation.memory_bytes);
    allowed.map_or(machine.memory, |bytes| bytes.min(machine.memory))
}

/// A number that no other worker has, of this name or another; never 0, which says nothing.
fn life() -> u64 {
    RandomState::new().build_hasher().finish().max(1)
}

/// When the last task has to be over, by the clock that conversations go by.
fn until(options: &AgentOptions) -> Option<Time> {
    let left = u64::try_from(options.time_for_work()?.as_millis()).unwrap_or(u64::MAX);
    Some(Time(now_ms()).after_ms(left))
}

fn elsewhere(url: &str, args: &Worker, options: &mut AgentOptions) -> anyhow::Result<Source> {
    let (scheme, rest) = url.split_once("://").unwrap_or((url, ""));
    let mut address = rest.trim_end_matches('/').to_owned();
    let home = match scheme {
        "runexp" => Home::of_home()?,
        _ => Home::default(),
    };
    if let Some(manager) = home.manager().filter(|_| address.is_empty()) {
        address = manager;
    }
    if scheme == "dwork" {
        // A port may be left out, as with `laboro dwork`.
        let parsed = address.parse::<laboro_clients::dwork::Address>();
        address = parsed.map_err(|why| usage(format!("--from {url}: {why}")))?.to_string();
    }
    let has_port = address.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
    if scheme.starts_with("fuq+") && !address.is_empty() && !has_port {
        address = format!("{address}:{FUQ_PORT}");
    }
    if address.is_empty() && scheme == "runexp" {
        let hint = "write runexp://HOST:PORT, or say in ~/.runexp where the manager is (qmanager and port)";
        return Err(usage(format!("--from {url}: {hint}")));
    }
    let parts = address.rsplit_once(':').map(|(host, port)| (host, port.parse::<u16>()));
    if !matches!(parts, Some((host, Ok(1..))) if !host.is_empty()) {
        return Err(usage(format!(
            "--from {url}: write SCHEME://HOST:PORT, with a port from 1 to 65535"
        )));
    }
    let dworks = [
        (args.curve.is_given(), "--curve-server-key"),
        (args.on_failure.is_some(), "--on-failure"),
        (args.stay, "--stay"),
    ];
    if let Some((_, option)) = dworks.into_iter().find(|&(is_given, _)| is_given)
        && scheme != "dwork"
    {
        return Err(usage(format!("{option}: it is for --from dwork://, not for {scheme}://")));
    }
    let side: Box<dyn WorkerSide> = match scheme {
        "fuq+wss" => return fuq::open(args, options, fuq::Way::Websocket, address),
        "fuq+https" => return fuq::open(args, options, fuq::Way::Polling, address),
        "fuq2+tcp" => {
            let settings = PlainSettings::tcp(options.name.clone(), options.slots);
            let numbering = args.numbering;
            Box::new(PlainWorker::new(PlainSettings { numbering, ..settings }))
        }
        "fuq1+tcp" => {
            let settings = fuq1::ClientSettings::new(options.name.clone(), options.slots);
            Box::new(fuq1::Client::new(settings))
        }
        "runexp" => Box::new(runner(args, &home, options)?),
        "dwork" => Box::new(dwork::Worker::new(dwork_settings(args, options)?)),
        other => return Err(usage(format!("--from {other}://: there is {KNOWN}"))),
    };
    // Its jobs are shells, which have better use for a core than to wait awake for a manager.
    let is_asleep = scheme == "runexp";
    let connect = Box::new(move || {
        let link = Link::new(Tcp { address });
        if is_asleep { link.asleep() } else { link }
    });
    Ok(Source { side, connect, front: None })
}

/// Where original foremen listen.
const FUQ_PORT: u16 = 5429;

const KNOWN: &str = "dwork://, fuq+wss://, fuq+https://, fuq1+tcp://, fuq2+tcp:// and runexp://";

/// The name given to this worker is its host name there.
fn runner(
    args: &Worker,
    home: &Home,
    options: &mut AgentOptions,
) -> anyhow::Result<runexp::Runner> {
    let chosen = args.name.as_deref().or(home.hostname.as_deref());
    // What follows a dot is not said.
    if let Some(host) = chosen
        .filter(|host| !runexp::words::is_host(host.split('.').next().unwrap_or("").as_bytes()))
    {
        let hint = "letters, digits, `-` and `_` are all that a runner's name may have";
        return Err(usage(format!("--host {host:?}: {hint}")));
    }
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let host = chosen.unwrap_or(&host);
    let mut settings = runexp::RunnerOptions::new(host, options.slots);
    if let Some(group) = &args.group {
        settings.group.clone_from(group);
    }
    settings.output_bytes_max = usize::try_from(options.output_limit).unwrap_or(usize::MAX);
    // What is left out of a result is still looked through for its last `RES:` line.
    options.output_limit = u64::MAX;
    // Its scripts know nothing of such, and it costs more than all that is said about a job.
    options.task_dirs = false;
    if options.limit_by == LimitBy::Best {
        // Nobody can say what a job may use.
        options.limit_by = LimitBy::Nothing;
    }
    // The original waits for all that a script printed, also by what it left in the background.
    options.until = Until::OutputEnds;
    settings.versions.extend(args.versions.iter().cloned());
    settings.success = match args.success {
        Success::ResLine => runexp::Success::ResLine,
        Success::ExitCode => runexp::Success::ExitCode,
    };
    let runner = runexp::Runner::new(settings);
    // A job that was taken cannot be given back, so none is asked for that could not start.
    let mut memory = MemoryGuard::new(options.memory_free);
    let is_set = memory.is_set();
    Ok(if is_set { runner.asking_if(move || memory.shortage().is_none()) } else { runner })
}

/// Its tasks are names; what they mean is what was typed after `--`.
fn dwork_settings(
    args: &Worker,
    options: &mut AgentOptions,
) -> anyhow::Result<dwork::WorkerSettings> {
    let words = options.command.iter().map(|word| word.as_bytes());
    let template = dwork::Template::new(words, Setting::default());
    let template = template
        .map_err(|error| usage(format!("{error}: say what after `--`, as in -- ./run {{}}")))?;
    if options.limit_by == LimitBy::Best {
        // Nobody can say what a task may use.
        options.limit_by = LimitBy::Nothing;
    }
    Ok(dwork::WorkerSettings {
        location: options.name.clone().into_bytes(),
        slots: options.slots,
        template,
        on_failure: match args.on_failure {
            None | Some(OnFailure::Complete) => dwork::OnFailure::Complete,
            Some(OnFailure::Transfer) => dwork::OnFailure::Transfer,
        },
        stays: args.stay,
        mechanism: args.curve.mechanism()?,
    })
}
