//! `laboro jobs`: jobs, newest first.

use crate::args::hub::Jobs;
use crate::exit::Exit;
use crate::hub_client::{Newest, look};
use crate::listing::Listing;
use crate::view::{JOB_COLUMNS, job_row, now_ms};

pub(crate) fn run(args: &Jobs) -> anyhow::Result<Exit> {
    look(&args.list.place, async |hub| {
        let mut listing = Listing::new(&args.list, JOB_COLUMNS);
        let mut jobs = Newest::new(hub, args.group.as_deref(), listing.page());
        let now = now_ms();
        while let Some(job) = jobs.next().await? {
            if args.active && job.ended_ms.is_some() {
                continue;
            }
            if !listing.add(&job, || job_row(&job, now))? {
                break;
            }
        }
        listing.finish("no jobs: submit one with `laboro submit`")
    })
}
