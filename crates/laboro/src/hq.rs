//! HyperQueue's commands that workflow managers call: `hq submit`, `hq job list`, `hq job info` and `hq job cancel` speak
//! to a hub. `laboro hq install` makes the link by whose name they are known. Nextflow's executor and aiida-hyperqueue
//! work with it unchanged; see docs/hq.md for what is not the same.

pub(crate) mod args;

mod jobs;
mod memory;
mod submit;
mod time;

use crate::exit::Exit;
use crate::slurm::options::{Opt, Takes, TypedOptions, WordsBegin, ignored, means, parse, refused};
use crate::slurm::{Fault, arguments, install_links, put, tell};
use std::process::ExitCode;

/// By which name this program is HyperQueue's.
const NAME: &str = "hq";

/// What is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// For people.
    Cli,
    Json,
    /// Numbers and states alone.
    Quiet,
}

/// Options of every command.
const COMMON: [Opt; 4] = [
    means("output-mode", None, Takes::Value),
    refused("server-dir", None, Takes::Value, "LABORO_DIR or LABORO_ACCESS says which hub"),
    ignored("colors", None, Takes::Value),
    ignored("debug", None, Takes::Nothing),
];

/// Called as `hq`: does what that does.
pub(crate) fn main_if_called() -> Option<ExitCode> {
    let (_, args) = arguments(&[NAME])?;
    let done = args.and_then(call);
    Some(ExitCode::from(done.unwrap_or_else(|fault| tell(NAME, fault))))
}

/// `laboro hq ...`
pub(crate) fn run(args: &args::Hq) -> anyhow::Result<Exit> {
    match &args.what {
        args::What::Install(install) => install_links(&install.dir, &[NAME]),
    }
}

const USAGE: &str = "hq of laboro: speaks to a hub as HyperQueue's hq speaks to its server.\n\
    hq submit [OPTIONS] COMMAND...    hq job list [--all] [--filter STATES]\n\
    hq job info JOBS                  hq job cancel JOBS\n\
    --output-mode cli|json|quiet goes with each of them. See docs/hq.md.\n";

fn call(args: Vec<String>) -> Result<u8, Fault> {
    let outer = parse(&COMMON, WordsBegin::First, args_for_outer(&args))?;
    let mut words = outer.words.iter().map(String::as_str);
    let command = match words.next() {
        Some("job") => {
            words.next().map_or("job", |word| if word == "submit" { "submit" } else { word })
        }
        Some("submit") => "submit",
        Some("help" | "--help" | "-h") | None => {
            put(USAGE)?;
            return Ok(0);
        }
        Some("version") => {
            put(&format!("hq of laboro {}\n", env!("CARGO_PKG_VERSION")))?;
            return Ok(0);
        }
        Some(other) => return Err(unknown(other)),
    };
    let rest: Vec<String> = words.map(str::to_owned).collect();
    match command {
        "submit" => submit::run(&outer, rest),
        "list" => jobs::list(&outer, rest),
        "info" => jobs::info(&outer, rest),
        "cancel" => jobs::cancel(&outer, rest),
        other => Err(unknown(&format!("job {other}"))),
    }
}

/// `--help` and `--version` alone are nobody's option.
fn args_for_outer(args: &[String]) -> Vec<String> {
    match args {
        [only] if only == "--version" || only == "-V" => vec!["version".to_owned()],
        [first, ..] if first == "--help" || first == "-h" => vec!["help".to_owned()],
        all => all.to_vec(),
    }
}

fn unknown(command: &str) -> Fault {
    Fault::from(format!(
        "`hq {command}` is not supported: there are `hq submit`, `hq job list`, `hq job info` and `hq job cancel`; \
         `laboro --help` has everything else"
    ))
}

/// What is said behind the command counts more than what is said before it.
fn mode(outer: &TypedOptions, inner: &TypedOptions) -> Result<Mode, Fault> {
    let said = inner.value("output-mode").or_else(|| outer.value("output-mode")).map(str::to_owned);
    let said = said.or_else(|| std::env::var("HQ_OUTPUT_MODE").ok());
    match said.as_deref() {
        None | Some("cli") => Ok(Mode::Cli),
        Some("json") => Ok(Mode::Json),
        Some("quiet") => Ok(Mode::Quiet),
        Some(other) => Err(Fault::from(format!("--output-mode {other}: cli, json or quiet"))),
    }
}
