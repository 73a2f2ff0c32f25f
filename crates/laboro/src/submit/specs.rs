//! From a plan to the tasks and arrays that a hub is sent. Arrays stay arrays: a range is a range, a list is a
//! list, and placeholders are filled where an element runs. Sends nothing.

use super::redirect::Redirect;
use super::terms::Terms;
use laboro_hub::api::{After, Line, Script, Span, TaskSpec, Text};
use laboro_plan::{Array, On, Part, Settings, Stdin, Task, Work};

/// How many bytes of values one array carries when its list may be cut: with every byte escaped in JSON still
/// less than a hub takes in one line.
const VALUES_BYTES: usize = 2 << 20;

/// The specs of one part: mostly one, several where a list is too long for one.
pub(crate) fn specs<'a>(part: &'a Part, terms: &'a Terms) -> Result<Specs<'a>, String> {
    match part {
        Part::Task(task) => Ok(Specs::One(Some(Box::new(self::task(task, terms)?)))),
        Part::Array(array) => self::array(array, terms),
    }
}

pub(crate) enum Specs<'a> {
    One(Option<Box<TaskSpec>>),
    /// An array whose values are given as a list, from this element on.
    List {
        array: &'a Array,
        spec: Box<TaskSpec>,
        next: u64,
        bytes: usize,
    },
}

impl Iterator for Specs<'_> {
    type Item = TaskSpec;

    fn next(&mut self) -> Option<TaskSpec> {
        match self {
            Specs::One(spec) => spec.take().map(|spec| *spec),
            Specs::List { array, spec, next, bytes } => {
                let mut values = Vec::new();
                let mut left = *bytes;
                while left > 0
                    && let Some(value) = array.carried_value(*next)
                {
                    *next += 1;
                    left = left.saturating_sub(value.len() + 1);
                    values.push(Text::from(value));
                }
                let is_over = values.is_empty();
                (!is_over).then(|| TaskSpec { values: Some(values.into()), ..(**spec).clone() })
            }
        }
    }
}

fn task(task: &Task, terms: &Terms) -> Result<TaskSpec, String> {
    let (work, settings) = (task.carried_work(), task.carried_settings());
    let mut spec = spec(&task.name, 0, work, settings)?;
    spec.name = terms.name(&task.name);
    spec.after = task.after.iter().map(|after| self::after(&after.on, terms)).collect();
    terms.complete(&mut spec, <[u8]>::to_vec);
    Ok(spec)
}

fn array<'a>(array: &'a Array, terms: &Terms) -> Result<Specs<'a>, String> {
    let columns = array.values.columns().len();
    let (work, settings) = (array.carried_work(), array.carried_settings());
    let mut spec = spec(&array.name, columns, work, settings)?;
    spec.name = terms.name(&array.name);
    let (each, all): (Vec<_>, Vec<_>) =
        array.after.iter().map(|after| &after.on).partition(|on| matches!(on, On::Each(_)));
    spec.after = all.into_iter().map(|on| after(on, terms)).collect();
    spec.each = each.into_iter().map(|on| after(on, terms)).collect();
    terms.complete(&mut spec, |text| array.carried_text(text));
    if let Some(numbers) = array.range() {
        let number = |number: u64| {
            i64::try_from(number).map_err(|_| format!("{number} is too large a number for a hub"))
        };
        spec.range = Some(Span {
            first: number(numbers.first())?,
            last: number(numbers.last())?,
            step: number(numbers.step())?,
        });
        return Ok(Specs::One(Some(Box::new(spec))));
    }
    // A part of a list would count its elements from 1 again and could not be meant by the array's name.
    let may_be_cut = spec.name.is_none() && spec.each.is_empty() && !says_index(&spec);
    let bytes = if may_be_cut { VALUES_BYTES } else { usize::MAX };
    Ok(Specs::List { array, spec: Box::new(spec), next: 0, bytes })
}

fn says_index(spec: &TaskSpec) -> bool {
    let says = |text: &Text| text.bytes().windows(3).any(|window| window == b"{#}");
    let command = match &spec.command {
        None => false,
        Some(Line::Shell(line)) => says(line),
        Some(Line::Argv(words)) => words.iter().any(|word| says(&word)),
    };
    let texts = spec.dir.iter().chain(&spec.stdin).chain(&spec.output);
    command || texts.chain(spec.env.values()).any(says)
}

/// `name` is for messages; `columns` is how many values an element has.
fn spec(
    name: &str,
    columns: usize,
    work: Work<Vec<u8>>,
    settings: Settings<Vec<u8>>,
) -> Result<TaskSpec, String> {
    let mut spec = TaskSpec {
        dir: settings.dir.map(Text::from),
        env: settings.env.into_iter().map(|(name, value)| (name, value.into())).collect(),
        slots: settings.slots,
        memory_bytes: settings.memory_bytes,
        resources: (settings.resources.into_iter())
            .map(|(name, count)| (name, u32::try_from(count).unwrap_or(u32::MAX)))
            .collect(),
        tags: settings.tags.into_iter().map(Text::from).collect(),
        priority: settings.priority,
        attempts: settings.attempts.map(|most| u16::try_from(most).unwrap_or(u16::MAX)),
        retry_on: settings.retry_on,
        backoff_ms: settings.backoff.map(millis),
        timeout_ms: settings.timeout.map(millis),
        runs_anyway: settings.even_if_failed,
        ..TaskSpec::default()
    };
    let (mut stdout, mut stderr) = (settings.output.stdout, settings.output.stderr);
    if stdout == stderr {
        // One file for both is something that workers do, besides keeping what is printed.
        spec.output = stdout.take().map(Text::from);
        stderr = None;
    }
    let mut redirect = Redirect { stdin: None, stdout, stderr, columns };
    match settings.stdin {
        Some(Stdin::Text(text)) => spec.stdin = Some(text.into()),
        Some(Stdin::File(path)) => redirect.stdin = Some(path),
        None => {}
    }
    match work {
        Work::Shell { line } => spec.command = Some(Line::Shell(redirect.line(line).into())),
        Work::Argv(words) => {
            let words = redirect.words(words);
            spec.command = Some(Line::Argv(words.into_iter().map(Text::from).collect()));
        }
        Work::Script(script) => {
            if !redirect.is_empty() {
                let name = crate::output::safe(name);
                return Err(format!(
                    "task {name}: a script for a hub can have a file only for both streams together: redirect inside the script"
                ));
            }
            spec.script =
                Some(Script { kind: script.kind.kind(), body: script.body.as_ref().into() });
        }
    }
    Ok(spec)
}

fn after(on: &On, terms: &Terms) -> After {
    After::Name(terms.prefixed(on.name()))
}

fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
