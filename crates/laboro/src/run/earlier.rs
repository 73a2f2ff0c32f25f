//! What earlier runs of the same store have done, for a plan that was changed since: each run writes down by which keys its
//! tasks are known, and one that begins looks for its own among those that are done. A store belongs to a name, a job
//! file, or a command in a directory; its runs are listed in a file, the newest last.

use anyhow::Context;
use laboro_core::{Ledger, State};
use laboro_journal::read_ledger;
use laboro_plan::{Elements, Fingerprint, PartContent, Plan};
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

mod alike;

use super::JOB;
use alike::{HASH_BYTES, KnownElements, Pair, pairs};

/// The keys of a run's tasks, in its directory.
const KEYS: &str = "keys";
/// The hashes of values, beside them.
const HASHES: &str = "keys.values";
/// Which of a run's tasks were done by an earlier one.
const CARRIED: &str = "carried";
const HEAD: &str = "laboro keys 1";

/// Runs that are looked at; older ones are done again if somebody goes back to them.
const RUNS_MAX: usize = 20;

/// A part as it is written down.
struct Known {
    first: u32,
    name: String,
    key: Fingerprint,
    elements: KnownElements,
}

/// Tasks with these numbers were done by another run, under numbers from `from` on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Carried {
    pub(crate) first: u32,
    pub(crate) last: u32,
    pub(crate) run: String,
    pub(crate) from: u32,
}

/// What earlier runs have done of a plan.
#[derive(Default)]
pub(crate) struct Found {
    /// Apart from each other, in order.
    pub(crate) carried: Vec<Carried>,
    /// Tasks that were tried and failed, and that no run has done.
    pub(crate) failed: u64,
}

/// The runs of a store.
pub(crate) struct Store {
    file: PathBuf,
    runs: Vec<String>,
}

impl Store {
    pub(crate) fn open(root: &Path, id: &str) -> Store {
        let file = root.join(format!("{id}.store"));
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        Store { file, runs: text.lines().map(str::to_owned).collect() }
    }

    pub(crate) fn is_newest(&self, run: &str) -> bool {
        self.runs.last().is_none_or(|last| last == run)
    }

    /// It is the newest from now on. With `fresh` those before it do not count any more.
    pub(crate) fn begin(&mut self, run: &str, fresh: bool) -> std::io::Result<()> {
        if self.is_newest(run) && !self.runs.is_empty() && !fresh {
            return Ok(());
        }
        if fresh {
            self.runs.clear();
        }
        self.runs.retain(|known| known != run);
        self.runs.push(run.to_owned());
        let over = self.runs.len().saturating_sub(RUNS_MAX);
        self.runs.drain(..over);
        self.write()
    }

    pub(crate) fn rename(&mut self, run: &str, to: &str) -> std::io::Result<()> {
        self.runs.iter_mut().filter(|known| *known == run).for_each(|known| to.clone_into(known));
        self.write()
    }

    fn write(&self) -> std::io::Result<()> {
        let draft = self.file.with_extension(format!("new-{}", std::process::id()));
        std::fs::write(&draft, self.runs.join("\n") + "\n")?;
        std::fs::rename(&draft, &self.file)
    }
}

/// Finds what earlier runs of the store have done of a plan whose parts begin at these numbers.
pub(crate) fn find(
    root: &Path,
    store: &Store,
    own: &str,
    plan: &Plan,
    contents: &[PartContent<'_>],
    firsts: &[u32],
) -> Found {
    let mut wanted = Wanted::new(plan, contents, firsts);
    let mut superseded: HashSet<String> = HashSet::new();
    for run in store.runs.iter().rev().filter(|run| *run != own) {
        if wanted.is_empty() {
            break;
        }
        let dir = root.join(run);
        let Some(known) = read(&dir) else { continue };
        let names: Vec<String> = known.iter().map(|part| part.name.clone()).collect();
        let parts = known.into_iter().filter(|part| !superseded.contains(&part.name));
        let pairs = wanted.pairs(parts);
        // Most of what is old has nothing to say of what is left.
        if !pairs.is_empty() {
            let Ok(ledger) = read_ledger(&dir.join("journal")) else { continue };
            wanted.take(run, pairs, &ledger, &carried(&dir));
        }
        // What was run under a name later is what that name stands for.
        superseded.extend(names.into_iter().filter(|name| !name.is_empty()));
    }
    wanted.finish()
}

/// Elements of this plan that nobody is known to have done.
struct Wanted<'a> {
    /// By key, in the order of the plan: the first number and what tells the elements apart.
    parts: HashMap<Fingerprint, Vec<(u32, &'a Elements<'a>)>>,
    /// How many there are.
    count: u64,
    /// Apart from each other, in order.
    found: Vec<Carried>,
    /// Those that failed in some run.
    failed: Vec<(u32, u32)>,
}

