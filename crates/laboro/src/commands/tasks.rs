//! `laboro tasks`: tasks of a job, all or some.

use crate::args::hub::Tasks;
use crate::exit::{Exit, usage};
use crate::hub_client::{Hub, TaskPages, look};
use crate::listing::Listing;
use crate::resolve::{Purpose, Reading, Which, several};
use crate::view::{TASK_COLUMNS, now_ms, task_row};
use laboro_api::TaskState;

pub(crate) fn run(args: &Tasks) -> anyhow::Result<Exit> {
    look(&args.list.place, async |hub| {
        let how = Reading { purpose: Purpose::Look, group: None, everybody: false };
        let found = several(hub, &args.tasks, how).await?;
        let [chosen] = &found[..] else {
            return Err(usage("say one job; `laboro jobs` lists several"));
        };
        let chosen = chosen.clone();
        let mut listing = Listing::new(&args.list.rows, TASK_COLUMNS);
        match chosen.which {
            Which::Job => list(hub, chosen.job, None, (1, u32::MAX), &mut listing).await?,
            Which::InState(state) => {
                let state = Some(TaskState::from(state));
                list(hub, chosen.job, state, (1, u32::MAX), &mut listing).await?
            }
            Which::Ranges(ranges) => {
                let mut more = true;
                for range in ranges {
                    more = more && list(hub, chosen.job, None, range, &mut listing).await?;
                }
                more
            }
        };
        listing.finish("no such tasks")
    })
}

/// False when enough is listed.
async fn list(
    hub: &Hub,
    job: u32,
    state: Option<TaskState>,
    (first, last): (u32, u32),
    listing: &mut Listing,
) -> anyhow::Result<bool> {
    let page = listing.page().map(|page| page.min((last - first).saturating_add(1)));
    let mut tasks = TaskPages::new(hub, job, state, first, page);
    let now = now_ms();
    while let Some(task) = tasks.next().await? {
        if task.task > last {
            return Ok(true);
        }
        if !listing.add(&task, || task_row(&task, now))? {
            return Ok(false);
        }
    }
    Ok(true)
}
