//! `laboro hooks`: what a hub has to deliver, what it delivered, and what failed and why.

use crate::args::hub::{Hooks, HooksCommand};
use crate::exit::Exit;
use crate::hub_client::talk;
use crate::listing::Listing;
use crate::output::table::{Column, Mood};
use crate::output::{counted, print, safe, say};
use crate::view::{clock, now_ms};
use laboro_api::{Deliveries, Delivery, DeliveryState};

const COLUMNS: &[Column] = &[
    Column::Right("number"),
    Column::Left("state"),
    Column::Left("event"),
    Column::Right("job"),
    Column::Left("when"),
    Column::Right("attempts"),
    Column::Left("to"),
    Column::Left("why"),
];

pub(crate) fn run(args: &Hooks) -> anyhow::Result<Exit> {
    match &args.command {
        Some(HooksCommand::Retry(retry)) => talk(retry.hub.or(&args.hub), async |hub| {
            for number in &retry.numbers {
                let path = format!("hooks/{number}/retry");
                let one: Delivery = hub.post(&path, &serde_json::json!({})).await?;
                print(format_args!("delivery {}: tried again", one.number))?;
            }
            Ok(Exit::Done)
        }),
        None => talk(&args.hub, async |hub| {
            let all: Deliveries = hub.get("hooks").await?;
            let mut listing = Listing::new(&args.rows, COLUMNS);
            let now = now_ms();
            let is_wanted = |one: &&Delivery| args.state.is_none_or(|state| state.is(one.state));
            for one in all.deliveries.iter().filter(is_wanted) {
                if !listing.add(one, || row(one, now))? {
                    break;
                }
            }
            if all.dropped > 0 {
                say(format_args!(
                    "dropped {}: too many deliveries waited",
                    counted(all.dropped, "event")
                ));
            }
            listing.finish("no deliveries")
        }),
    }
}

fn row(one: &Delivery, now: u64) -> [(String, Mood); 8] {
    let mood = match one.state {
        DeliveryState::Delivered => Mood::Good,
        DeliveryState::Failed => Mood::Bad,
        DeliveryState::Pending | DeliveryState::Unknown => Mood::Plain,
    };
    let mut why = one.error.as_deref().map(safe).unwrap_or_default();
    if let Some(next) = one.next_ms.filter(|next| *next > now && one.attempts > 0) {
        let seconds = (next - now).div_ceil(1000);
        why = format!("{why}; next try in {seconds} s");
    }
    [
        (one.number.to_string(), Mood::Plain),
        (one.state.word().to_owned(), mood),
        (safe(&one.event), Mood::Plain),
        (one.job.map(|job| job.to_string()).unwrap_or_default(), Mood::Plain),
        (clock(one.at_ms), Mood::Plain),
        (one.attempts.to_string(), Mood::Plain),
        (safe(&one.to), Mood::Plain),
        (why, mood),
    ]
}
