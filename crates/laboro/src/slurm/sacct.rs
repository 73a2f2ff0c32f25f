//! `sacct`: what became of jobs, as long as the hub remembers them.

use super::jobs::{JobRow, SlurmJobRef, WantedRows};
use super::options::{Opt, Takes, TypedOptions, WordsBegin, ignored, means, parse, refused};
use super::put;
use super::state::{JobState, states};
use super::table::{field, fit, json, now_ms};
use super::{Fault, user};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use Takes::{Maybe, Nothing, Value};

const OPTIONS: [Opt; 34] = [
    means("allocations", Some('X'), Nothing),
    means("allusers", Some('a'), Nothing),
    means("brief", Some('b'), Nothing),
    means("delimiter", None, Value),
    means("endtime", Some('E'), Value),
    means("format", Some('o'), Value),
    means("jobs", Some('j'), Value),
    means("json", None, Maybe),
    means("name", None, Value),
    means("noheader", Some('n'), Nothing),
    means("parsable", Some('p'), Nothing),
    means("parsable2", Some('P'), Nothing),
    means("partition", Some('r'), Value),
    means("starttime", Some('S'), Value),
    means("state", Some('s'), Value),
    means("user", Some('u'), Value),
    means("uid", None, Value),
    means("helpformat", Some('e'), Nothing),
    ignored("accounts", Some('A'), Value),
    ignored("array", None, Nothing),
    ignored("allclusters", Some('L'), Nothing),
    ignored("clusters", Some('M'), Value),
    ignored("duplicates", Some('D'), Nothing),
    ignored("federation", None, Nothing),
    ignored("local", None, Nothing),
    ignored("noconvert", None, Nothing),
    ignored("truncate", Some('T'), Nothing),
    ignored("units", None, Value),
    ignored("verbose", Some('v'), Nothing),
    ignored("qos", Some('q'), Value),
    refused("long", Some('l'), Nothing, "name the columns with --format"),
    refused("completion", Some('c'), Nothing, "there is no completion log"),
    refused("nodelist", Some('N'), Value, "use the column NodeList"),
    refused("batch-script", Some('B'), Nothing, "use `laboro show`"),
];

const USUAL: &str = "JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode";
const BRIEF: &str = "JobID,State,ExitCode";

/// With the name as it is printed, and how wide it is.
const COLUMNS: [(&str, usize); 44] = [
    ("Account", 10),
    ("AllocCPUS", 10),
    ("AllocNodes", 10),
    ("AllocTRES", 10),
    ("AssocID", 7),
    ("AveRSS", 10),
    ("Cluster", 10),
    ("Comment", 14),
    ("Constraints", 11),
    ("CPUTime", 10),
    ("CPUTimeRAW", 10),
    ("DerivedExitCode", 15),
    ("Elapsed", 10),
    ("ElapsedRaw", 10),
    ("Eligible", 19),
    ("End", 19),
    ("ExitCode", 8),
    ("GID", 6),
    ("Group", 9),
    ("JobID", 12),
    ("JobIDRaw", 12),
    ("JobName", 10),
    ("MaxRSS", 10),
    ("NCPUS", 10),
    ("NNodes", 8),
    ("NodeList", 15),
    ("NTasks", 8),
    ("Partition", 10),
    ("Priority", 10),
    ("QOS", 10),
    ("Reason", 22),
    ("ReqCPUS", 8),
    ("ReqMem", 10),
    ("ReqNodes", 8),
    ("ReqTRES", 10),
    ("Reservation", 20),
    ("Restarts", 8),
    ("Start", 19),
    ("State", 10),
    ("Submit", 19),
    ("Timelimit", 10),
    ("TotalCPU", 10),
    ("User", 9),
    ("WorkDir", 20),
];

struct AccountColumn {
    name: &'static str,
    width: usize,
    left: bool,
}

#[derive(Clone, Copy)]
enum Style<'a> {
    Table,
    /// And whether the separator ends the line, too.
    Separated(&'a str, bool),
}