impl<'a> Wanted<'a> {
    fn new(plan: &Plan, contents: &'a [PartContent<'a>], firsts: &[u32]) -> Wanted<'a> {
        let mut parts: HashMap<Fingerprint, Vec<(u32, &Elements<'_>)>> = HashMap::new();
        for (content, &first) in contents.iter().zip(firsts) {
            parts.entry(content.key).or_default().push((first, &content.elements));
        }
        Wanted { parts, count: plan.task_count(), found: Vec::new(), failed: Vec::new() }
    }

    fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Which numbers of those that are left are which of an earlier run.
    fn pairs(&self, known: impl Iterator<Item = Known>) -> Vec<Pair> {
        let mut old: HashMap<Fingerprint, Vec<Known>> = HashMap::new();
        known.for_each(|part| old.entry(part.key).or_default().push(part));
        let mut left = Vec::new();
        for (key, wanted) in &self.parts {
            let Some(known) = old.get(key) else { continue };
            for (mine, theirs) in pairs(wanted, known) {
                let parts = without(&self.found, mine).into_iter();
                left.extend(parts.map(|part| (part, theirs + (part.0 - mine.0))));
            }
        }
        left
    }

    fn take(&mut self, run: &str, pairs: Vec<Pair>, ledger: &Ledger, before: &[Carried]) {
        let mut found: Vec<Carried> = Vec::new();
        for (mine, theirs) in pairs {
            // As runs: there may be millions.
            let runs = |state| {
                let last = theirs + (mine.1 - mine.0);
                let runs = ledger.runs_in_state(JOB, state, (theirs, last)).into_iter();
                runs.map(move |(first, last)| (mine.0 + (first - theirs), mine.0 + (last - theirs)))
            };
            self.failed.extend(runs(State::Failed));
            for part in runs(State::Done) {
                self.count -= u64::from(part.1 - part.0) + 1;
                push_parts(&mut found, part, theirs + (part.0 - mine.0), run, before);
            }
        }
        self.found.append(&mut found);
        self.found.sort_unstable_by_key(|one| one.first);
    }

    fn finish(mut self) -> Found {
        self.failed.sort_unstable();
        let (mut failed, mut next) = (0, 0);
        for (first, last) in self.failed {
            let first = first.max(next);
            next = next.max(last.saturating_add(1));
            if first <= last {
                let left = without(&self.found, (first, last));
                failed += left.iter().map(|(first, last)| u64::from(last - first) + 1).sum::<u64>();
            }
        }
        Found { carried: self.found, failed }
    }
}

/// What of a range is in none of these, which are in order.
fn without(ranges: &[Carried], (first, last): (u32, u32)) -> Vec<(u32, u32)> {
    let mut left = Vec::new();
    let mut from = u64::from(first);
    let begin = ranges.partition_point(|one| one.last < first);
    for one in ranges[begin..].iter().take_while(|one| one.first <= last) {
        if from < u64::from(one.first) {
            left.push((from as u32, one.first - 1));
        }
        from = from.max(u64::from(one.last) + 1);
    }
    if from <= u64::from(last) {
        left.push((from as u32, last));
    }
    left
}

/// These were done as numbers from `theirs` on by `run`, or by those that it has them from.
fn push_parts(
    found: &mut Vec<Carried>,
    (mut first, last): (u32, u32),
    mut theirs: u32,
    run: &str,
    before: &[Carried],
) {
    loop {
        let (by, from) = origin(before, run, theirs);
        let after = before.partition_point(|one| one.last < theirs);
        // As far as they have one origin.
        let until = match before.get(after) {
            Some(one) if one.first <= theirs => one.last,
            Some(one) => one.first - 1,
            None => u32::MAX,
        };
        let length = (until - theirs).min(last - first);
        let end = first + length;
        match found.last_mut() {
            Some(one) if one.goes_on(first, by, from) => one.last = end,
            _ => found.push(Carried { first, last: end, run: by.to_owned(), from }),
        }
        if end == last {
            return;
        }
        (first, theirs) = (end + 1, theirs + length + 1);
    }
}

impl Carried {
    fn goes_on(&self, index: u32, run: &str, from: u32) -> bool {
        self.last.checked_add(1) == Some(index)
            && self.run == run
            && from.checked_sub(self.from) == index.checked_sub(self.first)
    }
}

/// The run that did it, which may have been an earlier one still, and the number it had there.
pub(crate) fn origin<'a>(carried: &'a [Carried], run: &'a str, index: u32) -> (&'a str, u32) {
    let after = carried.partition_point(|one| one.first <= index);
    match carried[..after].last().filter(|one| index <= one.last) {
        Some(one) => (&one.run, one.from + (index - one.first)),
        None => (run, index),
    }
}

