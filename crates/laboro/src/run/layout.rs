//! How the parts of a plan are numbered in their job: first the arrays, then the tasks, each in the order of
//! the plan. The hub knows numbers and names; what an element runs is made from the plan when its turn comes.

use crate::output::{bytes, safe};
use crate::run::{GROUP, Options};
use laboro_core::{
    ArraySpec, Backoff, Grant, IfTaken, JobOptions, Name, Needs, Profile, Submit, SubmitTo,
    TaskRef, TaskSpec, UnknownPred, Values, Work,
};
use laboro_plan::{Element, On, Part, Plan, Settings};
use laboro_worker::memory_total;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::rc::Rc;
use std::sync::Arc;

pub(crate) struct Layout {
    plan: Rc<Plan>,
    /// For each array its first number and its part.
    arrays: Vec<(u32, usize)>,
    /// The number of the first task, and the part of each.
    tasks_from: u32,
    tasks: Vec<usize>,
    count: u32,
    profiles: Vec<Profile>,
    /// For each part its profile.
    profile_of: Vec<u32>,
    pub(crate) one_slot_each: bool,
}

impl Layout {
    pub(crate) fn new(plan: &Rc<Plan>, options: &Options) -> Result<Layout, String> {
        let count = plan.task_count();
        let count = u32::try_from(count).ok().filter(|&count| count < 1 << 31);
        let count = count.ok_or("more than 2147483647 tasks: split the job")?;
        let mut layout = Layout {
            plan: Rc::clone(plan),
            arrays: Vec::new(),
            tasks_from: 0,
            tasks: Vec::new(),
            count,
            profiles: Vec::new(),
            profile_of: Vec::with_capacity(plan.parts.len()),
            one_slot_each: true,
        };
        let mut known: HashMap<Profile, u32> = HashMap::new();
        let mut next = 1;
        for (at, part) in plan.parts.iter().enumerate() {
            let profile = match part {
                Part::Array(array) => {
                    layout.arrays.push((next, at));
                    next += u32::try_from(array.count()).expect("checked above");
                    profile(&array.settings, options)
                }
                Part::Task(task) => {
                    layout.tasks.push(at);
                    profile(&*task.settings, options)
                }
            };
            layout.one_slot_each &= profile.needs == Needs::default();
            if !known.contains_key(&profile) {
                check_fits(part, &profile.needs, options)?;
            }
            let number = *known.entry(profile).or_insert_with_key(|profile| {
                layout.profiles.push(profile.clone());
                layout.profiles.len() as u32 - 1
            });
            layout.profile_of.push(number);
        }
        layout.tasks_from = next;
        Ok(layout)
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// The job as the hub takes it.
    pub(crate) fn submit(&self, options: JobOptions) -> Submit {
        let part = |at: usize| &self.plan.parts[at];
        let work = Arc::new(Work::Named);
        let arrays = self.arrays.iter().map(|&(_, at)| {
            let (preds, each): (Vec<&On>, Vec<&On>) = part(at)
                .after()
                .iter()
                .map(|after| &after.on)
                .partition(|on| !matches!(on, On::Each(_)));
            ArraySpec {
                name: part(at).name().into(),
                count: u32::try_from(part(at).count()).expect("checked when it was laid out"),
                profile: self.profile_of[at],
                work: work.clone(),
                values: Values::Numbers { first: 1, step: 1 },
                preds: preds.into_iter().map(task_ref).collect(),
                each: each.into_iter().map(task_ref).collect(),
            }
        });
        let tasks = self.tasks.iter().map(|&at| TaskSpec {
            name: part(at).name().into(),
            profile: self.profile_of[at],
            work: None,
            preds: part(at).after().iter().map(|after| task_ref(&after.on)).collect(),
            memo: None,
        });
        Submit {
            group: GROUP.into(),
            job: SubmitTo::New(options),
            profiles: self.profiles.clone(),
            tasks: tasks.collect(),
            arrays: arrays.collect(),
            unknown_pred: UnknownPred::Refuse,
            if_taken: IfTaken::Refuse,
        }
    }

    /// What the task with this number runs, and its place in its array, from 1.
    pub(crate) fn element(&self, index: u32) -> Option<(Element, u32)> {
        let (part, place) = self.find(index)?;
        let element = match &self.plan.parts[part] {
            Part::Array(array) => array.element(u64::from(place))?,
            Part::Task(task) => Element {
                name: task.name.clone(),
                work: task.work.clone(),
                settings: Settings::clone(&task.settings),
            },
        };
        Some((element, place + 1))
    }

    /// The part that the task with this number belongs to, and its place there, from 0.
    fn find(&self, index: u32) -> Option<(usize, u32)> {
        if index >= self.tasks_from {
            let at = *self.tasks.get((index - self.tasks_from) as usize)?;
            return Some((at, 0));
        }
        let at = self.arrays.partition_point(|&(first, _)| first <= index).checked_sub(1)?;
        let (first, part) = self.arrays[at];
        Some((part, index - first))
    }

    /// Whether the hub knows a task by other settings than this plan gives it. How long it may take is not
    /// asked of the hub.
    pub(crate) fn differs(&self, grant: &Grant) -> bool {
        let Some((part, _)) = self.find(grant.task.index) else { return false };
        let ours = &self.profiles[self.profile_of[part] as usize];
        let known = &*grant.profile;
        known != ours && *known != Profile { time_limit_ms: known.time_limit_ms, ..ours.clone() }
    }

    /// Numbers of all tasks in the order of the input.
    pub(crate) fn input_order(&self) -> Vec<(u32, u32)> {
        let mut arrays = self.arrays.iter();
        let mut next_task = self.tasks_from;
        let order = self.plan.parts.iter().map(|part| match part {
            Part::Array(array) => {
                let &(first, _) = arrays.next().expect("every array is laid out");
                (first, first + (array.count() as u32 - 1))
            }
            Part::Task(_) => {
                next_task += 1;
                (next_task - 1, next_task - 1)
            }
        });
        order.collect()
    }
}

fn task_ref(on: &On) -> TaskRef {
    TaskRef::Name(Name::from(on.name()))
}

fn profile<T>(settings: &Settings<T>, options: &Options) -> Profile {
    let attempts = settings.attempts.or(options.attempts).unwrap_or(1);
    let timeout = settings.timeout.or(options.timeout);
    let first_ms = settings.backoff.map_or(0, |wait| wait.as_millis() as u64);
    let mut needs = Needs {
        slots: settings.slots.unwrap_or(1),
        memory: settings.memory_bytes.unwrap_or(0),
        resources: (settings.resources.iter())
            .map(|(name, count)| (name.as_str().into(), u32::try_from(*count).unwrap_or(u32::MAX)))
            .collect(),
        tags: settings.tags.iter().map(|tag| tag.as_str().into()).collect(),
    };
    needs.tidy();
    Profile {
        needs,
        priority: settings.priority.unwrap_or(0),
        attempts: u16::try_from(attempts).unwrap_or(u16::MAX),
        // A run that is killed again and again must not fail what it was running.
        lost_max: u16::MAX,
        backoff: Backoff { first_ms, ..Backoff::default() },
        retry_on: settings.retry_on.clone(),
        time_limit_ms: timeout.map(|limit| limit.as_millis() as u64),
        runs_anyway: settings.even_if_failed.unwrap_or(false),
    }
}

/// What this machine can never run is said before anything runs.
fn check_fits(part: &Part, needs: &Needs, options: &Options) -> Result<(), String> {
    let name = safe(part.name());
    if needs.slots > options.slots {
        let (wants, has) = (needs.slots, options.slots);
        return Err(format!("task {name} needs {wants} slots and there are {has}: raise -j"));
    }
    let memory = memory_total();
    if needs.memory > memory {
        let (wants, has) = (bytes(needs.memory), bytes(memory));
        return Err(format!("task {name} needs {wants} of memory and this machine has {has}"));
    }
    for (resource, wants) in &needs.resources {
        let has = options.resources.iter().find(|(known, _)| resource.bytes() == known.as_bytes());
        let has = has.map_or(0, |(_, count)| *count);
        if *wants > has {
            return Err(format!(
                "task {name} needs {wants} {resource} and there are {has}: say --resource {resource}={wants}"
            ));
        }
    }
    let missing = needs
        .tags
        .iter()
        .find(|tag| !options.tags.iter().any(|known| known.as_bytes() == tag.bytes()));
    match missing {
        Some(tag) => Err(format!(
            "task {name} requires the tag {tag}: say --tag {tag} if this machine has it"
        )),
        None => Ok(()),
    }
}

/// A number that nobody outside can guess.
pub(crate) fn seed() -> u64 {
    RandomState::new().build_hasher().finish()
}
