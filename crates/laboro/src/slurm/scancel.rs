//! `scancel`: ends jobs.

use super::jobs::{KnownJob, SlurmJobRef, WantedRows};
use super::options::{Opt, Takes, WordsBegin, ignored, means, parse, refused};
use super::state::{JobState, states};
use super::{Fault, user};
use crate::hub_client::{Hub, Verb};
use crate::resolve::{Chosen, Which};

use Takes::{Nothing, Value};

const OPTIONS: [Opt; 18] = [
    means("name", Some('n'), Value),
    means("jobname", None, Value),
    means("me", None, Nothing),
    means("partition", Some('p'), Value),
    means("quiet", Some('Q'), Nothing),
    means("signal", Some('s'), Value),
    means("state", Some('t'), Value),
    means("user", Some('u'), Value),
    ignored("batch", Some('b'), Nothing),
    ignored("full", Some('f'), Nothing),
    ignored("hurry", Some('H'), Nothing),
    ignored("verbose", Some('v'), Nothing),
    ignored("account", Some('A'), Value),
    ignored("ctld", None, Nothing),
    refused("interactive", Some('i'), Nothing, "name the jobs"),
    refused("nodelist", Some('w'), Value, "name the jobs"),
    refused("reservation", Some('R'), Value, "there are no reservations here"),
    refused("wckey", None, Value, "name the jobs"),
];

pub(super) fn run(hub: &crate::args::hub::HubArgs, args: Vec<String>) -> Result<u8, Fault> {
    let typed = parse(&OPTIONS, WordsBegin::Anywhere, args)?;
    if let Some(signal) = typed.value("signal") {
        let number = super::signal_number(signal);
        if !matches!(number, Some(2 | 9 | 15)) {
            return Err(Fault::from(format!(
                "--signal={signal} cannot be honoured: a job can be ended (TERM, INT, KILL), but not be sent other signals"
            )));
        }
    }
    let words = typed.words.iter().flat_map(|word| word.split(','));
    let jobs = words.map(SlurmJobRef::parse).collect::<Result<Vec<_>, _>>()?;
    let mut users: Vec<String> = typed.list("user").into_iter().map(str::to_owned).collect();
    users.extend(typed.has("me").then(user));
    let names: Vec<String> =
        typed.list("name").into_iter().chain(typed.list("jobname")).map(str::to_owned).collect();
    let partitions: Vec<String> = typed.list("partition").into_iter().map(str::to_owned).collect();
    let words = typed.list("state");
    let filters = users.len() + names.len() + partitions.len() + words.len();
    if jobs.is_empty() && filters == 0 {
        return Err(Fault::from("No job identification provided"));
    }
    let states = match &words[..] {
        [] => Some(vec![JobState::Pending, JobState::Running]),
        words => states(words)?,
    };
    super::ask(hub, async |hub| {
        let mut status = 0;
        if filters > 0 {
            let wanted =
                WantedRows { jobs, names, users, partitions, states, ..WantedRows::default() };
            for row in wanted.rows(hub).await? {
                let which =
                    row.place.map_or(Which::Job, |place| Which::Ranges(vec![(place, place)]));
                cancel(hub, Chosen { job: row.job, which }).await?;
            }
            return Ok(0);
        }
        for job in &jobs {
            let done = async {
                let known = KnownJob::ask(hub, job.job).await?;
                let places = known.places(&job.part)?;
                let which = places.map_or(Which::Job, |places| {
                    Which::Ranges(places.into_iter().map(|place| (place, place)).collect())
                });
                cancel(hub, Chosen { job: job.job, which }).await
            };
            if let Err(fault) = done.await {
                if !typed.has("quiet") {
                    let words = match fault {
                        Fault::Words(words) => words,
                        Fault::Error(error) => format!("{error:#}"),
                    };
                    crate::output::say(format_args!(
                        "scancel: error: Kill job error on job id {}: {words}",
                        job.job
                    ));
                }
                status = 1;
            }
        }
        Ok(status)
    })
}

/// What is over already is no fault.
async fn cancel(hub: &Hub, chosen: Chosen) -> Result<(), Fault> {
    let cancelled = hub.change(&chosen, Verb::Cancel).await;
    match cancelled {
        Ok(_) => Ok(()),
        Err(error) => {
            let known = KnownJob::ask(hub, chosen.job).await?;
            let rows = known.rows(hub, true).await?;
            match rows.iter().any(|row| !row.state.is_over()) && chosen.which == Which::Job {
                true => Err(error.into()),
                false => Ok(()),
            }
        }
    }
}
