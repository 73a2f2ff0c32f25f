//! From a plan to the tasks and arrays that a hub is sent, and that a run on this machine makes its job of. Arrays stay
//! arrays: a range is a range, a list is a list, and placeholders are filled where an element runs. Sends nothing.

use super::terms::Terms;
use laboro_api::{
    After, Line, Output, ResourceRequest, Script, Span, Stdin, TaskSpec, Text, Variant,
};
use laboro_core::{Amount, Request};
use laboro_plan::{
    Array, On, Part, RequestedAmount, Settings, Stdin as PlanStdin, Variant as PlanVariant, Work,
};
use laboro_worker::DEFAULT_SHELL;
use std::collections::BTreeMap;

/// How many bytes of values one array carries when its list may be cut: with every byte escaped in JSON still
/// less than a hub takes in one line.
const VALUES_BYTES: usize = 2 << 20;

/// All of a part but what the elements of an array stand for.
pub(crate) fn spec(part: &Part) -> TaskSpec {
    let (work, settings) = match part {
        Part::Task(task) => (task.carried_work(), task.carried_settings()),
        Part::Array(array) => (array.carried_work(), array.carried_settings()),
    };
    let mut spec = with_settings(settings);
    if let Part::Array(array) = part {
        spec.placeholders = array.carried_placeholders();
        let names = array.values.columns().iter().map(|column| column.key.as_deref());
        if names.clone().any(|name| name.is_some()) {
            spec.value_names = names.map(|name| Text::from(name.unwrap_or_default())).collect();
        }
    }
    let is_line = match part {
        Part::Task(task) => matches!(task.work, Work::Shell { .. }),
        Part::Array(array) => matches!(array.template, Work::Shell { .. }),
    };
    // Every worker has this one, and takes it when nothing is said.
    spec.shell = spec.shell.filter(|shell| is_line && shell != "sh" && shell != DEFAULT_SHELL);
    spec.name = Some(part.name()).filter(|name| !name.is_empty()).map(Text::from);
    let is_each = |on: &On| matches!((part, on), (Part::Array(_), On::Each(_)));
    let (each, after): (Vec<&On>, Vec<&On>) =
        part.after().iter().map(|after| &after.on).partition(|on| is_each(on));
    let names = |on: Vec<&On>| on.into_iter().map(|on| After::Name(on.name().into())).collect();
    (spec.each, spec.after) = (names(each), names(after));
    match work {
        Work::Shell { line } => spec.command = Some(Line::Shell(line.into())),
        Work::Argv(words) => {
            spec.command = Some(Line::Argv(words.into_iter().map(Text::from).collect()));
        }
        Work::Script(script) => {
            spec.script =
                Some(Script { kind: script.kind.kind(), body: script.body.as_ref().into() });
        }
    }
    spec
}

fn with_settings(settings: Settings<Vec<u8>>) -> TaskSpec {
    let text = |text: Option<Vec<u8>>| text.map(Text::from);
    TaskSpec {
        dir: text(settings.dir),
        env: settings.env.into_iter().map(|(name, value)| (name, value.into())).collect(),
        stdin: settings.stdin.map(|stdin| match stdin {
            PlanStdin::Text(text) => Stdin::Text(text.into()),
            PlanStdin::File(path) => Stdin::File { file: path.into() },
        }),
        output: Output::new(text(settings.output.stdout), text(settings.output.stderr)),
        nice: settings.nice,
        umask: settings.umask.map(|umask| format!("{umask:03o}")),
        shell: settings.shell,
        wrap: settings.wrap.into_iter().map(Text::from).collect(),
        signal: settings.signal.map(|signal| signal.to_string()),
        slots: settings.slots,
        memory_bytes: settings.memory_bytes,
        resources: requests(settings.resources),
        variants: settings.variants.into_iter().map(variant).collect(),
        nodes: settings.nodes,
        time_request_ms: settings.time_request.map(millis),
        tags: settings.tags.into_iter().map(Text::from).collect(),
        priority: settings.priority,
        attempts: settings.attempts.map(|most| u16::try_from(most).unwrap_or(u16::MAX)),
        retry_on: settings.retry_on,
        backoff_ms: settings.backoff.map(millis),
        timeout_ms: settings.timeout.map(millis),
        runs_anyway: settings.even_if_failed,
        ..TaskSpec::default()
    }
}

pub(crate) fn requests(
    resources: Vec<(String, RequestedAmount)>,
) -> BTreeMap<String, ResourceRequest> {
    let request = |wanted| match wanted {
        RequestedAmount::Parts(parts) => Request::Some(Amount::of_parts(parts)),
        RequestedAmount::All => Request::All,
    };
    resources.into_iter().map(|(name, wanted)| (name, ResourceRequest(request(wanted)))).collect()
}

fn variant(variant: PlanVariant) -> Variant {
    Variant {
        slots: variant.slots,
        memory_bytes: variant.memory_bytes,
        resources: requests(variant.resources),
        tags: variant.tags.into_iter().map(Text::from).collect(),
    }
}

pub(crate) fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The specs of one part for a hub: mostly one, several where a list is too long for one.
pub(crate) fn specs<'a>(part: &'a Part, terms: &Terms) -> Result<Specs<'a>, String> {
    let mut spec = spec(part);
    terms.complete(&mut spec, part);
    let Part::Array(array) = part else { return Ok(Specs::One(Some(Box::new(spec)))) };
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
    let may_be_cut = spec.name.is_none() && spec.each.is_empty() && !array.says_index();
    let bytes = if may_be_cut { VALUES_BYTES } else { usize::MAX };
    Ok(Specs::List { array, spec: Box::new(spec), next: 0, bytes })
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
                    values.push(Text::from(value.as_ref()));
                }
                let is_over = values.is_empty();
                (!is_over).then(|| TaskSpec { values: Some(values.into()), ..(**spec).clone() })
            }
        }
    }
}
