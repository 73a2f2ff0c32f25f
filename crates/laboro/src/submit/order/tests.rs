//! What a hub is sent first.

use super::order;
use laboro_plan::{Plan, parse_flow};
use std::path::Path;

fn names(flow: &str) -> Vec<String> {
    let plan: Plan = parse_flow("flow.toml", flow, Path::new("")).unwrap();
    order(&plan).into_iter().map(|at| plan.parts[at as usize].name().to_owned()).collect()
}

fn task(name: &str, more: &str) -> String {
    format!("[[task]]\nname = \"{name}\"\ncommand = \"true\"\n{more}\n")
}

#[test]
fn what_is_written_in_order_stays_so() {
    let flow = [task("b", ""), task("a", "after = \"b\""), task("c", "")].concat();
    assert_eq!(names(&flow), ["b", "a", "c"]);
}

#[test]
fn what_is_waited_for_comes_first_also_one_element_of_an_array() {
    let flow = [
        task("report", "after = [\"fit.2\", \"last\"]"),
        task("other", ""),
        task("fit", "foreach = \"1-3\""),
        task("last", "after = \"fit\""),
    ];
    assert_eq!(names(&flow.concat()), ["other", "fit", "last", "report"]);
}
