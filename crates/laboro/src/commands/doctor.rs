//! `laboro doctor`: looks at this machine and at the hub that is meant, and says what is wrong and what to do about it.
//! Changes nothing.

use crate::args::hub::Doctor;
use crate::exit::Exit;
use crate::files::read_access;
use crate::hub_client::access_path;
use crate::nats::NatsArgs;
use crate::output::{bytes, counted, print};
use laboro_api::access::Access;
use laboro_api::client::{Client, Target};
use laboro_api::{API_VERSION, Me, Overview, VERSION, Version};
use laboro_hub::config::{Listen, Settings};
use rustix::process::{Resource, getrlimit};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Good,
    /// It works, and could be better.
    Warning,
    Bad,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Verdict::Good => "good",
            Verdict::Warning => "warning",
            Verdict::Bad => "bad",
        }
    }
}

struct Finding {
    what: &'static str,
    verdict: Verdict,
    words: String,
}

fn good(what: &'static str, words: impl Into<String>) -> Finding {
    Finding { what, verdict: Verdict::Good, words: words.into() }
}

fn warning(what: &'static str, words: impl Into<String>) -> Finding {
    Finding { what, verdict: Verdict::Warning, words: words.into() }
}

fn bad(what: &'static str, words: impl Into<String>) -> Finding {
    Finding { what, verdict: Verdict::Bad, words: words.into() }
}

pub(crate) fn run(args: &Doctor) -> anyhow::Result<Exit> {
    let mut findings = vec![good("program", format!("laboro {VERSION}")), open_files(), cgroups()];
    let settings = match &args.config {
        None => Settings::default(),
        Some(path) => match Settings::read(path) {
            Ok(settings) => settings,
            Err(error) => {
                findings.push(bad("settings", error.to_string()));
                Settings::default()
            }
        },
    };
    let path = access_path(&args.hub_args)?;
    let dir = args.hub_args.dir.clone().or_else(|| path.parent().map(Path::to_owned));
    findings.extend(dir.as_deref().and_then(disk));
    match path.exists() {
        true => findings.extend(hub(&path)?),
        false => {
            let words = format!("no hub is known here: {} is not there", path.display());
            findings.push(warning("hub", words));
            findings
                .extend([("http port", settings.http), ("native port", settings.native)].map(port));
        }
    }
    findings.extend(nats(args, &settings));
    let worst = findings.iter().map(|finding| finding.verdict).max();
    for finding in &findings {
        let Finding { what, verdict, words } = finding;
        match args.json {
            true => print(json!({ "check": what, "verdict": verdict.word(), "words": words }))?,
            false => print(format_args!("{:<8} {what:<12} {words}", verdict.word()))?,
        }
    }
    Ok(if worst == Some(Verdict::Bad) { Exit::Trouble } else { Exit::Done })
}

/// A connection is an open file, and so is what a task prints.
fn open_files() -> Finding {
    const WANTED: u64 = 4096;
    match getrlimit(Resource::Nofile).maximum {
        Some(most) if most < WANTED => warning(
            "open files",
            format!(
                "at most {most}: a hub needs one per connection; raise it (ulimit -Hn, LimitNOFILE=)"
            ),
        ),
        Some(most) => good("open files", format!("at most {most}")),
        None => good("open files", "no limit"),
    }
}

/// Whether a worker started here could limit what tasks use.
fn cgroups() -> Finding {
    let without = "memory of tasks is watched and their CPU is not limited";
    let Ok(text) = std::fs::read_to_string("/proc/self/cgroup") else {
        return warning("cgroups", format!("none on this system: {without}"));
    };
    let Some(own) = text.lines().find_map(|line| line.strip_prefix("0::/")) else {
        return warning("cgroups", format!("no version 2 here: {without}"));
    };
    let procs = Path::new("/sys/fs/cgroup").join(own).join("cgroup.procs");
    match rustix::fs::access(&procs, rustix::fs::Access::WRITE_OK) {
        Ok(()) => good("cgroups", "version 2, and this one can be divided"),
        Err(_) => warning(
            "cgroups",
            format!(
                "version 2, not delegated to this user (Delegate=yes of a unit does that): {without}"
            ),
        ),
    }
}

