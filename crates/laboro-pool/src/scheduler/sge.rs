//! qsub, qstat, qdel of Grid Engine, as their manual pages describe them. What parallel environments are called differs
//! from site to site, so slots are asked for by a person: `-pe smp 8`.

use super::{Listed, ListedState, Scheduler, shell};
use crate::call::Call;

pub(super) fn submit(of: &Scheduler<'_>, number: u64, script: String) -> Call {
    let spec = of.spec;
    let mut words: Vec<String> =
        ["qsub", "-terse", "-S", "/bin/sh", "-j", "y"].map(str::to_owned).into();
    words.extend(["-N".into(), of.job_name(number), "-o".into(), of.log(number)]);
    if let Some(limit) = spec.time_limit_ms {
        words.extend(["-l".into(), format!("h_rt={}", limit.div_ceil(1000))]);
    }
    words.extend(spec.arguments.iter().cloned());
    Call { words, stdin: script, env: Vec::new() }
}

pub(super) fn list() -> Call {
    shell(r#"qstat -u "$(id -un)" -xml"#.to_owned(), String::new())
}

pub(super) fn listed(printed: &str) -> Vec<Listed> {
    let jobs = printed.split("<job_list").skip(1);
    let job = |text: &str| {
        let tag = |name: &str| {
            let (_, rest) = text.split_once(&format!("<{name}>"))?;
            rest.split_once('<').map(|(value, _)| value.trim().to_owned())
        };
        let state = tag("state")?;
        let state = match state.as_str() {
            text if text.contains('E') => ListedState::Queued,
            text if text.contains('d') => ListedState::Unknown,
            text if text.contains(['r', 't', 's', 'S', 'T']) && !text.contains('q') => {
                ListedState::Running
            }
            text if text.contains(['q', 'w', 'h']) => ListedState::Queued,
            _ => ListedState::Unknown,
        };
        Some(Listed { id: tag("JB_job_number")?, state, name: tag("JB_name"), note: None })
    };
    jobs.filter_map(job).collect()
}
