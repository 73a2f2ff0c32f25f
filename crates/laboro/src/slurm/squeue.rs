//! `squeue`: what waits and runs.

use super::columns::{FormatColumn, by_letters, line};
use super::jobs::{JobRow, SlurmJobRef, WantedRows};
use super::options::{Opt, Takes, WordsBegin, ignored, means, parse, refused};
use super::put;
use super::state::{JobState, states};
use super::table::{field, json, now_ms};
use super::{Fault, user};

use Takes::{Maybe, Nothing, Value};

const OPTIONS: [Opt; 29] = [
    means("Format", Some('O'), Value),
    means("array", Some('r'), Nothing),
    means("format", Some('o'), Value),
    means("jobs", Some('j'), Value),
    means("json", None, Maybe),
    means("long", Some('l'), Nothing),
    means("me", None, Nothing),
    means("name", Some('n'), Value),
    means("noheader", Some('h'), Nothing),
    means("partition", Some('p'), Value),
    means("states", Some('t'), Value),
    means("user", Some('u'), Value),
    ignored("account", Some('A'), Value),
    ignored("all", Some('a'), Nothing),
    ignored("array-unique", None, Nothing),
    ignored("federation", None, Nothing),
    ignored("hide", None, Nothing),
    ignored("local", None, Nothing),
    ignored("sibling", None, Nothing),
    ignored("noconvert", None, Nothing),
    ignored("verbose", Some('v'), Nothing),
    ignored("qos", Some('q'), Value),
    refused("iterate", Some('i'), Value, "use `laboro top`"),
    refused("sort", Some('S'), Value, "jobs are listed by number"),
    refused("start", None, Nothing, "start times are not known"),
    refused("steps", Some('s'), Maybe, "steps are not known to the hub"),
    refused("nodelist", Some('w'), Value, "use --states and the column %N"),
    refused("clusters", Some('M'), Value, "there is one cluster here"),
    refused("yaml", None, Maybe, "use --json"),
];

const USUAL: &str = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R";
const LONG: &str = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R";

/// How long what is over can still be listed.
const REMEMBERED_MS: u64 = 300_000;

pub(super) fn run(hub: &crate::args::hub::HubArgs, args: Vec<String>) -> Result<u8, Fault> {
    let typed = parse(&OPTIONS, WordsBegin::Anywhere, args)?;
    if let Some(word) = typed.words.first() {
        return Err(Fault::from(format!("Unrecognized option: {word}")));
    }
    let jobs =
        typed.list("jobs").into_iter().map(SlurmJobRef::parse).collect::<Result<Vec<_>, _>>()?;
    let is_explicit = !jobs.is_empty();
    let mut users: Vec<String> = typed.list("user").into_iter().map(str::to_owned).collect();
    users.extend(typed.has("me").then(user));
    let words = typed.list("states");
    let states = match &words[..] {
        [] => Some(vec![JobState::Pending, JobState::Running]),
        words => states(words)?,
    };
    let wanted = WantedRows {
        jobs,
        names: typed.list("name").into_iter().map(str::to_owned).collect(),
        users: users.into_iter().map(named).collect(),
        partitions: typed.list("partition").into_iter().map(str::to_owned).collect(),
        states,
        since_ms: if is_explicit { 0 } else { now_ms().saturating_sub(REMEMBERED_MS) },
        one_by_one: typed.has("array") || typed.has("json"),
    };
    let columns = match (typed.value("Format"), typed.value("format")) {
        (Some(names), _) => by_names(names)?,
        (None, Some(letters)) => by_letters(letters, by_letter)?,
        (None, None) => by_letters(if typed.has("long") { LONG } else { USUAL }, by_letter)?,
    };
    super::ask(hub, async |hub| {
        let rows = wanted.rows(hub).await?;
        if typed.has("json") {
            put(&format!("{:#}\n", json(&rows)))?;
            return Ok(0);
        }
        let mut text = String::new();
        if !typed.has("noheader") {
            text.push_str(&line(&columns, |column| column.head.to_owned()));
        }
        let now = now_ms();
        for row in &rows {
            text.push_str(&line(&columns, |column| content(row, column.name, now)));
        }
        put(&text)?;
        Ok(0)
    })
}

/// By number, too.
fn named(user: String) -> String {
    let own = rustix::process::getuid().as_raw().to_string();
    if user == own { self::user() } else { user }
}

/// What a column shows, as `table::field` calls it, and what stands above it.
struct Field {
    name: &'static str,
    head: &'static str,
}

type QueueColumn = FormatColumn<Field>;

