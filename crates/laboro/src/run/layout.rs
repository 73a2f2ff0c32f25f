//! How the parts of a plan are numbered in their job: first the arrays, then the tasks, each in the order of the plan. The
//! hub is given all of it; what is asked here later is what a task is called, and what the plan says now of how long it
//! may take.

use crate::output::{bytes, counted, safe, shell_word};
use crate::run::{GROUP, Options};
use crate::submit::{Terms, millis, spec};
use laboro_api::{self as api, Converter};
use laboro_core::{
    Amount, ArraySpec, Grant, JobOptions, Needs, Profile, Request, Submit, SubmitTo, TaskSpec,
    ValueList, Values,
};
use laboro_plan::{Array, Part, Plan, Work};
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

pub(crate) struct Layout {
    plan: Arc<Plan>,
    arrays: Vec<Placed>,
    /// The number of the first task, and the part of each.
    tasks_from: u32,
    tasks: Vec<usize>,
    count: u32,
    profiles: Vec<Profile>,
    /// For each part its profile.
    profile_of: Vec<u32>,
    /// For the hub, until it has them.
    specs: (Vec<ArraySpec>, Vec<TaskSpec>),
    pub(crate) one_slot_each: bool,
}

struct Placed {
    /// Its first number.
    first: u32,
    part: usize,
}

