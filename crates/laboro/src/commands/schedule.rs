//! `laboro schedule`: jobs that a hub submits by the clock.

use crate::args::hub::{ScheduleArgs, ScheduleCommand, ScheduleName};
use crate::exit::Exit;
use crate::hub_client::{Hub, talk};
use crate::listing::Listing;
use crate::output::table::{Column, Mood};
use crate::output::{print, safe};
use crate::view::clock;
use laboro_api::{Schedule, Schedules};

const COLUMNS: &[Column] = &[
    Column::Left("name"),
    Column::Left("cron"),
    Column::Left("time zone"),
    Column::Left("next"),
    Column::Left("last"),
    Column::Left("came to"),
    Column::Right("missed"),
];

pub(crate) fn run(args: &ScheduleArgs) -> anyhow::Result<Exit> {
    match &args.command {
        None => talk(&args.hub, async |hub| list(hub, args.json).await),
        Some(ScheduleCommand::List { json, hub }) => {
            talk(hub.or(&args.hub), async |hub| list(hub, *json || args.json).await)
        }
        Some(ScheduleCommand::Show(name)) => talk(name.hub.or(&args.hub), async |hub| {
            let path = format!("schedules/{}", laboro_api::client::segment(&name.name));
            let schedule: Schedule = hub.get(&path).await?;
            match name.json || args.json {
                true => print(serde_json::to_string(&schedule)?)?,
                false => print(text(&schedule))?,
            }
            Ok(Exit::Done)
        }),
        Some(ScheduleCommand::RunNow(name)) => change(args, name, "run"),
        Some(ScheduleCommand::Pause(name)) => change(args, name, "pause"),
        Some(ScheduleCommand::Resume(name)) => change(args, name, "resume"),
    }
}

fn change(args: &ScheduleArgs, name: &ScheduleName, verb: &str) -> anyhow::Result<Exit> {
    talk(name.hub.or(&args.hub), async |hub| {
        let path = format!("schedules/{}/{verb}", laboro_api::client::segment(&name.name));
        let schedule: Schedule = hub.post(&path, &serde_json::json!({})).await?;
        if name.json || args.json {
            print(serde_json::to_string(&schedule)?)?;
            return Ok(Exit::Done);
        }
        let job = schedule.last.as_ref().and_then(|last| last.job);
        match (verb, job) {
            ("run", Some(job)) => print(format_args!("schedule {}: job {job}", schedule.name))?,
            ("pause", _) => print(format_args!("schedule {} is paused", schedule.name))?,
            _ => print(format_args!("schedule {}: next {}", schedule.name, next(&schedule)))?,
        }
        Ok(Exit::Done)
    })
}

async fn list(hub: &Hub, json: bool) -> anyhow::Result<Exit> {
    let all: Schedules = hub.get("schedules").await?;
    let mut listing = Listing::of(json, Some(0), COLUMNS);
    for one in &all.schedules {
        listing.add(one, || {
            [
                (one.name.clone(), Mood::Plain),
                (safe(&one.cron), Mood::Plain),
                (safe(&one.time_zone), Mood::Plain),
                (next(one), Mood::Plain),
                (
                    one.last.as_ref().map(|last| clock(last.planned_ms)).unwrap_or_default(),
                    Mood::Plain,
                ),
                (came_to(one), Mood::Plain),
                (one.missed.to_string(), if one.missed > 0 { Mood::Bad } else { Mood::Plain }),
            ]
        })?;
    }
    listing.finish("no schedules; [[schedule]] in hub.toml makes one")
}

fn next(one: &Schedule) -> String {
    match (one.paused, one.next_ms) {
        (true, _) => "paused".to_owned(),
        (false, Some(next)) => clock(next),
        (false, None) => "never".to_owned(),
    }
}

fn came_to(one: &Schedule) -> String {
    let Some(last) = &one.last else { return String::new() };
    match (&last.job, &last.why) {
        (Some(job), _) => format!("job {job}"),
        (None, why) => safe(why.as_deref().unwrap_or_default()),
    }
}

fn text(one: &Schedule) -> String {
    let mut lines = vec![format!("schedule {}", one.name)];
    let mut add = |name: &str, value: String| {
        if !value.is_empty() {
            lines.push(format!("  {name:<11} {value}"));
        }
    };
    add("cron", format!("{} ({})", safe(&one.cron), safe(&one.time_zone)));
    add("file", safe(&one.file));
    add("owner", one.owner.as_deref().map(safe).unwrap_or_default());
    add("group", one.group.as_deref().map(safe).unwrap_or_default());
    add("if running", one.if_running.clone());
    add("catch up", if one.catch_up { "yes".into() } else { "no".into() });
    add("next", next(one));
    let last = one.last.as_ref();
    add(
        "last",
        last.map(|last| format!("{}: {}", clock(last.planned_ms), came_to(one)))
            .unwrap_or_default(),
    );
    add("missed", if one.missed > 0 { one.missed.to_string() } else { String::new() });
    lines.join("\n")
}
