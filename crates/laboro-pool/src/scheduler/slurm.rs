//! sbatch, squeue, scancel.

use super::{Listed, ListedState, Scheduler, shell};
use crate::call::Call;

pub(super) fn submit(of: &Scheduler<'_>, number: u64, script: String) -> Call {
    let spec = of.spec;
    let mut words: Vec<String> = vec!["sbatch".into(), "--parsable".into()];
    words.push(format!("--job-name={}", of.job_name(number)));
    words.push(format!("--output={}", of.log(number)));
    words.extend(["--nodes=1".into(), "--ntasks=1".into()]);
    words.push(format!("--cpus-per-task={}", spec.slots));
    if let Some(bytes) = spec.memory_bytes {
        words.push(format!("--mem={}M", bytes.div_ceil(1 << 20)));
    }
    if let Some(gpus) = spec.resources.get("gpu") {
        words.push(format!("--gres=gpu:{gpus}"));
    }
    if let Some(limit) = spec.time_limit_ms {
        words.push(format!("--time={}", limit.div_ceil(60_000)));
    }
    // What a person says counts more.
    words.extend(spec.arguments.iter().cloned());
    Call { words, stdin: script, env: Vec::new() }
}

pub(super) fn list() -> Call {
    let line = r#"squeue --noheader --user="$(id -un)" --format='%i|%t|%j|%r'"#;
    shell(line.to_owned(), String::new())
}

pub(super) fn listed(printed: &str) -> Vec<Listed> {
    let line = |line: &str| {
        let mut cells = line.trim().split('|');
        let (id, state, name, reason) =
            (cells.next()?, cells.next()?, cells.next()?, cells.next()?);
        let state = match state {
            "PD" | "CF" | "RQ" | "RH" | "SE" => ListedState::Queued,
            "R" | "S" | "SO" | "ST" | "SI" | "RS" => ListedState::Running,
            // On its way out: its worker has been told.
            "CG" => ListedState::Unknown,
            "CA" | "CD" | "F" | "TO" | "NF" | "PR" | "BF" | "OOM" | "DL" | "RV" => {
                ListedState::Over
            }
            _ => ListedState::Unknown,
        };
        let note = Some(reason.to_owned()).filter(|_| state == ListedState::Queued);
        let note = note.filter(|note| !note.is_empty() && note != "None");
        Some(Listed { id: id.to_owned(), state, name: Some(name.to_owned()), note })
    };
    printed.lines().filter_map(line).collect()
}
