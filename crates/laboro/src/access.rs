//! `laboro access`: makes a token for somebody and writes the file they need; shows and revokes tokens. Works
//! on the hub's own directory, whether the hub runs or not; a running one notices.

use crate::exit::{Exit, usage};
use crate::output::{print, say};
use clap::{Args, Subcommand, ValueEnum};
use laboro_api::access::{self as api, Access};
use laboro_core::{Name, Time};
use laboro_hub::config::{Settings, default_dir};
use laboro_hub::http::Audit;
use laboro_hub::security::{self, NewToken, Token, TokenBook, host_name};
use laboro_net::{Clock, SecurityError};
use laboro_plan::parse_duration;
use serde_json::json;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

const HELP: &str = "\
Examples:
  laboro access --role work --hub-address HOST -o worker.toml    for workers; copy it to their machines
  laboro access --name alice -o alice.toml                       for a person, who then owns her jobs
  laboro access --name alice-laptop --owner alice -o laptop.toml a second token of the same person
  laboro access --role submit --group night --expires 30d --name ci -o ci.toml
  laboro access --prepare                         before the hub's first start, for workers that come first
  laboro access list
  laboro access revoke ci
  laboro access curve                             for --curve-server-key of dwork and mq clients";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct AccessArgs {
    #[command(subcommand)]
    command: Option<AccessCommand>,

    /// The hub's directory. Default: LABORO_DIR, else laboro/hub in the state directory.
    #[arg(long, value_name = "DIR", global = true)]
    dir: Option<PathBuf>,

    /// What the token allows. Default: submit.
    #[arg(long, value_enum)]
    role: Option<Role>,

    /// Only for this group. Default: for every group.
    #[arg(long, value_name = "NAME")]
    group: Option<String>,

    /// How long it is valid, such as 30d. Default: until it is revoked.
    #[arg(long, value_name = "TIME")]
    expires: Option<String>,

    /// Its name. Default: its role and a number.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Owner of jobs that are submitted with it. Default: the name of the token.
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,

    /// Write the access file here, for you alone to read. Default: standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// The name or address by which others reach the hub's machine; several with commas, if several hubs share a journal.
    #[arg(long, value_name = "HOST")]
    hub_address: Option<String>,

    /// Make the hub's directory, certificate and access file before its first start, so that workers and clients that
    /// share the directory find the hub as soon as it runs.
    #[arg(long)]
    prepare: bool,

    /// With --prepare: the hub's configuration file, for the addresses where it will listen.
    #[arg(long, value_name = "FILE", requires = "prepare")]
    config: Option<PathBuf>,
}

impl AccessArgs {
    /// Whether anything is said of a token to be made.
    fn makes(&self) -> bool {
        let words = [&self.group, &self.expires, &self.name, &self.owner, &self.hub_address];
        let is_written = self.role.is_some() || self.output.is_some();
        is_written || words.into_iter().any(Option::is_some)
    }
}

