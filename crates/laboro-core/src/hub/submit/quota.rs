//! Whether there is room in the queue for what is submitted: that of its group, and that of the token that made the
//! job. What turns out to be there already counts as new here.

use crate::command::{Submit, SubmitTo};
use crate::hub::Hub;
use crate::ledger::{Load, Scale};
use crate::refusal::{Quota, QuotaOf, Refusal};

/// How the owner is called of what came in through a door without tokens. No token has such a name.
const DOOR: &[u8] = b"door:";

impl Hub {
    pub(super) fn check_quotas(&self, submit: &Submit, count: u32) -> Result<(), Refusal> {
        if count == 0 {
            return Ok(());
        }
        let (ledger, quotas) = (self.ledger(), &self.config.quotas);
        let more = Load { tasks: u64::from(count), bytes: bytes_of(submit) };
        let most = Load { tasks: quotas.group_tasks, bytes: quotas.group_bytes };
        fits(ledger.group_load(&submit.group), more, most, || {
            QuotaOf::Group(submit.group.clone())
        })?;
        let owner = match &submit.job {
            SubmitTo::New(options) | SubmitTo::Open(options) => options.owner.as_ref(),
            SubmitTo::Add(job) => {
                let handle = ledger.find_job(*job);
                handle.and_then(|handle| ledger.job(handle).options.owner.as_ref())
            }
        };
        // Many people come through a door without tokens: what they may queue is for their group to say.
        let Some(owner) = owner.filter(|owner| !owner.bytes().starts_with(DOOR)) else {
            return Ok(());
        };
        let most = Load { tasks: quotas.token_tasks, bytes: quotas.token_bytes };
        fits(ledger.owner_load(owner), more, most, || QuotaOf::Token(owner.clone()))
    }
}

fn fits(
    used: Load,
    more: Load,
    most: Load,
    whose: impl FnOnce() -> QuotaOf,
) -> Result<(), Refusal> {
    let both = [
        ("tasks", used.tasks, more.tasks, most.tasks),
        ("bytes", used.bytes, more.bytes, most.bytes),
    ];
    match both.into_iter().find(|(_, used, more, most)| used.saturating_add(*more) > *most) {
        None => Ok(()),
        Some((what, used, more, most)) => {
            let quota = Quota { whose: whose(), what, most, used, more };
            Err(Refusal::Quota(Box::new(quota)))
        }
    }
}

fn bytes_of(submit: &Submit) -> u64 {
    let mut scale = Scale::default();
    for array in &submit.arrays {
        let preds = array.preds.len() + array.each.len();
        scale.array(&array.name, &array.work, &array.values, preds);
    }
    for task in &submit.tasks {
        scale.task(&task.name, task.work.as_ref(), task.preds.len());
    }
    scale.bytes
}
