//! Whether a plan holds together: names that can be names, predecessors that exist, no cycles, and
//! element-wise links between arrays of one length. Finds every mistake it can, changes nothing but `resolve`.

use std::collections::{HashMap, HashSet};

use crate::mistake::{MISTAKES_SHOWN_MAX, Mistake, Mistakes, did_you_mean};
use crate::plan::{Array, On, Part, Plan};

/// The longest name every dialect can carry.
pub const NAME_BYTES_MAX: usize = 980;

impl Plan {
    /// For plans made by a program; those read from a source have been checked.
    pub fn validate(&self) -> Result<(), Mistakes> {
        match self.mistakes_beside(&[]) {
            mistakes if mistakes.is_empty() => Ok(()),
            mistakes => Err(Mistakes::new(self.source.as_str(), mistakes, |_| None)),
        }
    }

    /// The index in `parts` of the task or array that `name` means: a part, or the array of an element.
    pub(crate) fn names(&self) -> Names<'_> {
        let mut by_name = HashMap::with_capacity(self.parts.len());
        for (number, part) in self.parts.iter().enumerate() {
            by_name.entry(part.name()).or_insert(number);
        }
        Names { parts: &self.parts, by_name }
    }

    /// Lets a bare name mean what it names: a task, or all of an array.
    pub(crate) fn resolve(&mut self) {
        let is_array: HashMap<String, bool> = {
            let waits = self.parts.iter().flat_map(Part::after);
            let names = self.names();
            let known = |name: &str| names.by_name.get(name).map(|number| &self.parts[*number]);
            waits
                .filter_map(|after| known(after.on.name()))
                .map(|part| (part.name().to_owned(), matches!(part, Part::Array(_))))
                .collect()
        };
        for after in self.parts.iter_mut().flat_map(Part::after_mut) {
            after.on = match (&after.on, is_array.get(after.on.name())) {
                (On::Task(name), Some(true)) => On::All(name.clone()),
                (On::All(name), Some(false)) => On::Task(name.clone()),
                _ => continue,
            };
        }
    }

    /// `broken` are tasks that could not be read: to wait for one is no mistake of its own.
    pub(crate) fn mistakes_beside(&self, broken: &[String]) -> Vec<Mistake> {
        let names = self.names();
        let broken: HashSet<&str> = broken.iter().map(String::as_str).collect();
        let mut mistakes = Vec::new();
        for (number, part) in self.parts.iter().enumerate() {
            mistakes.extend(self.name_mistake(part));
            mistakes.extend(names.duplicate(number, part));
            for after in part.after() {
                if let Some((message, hint)) = names.link_mistake(part, &after.on, mistakes.len())
                    && !broken.contains(after.on.name())
                {
                    mistakes.push(Mistake { at: after.at, message, hint });
                }
            }
        }
        mistakes.extend(names.cycles());
        mistakes
    }

    fn name_mistake(&self, part: &Part) -> Option<Mistake> {
        let (name, at) = (part.name(), part.at());
        let longest = match part {
            Part::Task(_) => name.len(),
            Part::Array(array) => array.element_name(array.count() - 1).len(),
        };
        let unnamed_whole = matches!(part, Part::Array(_)) && self.parts.len() == 1;
        let message = if name.is_empty() && !unnamed_whole {
            "the name is empty".to_owned()
        } else if longest > NAME_BYTES_MAX {
            format!("the name has {longest} bytes, more than {NAME_BYTES_MAX}")
        } else if name.contains(char::is_control) {
            format!("the name `{name}` holds a control character")
        } else if name.starts_with("each:") {
            format!("the name `{name}` begins with `each:`, which means something in `after`")
        } else {
            return None;
        };
        Some(Mistake::new(at, message))
    }
}

/// Who is called what.
#[derive(Debug)]
pub(crate) struct Names<'a> {
    parts: &'a [Part],
    by_name: HashMap<&'a str, usize>,
}

impl<'a> Names<'a> {
    /// The part that is meant, or whose element is.
    pub fn part(&self, on: &On) -> Option<usize> {
        let name = on.name();
        match self.by_name.get(name) {
            Some(number) => Some(*number),
            None => self.array_of(name).map(|(number, _)| number),
        }
    }

    /// The array that has an element of this name.
    fn array_of(&self, element: &str) -> Option<(usize, &'a Array)> {
        let prefix = element.rsplit_once('.').map_or("", |(prefix, _)| prefix);
        let number = *self.by_name.get(prefix)?;
        match &self.parts[number] {
            Part::Array(array) if array.find(element).is_some() => Some((number, array)),
            _ => None,
        }
    }

