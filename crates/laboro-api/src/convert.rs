//! From the words of a request to the core's: tasks and arrays with their settings, shared wherever several have
//! the same. Names, predecessors and limits are checked by the core.

mod array;
mod check;
mod words;

use super::needs::Variant;
use super::reference::Reach;
use super::streams::{Output, Stdin};
use super::submit::TaskSpec;
use super::text::Text;
use array::array_of;
use check::{check_defaults, check_settings, check_zero};
use laboro_core::{ArraySpec, Backoff, CallWork, CommandWork, Name, Needs, Profile, Setting, Work};
use laboro_net::trace;
use laboro_plan::{Filler, Settings};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use words::{program, warning, weight};

/// What makes no sense about a task, whatever the hub knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTask {
    /// More than one of `command`, `script` and `call`.
    #[error("task {0}: give one of `command`, `script` and `call`")]
    TwoWorks(Text),
    /// The command has no words.
    #[error("task {0}: `command` is an empty list: its first word is the program")]
    NoProgram(Text),
    /// The script names no interpreter.
    #[error("task {0}: `script` has an empty `kind`: say `.sh`, `.m` or an interpreter")]
    NoKind(Text),
    /// More than one of `count`, `range` and `values`.
    #[error("task {0}: give one of `count`, `range` and `values`")]
    TwoArrays(Text),
    /// An array of nothing.
    #[error("task {0}: an array without elements")]
    NoElements(Text),
    /// A range without numbers.
    #[error("task {0}: the range never reaches its last number: check `first`, `last` and `step`")]
    BadRange(Text),
    /// More elements than an array may have.
    #[error("task {0}: more elements than a job can have")]
    TooMany(Text),
    /// `each` on a single task.
    #[error("task {0}: `each` is for arrays: say `after`")]
    EachWithoutArray(Text),
    /// A call that nothing takes.
    #[error("task {0}: a `call` needs a `runner`: the program that takes it")]
    NoRunner(Text),
    /// A runner without a call, or without a program.
    #[error("task {0}: a `runner` is for a `call`, and its words are not empty")]
    BadRunner(Text),
    /// A field that only a program of its own can have.
    #[error("task {task}: `{field}` is for programs of their own; a call has none")]
    NotForCalls {
        /// Which task.
        task: Text,
        /// Which field.
        field: &'static str,
    },
    /// A NUL byte where the system allows none.
    #[error("task {task}: `{field}` holds a zero byte, which no process can be given")]
    ZeroByte {
        /// Which task.
        task: Text,
        /// Which field.
        field: &'static str,
    },
    /// Not the name of a variable.
    #[error("task {task}: `{name}` is not the name of a variable")]
    BadVariable {
        /// Which task.
        task: Text,
        /// The name.
        name: Text,
    },
    /// Nothing to run.
    #[error("task {0}: give `command`, `script` or `call`, or a `name` that workers know")]
    NoWork(Text),
    /// A number out of its range.
    #[error("task {task}: `{field}` is {value}: {why}")]
    BadNumber {
        /// Which task.
        task: Text,
        /// Which field.
        field: &'static str,
        /// The value.
        value: i64,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Not a umask.
    #[error("task {task}: {why}")]
    BadUmask {
        /// Which task.
        task: Text,
        /// What is wrong with it.
        why: String,
    },
    /// Its signal is not one, or there is no time limit that it could come before.
    #[error("task {task}: {why}")]
    BadSignal {
        /// Which task.
        task: Text,
        /// What is wrong with it.
        why: String,
    },
    /// Its shell is not one.
    #[error("task {task}: {why}")]
    BadShell {
        /// Which task.
        task: Text,
        /// What is wrong with it.
        why: String,
    },
    /// Placeholders that this hub does not know.
    #[error(
        "task {task}: placeholders of version {version} are not known here: the hub is older than the program that submits"
    )]
    Placeholders {
        /// Which task.
        task: Text,
        /// As asked for.
        version: u32,
    },
    /// Not the name of a resource or a tag.
    #[error("task {task}: {name:?} in `{field}`: a name has no spaces and no control characters")]
    BadLabel {
        /// Which task.
        task: Text,
        /// Which field.
        field: &'static str,
        /// The name.
        name: String,
    },
    /// A field that cannot be a default.
    #[error("`defaults` has a `{0}`, which only a task can have")]
    NotADefault(&'static str),
    /// The defaults make the tasks too large.
    #[error(
        "task {0}: the variables of `defaults` beside those of so many tasks take more than \
         {MERGED_BYTES_MAX} bytes: give them in one of the two places"
    )]
    HeavyDefaults(Text),
}

