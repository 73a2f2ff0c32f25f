//! What tasks ask for beside slots: memory, tags, items whole and in part, other ways to run, and time. There is always
//! a worker that has as much, or comes to have it (`Room::FULL`), for one of the ways.

use crate::dice::Dice;
use laboro_core::{Amount, Name, Needs, Profile, Request};

pub(super) fn more(profile: &mut Profile, dice: &mut Dice) {
    let slots = profile.needs.slots;
    if dice.one_in(2) {
        profile.needs = Needs { slots, ..needs(dice) };
    }
    for _ in 0..[0, 0, 1, 1, 2][dice.index(5)] {
        profile.needs.variants.push(needs(dice));
    }
    if !profile.needs.variants.is_empty() && dice.one_in(4) {
        // Nobody has as many: only another way leads anywhere.
        profile.needs.resources = vec![("gpu".into(), Request::whole(64))];
    }
    profile.time_limit_ms = dice.one_in(3).then(|| dice.between(500, 30_000));
    profile.time_request_ms = dice.one_in(4).then(|| dice.between(100, 10_000));
}

/// Whole workers, no more slots in all than any owner may have.
pub(super) fn workers(nodes_max: u32, dice: &mut Dice) -> Needs {
    let memory = if dice.one_in(4) { dice.between(1, 1 << 30) } else { 0 };
    Needs { slots: 1, memory, nodes: dice.small(1, nodes_max), ..Needs::default() }
}

/// One way to run.
fn needs(dice: &mut Dice) -> Needs {
    let mut resources: Vec<(Name, Request)> = Vec::new();
    if dice.percent(60) {
        resources.push(("gpu".into(), gpus(dice)));
    }
    if dice.one_in(4) {
        resources.push(("licences".into(), licences(dice)));
    }
    Needs {
        slots: dice.small(1, 2),
        memory: if dice.one_in(3) { dice.between(1, 1 << 30) } else { 0 },
        resources,
        tags: if dice.one_in(6) { vec!["fast".into()] } else { Vec::new() },
        ..Needs::default()
    }
}

fn gpus(dice: &mut Dice) -> Request {
    let parts = [10_000, 20_000, 40_000, 5_000, 3_000, 3_333, 1, 9_999, 12_500, 0];
    match parts[dice.index(parts.len())] {
        0 => Request::All,
        parts => Request::Some(Amount::of_parts(parts)),
    }
}

fn licences(dice: &mut Dice) -> Request {
    match dice.below(5) {
        0 => Request::All,
        1 => Request::Some(Amount::of_parts(dice.between(1, 200 * Amount::PARTS))),
        _ => Request::whole(dice.between(1, 200)),
    }
}