    fn duplicate(&self, number: usize, part: &Part) -> Option<Mistake> {
        let name = part.name();
        let first = self.by_name[name];
        if first != number {
            let message = format!("there are two tasks named `{name}`");
            let mistake = Mistake::new(part.at(), message);
            return Some(match self.parts[first].at().line {
                0 => mistake,
                line => mistake.hint(format!("the first is in line {line}")),
            });
        }
        let (_, array) = self.array_of(name)?;
        let message =
            format!("`{name}` is also the name of an element of the array `{}`", array.name);
        Some(Mistake::new(part.at(), message))
    }

    fn link_mistake(
        &self,
        part: &Part,
        on: &On,
        so_far: usize,
    ) -> Option<(String, Option<String>)> {
        let name = on.name();
        let Some(number) = self.part(on) else {
            // The search for a near name is slow; nobody reads hundreds of hints.
            let near = if so_far < MISTAKES_SHOWN_MAX { self.near(name) } else { None };
            return Some((format!("unknown task `{name}` in `after`"), near));
        };
        let target = &self.parts[number];
        let is_element = target.name() != name;
        match (on, part, target) {
            (On::Task(_), _, Part::Array(_)) if !is_element => {
                Some((format!("`{name}` is an array: wait for all or for each of it"), None))
            }
            (On::Task(_), _, _) => None,
            (On::All(_), _, Part::Array(_)) if !is_element => None,
            (On::All(_), ..) => Some((format!("`{name}` is one task, not an array"), None)),
            (On::Each(_), Part::Task(task), _) => {
                let message =
                    format!("each:{name} links array to array, and `{}` is one task", task.name);
                Some((message, Some(format!("write `{name}` to wait for all of it"))))
            }
            (On::Each(_), Part::Array(own), Part::Array(other)) if !is_element => {
                let (own_count, other_count) = (own.count(), other.count());
                (own_count != other_count).then(|| {
                    let own_name = &own.name;
                    let message = format!(
                        "each:{name} links arrays of one length, and the length of `{own_name}` is {own_count}, of `{name}` {other_count}"
                    );
                    (message, None)
                })
            }
            (On::Each(_), Part::Array(_), _) => {
                let message = format!("each:{name} links array to array, and `{name}` is one task");
                Some((message, Some(format!("write `{name}`"))))
            }
        }
    }

    fn near(&self, name: &str) -> Option<String> {
        if let Some((prefix, _)) = name.rsplit_once('.')
            && let Some(Part::Array(array)) = self.by_name.get(prefix).map(|i| &self.parts[*i])
        {
            let last = array.element_name(array.count() - 1);
            return Some(format!("the array `{prefix}` ends with `{last}`"));
        }
        did_you_mean(name, self.parts.iter().map(Part::name))
    }

    /// One mistake for each way back into a task that is still being followed.
    fn cycles(&self) -> Vec<Mistake> {
        #[derive(Clone, Copy, PartialEq)]
        enum Mark {
            New,
            Open,
            Closed,
        }
        let mut marks = vec![Mark::New; self.parts.len()];
        let mut mistakes = Vec::new();
        for start in 0..self.parts.len() {
            if marks[start] != Mark::New {
                continue;
            }
            // A chain may be as long as the plan, so the path is a list of ours, not the call stack.
            let mut path = vec![(start, 0)];
            marks[start] = Mark::Open;
            while let Some((number, next)) = path.last_mut() {
                let Some(after) = self.parts[*number].after().get(*next) else {
                    marks[*number] = Mark::Closed;
                    path.pop();
                    continue;
                };
                *next += 1;
                let Some(target) = self.part(&after.on) else { continue };
                match marks[target] {
                    Mark::Closed => {}
                    Mark::New => {
                        marks[target] = Mark::Open;
                        path.push((target, 0));
                    }
                    Mark::Open => {
                        let numbers: Vec<usize> = path.iter().map(|(number, _)| *number).collect();
                        mistakes.push(Mistake::new(after.at, self.cycle_message(&numbers, target)));
                    }
                }
            }
        }
        mistakes
    }

    fn cycle_message(&self, path: &[usize], target: usize) -> String {
        let from = path.iter().position(|number| *number == target).unwrap_or(0);
        // The path goes from a task to what it waits for; people think the other way round.
        let mut names: Vec<&str> =
            path[from..].iter().map(|number| self.parts[*number].name()).collect();
        names.push(names[0]);
        names.reverse();
        if names.len() == 2 {
            return format!("`{}` waits for itself", names[0]);
        }
        if names.len() > 12 {
            let hidden = names.len() - 10;
            let middle = format!("({hidden} more)");
            return format!(
                "cycle: {} -> {middle} -> {}",
                names[..5].join(" -> "),
                names[names.len() - 5..].join(" -> ")
            );
        }
        format!("cycle: {}", names.join(" -> "))
    }
}