pub(super) fn run(hub: &crate::args::hub::HubArgs, args: Vec<String>) -> Result<u8, Fault> {
    let typed = parse(&OPTIONS, WordsBegin::Anywhere, args)?;
    if let Some(word) = typed.words.first() {
        return Err(Fault::from(format!("Unknown arguments: {word}")));
    }
    if typed.has("helpformat") {
        let names: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
        put(&format!("{}\n", names.join(" ")))?;
        return Ok(0);
    }
    let format = typed.value("format").unwrap_or(if typed.has("brief") { BRIEF } else { USUAL });
    let columns = columns(format)?;
    let separator = typed.value("delimiter").unwrap_or("|");
    let style = match (typed.has("parsable2"), typed.has("parsable")) {
        (true, _) => Style::Separated(separator, false),
        (false, true) => Style::Separated(separator, true),
        (false, false) => Style::Table,
    };
    let (wanted, until_ms) = wanted(&typed)?;
    super::ask(hub, async |hub| {
        let mut rows = match wanted.rows(hub).await {
            Ok(rows) => rows,
            // There is no such job: nothing is listed.
            Err(Fault::Words(_)) => Vec::new(),
            Err(fault) => return Err(fault),
        };
        rows.retain(|row| row.submitted_ms <= until_ms);
        if typed.has("json") {
            put(&format!("{:#}\n", json(&rows)))?;
            return Ok(0);
        }
        let mut text = String::new();
        if !typed.has("noheader") {
            text.push_str(&line(&columns, style, |column| column.name.to_owned()));
            if let Style::Table = style {
                text.push_str(&line(&columns, style, |column| "-".repeat(column.width)));
            }
        }
        let now = now_ms();
        for row in &rows {
            // Of a step nothing but the step is told.
            let is_meant = |step: Option<&str>| {
                let mut of_row = wanted.jobs.iter().filter(|job| job.holds(row));
                wanted.jobs.is_empty()
                    || of_row.any(|job| job.step.is_none() || job.step.as_deref() == step)
            };
            if is_meant(None) {
                text.push_str(&line(&columns, style, |column| content(row, column, now)));
            }
            // The script itself is a step of its job.
            let has_script = !typed.has("allocations") && row.started_ms.is_some();
            if has_script && is_meant(Some("batch")) {
                text.push_str(&line(&columns, style, |column| of_script(row, column, now)));
            }
        }
        put(&text)?;
        Ok(0)
    })
}

fn wanted(typed: &TypedOptions) -> Result<(WantedRows, u64), Fault> {
    let jobs =
        typed.list("jobs").into_iter().map(SlurmJobRef::parse).collect::<Result<Vec<_>, _>>()?;
    let now = now_ms();
    let since_ms = match typed.value("starttime") {
        Some(text) => moment(text, now)?,
        None if jobs.is_empty() => moment("00:00", now)?,
        None => 0,
    };
    let until_ms = typed.value("endtime").map(|text| moment(text, now)).transpose()?;
    let users = typed.list("user").into_iter().chain(typed.list("uid"));
    let own = rustix::process::getuid().as_raw().to_string();
    let users = users.map(|name| if name == own { user() } else { name.to_owned() }).collect();
    let words = typed.list("state");
    let wanted = WantedRows {
        jobs,
        names: typed.list("name").into_iter().map(str::to_owned).collect(),
        users,
        partitions: typed.list("partition").into_iter().map(str::to_owned).collect(),
        states: if words.is_empty() { None } else { states(&words)? },
        since_ms,
        one_by_one: false,
    };
    Ok((wanted, until_ms.unwrap_or(u64::MAX)))
}

fn columns(format: &str) -> Result<Vec<AccountColumn>, Fault> {
    let one = |item: &str| {
        let (name, width) = item.split_once('%').unwrap_or((item, ""));
        let found = COLUMNS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name.trim()));
        let &(name, usual) =
            found.ok_or_else(|| Fault::from(format!("Invalid field requested: \"{name}\"")))?;
        let (left, digits) = (width.starts_with('-'), width.trim_start_matches('-'));
        Ok(AccountColumn { name, width: digits.parse().unwrap_or(usual), left })
    };
    format.split(',').filter(|item| !item.is_empty()).map(one).collect()
}

