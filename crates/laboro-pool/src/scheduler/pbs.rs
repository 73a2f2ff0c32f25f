//! qsub, qselect, qstat, qdel of PBS Pro, OpenPBS and Torque, as their manual pages describe them.

use super::{Listed, ListedState, Scheduler, clock, shell};
use crate::call::Call;

pub(super) fn submit(of: &Scheduler<'_>, number: u64, script: String) -> Call {
    let spec = of.spec;
    let mut words: Vec<String> = vec!["qsub".into(), "-N".into(), of.job_name(number)];
    words.extend(["-j".into(), "oe".into(), "-o".into(), of.log(number)]);
    let mut need = |text: String| words.extend(["-l".into(), text]);
    // Two selections would contradict each other.
    let says_what = |word: &String| word.contains("select=") || word.contains("nodes=");
    if !spec.arguments.iter().any(says_what) {
        let mut select = format!("select=1:ncpus={}", spec.slots);
        if let Some(bytes) = spec.memory_bytes {
            select.push_str(&format!(":mem={}mb", bytes.div_ceil(1 << 20)));
        }
        if let Some(gpus) = spec.resources.get("gpu") {
            select.push_str(&format!(":ngpus={gpus}"));
        }
        need(select);
    }
    if let Some(limit) = spec.time_limit_ms
        && !spec.arguments.iter().any(|word| word.contains("walltime="))
    {
        need(format!("walltime={}", clock(limit)));
    }
    words.extend(spec.arguments.iter().cloned());
    Call { words, stdin: script, env: Vec::new() }
}

/// Of a job that ended in between, `qstat` says so with status 153 and tells of the others.
pub(super) fn list() -> Call {
    let line = r#"ids=$(qselect -u "$(id -un)") || exit 1
[ -n "$ids" ] || exit 0
qstat -f $ids 2>&1
status=$?
[ $status -eq 0 ] || [ $status -eq 153 ]"#;
    shell(line.to_owned(), String::new())
}

pub(super) fn listed(printed: &str) -> Vec<Listed> {
    let mut found: Vec<Listed> = Vec::new();
    for line in printed.lines() {
        if let Some(id) = line.strip_prefix("Job Id:") {
            let (id, state) = (id.trim().to_owned(), ListedState::Unknown);
            found.push(Listed { id, state, name: None, note: None });
            continue;
        }
        let (Some(job), Some((key, value))) = (found.last_mut(), line.trim().split_once(" = "))
        else {
            continue;
        };
        match key {
            "Job_Name" => job.name = Some(value.to_owned()),
            "job_state" => {
                job.state = match value {
                    "Q" | "H" | "W" | "T" | "M" | "B" => ListedState::Queued,
                    "R" | "S" | "U" => ListedState::Running,
                    "C" | "F" | "X" => ListedState::Over,
                    // On its way out.
                    _ => ListedState::Unknown,
                }
            }
            "comment" => job.note = Some(super::one_line(value, 200)),
            _ => {}
        }
    }
    found
}
