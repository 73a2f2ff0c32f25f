//! `laboro events`: what happens at a hub, as it happens, one line each. Comes back after a lost connection and
//! goes on where it was.

use crate::args::hub::Events;
use crate::exit::Exit;
use crate::hub_client::look;
use crate::output::{print, say};
use crate::resolve;
use crate::view::clock;
use laboro_api::{Event, EventKind, TaskState};

pub(crate) fn run(args: &Events) -> anyhow::Result<Exit> {
    look(&args.answer.place, async |hub| {
        let job = match &args.job {
            Some(job) => Some(resolve::job(hub, job).await?),
            None => None,
        };
        if let Some(run) = hub.run().filter(|_| hub.is_over()) {
            say(format_args!("{} has ended: there are no more events", run.name()));
            return Ok(Exit::Done);
        }
        let mut events = hub.follow(job).await?;
        loop {
            let event = match (events.next().await, hub.run()) {
                (Ok(event), _) => event,
                (Err(_), Some(run)) => {
                    say(format_args!("{} is over", run.name()));
                    return Ok(Exit::Done);
                }
                (Err(error), None) => return Err(error),
            };
            match args.answer.json {
                true => print(serde_json::to_string(&event)?)?,
                false => print(line(&event))?,
            }
        }
    })
}

/// One change in words.
fn line(event: &Event) -> String {
    let number = |number: Option<u32>| number.map_or("?".to_owned(), |number| number.to_string());
    let what = match event.kind {
        EventKind::Tasks => {
            let (job, first, last) = (number(event.job), number(event.first), number(event.last));
            let tasks = if first == last { first } else { format!("{first}-{last}") };
            let state = event.state.map_or("?", TaskState::word);
            let outcome = event.outcome.filter(|_| state == "failed" || state == "delayed");
            let outcome = outcome.map_or(String::new(), |outcome| format!(" ({outcome})"));
            let worker = event.worker.map_or(String::new(), |worker| format!(" worker {worker}"));
            format!("{job}/{tasks} {state}{outcome}{worker}")
        }
        EventKind::Job => format!("job {}", number(event.job)),
        EventKind::Worker => format!("worker {}", number(event.worker)),
        EventKind::Group => format!("group {}", number(event.group)),
        EventKind::Gap => "some events are missing here".to_owned(),
        EventKind::Unknown => "an event that this program does not know".to_owned(),
    };
    format!("{}  {what}", clock(event.at_ms))
}

#[cfg(test)]
mod tests;
