//! `laboro graph` of a job at a hub: its tasks as they are there, as a plan that can be drawn. An array is drawn as
//! one, with what it waits for as a whole and element by element.

use crate::args::graph::Graph;
use crate::exit::usage;
use crate::hub_client::{Hub, look};
use crate::resolve;
use laboro_api::{self as api, After};
use laboro_plan::{
    After as PlanAfter, Array, Numbers, On, Part, Plan, Position, Settings, Task as PlanTask,
    Template, Values, Work,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// More than this is no picture any more.
const PARTS_MAX: usize = 100_000;

/// The job's tasks as a plan.
pub(super) fn plan(args: &Graph, job: &str) -> anyhow::Result<Plan> {
    let mut plan = Plan::new(format!("job {job}"));
    let drawn = &mut plan;
    look(&args.place, async |hub| {
        let job = resolve::job(hub, job).await?;
        drawn.parts = parts(job, &read(hub, job).await?);
        Ok(crate::exit::Exit::Done)
    })?;
    Ok(plan)
}

async fn read(hub: &Hub, job: u32) -> anyhow::Result<Vec<api::Part>> {
    let (mut all, mut from) = (Vec::new(), Some(1));
    while let Some(first) = from {
        let page: api::Parts =
            hub.get(&format!("jobs/{job}/parts?from={first}&limit=1000")).await?;
        all.extend(page.parts);
        if all.len() > PARTS_MAX {
            return Err(usage(format!(
                "job {job} has more than {PARTS_MAX} parts: too many to draw"
            )));
        }
        from = page.next;
    }
    Ok(all)
}

/// What a part is drawn as.
fn name_of(job: u32, part: &api::Part) -> String {
    match (part.name.is_empty(), part.count) {
        (false, _) => part.name.to_string(),
        (true, 1) => format!("{job}/{}", part.first),
        (true, count) => format!("{job}/{}-{}", part.first, part.first + (count - 1)),
    }
}

fn parts(job: u32, all: &[api::Part]) -> Vec<Part> {
    let names: BTreeMap<u32, String> =
        all.iter().map(|part| (part.first, name_of(job, part))).collect();
    all.iter().map(|part| drawn(job, part, &names)).collect()
}

fn drawn(job: u32, part: &api::Part, names: &BTreeMap<u32, String>) -> Part {
    let own = &names[&part.first];
    let known = |after: &After| match after {
        After::Name(name) => Some(name.to_string()),
        After::Task { job: of, task: number } | After::Array { job: of, first: number } => {
            let (_, name) = names.range(..=number).next_back().filter(|_| *of == job)?;
            Some(name.clone())
        }
    };
    let mut on: Vec<On> = part.after.iter().filter_map(known).map(On::Task).collect();
    on.extend(part.each.iter().filter_map(known).map(On::Each));
    on.sort_unstable_by(|one, other| one.name().cmp(other.name()));
    on.dedup_by(|one, other| one.name() == other.name());
    on.retain(|on| on.name() != own);
    let at = Position::default();
    let after = on.into_iter().map(|on| PlanAfter { on, at }).collect();
    let name = own.clone();
    match u64::from(part.count) {
        0 | 1 => Part::Task(PlanTask {
            name,
            work: Work::Argv(Vec::new()),
            after,
            settings: Arc::new(Settings::default()),
            at,
        }),
        count => Part::Array(Box::new(Array {
            name,
            values: Values::numbers(Numbers::new(1, count, 1).expect("it has more than one")),
            template: Work::Argv(vec![Template::literal("")]),
            after,
            settings: Settings::default(),
            at,
        })),
    }
}