#[derive(Debug, Subcommand)]
enum AccessCommand {
    /// List the tokens.
    List {
        /// One JSON object per token.
        #[arg(long)]
        json: bool,
    },
    /// Print the public key that clients of CURVE doors need.
    Curve,
    /// Revoke a token. Its connections end within a few seconds.
    Revoke {
        /// The name or id of a token.
        token: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Role {
    /// See everything.
    Watch,
    /// Submit and control jobs.
    Submit,
    /// Be a worker.
    Work,
    /// Everything.
    Admin,
}

pub(crate) fn run(args: AccessArgs) -> anyhow::Result<Exit> {
    if args.command.is_some() && args.makes() {
        return Err(usage(
            "--role, --group, --expires, --name, --owner, --hub-address and --output are for making a token",
        ));
    }
    if args.command.is_some() && args.prepare {
        return Err(usage(
            "--prepare: it is for making a hub's directory; say `laboro access --prepare`",
        ));
    }
    let mut dir = args.dir.clone().unwrap_or_else(default_dir);
    if args.prepare {
        dir = prepare(&args, dir)?;
        // With any of these a token is wanted too.
        let words = [&args.group, &args.expires, &args.name, &args.owner];
        if args.role.is_none() && args.output.is_none() && words.iter().all(|word| word.is_none()) {
            return Ok(Exit::Done);
        }
    }
    // Also checks that there is a hub at all.
    let own = own_access(&dir)?;
    let book = TokenBook::of(&dir);
    match &args.command {
        None => make(args, &dir, &book, own),
        Some(AccessCommand::List { json }) => list(&book.list()?, *json),
        Some(AccessCommand::Curve) => {
            let keys = security::curve_keys(&dir)?;
            print(security::CurveKey(keys.public))?;
            Ok(Exit::Done)
        }
        Some(AccessCommand::Revoke { token }) => {
            let gone = book.revoke(token).map_err(of_person)?;
            note(&dir, "token revoked", format!("{} ({})", gone.name, gone.role.word()));
            say(format_args!("revoked {} ({})", gone.name, gone.role.word()));
            Ok(Exit::Done)
        }
    }
}

/// Gives the hub's directory.
fn prepare(args: &AccessArgs, dir: PathBuf) -> anyhow::Result<PathBuf> {
    let settings = match &args.config {
        Some(path) => Settings::read(path).map_err(usage)?,
        None => Settings::default(),
    };
    let dir = if args.dir.is_some() || args.config.is_none() { dir } else { settings.dir.clone() };
    let path = Access::path_in(&dir);
    if Access::read_own(&path)?.is_some_and(|old| !old.prepared) {
        return Err(usage(format_args!(
            "{} exists: a hub was started in this directory already",
            path.display()
        )));
    }
    if let Some(name) =
        [&args.name, &args.owner].into_iter().flatten().find(|name| name.starts_with("door:"))
    {
        return Err(usage(format_args!(
            "{name:?} would be the owner of what comes in at a door without tokens: choose another name"
        )));
    }
    let host = args.hub_address.as_deref();
    if let Some(host) = host.filter(|host| !is_host(host)) {
        return Err(usage(format_args!(
            "--hub-address {host:?}: --prepare takes one host without a port"
        )));
    }
    let settings = Settings { dir: dir.clone(), ..settings };
    laboro_hub::process::prepare(&settings, host, Clock::start().now())?;
    note(&dir, "access prepared", path.display().to_string());
    say(format_args!(
        "{} is ready; the hub writes its addresses into it when it starts",
        path.display()
    ));
    Ok(dir)
}

fn own_access(dir: &Path) -> anyhow::Result<Access> {
    let path = Access::path_in(dir);
    Access::read(&path).map_err(|error| match error {
        SecurityError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            usage(format_args!(
                "no hub was started in {}: start one with `laboro hub`, or name its directory with --dir",
                dir.display()
            ))
        }
        other => other.into(),
    })
}

fn make(args: AccessArgs, dir: &Path, book: &TokenBook, own: Access) -> anyhow::Result<Exit> {
    let expires = args.expires.as_deref().map(parse_duration).transpose().map_err(usage)?;
    if expires.is_some_and(|time| time.is_zero()) {
        return Err(usage(
            "--expires 0: the token would never be valid; leave it out for one that does not expire",
        ));
    }
    if args.group.as_deref() == Some("") {
        return Err(usage("--group '': a group has a name; leave it out for every group"));
    }
    let host = args.hub_address.as_deref();
    if let Some(host) = host.filter(|hosts| !hosts.split(',').map(str::trim).all(is_host)) {
        return Err(usage(format_args!(
            "--hub-address {host:?} is not a host: give a name or an address, without a port"
        )));
    }
    if let Some(path) = args.output.as_deref().filter(|path| path.exists()) {
        return Err(usage(format_args!(
            "{} already exists: choose another name, or remove it",
            path.display()
        )));
    }
    if own.prepared && own.native.is_none() {
        return Err(usage(
            "the port of the hub is not known before it runs: give it one in the file of --config",
        ));
    }
    let (http, native) = (reached(own.http, host), reached(own.native, host));
    let role = match args.role.unwrap_or(Role::Submit) {
        Role::Watch => api::Role::Watch,
        Role::Submit => api::Role::Submit,
        Role::Work => api::Role::Work,
        Role::Admin => api::Role::Admin,
    };
    let new = NewToken {
        name: args.name,
        role,
        owner: args.owner,
        group: args.group.clone(),
        expires_ms: expires.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
    };
    let (token, made) = book.add(new, Clock::start().now()).map_err(of_person)?;
    note(dir, "token made", described(&made));
    let access = Access {
        // It is for those who read the hub's own file.
        socket: None,
        host: own.host.clone().filter(|_| host.is_none()),
        prepared: false,
        http,
        native,
        role,
        group: args.group,
        token,
        certificate: own.certificate,
    };
    let is_local = |address: &Option<String>| address.as_deref().is_some_and(Access::is_local);
    if is_local(&access.http) || is_local(&access.native) {
        say(format_args!(
            "this file works on the hub's own machine only; for other machines start the hub with --native 0.0.0.0:7911 and --http 0.0.0.0:7910, and add --hub-address {}",
            host_name()
        ));
    }
    match &args.output {
        Some(path) => {
            access.write(path)?;
            say(format_args!("{}: access for {}", path.display(), described(&made)));
        }
        None => {
            print(access.text().trim_end())?;
            if !std::io::stdout().is_terminal() {
                say(
                    "this holds a secret: anyone who can read it has the access; `-o FILE` writes a file that only you \
                     can read",
                );
            }
        }
    }
    Ok(Exit::Done)
}

/// Who did what is kept with the rest of it. The token is made or gone in any case.
pub(crate) fn note(dir: &Path, action: &str, detail: String) {
    if let Err(error) = Audit::note(dir, action, detail, Clock::start().now()) {
        say(format_args!("the audit log cannot be written: {error}"));
    }
}

pub(crate) fn described(token: &Token) -> String {
    let group = token.group.as_ref().map_or("every group".into(), |group| format!("group {group}"));
    let end =
        token.expires.map_or("does not expire".into(), |end| format!("until {}", moment(end)));
    format!("{} ({}, {group}, {end})", token.name, token.role.word())
}

/// The address as others know it; several for hubs of which one leads.
fn reached(bound: Option<String>, hosts: Option<&str>) -> Option<String> {
    let bound = bound?;
    let Some(hosts) = hosts else { return Some(bound) };
    let own = Access::each(&bound).next().unwrap_or_default();
    // A hub that shares its journal names its machine, so this need not be an address.
    let port = own.rsplit_once(':').map_or("", |(_, port)| port);
    let reached = |host: &str| match host.parse() {
        Ok(std::net::IpAddr::V6(address)) => format!("[{address}]:{port}"),
        _ => format!("{host}:{port}"),
    };
    Some(Access::each(hosts).map(reached).collect::<Vec<_>>().join(","))
}

/// The port is the hub's own, so none is given here.
fn is_host(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let is_name = !text.is_empty() && text.chars().all(is_plain);
    is_name || text.parse::<std::net::IpAddr>().is_ok()
}

/// A name that is taken or unknown is a slip of whoever typed it.
fn of_person(error: SecurityError) -> anyhow::Error {
    match error {
        SecurityError::NameTaken { .. }
        | SecurityError::NoSuchToken { .. }
        | SecurityError::BadName { .. } => usage(error),
        other => other.into(),
    }
}

fn list(tokens: &[Token], as_json: bool) -> anyhow::Result<Exit> {
    let group = |token: &Token| token.group.as_ref().map(Name::to_string);
    if as_json {
        let one = |token: &Token| {
            json!({
                "name": token.name,
                "id": token.id,
                "role": token.role.word(),
                "owner": token.owner.as_ref().unwrap_or(&token.name),
                "group": group(token),
                "created": moment(token.created),
                "expires": token.expires.map(moment),
            })
        };
        print(serde_json::Value::from(tokens.iter().map(one).collect::<Vec<_>>()))?;
        return Ok(Exit::Done);
    }
    let row = |cells: [&str; 6]| {
        let [name, role, owner, group, created, expires] = cells;
        let line = format!("{name:<24} {role:<7} {owner:<16} {group:<12} {created:<20} {expires}");
        line.trim_end().to_owned()
    };
    print(row(["NAME", "ROLE", "OWNER", "GROUP", "CREATED", "EXPIRES"]))?;
    for token in tokens {
        let expires = token.expires.map_or("never".to_owned(), moment);
        let group = group(token).unwrap_or_else(|| "all".into());
        let owner = token.owner.as_ref().unwrap_or(&token.name);
        let created = moment(token.created);
        print(row([&token.name, token.role.word(), owner, &group, &created, &expires]))?;
    }
    Ok(Exit::Done)
}

/// To the second.
fn moment(time: Time) -> String {
    let seconds = i64::try_from(time.0 / 1000).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::MAX).to_string()
}

#[cfg(test)]
mod tests;