fn content(row: &JobRow, column: &AccountColumn, now_ms: u64) -> String {
    let name = column.name.to_ascii_lowercase();
    let text = field(row, &name, now_ms).unwrap_or_default();
    match (column.name, row.state) {
        ("State", JobState::Cancelled) => {
            format!("CANCELLED by {}", rustix::process::getuid().as_raw())
        }
        // What has not been used is not told of the job, but of its steps.
        ("MaxRSS" | "AveRSS" | "NTasks", _) => String::new(),
        _ => text,
    }
}

fn of_script(row: &JobRow, column: &AccountColumn, now_ms: u64) -> String {
    match column.name {
        "JobID" => format!("{}.batch", row.id()),
        "JobIDRaw" => format!("{}.batch", row.raw()),
        "JobName" => "batch".to_owned(),
        "Partition" | "User" | "Timelimit" | "QOS" | "Priority" | "ReqMem" => String::new(),
        "State" => row.state.long().to_owned(),
        "NTasks" => "1".to_owned(),
        name => field(row, &name.to_ascii_lowercase(), now_ms).unwrap_or_default(),
    }
}

fn line(
    columns: &[AccountColumn],
    style: Style<'_>,
    content: impl Fn(&AccountColumn) -> String,
) -> String {
    let mut parts: Vec<String> = Vec::new();
    for column in columns {
        let text = content(column);
        parts.push(match style {
            Style::Separated(..) => text,
            Style::Table => fit(&text, column.width, !column.left),
        });
    }
    match style {
        Style::Table => format!("{} \n", parts.join(" ")),
        Style::Separated(separator, false) => format!("{}\n", parts.join(separator)),
        Style::Separated(separator, true) => format!("{}{separator}\n", parts.join(separator)),
    }
}

/// `now`, `now-2days`, `10:30`, `2026-11-18`, `2026-11-18T10:30[:00]`, local time.
fn moment(text: &str, now_ms: u64) -> Result<u64, Fault> {
    let wrong = || Fault::from(format!("Invalid time specification ({text})"));
    if let Some(rest) = text.strip_prefix("now") {
        let (sign, rest) = match rest.chars().next() {
            None => return Ok(now_ms),
            Some(sign @ ('-' | '+')) => (sign, &rest[1..]),
            Some(_) => return Err(wrong()),
        };
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        let unit = match &rest[digits.len()..] {
            "" | "second" | "seconds" => 1000,
            "minute" | "minutes" => 60_000,
            "hour" | "hours" => 3_600_000,
            "day" | "days" => 86_400_000,
            "week" | "weeks" => 604_800_000,
            _ => return Err(wrong()),
        };
        let away = digits.parse::<u64>().map_err(|_| wrong())? * unit;
        return Ok(if sign == '-' { now_ms.saturating_sub(away) } else { now_ms + away });
    }
    let today = jiff::Zoned::now().date().to_string();
    let text = match text {
        "today" | "midnight" => format!("{today}T00:00:00"),
        text if text.contains('T') && text.matches(':').count() == 1 => format!("{text}:00"),
        text if text.contains('T') => text.to_owned(),
        text if text.contains('-') => format!("{text}T00:00:00"),
        text if text.matches(':').count() == 1 => format!("{today}T{text}:00"),
        text => format!("{today}T{text}"),
    };
    let at: DateTime = text.parse().map_err(|_| wrong())?;
    let at = at.to_zoned(TimeZone::system()).map_err(|_| wrong())?;
    u64::try_from(at.timestamp().as_millisecond()).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read() {
        assert_eq!(moment("now-2days", 200_000_000).ok(), Some(27_200_000));
        assert!(moment("2026-11-18T10:30", 0).is_ok() && moment("2026-11-18", 0).is_ok());
        assert!(moment("soon", 0).is_err() && moment("now-2moons", 0).is_err());
    }

    #[test]
    fn columns_have_names_and_widths() {
        let found = columns("jobidraw,State%30,Account%256").unwrap_or_default();
        let shown: Vec<_> = found.iter().map(|column| (column.name, column.width)).collect();
        assert_eq!(shown, [("JobIDRaw", 12), ("State", 30), ("Account", 256)]);
        assert!(columns("Colour").is_err());
    }
}
