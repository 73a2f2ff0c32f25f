//! `laboro explain`: why a task is not running, in the hub's own words.

use crate::args::hub::Explain;
use crate::exit::Exit;
use crate::hub_client::look;
use crate::output::{print, safe};
use crate::resolve;

pub(crate) fn run(args: &Explain) -> anyhow::Result<Exit> {
    look(&args.answer.place, async |hub| {
        let (job, task) = resolve::task(hub, &args.task, args.group.as_deref()).await?;
        let explained = hub.explain(job, task).await?;
        match args.answer.json {
            true => print(serde_json::to_string(&explained)?)?,
            false => {
                print(format_args!("{job}/{task}: {}", safe(&explained.explanation)))?;
                for pool in &explained.pools {
                    print(format_args!("  {}", safe(pool)))?;
                }
            }
        }
        Ok(Exit::Done)
    })
}
