//! The columns of Slurm's lists: one function knows what stands in each, whatever a command calls it.

use super::jobs::JobRow;
use super::state::JobState;
use super::units::{date, elapsed, elapsed_full};
use serde_json::{Value, json};
use std::time::SystemTime;

pub(super) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// What stands in a column, by the name that `sacct` and `squeue -O` have for it, in small letters. `None`: there is no
/// such column.
pub(super) fn field(row: &JobRow, name: &str, now_ms: u64) -> Option<String> {
    let is_over = row.state.is_over();
    let memory = || match row.memory_bytes {
        0 => "0".to_owned(),
        bytes => format!("{}M", bytes.div_ceil(1 << 20)),
    };
    Some(match name {
        "jobid" | "jobarrayid" => row.id(),
        "jobidraw" => row.raw().to_string(),
        "arrayjobid" => row.job.to_string(),
        "arraytaskid" => match (row.index, &row.rest) {
            (Some(index), _) => index.to_string(),
            (None, Some(rest)) => rest.clone(),
            (None, None) => "N/A".to_owned(),
        },
        "jobname" | "name" => row.name.clone(),
        "user" | "username" => row.user.clone(),
        "uid" | "userid" => rustix::process::getuid().as_raw().to_string(),
        "gid" | "groupid" => rustix::process::getgid().as_raw().to_string(),
        "group" | "groupname" => row.user.clone(),
        "account" | "accountname" => row.account.clone(),
        "partition" => row.partition.clone(),
        "cluster" => "laboro".to_owned(),
        "qos" | "wckey" | "associd" | "blockid" | "reservation" | "constraints" | "feature" => {
            String::new()
        }
        "comment" => row.comment.clone(),
        "state" => row.state.long().to_owned(),
        "statecompact" => row.state.short().to_owned(),
        "reason" => row.reason.to_owned(),
        "reasonlist" => match row.state {
            JobState::Running => row.node.clone(),
            _ => format!("({})", row.reason),
        },
        "nodelist" | "nodes" => {
            match (row.node.is_empty() || row.state == JobState::Pending, is_over) {
                (true, _) => "None assigned".to_owned(),
                (false, _) => row.node.clone(),
            }
        }
        "exitcode" | "derivedexitcode" | "exit_code" | "derived_ec" => {
            format!("{}:{}", row.exit_code, row.exit_signal)
        }
        "alloccpus" | "ncpus" | "reqcpus" | "numcpus" | "cpus" => row.cpus.to_string(),
        "nnodes" | "allocnodes" | "reqnodes" | "numnodes" => row.nodes.to_string(),
        "ntasks" | "numtasks" => row.tasks.to_string(),
        "reqmem" | "minmemory" => memory(),
        "maxrss" | "averss" => match row.peak_bytes {
            0 => String::new(),
            bytes => format!("{}K", bytes / 1024),
        },
        "submit" | "submittime" | "eligible" | "eligibletime" => {
            date(Some(row.submitted_ms), "Unknown")
        }
        "start" | "starttime" => date(row.started_ms, "Unknown"),
        "end" | "endtime" => date(row.ended_ms, "Unknown"),
        "elapsed" => elapsed_full(row.elapsed_ms(now_ms)),
        "elapsedraw" => (row.elapsed_ms(now_ms) / 1000).to_string(),
        "timeused" => elapsed(row.elapsed_ms(now_ms)),
        "timelimit" => row.limit_ms.map_or("UNLIMITED".to_owned(), elapsed_full),
        "timelimitraw" => row.limit_ms.map_or(String::new(), |ms| ms.div_ceil(60_000).to_string()),
        "timeleft" => match row.limit_ms {
            Some(limit) => elapsed(limit.saturating_sub(row.elapsed_ms(now_ms))),
            None => "UNLIMITED".to_owned(),
        },
        "totalcpu" => elapsed_full(row.cpu_ms),
        "cputime" => elapsed_full(row.elapsed_ms(now_ms) * u64::from(row.cpus)),
        "cputimeraw" => (row.elapsed_ms(now_ms) / 1000 * u64::from(row.cpus)).to_string(),
        "priority" | "prioritylong" => row.priority.to_string(),
        "workdir" => row.work_dir.clone(),
        "restartcnt" | "restarts" => row.restarts.to_string(),
        "reqtres" | "alloctres" | "tres" | "tres-alloc" => {
            format!("billing={0},cpu={0},mem={1},node=1", row.cpus, memory())
        }
        "dependency" => String::new(),
        _ => return None,
    })
}

/// As `--json` has it.
pub(super) fn json(rows: &[JobRow]) -> Value {
    let seconds = |ms: Option<u64>| ms.map_or(0, |ms| ms / 1000);
    let jobs: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({
                "job_id": row.raw(),
                "array_job_id": if row.index.is_some() || row.rest.is_some() { row.job } else { 0 },
                "array_task_id": row.index,
                "array_task_string": row.rest.clone().unwrap_or_default(),
                "name": row.name,
                "user_name": row.user,
                "account": row.account,
                "partition": row.partition,
                "cluster": "laboro",
                "comment": row.comment,
                "job_state": row.state.long(),
                "state_reason": row.reason,
                "nodes": if row.state == JobState::Pending { "" } else { &row.node },
                "cpus": row.cpus,
                "tasks": row.tasks,
                "node_count": 1,
                "memory_per_node": row.memory_bytes >> 20,
                "time_limit": row.limit_ms.map(|ms| ms.div_ceil(60_000)),
                "submit_time": row.submitted_ms / 1000,
                "start_time": seconds(row.started_ms),
                "end_time": seconds(row.ended_ms),
                "exit_code": row.exit_code,
                "signal": row.exit_signal,
                "current_working_directory": row.work_dir,
                "standard_output": row.output,
                "restart_cnt": row.restarts,
            })
        })
        .collect();
    let version = json!({ "major": 22, "minor": 5, "micro": 8 });
    json!({
        "meta": { "plugin": { "type": "laboro", "name": "laboro" },
                  "Slurm": { "version": version, "release": super::VERSION } },
        "errors": [],
        "jobs": jobs,
    })
}

/// Cut and filled to a width; a width of 0 is none.
pub(super) fn fit(text: &str, width: usize, right: bool) -> String {
    if width == 0 {
        return text.to_owned();
    }
    let cut: String = text.chars().take(width).collect();
    if right { format!("{cut:>width$}") } else { format!("{cut:<width$}") }
}
