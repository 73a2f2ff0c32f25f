//! `laboro dashboard`: a link that signs a browser in. The token goes into the part after `#`, which browsers keep
//! to themselves; the page takes it out of the address at once.

use crate::args::hub::Dashboard;
use crate::exit::{Exit, usage};
use crate::hub_client::link;
use crate::output::print;

pub(crate) fn run(args: &Dashboard) -> anyhow::Result<Exit> {
    match link(&args.hub)? {
        Some(link) => print(link)?,
        None => return Err(usage("the access file has no token: ask for one at the hub")),
    }
    Ok(Exit::Done)
}