/// Takes tasks one by one and gives them back as parts of a core submit.
#[derive(Debug, Default)]
pub struct Converter {
    defaults: TaskSpec,
    /// Kept from batch to batch, so that a stream of a million tasks has its directory once.
    settings: HashSet<Arc<Setting>>,
    /// That of tasks that have none of their own.
    usual_setting: Option<Arc<Setting>>,
    /// What tasks that have settings of their own took from the defaults, in this batch.
    merged_bytes: usize,
    /// Of the task before: where all run the same command, a million tasks have it once.
    last_work: Option<Arc<Work>>,
    /// Positions of profiles by their hash.
    known: HashMap<u64, Vec<u32>>,
    hasher: RandomState,
    batch: Batch,
    reach: Reach,
    trace: BTreeMap<String, Text>,
}

/// What was converted since the last `take`.
#[derive(Debug, Default)]
pub struct Batch {
    /// How the hub treats them.
    pub profiles: Vec<Profile>,
    /// Single tasks.
    pub tasks: Vec<laboro_core::TaskSpec>,
    /// Arrays.
    pub arrays: Vec<ArraySpec>,
}

impl Batch {
    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.tasks.len() + self.arrays.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A stream in which every task has settings of its own must not grow the table without end.
const SETTINGS_KEPT_MAX: usize = 10_000;

/// Large defaults are copied for every task that adds to them, which makes much of little.
const MERGED_BYTES_MAX: usize = 16 << 20;

impl Converter {
    /// With defaults for tasks that leave fields open.
    pub fn new(defaults: Option<Box<TaskSpec>>) -> Result<Converter, BadTask> {
        let defaults = defaults.map(|defaults| *defaults).unwrap_or_default();
        check_defaults(&defaults)?;
        check_settings(&defaults, &Text::from("defaults"))?;
        Ok(Converter { defaults, ..Converter::default() })
    }

    /// Tasks of other groups are not there for those that are pushed from now on.
    pub fn within_group(self) -> Converter {
        Converter { reach: Reach::OwnGroup, ..self }
    }

    /// Variables that say to which trace tasks belong, unless their own say so. Calls have none: processes are kept for
    /// those whose settings are the same.
    #[must_use]
    pub fn in_trace(self, trace: BTreeMap<String, Text>) -> Converter {
        Converter { trace, ..self }
    }

    /// Adds a task.
    pub fn push(&mut self, mut spec: TaskSpec) -> Result<(), BadTask> {
        let name = spec.name.clone().unwrap_or_default();
        let values = array_of(&mut spec, &name)?;
        if values.is_none() && !spec.each.is_empty() {
            return Err(BadTask::EachWithoutArray(name));
        }
        let has_work = spec.command.is_some() || spec.script.is_some() || spec.call.is_some();
        if name.is_empty() && !has_work {
            return Err(BadTask::NoWork(name));
        }
        check_settings(&spec, &name)?;
        let profile = self.profile(&spec);
        let core_name: Name = name.name();
        let reach = self.reach;
        let preds = spec.after.iter().map(|after| after.to_core(reach));
        match values {
            None => {
                let preds = preds.collect();
                let work = self.work(spec, &name)?.map(|work| self.shared(work));
                let profile = self.number(profile);
                let task =
                    laboro_core::TaskSpec { name: core_name, profile, work, preds, memo: None };
                self.batch.tasks.push(task);
            }
            Some((count, values)) => {
                let preds = preds.collect();
                let each = spec.each.iter().map(|each| each.to_core(reach)).collect();
                let work = Arc::new(self.work(spec, &name)?.unwrap_or(Work::Named));
                let profile = self.number(profile);
                let array =
                    ArraySpec { name: core_name, count, profile, work, values, preds, each };
                self.batch.arrays.push(array);
            }
        }
        Ok(())
    }

    /// All that was added.
    pub fn batch(&self) -> &Batch {
        &self.batch
    }

    /// All that was pushed since the last time.
    pub fn take(&mut self) -> Batch {
        self.known.clear();
        self.merged_bytes = 0;
        std::mem::take(&mut self.batch)
    }

    fn number(&mut self, profile: Profile) -> u32 {
        let profiles = &mut self.batch.profiles;
        let known = self.known.entry(self.hasher.hash_one(&profile)).or_default();
        if let Some(&number) = known.iter().find(|&&at| profiles[at as usize] == profile) {
            return number;
        }
        let number = u32::try_from(profiles.len()).expect("fewer profiles than tasks");
        profiles.push(profile);
        known.push(number);
        number
    }

