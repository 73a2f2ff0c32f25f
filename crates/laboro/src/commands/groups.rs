//! `laboro groups`: the queues of a hub, and pausing them.

use crate::args::hub::{GroupArgs, Groups, GroupsCommand, ListArgs};
use crate::exit::Exit;
use crate::hub_client::{look, talk};
use crate::listing::Listing;
use crate::output::table::{Column, Mood};
use crate::output::{print, safe};
use laboro_api::Group;

pub(crate) fn run(args: &Groups) -> anyhow::Result<Exit> {
    match &args.command {
        None => list(&args.list),
        Some(GroupsCommand::Pause(group)) => pause(&args.list, group, true),
        Some(GroupsCommand::Resume(group)) => pause(&args.list, group, false),
    }
}

pub(crate) const GROUP_COLUMNS: &[Column] = &[
    Column::Left("group"),
    Column::Left("state"),
    Column::Right("running"),
    Column::Right("ready"),
    Column::Right("waiting"),
    Column::Right("held"),
    Column::Right("blocked"),
    Column::Right("done"),
    Column::Right("failed"),
    Column::Right("cancelled"),
];

pub(crate) fn group_row(group: &Group) -> [(String, Mood); 10] {
    let count = |count: u64, mood| match count {
        0 => ("0".to_owned(), Mood::Faint),
        count => (count.to_string(), mood),
    };
    let counts = &group.counts;
    let state = match group.paused {
        true => ("paused".to_owned(), Mood::Stuck),
        false if counts.running > 0 => ("busy".to_owned(), Mood::Busy),
        false if counts.ready > 0 => ("waiting".to_owned(), Mood::Stuck),
        false => ("idle".to_owned(), Mood::Plain),
    };
    [
        (group.name.to_string(), Mood::Plain),
        state,
        count(counts.running, Mood::Busy),
        count(counts.ready, Mood::Plain),
        count(counts.waiting + counts.delayed, Mood::Plain),
        count(counts.held, Mood::Stuck),
        count(counts.blocked, Mood::Bad),
        count(counts.done, Mood::Good),
        count(counts.failed, Mood::Bad),
        count(counts.cancelled, Mood::Plain),
    ]
}

fn list(args: &ListArgs) -> anyhow::Result<Exit> {
    look(&args.place, async |hub| {
        let mut listing = Listing::new(&args.rows, GROUP_COLUMNS);
        for group in hub.groups().await?.groups {
            if !listing.add(&group, || group_row(&group))? {
                break;
            }
        }
        listing.finish("no groups: the first submit or worker makes one")
    })
}

fn pause(said_before: &ListArgs, args: &GroupArgs, paused: bool) -> anyhow::Result<Exit> {
    said_before.refuse_with(if paused { "pause" } else { "resume" })?;
    talk(args.hub.or(&said_before.place.hub), async |hub| {
        hub.pause(&args.name, paused).await?;
        let now = if paused { "is paused; running tasks continue" } else { "is resumed" };
        print(format_args!("group {} {now}", safe(&args.name)))?;
        Ok(Exit::Done)
    })
}