impl Layout {
    pub(crate) fn new(plan: &Arc<Plan>, options: &Options) -> Result<Layout, String> {
        let count = plan.task_count();
        let count = u32::try_from(count).ok().filter(|&count| count < 1 << 31);
        let count = count.ok_or("more than 2147483647 tasks: split the job")?;
        let defaults = match &options.elsewhere {
            Some(terms) => terms.defaults(),
            None => api::TaskSpec::default(),
        };
        let defaults = api::TaskSpec {
            attempts: options.attempts.map(|most| u16::try_from(most).unwrap_or(u16::MAX)),
            timeout_ms: options.timeout.map(millis),
            // A run that is killed again and again must not fail what it was running.
            max_lost: options.elsewhere.is_none().then_some(u16::MAX),
            ..defaults
        };
        let converter = Converter::new(Some(Box::new(defaults)));
        let mut converter = converter.map_err(|error| error.to_string())?;
        let mut layout = Layout {
            plan: Arc::clone(plan),
            arrays: Vec::new(),
            tasks_from: 0,
            tasks: Vec::new(),
            count,
            profiles: Vec::new(),
            profile_of: Vec::with_capacity(plan.parts.len()),
            specs: (Vec::new(), Vec::new()),
            one_slot_each: true,
        };
        let mut known: HashMap<Profile, u32> = HashMap::new();
        let mut next = 1;
        for (at, part) in plan.parts.iter().enumerate() {
            let mut batch = converted(&mut converter, part, options.elsewhere.as_ref())?;
            let profile = batch.profiles.pop().expect("every task has a profile");
            layout.one_slot_each &= profile.needs == Needs::default();
            if !known.contains_key(&profile) && options.elsewhere.is_none() {
                check_fits(part, &profile.needs, options)?;
            }
            let profile = *known.entry(profile).or_insert_with_key(|profile| {
                layout.profiles.push(profile.clone());
                layout.profiles.len() as u32 - 1
            });
            layout.profile_of.push(profile);
            if let Some(array) = batch.arrays.pop() {
                layout.arrays.push(Placed { first: next, part: at });
                next += array.count;
                layout.specs.0.push(ArraySpec { profile, ..array });
            }
            if let Some(task) = batch.tasks.pop() {
                layout.tasks.push(at);
                layout.specs.1.push(TaskSpec { profile, ..task });
            }
        }
        layout.tasks_from = next;
        Ok(layout)
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// The number of each part's first task.
    pub(crate) fn firsts(&self) -> Vec<u32> {
        self.input_order().into_iter().map(|(first, _)| first).collect()
    }

    /// What people call the job.
    pub(crate) fn job_name(&self) -> &str {
        self.plan.job.name.as_deref().unwrap_or(&self.plan.source)
    }

    /// The job as the hub takes it.
    pub(crate) fn submit(&mut self, options: JobOptions) -> Submit {
        let (arrays, tasks) = std::mem::take(&mut self.specs);
        Submit {
            job: SubmitTo::New(options),
            profiles: self.profiles.clone(),
            tasks,
            arrays,
            ..Submit::new(GROUP)
        }
    }

    /// How long an attempt at this task may take, by the plan as it is now.
    pub(crate) fn time_limit_ms(&self, index: u32) -> Option<u64> {
        let (part, _) = self.find(index)?;
        self.profiles[self.profile_of[part] as usize].time_limit_ms
    }

    /// What the task with this number is called.
    pub(crate) fn name(&self, index: u32) -> Option<String> {
        let (part, place) = self.find(index)?;
        Some(match &self.plan.parts[part] {
            Part::Array(array) => array.element_name(u64::from(place)),
            Part::Task(task) => task.name.clone(),
        })
    }

    /// What people call it.
    pub(crate) fn label(&self, index: u32) -> Option<String> {
        let (part, place) = self.find(index)?;
        Some(match &self.plan.parts[part] {
            Part::Task(task) => api::label(&task.name, place + 1, None),
            Part::Array(array) => {
                let row = array.values.row(u64::from(place)).unwrap_or_default();
                let keys = array.values.columns().iter().map(|column| column.key.as_deref());
                let words = row.iter().zip(keys).map(|(value, key)| {
                    let value = String::from_utf8_lossy(value);
                    key.map_or(value.to_string(), |key| format!("{key}={value}"))
                });
                let words: Vec<String> = words.collect();
                let name = match array.name.as_str() {
                    "" => String::new(),
                    _ => array.element_name(u64::from(place)),
                };
                api::label(&name, place + 1, Some(&words.join(" ")))
            }
        })
    }

    /// What an element stands for, by the names of its columns or their numbers.
    pub(crate) fn values(&self, index: u32) -> Vec<(String, Vec<u8>)> {
        let Some((part, place)) = self.find(index) else { return Vec::new() };
        let Part::Array(array) = &self.plan.parts[part] else {
            return vec![(String::new(), self.plan.parts[part].name().into())];
        };
        if self.plan.parts.len() > 1 {
            return vec![(String::new(), array.element_name(u64::from(place)).into_bytes())];
        }
        let row = array.values.row(u64::from(place)).unwrap_or_default();
        let names = column_names(array, "");
        names.into_iter().zip(row).map(|(name, value)| (name, value.into_owned())).collect()
    }

    /// What the values of all tasks are called in a table: those of the only array, else the name of the task.
    pub(crate) fn value_columns(&self) -> Vec<String> {
        match self.plan.parts.as_slice() {
            [Part::Array(array)] => column_names(array, "V"),
            _ => vec!["Name".to_owned()],
        }
    }

    /// Which directories lead to the results of a task: its name where it has one, then each value below what it is called.
    pub(crate) fn path_words(&self, index: u32) -> Vec<Vec<u8>> {
        let Some((part, place)) = self.find(index) else { return Vec::new() };
        let Part::Array(array) = &self.plan.parts[part] else {
            return vec![self.plan.parts[part].name().into()];
        };
        let name = Some(array.name.clone().into_bytes()).filter(|name| !name.is_empty());
        let row = array.values.row(u64::from(place)).unwrap_or_default();
        let words = column_names(array, "").into_iter().zip(row);
        let words = words.flat_map(|(name, value)| [name.into_bytes(), value.into_owned()]);
        name.into_iter().chain(words).collect()
    }

    /// As a person would type it.
    pub(crate) fn command(&self, index: u32) -> String {
        let Some((part, place)) = self.find(index) else { return String::new() };
        let work = match &self.plan.parts[part] {
            Part::Array(array) => array.element(u64::from(place)).map(|element| element.work),
            Part::Task(task) => Some(task.work.clone()),
        };
        let typed = |words: &[std::ffi::OsString]| {
            let words = words.iter().map(|word| shell_word(&word.to_string_lossy()));
            words.collect::<Vec<_>>().join(" ")
        };
        match work {
            Some(Work::Shell { line }) => line.to_string_lossy().into_owned(),
            Some(Work::Argv(words)) => typed(&words),
            Some(Work::Script(script)) => typed(&script.arguments),
            None => String::new(),
        }
    }

    fn placed(&self, index: u32) -> &Placed {
        let after = self.arrays.partition_point(|array| array.first <= index);
        &self.arrays[after.saturating_sub(1)]
    }

    /// The part that the task with this number belongs to, and its place there, from 0.
    fn find(&self, index: u32) -> Option<(usize, u32)> {
        if index >= self.tasks_from {
            let at = *self.tasks.get((index - self.tasks_from) as usize)?;
            return Some((at, 0));
        }
        let &Placed { first, part, .. } = self.placed(index);
        Some((part, index.checked_sub(first)?))
    }

    /// Whether the hub knows a task by other settings than this plan gives it. How long it may take is not
    /// asked of the hub.
    pub(crate) fn differs(&self, grant: &Grant) -> bool {
        let Some((part, _)) = self.find(grant.task.index) else { return false };
        let mut ours = self.profiles[self.profile_of[part] as usize].clone();
        let variant = grant.share.as_ref().map_or(0, |share| usize::from(share.variant));
        if let Some(at) = variant.checked_sub(1)
            && let Some(needs) = ours.needs.variants.get(at)
        {
            ours.needs = needs.clone();
        }
        let known = &*grant.profile;
        *known != ours && *known != Profile { time_limit_ms: known.time_limit_ms, ..ours.clone() }
    }

    /// Numbers of all tasks in the order of the input.
    pub(crate) fn input_order(&self) -> Vec<(u32, u32)> {
        let mut arrays = self.arrays.iter();
        let mut next_task = self.tasks_from;
        let order = self.plan.parts.iter().map(|part| match part {
            Part::Array(array) => {
                let first = arrays.next().expect("every array is laid out").first;
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

/// By the keys of a matrix or a table, else by their numbers behind `before`.
fn column_names(array: &Array, before: &str) -> Vec<String> {
    let columns = array.values.columns().iter().enumerate();
    let name = |(at, column): (usize, &laboro_plan::Column)| {
        column.key.clone().unwrap_or_else(|| format!("{before}{}", at + 1))
    };
    columns.map(name).collect()
}

/// One part alone, by the words that a hub would be sent.
fn converted(
    converter: &mut Converter,
    part: &Part,
    elsewhere: Option<&Terms>,
) -> Result<api::Batch, String> {
    let mut spec = spec(part);
    if let Some(terms) = elsewhere {
        terms.complete(&mut spec, part);
    }
    if let Part::Array(array) = part {
        spec.count = Some(u32::try_from(array.count()).expect("checked before"));
    }
    converter.push(spec).map_err(|error| error.to_string())?;
    let mut batch = converter.take();
    if let (Part::Array(array), Some(spec)) = (part, batch.arrays.last_mut()) {
        spec.values = values(array);
    }
    Ok(batch)
}

/// What the elements stand for, in one step from the plan: a list may be long.
fn values(array: &Array) -> Values {
    let numbers = array.range().and_then(|numbers| {
        i64::try_from(numbers.last()).ok()?;
        Some((i64::try_from(numbers.first()).ok()?, i64::try_from(numbers.step()).ok()?))
    });
    match numbers {
        Some((first, step)) => Values::Numbers { first, step },
        None => {
            let value = |i| array.carried_value(i).expect("it is in the array");
            Values::List(Arc::new(ValueList::of_many((0..array.count()).map(value))))
        }
    }
}

/// What this machine can never run is said before anything runs.
fn check_fits(part: &Part, needs: &Needs, options: &Options) -> Result<(), String> {
    let fits = |variant: &Needs| check_one(part, variant, options).is_ok();
    check_one(part, needs, options).or_else(|why| match needs.variants.iter().any(fits) {
        true => Ok(()),
        false => Err(why),
    })
}

fn check_one(part: &Part, needs: &Needs, options: &Options) -> Result<(), String> {
    let name = safe(part.name());
    if needs.nodes > 1 {
        let wants = counted(needs.nodes, "worker");
        return Err(format!(
            "task {name} takes {wants} at once and a run has one: `laboro submit` gives it to the workers of a hub"
        ));
    }
    if needs.slots > options.slots {
        let (wants, has) = (needs.slots, options.slots);
        return Err(format!("task {name} needs {wants} slots, and -j gives {has}: raise -j"));
    }
    let memory = options.machine.memory;
    if needs.memory > memory {
        let (wants, has) = (bytes(needs.memory), bytes(memory));
        return Err(format!(
            "task {name} needs {wants} of memory and this machine has {has}: say --with memory=SIZE if that is wrong"
        ));
    }
    for (resource, wants) in &needs.resources {
        let has = options
            .machine
            .resources
            .iter()
            .find(|(known, _)| resource.bytes() == known.as_bytes());
        let has = has.map_or(0, |(_, supply)| supply.count);
        let (is_enough, enough) = match wants {
            Request::Some(amount) => {
                (*amount <= Amount::whole(has), amount.parts().div_ceil(Amount::PARTS))
            }
            Request::All => (has > 0, 1),
        };
        if !is_enough {
            return Err(format!(
                "task {name} needs {wants} {resource} and there are {has}: say --with {resource}={enough}"
            ));
        }
    }
    let missing = needs
        .tags
        .iter()
        .find(|tag| !options.tags.iter().any(|known| known.as_bytes() == tag.bytes()));
    match missing {
        Some(tag) => Err(format!(
            "task {name} requires the tag {tag}: say --with-tag {tag} if this machine has it"
        )),
        None => Ok(()),
    }
}

/// A number that nobody outside can guess.
pub(crate) fn seed() -> u64 {
    RandomState::new().build_hasher().finish()
}