fn content(row: &JobRow, name: &str, now_ms: u64) -> String {
    let text = field(row, name, now_ms).unwrap_or_default();
    // What has no node has nothing there.
    match name {
        "nodelist" if text == "None assigned" => String::new(),
        _ => text,
    }
}

fn by_letter(letter: char) -> Option<Field> {
    let (name, head) = match letter {
        'i' => ("jobid", "JOBID"),
        'A' => ("jobidraw", "JOBID"),
        'F' => ("arrayjobid", "ARRAY_JOB_ID"),
        'K' => ("arraytaskid", "ARRAY_TASK_ID"),
        'j' => ("name", "NAME"),
        'u' => ("user", "USER"),
        'U' => ("uid", "UID"),
        'a' => ("account", "ACCOUNT"),
        'P' => ("partition", "PARTITION"),
        't' => ("statecompact", "ST"),
        'T' => ("state", "STATE"),
        'M' => ("timeused", "TIME"),
        'l' => ("timelimit", "TIME_LIMIT"),
        'L' => ("timeleft", "TIME_LEFT"),
        'D' => ("numnodes", "NODES"),
        'C' => ("numcpus", "CPUS"),
        'm' => ("reqmem", "MIN_MEMORY"),
        'R' => ("reasonlist", "NODELIST(REASON)"),
        'r' => ("reason", "REASON"),
        'N' => ("nodelist", "NODELIST"),
        'S' => ("starttime", "START_TIME"),
        'V' => ("submittime", "SUBMIT_TIME"),
        'e' => ("endtime", "END_TIME"),
        'Q' | 'p' => ("priority", "PRIORITY"),
        'Z' => ("workdir", "WORK_DIR"),
        'k' => ("comment", "COMMENT"),
        'q' => ("qos", "QOS"),
        'E' => ("dependency", "DEPENDENCY"),
        _ => return None,
    };
    Some(Field { name, head })
}

/// `JobID:20,State:|`: a width, or what stands behind.
fn by_names(names: &str) -> Result<Vec<QueueColumn>, Fault> {
    let mut columns = Vec::new();
    for item in names.split(',').filter(|item| !item.is_empty()) {
        let (name, rest) = item.split_once(':').unwrap_or((item, "20"));
        let right = rest.starts_with('.');
        let rest = rest.trim_start_matches('.');
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        let after = rest[digits.len()..].to_owned();
        let width = digits.parse().unwrap_or(if after.is_empty() { 20 } else { 0 });
        let name = name.to_ascii_lowercase();
        let field = NAMES.iter().find(|known| **known == name);
        let field = field.ok_or_else(|| Fault::from(format!("there is no column {name} here")))?;
        let head = HEADS.iter().find(|(known, _)| known == field).map_or(*field, |(_, head)| head);
        let what = Field { name: field, head };
        columns.push(QueueColumn { before: String::new(), what, width, right, after });
    }
    Ok(columns)
}

const NAMES: [&str; 28] = [
    "jobid",
    "jobarrayid",
    "arrayjobid",
    "arraytaskid",
    "name",
    "username",
    "userid",
    "account",
    "partition",
    "state",
    "statecompact",
    "reason",
    "reasonlist",
    "nodelist",
    "numnodes",
    "numcpus",
    "numtasks",
    "minmemory",
    "submittime",
    "starttime",
    "endtime",
    "timeused",
    "timelimit",
    "timeleft",
    "priority",
    "workdir",
    "comment",
    "exit_code",
];

const HEADS: [(&str, &str); 28] = [
    ("jobid", "JOBID"),
    ("jobarrayid", "JOBID"),
    ("arrayjobid", "ARRAY_JOB_ID"),
    ("arraytaskid", "ARRAY_TASK_ID"),
    ("name", "NAME"),
    ("username", "USER"),
    ("userid", "USERID"),
    ("account", "ACCOUNT"),
    ("partition", "PARTITION"),
    ("state", "STATE"),
    ("statecompact", "ST"),
    ("reason", "REASON"),
    ("reasonlist", "NODELIST(REASON)"),
    ("nodelist", "NODELIST"),
    ("numnodes", "NODES"),
    ("numcpus", "CPUS"),
    ("numtasks", "TASKS"),
    ("minmemory", "MIN_MEMORY"),
    ("submittime", "SUBMIT_TIME"),
    ("starttime", "START_TIME"),
    ("endtime", "END_TIME"),
    ("timeused", "TIME"),
    ("timelimit", "TIME_LIMIT"),
    ("timeleft", "TIME_LEFT"),
    ("priority", "PRIORITY"),
    ("workdir", "WORK_DIR"),
    ("comment", "COMMENT"),
    ("exit_code", "EXIT_CODE"),
];
