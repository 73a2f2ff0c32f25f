//! `laboro dashboard`: a link that signs a browser in. The token goes into the part after `#`, which browsers keep
//! to themselves; the page takes it out of the address at once. A run that lives opens a dashboard for it; of one that is
//! over it is open as long as this command runs.

use crate::args::hub::Dashboard;
use crate::exit::Exit;
use crate::hub_client::{dashboard_link, look};
use crate::output::{print, say};
use crate::run::Past;
use tokio_util::sync::CancellationToken;

pub(crate) fn run(args: &Dashboard) -> anyhow::Result<Exit> {
    if let Some(link) = dashboard_link(&args.place)? {
        print(link)?;
        return Ok(Exit::Done);
    }
    look(&args.place, async |hub| {
        if let Some(run) = hub.run().filter(|_| hub.is_over()) {
            let dashboards = Past::open(&run.dir).await?.dashboards();
            print(dashboards.open().map_err(crate::exit::usage)?)?;
            say(format_args!("{} is over; its dashboard is open until Ctrl-C", run.name()));
            dashboards.serve(CancellationToken::new()).await;
            return Ok(Exit::Done);
        }
        print(hub.open_dashboard().await?)?;
        Ok(Exit::Done)
    })
}