    fn profile(&self, spec: &TaskSpec) -> Profile {
        let defaults = &self.defaults;
        let usual = Profile::default();
        let mut resources = defaults.resources.clone();
        resources.extend(spec.resources.clone());
        let tags = if spec.tags.is_empty() { &defaults.tags } else { &spec.tags };
        let retry_on = if spec.retry_on.is_empty() { &defaults.retry_on } else { &spec.retry_on };
        let variants = if spec.variants.is_empty() { &defaults.variants } else { &spec.variants };
        let mut needs = Needs {
            slots: spec.slots.or(defaults.slots).unwrap_or(1),
            memory: spec.memory_bytes.or(defaults.memory_bytes).unwrap_or(0),
            resources: resources
                .into_iter()
                .map(|(name, wanted)| (name.into(), wanted.0))
                .collect(),
            tags: tags.iter().map(Text::name).collect(),
            nodes: spec.nodes.or(defaults.nodes).unwrap_or(0),
            variants: variants.iter().map(Variant::needs).collect(),
        };
        needs.tidy();
        let most_ms = spec.max_backoff_ms.or(defaults.max_backoff_ms);
        Profile {
            needs,
            priority: spec.priority.or(defaults.priority).unwrap_or(usual.priority),
            attempts: spec.attempts.or(defaults.attempts).unwrap_or(usual.attempts).max(1),
            lost_max: spec.max_lost.or(defaults.max_lost).unwrap_or(usual.lost_max),
            backoff: Backoff {
                first_ms: spec.backoff_ms.or(defaults.backoff_ms).unwrap_or(0),
                most_ms: most_ms.unwrap_or(usual.backoff.most_ms),
            },
            retry_on: retry_on.clone(),
            time_limit_ms: spec.timeout_ms.or(defaults.timeout_ms),
            time_request_ms: spec.time_request_ms.or(defaults.time_request_ms),
            runs_anyway: spec.runs_anyway.or(defaults.runs_anyway).unwrap_or(false),
        }
    }

    fn shared(&mut self, work: Work) -> Arc<Work> {
        match &self.last_work {
            Some(last) if **last == work => Arc::clone(last),
            _ => Arc::clone(self.last_work.insert(Arc::new(work))),
        }
    }

    /// `None`: the worker knows what the name means.
    fn work(&mut self, mut spec: TaskSpec, name: &Text) -> Result<Option<Work>, BadTask> {
        let (command, script) = (spec.command.take(), spec.script.take());
        match (command, script, spec.call.take()) {
            (None, None, Some(payload)) => self.call(payload, spec, name).map(Some),
            _ if spec.runner.is_some() => Err(BadTask::BadRunner(name.clone())),
            (None, None, None) => Ok(None),
            (Some(line), None, None) => {
                let program = program(line, name)?;
                let setting = self.setting(spec, name)?;
                Ok(Some(Work::Command(CommandWork { program, setting })))
            }
            (None, Some(script), None) => {
                if script.kind.is_empty() {
                    return Err(BadTask::NoKind(name.clone()));
                }
                let setting = self.setting(spec, name)?;
                let body = Arc::from(script.body.into_bytes());
                Ok(Some(Work::script(script.kind, body, setting)))
            }
            _ => Err(BadTask::TwoWorks(name.clone())),
        }
    }

    fn call(&mut self, payload: Text, mut spec: TaskSpec, task: &Text) -> Result<Work, BadTask> {
        let defaults = &self.defaults;
        let Some(runner) = spec.runner.take().or_else(|| defaults.runner.clone()) else {
            return Err(BadTask::NoRunner(task.clone()));
        };
        let words = &runner.command;
        if words.is_empty() || words.iter().any(|word| word.bytes().contains(&0)) {
            return Err(BadTask::BadRunner(task.clone()));
        }
        for (field, is_given) in [
            ("stdin", spec.stdin.is_some() || defaults.stdin.is_some()),
            ("output", spec.output.is_some() || defaults.output.is_some()),
            ("signal", spec.signal.is_some() || defaults.signal.is_some()),
        ] {
            if is_given {
                return Err(BadTask::NotForCalls { task: task.clone(), field });
            }
        }
        spec.runner = Some(runner);
        let payload = Arc::from(payload.into_bytes());
        Ok(Work::Call(CallWork { payload, setting: self.setting(spec, task)? }))
    }

