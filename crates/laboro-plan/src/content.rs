//! By what a task is known again in a plan that was changed: what it runs, where and with which variables, input and
//! output files, and the same of all it comes after. Not how the hub treats it, and not what files contain.
//!
//! A part has one key; its elements are told apart by their values, which stay a range where they are one.

use std::collections::HashMap;

use crate::fingerprint::{Digest, Fingerprint};
use crate::plan::{Array, On, Part, Plan};
use crate::template::Template;

/// What one part of a plan runs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct PartContent<'a> {
    pub key: Fingerprint,
    pub elements: Elements<'a>,
}

/// What tells the elements of a part apart.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub enum Elements<'a> {
    /// A task that stands alone.
    One,
    /// The numbers that they stand for.
    Numbers { first: u64, step: u64, count: u64 },
    /// What each stands for, hashed when it is asked for: there may be millions.
    Values(&'a Array),
    /// A hash of what each stands for, and of what it waits for.
    Hashes(Vec<u128>),
}

impl PartialEq for Elements<'_> {
    fn eq(&self, other: &Elements<'_>) -> bool {
        match (self, other) {
            (Elements::One, Elements::One) => true,
            (Elements::One, _) | (_, Elements::One) => false,
            _ => self.count() == other.count() && self.hashes().eq(other.hashes()),
        }
    }
}

impl Eq for Elements<'_> {}

impl Elements<'_> {
    /// How many there are.
    pub fn count(&self) -> u64 {
        match self {
            Elements::One => 1,
            Elements::Numbers { count, .. } => *count,
            Elements::Values(array) => array.count(),
            Elements::Hashes(hashes) => hashes.len() as u64,
        }
    }

    /// Of all of them, in order.
    pub fn hashes(&self) -> impl Iterator<Item = u128> {
        (0..self.count()).map(|i| self.hash(i))
    }

    /// Of element `i`, counted from 0.
    pub fn hash(&self, i: u64) -> u128 {
        match self {
            Elements::One => 0,
            Elements::Numbers { first, step, .. } => {
                hash(first.wrapping_add(i.wrapping_mul(*step)).to_string().as_bytes(), BASIS)
            }
            Elements::Values(array) => hash_of(array, i),
            Elements::Hashes(hashes) => hashes.get(i as usize).copied().unwrap_or(0),
        }
    }
}

impl Plan {
    /// What each part runs, in the order of the parts. `order` has each after what it waits for.
    pub fn contents(&self, order: &[u32]) -> Vec<PartContent<'_>> {
        let named: HashMap<&str, usize> =
            self.parts.iter().enumerate().map(|(at, part)| (part.name(), at)).collect();
        let mut contents: Vec<Option<PartContent<'_>>> = vec![None; self.parts.len()];
        for &at in order {
            let content = self.content(at as usize, &named, &contents);
            contents[at as usize] = Some(content);
        }
        contents.into_iter().map(|content| content.expect("every part is in the order")).collect()
    }

    fn content<'a>(
        &'a self,
        at: usize,
        named: &HashMap<&str, usize>,
        known: &[Option<PartContent<'a>>],
    ) -> PartContent<'a> {
        let part = &self.parts[at];
        let mut digest = Digest::new("laboro content 1");
        let shell = match part {
            Part::Task(task) => &task.settings.shell,
            Part::Array(array) => &array.settings.shell,
        };
        digest.word(shell.as_deref().unwrap_or("/bin/sh"));
        digest.word(part.name());
        let mut each = Vec::new();
        for after in part.after() {
            let name = after.on.name();
            let found = named.get(name).map(|&at| (at, None)).or_else(|| {
                let (array, _) = name.rsplit_once('.')?;
                let &at = named.get(array)?;
                match &self.parts[at] {
                    Part::Array(array) => Some((at, Some(array.find(name)?))),
                    Part::Task(_) => None,
                }
            });
            let before = found.and_then(|(at, element)| Some((known[at].as_ref()?, element)));
            let Some((before, element)) = before else {
                digest.word(name);
                continue;
            };
            digest.bytes(before.key.as_bytes());
            match (&after.on, element) {
                (On::Each(_), _) => each.push(before),
                (_, Some(element)) => digest.bytes(&before.elements.hash(element).to_le_bytes()),
                (_, None) => digest.elements(&before.elements),
            }
        }
        let elements = match part {
            Part::Task(task) => {
                digest.word("one");
                digest.content(&task.work, &task.settings, |text| {
                    std::os::unix::ffi::OsStrExt::as_bytes(text.as_os_str()).to_vec()
                });
                Elements::One
            }
            Part::Array(array) => {
                digest.word("array");
                digest.content(&array.template, &array.settings, Template::canonical);
                elements(array, &each)
            }
        };
        PartContent { key: digest.finish(), elements }
    }
}

