//! Job files in all their forms. What makes a plan can be looked at in every way; what does not is told in
//! words.

use laboro_plan::{Ending, Plan, PlanError, parse_flow, parse_jsonl, parse_lines, parse_list};
use std::path::Path;

/// Nothing is there, so that no list of values is ever read from a file.
const BASE: &str = "/nonexistent/laboro";
/// A file of a few bytes can ask for a thousand million tasks: only so many are looked at.
const ELEMENTS_SEEN: usize = 100;

pub(crate) fn lines(bytes: &[u8]) {
    seen(parse_lines("lines", bytes));
    for ending in [Ending::Line, Ending::Zero] {
        if let Ok(list) = parse_list("list", bytes, ending) {
            assert!(list.memory_bytes() <= 64 * bytes.len() + 4096);
            (0..list.len()).for_each(|at| assert!(!list.item(at).contains(&0)));
        }
    }
}

pub(crate) fn flow(bytes: &[u8]) {
    if names_a_file(bytes) {
        return;
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let flow = || parse_flow("flow.toml", text, Path::new(BASE));
        seen(flow().map_err(PlanError::from));
        let both = (flow(), flow());
        if let (Ok(one), Ok(other)) = both {
            assert_eq!(one.fingerprint().as_bytes(), other.fingerprint().as_bytes());
        }
    }
}

pub(crate) fn jsonl(bytes: &[u8]) {
    if !names_a_file(bytes) {
        seen(parse_jsonl("tasks.jsonl", Path::new(BASE), bytes));
    }
}

/// A list of values may be in a file, and what an input finds there is none of its business.
fn names_a_file(bytes: &[u8]) -> bool {
    bytes.windows(4).any(|word| word == b"file" || word == b"\\u00" || word == b"\\U00")
        || bytes.windows(2).any(|word| word == b"\\x")
}

fn seen(plan: Result<Plan, PlanError>) {
    let plan = match plan {
        Ok(plan) => plan,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let _ = (plan.validate(), plan.task_count(), plan.fingerprint());
    for part in plan.parts.iter().take(ELEMENTS_SEEN) {
        let _ = (part.name(), part.after(), part.count());
        if let laboro_plan::Part::Array(array) = part {
            for at in (0..array.count()).take(ELEMENTS_SEEN) {
                assert!(array.element(at).is_some());
                let _ = array.carried_value(at);
            }
            assert!(array.element(array.count()).is_none());
        }
    }
    if plan.task_count() < 10_000 {
        plan.dry_run(&mut std::io::sink()).expect("nothing fails at a sink");
        if plan.validate().is_ok() {
            let _ = plan.graph();
        }
    }
}
