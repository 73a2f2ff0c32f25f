//! What is known of pools as documents of the journal: one for each pool, one for each allocation, and one for the numbers. Only
//! what changed is written.

use crate::documents::{DocumentError, Opening, set};
use laboro_core::DocumentChange;
use laboro_pool::{Allocation, Pool, State};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

const POOL: &str = "pool";
/// Named POOL/NUMBER.
const ALLOCATION: &str = "allocation";
const NUMBERS: &str = "pools";
const NUMBERS_NAME: &str = "numbers";

#[derive(Default, PartialEq, Serialize, Deserialize)]
struct Numbers {
    /// The number of the last allocation.
    last_number: u64,
    /// The names of pools in the order in which they were made.
    order: Vec<String>,
}

/// What the journal holds, and what the file of an earlier version holds beside that.
pub(super) fn open(opening: &mut Opening<'_>, file: &Path) -> Result<State, DocumentError> {
    let numbers: Vec<(String, Numbers)> = opening.read(NUMBERS)?;
    let numbers = numbers.into_iter().next().map_or_else(Numbers::default, |(_, numbers)| numbers);
    let pools: Vec<(String, Pool)> = opening.read(POOL)?;
    let mut pools: Vec<Pool> = pools.into_iter().map(|(_, pool)| pool).collect();
    let place = |pool: &Pool| numbers.order.iter().position(|name| *name == pool.spec.name);
    pools.sort_by_key(|pool| place(pool).unwrap_or(usize::MAX));
    let mut state = State { last_number: numbers.last_number, pools, ..State::default() };
    let allocations: Vec<(String, Allocation)> = opening.read(ALLOCATION)?;
    for (name, allocation) in allocations {
        let pool = name.rsplit_once('/').and_then(|(pool, _)| state.find_mut(pool));
        if let Some(pool) = pool {
            pool.allocations.push(allocation);
        }
    }
    state.pools.iter_mut().for_each(|pool| pool.allocations.sort_by_key(|one| one.number));
    if let Some(old) = State::read(file)? {
        let before = state.clone();
        state.last_number = state.last_number.max(old.last_number);
        for pool in old.pools {
            if state.find(&pool.spec.name).is_none() {
                state.pools.push(pool);
            }
        }
        opening.write(changes(&before, &state));
        opening.replaces(file);
    }
    Ok(state)
}

/// What makes one of the other.
pub(super) fn changes(before: &State, after: &State) -> Vec<DocumentChange> {
    let mut all = Vec::new();
    if numbers(before) != numbers(after) {
        all.push(set(NUMBERS, NUMBERS_NAME, &numbers(after)));
    }
    for pool in &after.pools {
        let known = before.find(&pool.spec.name);
        let alone = alone(pool);
        if known.is_none_or(|known| self::alone(known) != alone) {
            all.push(set(POOL, &pool.spec.name, &alone));
        }
        let known = known.map(allocations).unwrap_or_default();
        let new = allocations(pool);
        let changed = new.iter().filter(|(number, one)| known.get(number) != Some(one));
        all.extend(changed.map(|(number, one)| set(ALLOCATION, &name(pool, *number), one)));
        let gone = known.keys().filter(|number| !new.contains_key(number));
        all.extend(gone.map(|number| DocumentChange::remove(ALLOCATION, &name(pool, *number))));
    }
    for pool in before.pools.iter().filter(|pool| after.find(&pool.spec.name).is_none()) {
        all.push(DocumentChange::remove(POOL, &pool.spec.name));
        let gone = pool.allocations.iter().map(|one| name(pool, one.number));
        all.extend(gone.map(|name| DocumentChange::remove(ALLOCATION, &name)));
    }
    all
}

fn numbers(state: &State) -> Numbers {
    let order = state.pools.iter().map(|pool| pool.spec.name.clone()).collect();
    Numbers { last_number: state.last_number, order }
}

/// Without its allocations.
fn alone(pool: &Pool) -> Pool {
    Pool { allocations: Vec::new(), ..pool.clone() }
}

fn allocations(pool: &Pool) -> BTreeMap<u64, &Allocation> {
    pool.allocations.iter().map(|one| (one.number, one)).collect()
}

fn name(pool: &Pool, number: u64) -> String {
    format!("{}/{number}", pool.spec.name)
}
