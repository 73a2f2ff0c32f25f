//! `--mail-user` and `--mail-type`: a mail when the job has ended, by the hub's sendmail. What the hub cannot or may not mail is
//! said, and the job is submitted all the same.

use crate::hub_client::Hub;
use crate::output::{safe, say};
use crate::slurm::options::TypedOptions;
use laboro_api::{SubmitJob, Submitted};
use laboro_hub::hooks::{IF_FAILED, Target};

/// Whom the job mails at its end, as targets of `on_end`.
pub(super) fn targets(typed: &TypedOptions) -> Vec<String> {
    let types = typed.value("mail-type").unwrap_or_default().to_uppercase();
    let types: Vec<&str> = types.split(',').filter(|word| !word.is_empty()).collect();
    let of = |wanted: &[&str]| types.iter().any(|word| wanted.contains(word));
    let condition = match (of(&["END", "ALL"]), of(&["FAIL"])) {
        _ if of(&["NONE"]) => return Vec::new(),
        (true, _) => "",
        (false, true) => IF_FAILED,
        (false, false) => {
            if !types.is_empty() {
                say(format_args!("sbatch: no mail: it is sent for END and FAIL only"));
            }
            return Vec::new();
        }
    };
    let Some(user) = typed.value("mail-user") else {
        say(format_args!("sbatch: no mail: --mail-user says to whom"));
        return Vec::new();
    };
    let mut all = Vec::new();
    for address in user.split(',') {
        let target = format!("{condition}mail:{}", address.trim());
        match Target::parse(&target) {
            Ok(_) => all.push(target),
            Err(why) => say(format_args!("sbatch: no mail: {}", safe(&why))),
        }
    }
    all
}

/// Where the hub may not mail these, the job is submitted without.
pub(super) async fn submit(hub: &Hub, job: SubmitJob) -> anyhow::Result<Submitted> {
    let (submitted, why_not) = hub.submit_with_hooks_if_allowed(job).await?;
    if let Some(why) = why_not {
        say(format_args!("sbatch: no mail: {}", safe(&why)));
    }
    Ok(submitted)
}
