//! The parts of a plan in an order in which each comes after what it waits for, for those who are sent them one
//! by one. As written, wherever that will do.

use laboro_plan::{On, Plan};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Positions in `plan.parts`. The plan was found to have no cycles.
pub(crate) fn order(plan: &Plan) -> Vec<u32> {
    let count = u32::try_from(plan.parts.len()).expect("fewer parts than numbers of tasks");
    let links = links(plan);
    if links.iter().all(|(before, after)| before < after) {
        return (0..count).collect();
    }
    let mut waits = vec![0u32; plan.parts.len()];
    let mut followers: HashMap<u32, Vec<u32>> = HashMap::new();
    for (before, after) in links {
        waits[after as usize] += 1;
        followers.entry(before).or_default().push(after);
    }
    let free = (0..count).filter(|&part| waits[part as usize] == 0);
    let mut free: BinaryHeap<Reverse<u32>> = free.map(Reverse).collect();
    let mut order = Vec::with_capacity(plan.parts.len());
    while let Some(Reverse(part)) = free.pop() {
        order.push(part);
        for &follower in followers.get(&part).into_iter().flatten() {
            waits[follower as usize] -= 1;
            if waits[follower as usize] == 0 {
                free.push(Reverse(follower));
            }
        }
    }
    order
}

/// Which part comes before which.
fn links(plan: &Plan) -> Vec<(u32, u32)> {
    let mut named: HashMap<&str, u32> = HashMap::with_capacity(plan.parts.len());
    for (at, part) in plan.parts.iter().enumerate() {
        named.insert(part.name(), at as u32);
    }
    let mut links = Vec::new();
    for (at, part) in plan.parts.iter().enumerate() {
        for after in part.after() {
            if let Some(before) = find(&named, &after.on) {
                links.push((before, at as u32));
            }
        }
    }
    links
}

/// `fit.3` is the part `fit`, if no part is called `fit.3`.
fn find(named: &HashMap<&str, u32>, on: &On) -> Option<u32> {
    let array = || on.name().rsplit_once('.').and_then(|(array, _)| named.get(array));
    named.get(on.name()).or_else(array).copied()
}

#[cfg(test)]
mod tests;