fn elements<'a>(array: &'a Array, each: &[&PartContent<'_>]) -> Elements<'a> {
    if !each.is_empty() {
        let one = |i: u64| {
            let before = each.iter().map(|before| before.elements.hash(i));
            before.fold(hash_of(array, i), |sum, before| hash(&before.to_le_bytes(), sum))
        };
        return Elements::Hashes((0..array.count()).map(one).collect());
    }
    match array.range().filter(|_| !array.says_index()) {
        Some(numbers) => {
            let (first, step, count) = (numbers.first(), numbers.step(), numbers.count());
            Elements::Numbers { first, step, count }
        }
        None => Elements::Values(array),
    }
}

/// Of the values of an element, and its number where that is in what it runs.
fn hash_of(array: &Array, i: u64) -> u128 {
    let values = array.values.items(i);
    let sum = values.fold(BASIS, |sum, value| hash(&[0], hash(&value, sum)));
    match array.says_index() {
        true => hash(&i.to_le_bytes(), sum),
        false => sum,
    }
}

/// FNV-1a of 128 bits: fast for what is short, the same for ever, and wide enough that no two values of a list meet.
const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

fn hash(bytes: &[u8], basis: u128) -> u128 {
    bytes.iter().fold(basis, |sum, &byte| (sum ^ u128::from(byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(flow: &str) -> Vec<PartContent<'static>> {
        let plan = crate::parse_flow("flow.toml", flow, std::path::Path::new("."))
            .expect("the flow is good");
        let order: Vec<u32> = (0..plan.parts.len() as u32).collect();
        Box::leak(Box::new(plan)).contents(&order)
    }

    const FLOW: &str = r#"
        [[task]]
        name = "prep"
        command = "make data"
        [[task]]
        name = "fit"
        foreach = ["a", "b"]
        after = "prep"
        command = "fit {}"
        [[task]]
        name = "join"
        after = "fit"
        command = "join"
    "#;

    #[test]
    fn an_edited_step_is_another_with_all_that_comes_after_it() {
        let before = contents(FLOW);
        let after = contents(&FLOW.replace("fit {}", "fit -v {}"));
        assert_eq!(before[0], after[0]);
        assert_ne!(before[1].key, after[1].key);
        assert_ne!(before[2].key, after[2].key);
    }

    #[test]
    fn one_more_value_changes_what_waits_for_all_of_them_and_no_other_element() {
        let before = contents(FLOW);
        let after = contents(&FLOW.replace(r#"["a", "b"]"#, r#"["a", "b", "c"]"#));
        assert_eq!((&before[0], before[1].key), (&after[0], after[1].key));
        assert_eq!(before[1].elements.hash(1), after[1].elements.hash(1));
        assert_ne!(before[2].key, after[2].key);
    }

    #[test]
    fn how_the_hub_treats_a_task_is_no_part_of_it() {
        let after =
            contents(&FLOW.replace("command = \"join\"", "command = \"join\"\nattempts = 3"));
        assert_eq!(contents(FLOW), after);
        let after =
            contents(&FLOW.replace("command = \"join\"", "command = \"join\"\noutput = \"x\""));
        assert_ne!(contents(FLOW)[2], after[2]);
    }
}