    fn setting(&mut self, spec: TaskSpec, task: &Text) -> Result<Arc<Setting>, BadTask> {
        let TaskSpec { dir, env, stdin, output, nice, umask, runner, shell, .. } = &spec;
        let TaskSpec { placeholders, wrap, signal, value_names, .. } = &spec;
        let is_usual = dir.is_none()
            && env.is_empty()
            && stdin.is_none()
            && output.is_none()
            && nice.is_none()
            && umask.is_none()
            && runner.is_none()
            && shell.is_none()
            && placeholders.is_none()
            && wrap.is_empty()
            && value_names.is_empty()
            // It goes with a time limit, which may be the task's own.
            && signal.as_ref().or(self.defaults.signal.as_ref()).is_none();
        if is_usual && let Some(usual) = &self.usual_setting {
            return Ok(Arc::clone(usual));
        }
        let shared = self.own_setting(spec, task)?;
        if is_usual {
            self.usual_setting = Some(Arc::clone(&shared));
        }
        Ok(shared)
    }

    fn own_setting(&mut self, spec: TaskSpec, task: &Text) -> Result<Arc<Setting>, BadTask> {
        let defaults = &self.defaults;
        self.merged_bytes += weight(defaults);
        // The first is not one too many, however large it is: it came so.
        if self.merged_bytes > MERGED_BYTES_MAX.max(weight(defaults)) {
            return Err(BadTask::HeavyDefaults(task.clone()));
        }
        let output = spec.output.as_ref().or(defaults.output.as_ref());
        let [stdout, stderr] = output.map_or([None, None], Output::files);
        let file = |path: Option<&Text>| path.map(|path| Box::from(path.bytes()));
        let mut env = defaults.env.clone();
        env.extend(spec.env);
        if spec.runner.is_none() && !env.contains_key(trace::PARENT) {
            env.extend(self.trace.clone());
        }
        for (name, value) in &env {
            if name.is_empty() || name.contains(['=', '\0']) {
                let (task, name) = (task.clone(), name.as_str().into());
                return Err(BadTask::BadVariable { task, name });
            }
            check_zero(value.bytes(), task, "env")?;
        }
        let umask = spec.umask.as_ref().or(defaults.umask.as_ref());
        let umask = umask.map(|text| Settings::parse_umask(text)).transpose();
        let umask = umask.map_err(|why| BadTask::BadUmask { task: task.clone(), why })?;
        let shell = spec.shell.as_deref().or(defaults.shell.as_deref());
        let shell = shell.map(Settings::parse_shell).transpose();
        let shell = shell.map_err(|why| BadTask::BadShell { task: task.clone(), why })?;
        let placeholders = spec.placeholders.or(defaults.placeholders);
        if let Some(version) = placeholders.filter(|&version| version != Filler::VERSION) {
            return Err(BadTask::Placeholders { task: task.clone(), version });
        }
        let limit_ms = spec.timeout_ms.or(defaults.timeout_ms);
        let signal = spec.signal.as_deref().or(defaults.signal.as_deref());
        let warning = signal.map(|text| warning(text, limit_ms)).transpose();
        let warning = warning.map_err(|why| BadTask::BadSignal { task: task.clone(), why })?;
        let wrap = if spec.wrap.is_empty() { &defaults.wrap } else { &spec.wrap };
        let wrap: Vec<Box<[u8]>> = wrap.iter().map(|word| Box::from(word.bytes())).collect();
        for word in &wrap {
            check_zero(word, task, "wrap")?;
        }
        let setting = Setting {
            dir: file(spec.dir.as_ref().or(defaults.dir.as_ref())),
            env: (env.into_iter())
                .map(|(name, value)| {
                    (name.into_bytes().into_boxed_slice(), value.into_bytes().into_boxed_slice())
                })
                .collect(),
            stdin: (spec.stdin.or_else(|| defaults.stdin.clone()))
                .map_or(laboro_core::Stdin::Null, Stdin::into_core),
            stdout: file(stdout),
            stderr: file(stderr),
            nice: spec.nice.or(defaults.nice),
            umask,
            runner: spec.runner.map(|runner| Arc::new(runner.into_core())),
            shell: shell.map(|shell| shell.into_bytes().into()),
            placeholders,
            wrap,
            warning,
            value_names: spec.value_names.iter().map(|name| Box::from(name.bytes())).collect(),
        };
        check_zero(setting.dir.as_deref().unwrap_or_default(), task, "dir")?;
        if let laboro_core::Stdin::File(path) = &setting.stdin {
            check_zero(path, task, "stdin")?;
        }
        for path in setting.stdout.iter().chain(&setting.stderr) {
            check_zero(path, task, "output")?;
        }
        if let Some(known) = self.settings.get(&setting) {
            return Ok(Arc::clone(known));
        }
        if self.settings.len() >= SETTINGS_KEPT_MAX {
            self.settings.clear();
        }
        let shared = Arc::new(setting);
        self.settings.insert(Arc::clone(&shared));
        Ok(shared)
    }
}
