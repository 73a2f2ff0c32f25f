//! `scontrol`: shows jobs, partitions, nodes and settings; holds, releases and requeues jobs.

use super::jobs::{JobRow, KnownJob, Part, SlurmJobRef};
use super::put;
use super::state::JobState;
use super::table::{field, now_ms};
use super::{Fault, VERSION};
use crate::hub_client::{Hub, Verb, WorkerPages};
use crate::resolve::{Chosen, Which};
use laboro_api::Changed;

pub(super) fn run(hub: &crate::args::hub::HubArgs, args: Vec<String>) -> Result<u8, Fault> {
    let mut words = Vec::new();
    let mut one_line = false;
    for arg in args {
        match arg.as_str() {
            "-o" | "--oneliner" => one_line = true,
            "-a" | "--all" | "-d" | "--details" | "-Q" | "--quiet" | "-v" | "--verbose" => {}
            word if word.starts_with('-') => {
                return Err(Fault::from(format!("unrecognized option '{word}'")));
            }
            _ => words.push(arg),
        }
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match &words[..] {
        ["show", "hostnames", list] => {
            put(&format!("{}\n", host_names(list)?.join("\n")))?;
            Ok(0)
        }
        ["show", "hostlist" | "hostlistsorted", list] => {
            put(&format!("{list}\n"))?;
            Ok(0)
        }
        ["ping"] => super::ask(hub, async |hub| {
            hub.groups().await?;
            put(&format!("Slurmctld(primary) at {} is UP\n", hub.address()))?;
            Ok(0)
        }),
        ["show", what, rest @ ..] => super::ask(hub, async |hub| {
            let text = match what.to_ascii_lowercase().as_str() {
                "job" | "jobs" => show_jobs(hub, rest, one_line).await?,
                "config" | "conf" => config(hub),
                "partition" | "partitions" => partitions(hub, rest).await?,
                "node" | "nodes" => nodes(hub, rest).await?,
                other => return Err(Fault::from(format!("invalid entity: {other}"))),
            };
            put(&text)?;
            Ok(0)
        }),
        [verb @ ("hold" | "uhold" | "release" | "requeue" | "requeuehold"), jobs @ ..]
            if !jobs.is_empty() =>
        {
            let jobs: Vec<&str> = jobs.iter().flat_map(|list| list.split(',')).collect();
            super::ask(hub, async |hub| {
                for job in jobs {
                    change(hub, verb, job.trim_start_matches("jobid=")).await?;
                }
                Ok(0)
            })
        }
        ["update", settings @ ..] if !settings.is_empty() => {
            super::ask(hub, async |hub| update(hub, settings).await)
        }
        [] => Err(Fault::from("name a command: show, hold, release, requeue, update, ping")),
        [verb, ..] => Err(Fault::from(format!("invalid keyword: {verb}"))),
    }
}

async fn show_jobs(hub: &Hub, which: &[&str], one_line: bool) -> Result<String, Fault> {
    let mut rows = Vec::new();
    match which {
        [] => {
            let states = Some(vec![JobState::Pending, JobState::Running]);
            let wanted = super::jobs::WantedRows { states, ..Default::default() };
            rows = wanted.rows(hub).await?;
        }
        which => {
            for job in which.iter().flat_map(|list| list.split(',')) {
                let wanted = super::jobs::WantedRows {
                    jobs: vec![SlurmJobRef::parse(job)?],
                    ..Default::default()
                };
                rows.extend(wanted.rows(hub).await?);
            }
        }
    }
    let now = now_ms();
    Ok(rows.iter().map(|row| shown(row, now, one_line)).collect())
}

fn shown(row: &JobRow, now_ms: u64, one_line: bool) -> String {
    let of = |name: &str| field(row, name, now_ms).unwrap_or_default();
    let array = match (row.index, &row.rest) {
        (Some(index), _) => format!(" ArrayJobId={} ArrayTaskId={index}", row.job),
        (None, Some(rest)) => format!(" ArrayJobId={} ArrayTaskId={rest}", row.job),
        (None, None) => String::new(),
    };
    let uid = of("uid");
    let node = if of("nodelist") == "None assigned" { String::new() } else { of("nodelist") };
    let lines = [
        format!("JobId={}{array} JobName={}", row.raw(), row.name),
        format!("UserId={}({uid}) GroupId={}({}) MCS_label=N/A", row.user, row.user, of("gid")),
        format!("Priority={} Nice=0 Account={} QOS=normal", row.priority, row.account),
        format!("JobState={} Reason={} Dependency=(null)", row.state.long(), row.reason),
        format!(
            "Requeue=1 Restarts={} BatchFlag=1 Reboot=0 ExitCode={}",
            row.restarts,
            of("exitcode")
        ),
        format!("RunTime={} TimeLimit={} TimeMin=N/A", of("elapsed"), of("timelimit")),
        format!("SubmitTime={} EligibleTime={}", of("submit"), of("submit")),
        format!("StartTime={} EndTime={} Deadline=N/A", of("start"), of("end")),
        format!("Partition={} AllocNode:Sid={}:0", row.partition, super::host()),
        format!("NodeList={node} BatchHost={node}"),
        format!("NumNodes={} NumCPUs={} NumTasks={} CPUs/Task=1", row.nodes, row.cpus, row.tasks),
        format!("MinMemoryNode={} Features=(null)", of("reqmem")),
        format!("Comment={} WorkDir={}", row.comment, row.work_dir),
        format!("StdOut={}", row.output),
    ];
    let join = if one_line { " " } else { "\n   " };
    let end = if one_line { "\n" } else { "\n\n" };
    format!("{}{end}", lines.join(join))
}

fn config(hub: &Hub) -> String {
    let settings = [
        ("AccountingStorageType", "accounting_storage/laboro".to_owned()),
        ("ClusterName", "laboro".to_owned()),
        ("KillWait", "30 sec".to_owned()),
        ("MaxArraySize", "10000000".to_owned()),
        ("MaxJobCount", "10000000".to_owned()),
        ("MinJobAge", "300 sec".to_owned()),
        ("SelectType", "select/cons_tres".to_owned()),
        ("SLURM_VERSION", VERSION.to_owned()),
        ("SlurmctldHost[0]", hub.address()),
    ];
    let mut text = format!("Configuration data as of {}\n", super::units::date(Some(now_ms()), ""));
    for (name, value) in settings {
        text.push_str(&format!("{name:<23} = {value}\n"));
    }
    text
}

async fn partitions(hub: &Hub, which: &[&str]) -> Result<String, Fault> {
    let mut text = String::new();
    for partition in super::sinfo::partitions(hub).await? {
        if !which.is_empty() && !which.contains(&partition.name.as_str()) {
            continue;
        }
        let default = if partition.is_default { "YES" } else { "NO" };
        let nodes: Vec<&str> = partition.nodes.iter().map(|node| node.name.as_str()).collect();
        text.push_str(&format!(
            "PartitionName={}\n   AllowGroups=ALL AllowAccounts=ALL Default={default} MaxTime=UNLIMITED\n   \
             Nodes={} State={} TotalCPUs={} TotalNodes={}\n\n",
            partition.name,
            nodes.join(","),
            if partition.is_up { "UP" } else { "DOWN" },
            partition.nodes.iter().map(|node| node.slots).sum::<u32>(),
            nodes.len(),
        ));
    }
    match text.is_empty() && !which.is_empty() {
        true => Err(Fault::from(format!("Partition {} not found", which.join(" ")))),
        false => Ok(text),
    }
}

async fn nodes(hub: &Hub, which: &[&str]) -> Result<String, Fault> {
    let mut text = String::new();
    let mut workers = WorkerPages::new(hub, None, None);
    while let Some(worker) = workers.next().await? {
        let name = worker.name.to_string();
        if !which.is_empty() && !which.contains(&name.as_str()) {
            continue;
        }
        text.push_str(&format!(
            "NodeName={name} CPUAlloc={} CPUTot={}\n   State={} Partitions={}\n\n",
            worker.slots_used,
            worker.slots,
            super::sinfo::state(&worker).to_ascii_uppercase(),
            worker.group,
        ));
    }
    Ok(text)
}

async fn change(hub: &Hub, verb: &str, job: &str) -> Result<(), Fault> {
    let job = SlurmJobRef::parse(job)?;
    let known = KnownJob::ask(hub, job.job).await?;
    let which = match known.places(&job.part)? {
        Some(places) => Which::Ranges(places.into_iter().map(|place| (place, place)).collect()),
        None => Which::Job,
    };
    let chosen = Chosen { job: job.job, which };
    let changed: anyhow::Result<Changed> = match verb {
        "hold" | "uhold" => hub.change(&chosen, Verb::Hold).await,
        "release" => hub.change(&chosen, Verb::Release).await,
        _ => {
            let rows = known.rows(hub, true).await?;
            if rows.iter().any(|row| !row.state.is_over()) {
                return Err(Fault::from(format!(
                    "job {} cannot be requeued while it waits or runs: scancel it first",
                    job.job
                )));
            }
            // Also what went well is run again, which the hub has no word for.
            if rows.iter().all(|row| row.status() == 0) && job.part == Part::All {
                return Err(Fault::from(format!("job {} has completed; submit it again", job.job)));
            }
            hub.change(&chosen, Verb::Retry).await
        }
    };
    changed?;
    if verb == "requeuehold" {
        hub.change(&chosen, Verb::Hold).await?;
    }
    Ok(())
}

async fn update(hub: &Hub, settings: &[&str]) -> Result<u8, Fault> {
    let mut job = None;
    let mut wanted = Vec::new();
    for setting in settings {
        let (name, value) = setting
            .split_once('=')
            .ok_or_else(|| Fault::from(format!("invalid setting: {setting}")))?;
        match name.to_ascii_lowercase().as_str() {
            "jobid" | "job" => job = Some(SlurmJobRef::parse(value)?),
            "priority" => {
                let priority =
                    value.parse().map_err(|_| Fault::from(format!("invalid priority: {value}")))?;
                wanted.push(Verb::Priority(priority));
            }
            "nice" => {
                let nice: i32 =
                    value.parse().map_err(|_| Fault::from(format!("invalid nice: {value}")))?;
                wanted.push(Verb::Priority(nice.saturating_neg()));
            }
            other => {
                return Err(Fault::from(format!(
                    "{other}= cannot be changed here; priority and nice can"
                )));
            }
        }
    }
    let job = job.ok_or_else(|| Fault::from("name the job: JobId=N"))?;
    let known = KnownJob::ask(hub, job.job).await?;
    let which = match known.places(&job.part)? {
        Some(places) => Which::Ranges(places.into_iter().map(|place| (place, place)).collect()),
        None => Which::Job,
    };
    let chosen = Chosen { job: job.job, which };
    for verb in wanted {
        hub.change(&chosen, verb).await?;
    }
    Ok(0)
}

/// `n[1-3,7],m` is n1 n2 n3 n7 m.
fn host_names(list: &str) -> Result<Vec<String>, Fault> {
    let wrong = || Fault::from(format!("invalid host list: {list}"));
    let (mut names, mut rest) = (Vec::new(), list);
    while !rest.is_empty() {
        let end = rest.find([',', '[']).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        if let Some(inside) = after.strip_prefix('[') {
            let (set, behind) = inside.split_once(']').ok_or_else(wrong)?;
            let tail_end = behind.find(',').unwrap_or(behind.len());
            let (tail, behind) = behind.split_at(tail_end);
            for part in set.split(',') {
                let (first, last) = part.split_once('-').unwrap_or((part, part));
                let width = first.len();
                let numbers = first.parse::<u32>().ok().zip(last.parse::<u32>().ok());
                let (from, to) = numbers
                    .filter(|(from, to)| from <= to && to - from < 65_536)
                    .ok_or_else(wrong)?;
                names.extend((from..=to).map(|number| format!("{name}{number:0width$}{tail}")));
            }
            rest = behind.trim_start_matches(',');
        } else {
            names.push(name.to_owned());
            rest = after.trim_start_matches(',');
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_hosts_is_written_out() {
        let names = |list: &str| host_names(list).ok().map(|names| names.join(" "));
        assert_eq!(names("n[1-3,7],m").as_deref(), Some("n1 n2 n3 n7 m"));
        assert_eq!(names("a[08-10]x").as_deref(), Some("a08x a09x a10x"));
        assert_eq!(names("n[1-"), None);
    }
}
