//! `laboro graph` of a job at a hub: its tasks as they are there, as a plan that can be drawn. Elements of an
//! array are drawn as one. Links between single elements are shown for those the hub has a record of.

use crate::args::Graph;
use crate::exit::usage;
use crate::hub_client::{Hub, TaskPages, talk};
use crate::resolve;
use laboro_hub::api::{After, Task};
use laboro_plan::{
    After as PlanAfter, Array, Numbers, On, Part, Plan, Position, Settings, Task as PlanTask,
    Template, Values, Work,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// More than this is no picture any more.
const TASKS_MAX: usize = 100_000;

/// The job's tasks as a plan.
pub(super) fn plan(args: &Graph, job: &str) -> anyhow::Result<Plan> {
    let mut plan = Plan::new(format!("job {job}"));
    let drawn = &mut plan;
    talk(&args.hub_args, async |hub| {
        let job = resolve::job(hub, job).await?;
        drawn.parts = parts(&read(hub, job).await?);
        Ok(crate::exit::Exit::Done)
    })?;
    Ok(plan)
}

async fn read(hub: &Hub, job: u32) -> anyhow::Result<Vec<Task>> {
    let mut pages = TaskPages::new(hub, job, None, 1, Some(1000));
    let mut tasks = Vec::new();
    while let Some(task) = pages.next().await? {
        if tasks.len() == TASKS_MAX {
            return Err(usage(format!(
                "job {job} has more than {TASKS_MAX} tasks: too many to draw"
            )));
        }
        tasks.push(task);
    }
    Ok(tasks)
}

/// Consecutive tasks called `fit.1`, `fit.2` … are one array.
struct Run<'a> {
    name: String,
    tasks: &'a [Task],
}

fn parts(tasks: &[Task]) -> Vec<Part> {
    let mut runs: Vec<Run<'_>> = Vec::new();
    let mut at = 0;
    while at < tasks.len() {
        let (name, length) = run_at(&tasks[at..]);
        runs.push(Run { name, tasks: &tasks[at..at + length] });
        at += length;
    }
    // The first number of a run stands for all of it.
    let firsts: BTreeMap<u32, &str> =
        runs.iter().map(|run| (run.tasks[0].task, run.name.as_str())).collect();
    runs.iter().map(|run| part(run, &firsts)).collect()
}

fn run_at(tasks: &[Task]) -> (String, usize) {
    let name = tasks[0].name.to_string();
    let Some(array) = name.strip_suffix(".1").map(str::to_owned) else { return (name, 1) };
    let follows = |(at, task): &(usize, &Task)| task.name == format!("{array}.{}", at + 1).as_str();
    let length = tasks.iter().enumerate().take_while(follows).count();
    if length > 1 { (array, length) } else { (name, 1) }
}

fn part(run: &Run<'_>, firsts: &BTreeMap<u32, &str>) -> Part {
    let job = run.tasks[0].job;
    let mut names: Vec<String> = (run.tasks.iter().flat_map(|task| &task.after))
        .filter_map(|after| match after {
            After::Name(name) => Some(name.to_string()),
            After::Task { job: of, task: number } | After::Array { job: of, first: number } => {
                let (_, name) = firsts.range(..=number).next_back().filter(|_| *of == job)?;
                Some((*name).to_owned())
            }
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| *name != run.name);
    let at = Position::default();
    let after = names.into_iter().map(|name| PlanAfter { on: On::Task(name), at }).collect();
    let name = run.name.clone();
    match u64::try_from(run.tasks.len()).unwrap_or(1) {
        1 => Part::Task(PlanTask {
            name,
            work: Work::Argv(Vec::new()),
            after,
            settings: Arc::new(Settings::default()),
            at,
        }),
        count => Part::Array(Box::new(Array {
            name,
            values: Values::numbers(Numbers::new(1, count, 1).expect("a run has more than one")),
            template: Work::Argv(vec![Template::literal("")]),
            after,
            settings: Settings::default(),
            at,
        })),
    }
}