fn disk(dir: &Path) -> Option<Finding> {
    const LOW: u64 = 1 << 30;
    const FULL: u64 = 64 << 20;
    let there = dir.ancestors().find(|dir| dir.exists())?;
    let about = rustix::fs::statvfs(there).ok()?;
    let (free, files) = (about.f_bavail * about.f_frsize, about.f_favail);
    let words = format!("{}: {} free", there.display(), bytes(free));
    Some(match free {
        ..FULL => bad("disk", format!("{words}; a hub stops when it cannot write: make room")),
        FULL..LOW => warning("disk", format!("{words}; make room soon")),
        _ if about.f_files > 0 && files < 1000 => {
            warning("disk", format!("{words}, and room for only {files} more files"))
        }
        _ => good("disk", words),
    })
}

/// The hub of this access file: its file, its certificate, its answers, its clock.
fn hub(path: &Path) -> anyhow::Result<Vec<Finding>> {
    let access = match read_access(path) {
        Ok(access) => access,
        Err(error) => return Ok(vec![bad("access file", error.to_string())]),
    };
    let target = match Target::of_access(&access) {
        Ok(target) => target,
        Err(error) => return Ok(vec![bad("access file", format!("{}: {error}", path.display()))]),
    };
    let mut findings = vec![good("access file", path.display().to_string())];
    let client = Client::new(target);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let version = match client.get::<Version>("version").await {
            Ok(version) => version,
            Err(error) => {
                findings.push(bad("hub", format!("{error}{}", start_hint(&access, path))));
                return;
            }
        };
        findings.push(versions(&client.target().address(), &version));
        let me = match client.get::<Me>("me").await {
            Ok(me) => me,
            Err(error) => {
                findings.push(bad("token", error.to_string()));
                return;
            }
        };
        findings.push(good("token", format!("{}, role {}", me.token, me.role)));
        match client.get::<Overview>("overview").await {
            Ok(overview) => {
                findings.push(clock(overview.at_ms));
                let words = overview.warnings.into_iter().map(|one| warning("hub says", one.words));
                findings.extend(words);
            }
            Err(error) => findings.push(bad("hub", error.to_string())),
        }
    });
    Ok(findings)
}

/// The directory of a hub of this machine has its journal beside the access file.
fn start_hint(access: &Access, path: &Path) -> String {
    let dir: PathBuf = path.parent().map(Path::to_owned).unwrap_or_default();
    match access.socket.is_some() && dir.join("tls.pem").exists() {
        true => format!("; start it: laboro hub --dir {}", dir.display()),
        false => String::new(),
    }
}

fn versions(address: &str, hub: &Version) -> Finding {
    let major = |version: &str| version.split('.').next().map(str::to_owned);
    let words = format!("at {address}, laboro {}", hub.version);
    match (major(&hub.api) == major(API_VERSION), hub.version == VERSION) {
        (false, _) => {
            bad("hub", format!("{words}: it speaks API {}, this program {API_VERSION}", hub.api))
        }
        (true, false) => warning("hub", format!("{words}; this program is {VERSION}")),
        (true, true) => good("hub", words),
    }
}

fn clock(hub_ms: u64) -> Finding {
    const MUCH_MS: u64 = 5000;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let apart = (u64::try_from(now.as_millis()).unwrap_or(u64::MAX)).abs_diff(hub_ms);
    match apart > MUCH_MS {
        true => warning(
            "clock",
            format!("{} s apart from the hub's: displayed times are wrong; use NTP", apart / 1000),
        ),
        false => good("clock", "the same as the hub's"),
    }
}

/// Whether a hub could listen where its settings say.
fn port((what, listen): (&'static str, Listen)) -> Finding {
    match listen {
        Listen::Off => good(what, "off"),
        Listen::At(address) => match std::net::TcpListener::bind(address) {
            Ok(_) => good(what, format!("{address} is free")),
            Err(error) => bad(what, format!("{address}: {error}")),
        },
    }
}

fn nats(args: &Doctor, settings: &Settings) -> Option<Finding> {
    let servers = settings.journal.as_ref()?;
    let options = match NatsArgs::default().options(Path::new(servers), args.config.as_ref()) {
        Ok(options) => options?,
        Err(error) => return Some(bad("nats", error.to_string())),
    };
    Some(match laboro_jetstream::hubs(&options) {
        Ok(hubs) if hubs.iter().any(|hub| hub.leads) => good(
            "nats",
            format!("the journal {} is shared by {}", options.name, counted(hubs.len(), "hub")),
        ),
        Ok(_) => {
            warning("nats", format!("it answers; no hub named {} is the leader", options.name))
        }
        Err(error) => bad("nats", error.to_string()),
    })
}