/// Writes down by which keys the tasks of a run are known, and which of them were done before.
pub(crate) fn write(
    dir: &Path,
    plan: &Plan,
    contents: &[PartContent<'_>],
    firsts: &[u32],
    carried: &[Carried],
) -> anyhow::Result<()> {
    let mut text = format!("{HEAD}\n");
    let mut hashes: Option<BufWriter<File>> = None;
    let drafted = |name: &str| dir.join(format!("{name}.new"));
    let trouble = |name: &str| format!("{} cannot be written", dir.join(name).display());
    for ((part, content), first) in plan.parts.iter().zip(contents).zip(firsts) {
        let PartContent { key, elements } = content;
        let elements = match elements {
            Elements::One => "one".to_owned(),
            Elements::Numbers { first, step, count } => format!("numbers:{first}:{step}:{count}"),
            Elements::Values(_) | Elements::Hashes(_) => {
                let file = match &mut hashes {
                    Some(file) => file,
                    none => {
                        let file =
                            File::create(drafted(HASHES)).with_context(|| trouble(HASHES))?;
                        none.insert(BufWriter::new(file))
                    }
                };
                let mut each = elements.hashes().map(|hash| file.write_all(&hash.to_le_bytes()));
                each.try_for_each(|written| written).with_context(|| trouble(HASHES))?;
                format!("hashes:{}", elements.count())
            }
        };
        let _ = writeln!(text, "{first} {key} {elements} {}", part.name());
    }
    let put = |name: &str, bytes: &[u8]| {
        std::fs::write(drafted(name), bytes)
            .and_then(|()| std::fs::rename(drafted(name), dir.join(name)))
            .with_context(|| trouble(name))
    };
    if let Some(mut file) = hashes {
        let written =
            file.flush().and_then(|()| std::fs::rename(drafted(HASHES), dir.join(HASHES)));
        written.with_context(|| trouble(HASHES))?;
    }
    if !carried.is_empty() {
        let line = |one: &Carried| {
            let Carried { first, last, run, from } = one;
            format!("{first} {last} {from} {run}\n")
        };
        put(CARRIED, carried.iter().map(line).collect::<String>().as_bytes())?;
    }
    // Last: what has keys has all of it.
    put(KEYS, text.as_bytes())
}

/// All that were done before are recorded as done in this run too.
const SETTLED: &str = "carried.recorded";

/// What is still to be recorded of those that were done before.
pub(crate) fn unrecorded(dir: &Path) -> Vec<Carried> {
    if dir.join(SETTLED).exists() { Vec::new() } else { carried(dir) }
}

pub(crate) fn note_recorded(dir: &Path) -> std::io::Result<()> {
    std::fs::write(dir.join(SETTLED), "")
}

/// What an earlier run did of those in this directory.
pub(crate) fn carried(dir: &Path) -> Vec<Carried> {
    let text = std::fs::read_to_string(dir.join(CARRIED)).unwrap_or_default();
    let line = |line: &str| {
        let mut words = line.splitn(4, ' ');
        let mut number = || words.next()?.parse().ok();
        let (first, last, from) = (number()?, number()?, number()?);
        Some(Carried { first, last, from, run: words.next()?.to_owned() })
    };
    text.lines().filter_map(line).collect()
}

/// `None`: it was written by an earlier version, or not to its end.
fn read(dir: &Path) -> Option<Vec<Known>> {
    let text = std::fs::read_to_string(dir.join(KEYS)).ok()?;
    let file = dir.join(HASHES);
    let stored = std::fs::metadata(&file).map_or(0, |about| about.len() / HASH_BYTES);
    let mut from = 0u64;
    let mut lines = text.lines();
    (lines.next() == Some(HEAD)).then_some(())?;
    let mut known = Vec::new();
    for line in lines {
        let mut words = line.splitn(4, ' ');
        let first = words.next()?.parse().ok()?;
        let key = fingerprint(words.next()?)?;
        let mut kind = words.next()?.split(':');
        let what = kind.next()?;
        let mut number = || kind.next()?.parse::<u64>().ok();
        let elements = match what {
            "one" => KnownElements::Alike(Elements::One),
            "numbers" => {
                let (first, step, count) = (number()?, number()?, number()?);
                KnownElements::Alike(Elements::Numbers { first, step, count })
            }
            _ => {
                let count = number()?;
                let begin = from;
                from = from.checked_add(count).filter(|&end| end <= stored)?;
                KnownElements::Stored { file: file.clone(), from: begin, count }
            }
        };
        let name = words.next().unwrap_or_default().to_owned();
        known.push(Known { first, name, key, elements });
    }
    Some(known)
}

fn fingerprint(text: &str) -> Option<Fingerprint> {
    let mut bytes = [0; 32];
    (text.len() == 64).then_some(())?;
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(Fingerprint::from_bytes(bytes))
}

#[cfg(test)]
mod tests;
