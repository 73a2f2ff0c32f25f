//! `laboro jobs`: jobs, newest first.

use crate::args::hub::{Jobs, WhereArgs};
use crate::exit::{Exit, usage};
use crate::hub_client::{JobFilter, Newest, Owner, look};
use crate::listing::Listing;
use crate::view::{JOB_COLUMNS, job_row, now_ms};
use laboro_api::JobState;

pub(crate) fn run(args: &Jobs) -> anyhow::Result<Exit> {
    let (states, place) = states(&args.list.place)?;
    look(&place, async |hub| {
        let mut listing = Listing::new(&args.list.rows, JOB_COLUMNS);
        let owner = match (&args.owner, args.mine) {
            (Some(owner), _) => Owner::Named(owner),
            (None, true) => Owner::Me,
            (None, false) => Owner::Anyone,
        };
        // Of several states the hub is not asked for one.
        let state = Some(&states).filter(|states| states.len() == 1).map(|states| states[0]);
        let wanted = JobFilter { group: args.group.as_deref(), owner, name: None, state };
        let mut jobs = Newest::new(hub, &wanted, listing.page());
        let now = now_ms();
        while let Some(job) = jobs.next().await? {
            let is_other = !states.is_empty() && !states.contains(&job.state);
            if is_other || args.active && job.ended_ms.is_some() {
                continue;
            }
            if !listing.add(&job, || job_row(&job, now))? {
                break;
            }
        }
        let is_all = states.is_empty() && owner == Owner::Anyone && !args.active;
        listing.finish(match is_all {
            true => "no jobs: submit one with `laboro submit`",
            false => "no such jobs",
        })
    })
}

/// `--state` has two meanings: states of jobs, and where runs keep theirs. Words that can only be one of them are that one.
fn states(place: &WhereArgs) -> anyhow::Result<(Vec<JobState>, WhereArgs)> {
    let text = place.state.as_ref().and_then(|path| path.to_str()).unwrap_or_default();
    let states: Option<Vec<JobState>> = text.split(',').map(JobState::from_word).collect();
    match (states, &place.state) {
        (Some(_), Some(path)) if path.exists() => Err(usage(format!(
            "--state {text} could mean the directory: say --state ./{text} for it, or remove it"
        ))),
        (Some(states), _) => Ok((states, WhereArgs { state: None, ..place.clone() })),
        (None, _) => Ok((Vec::new(), place.clone())),
    }
}
