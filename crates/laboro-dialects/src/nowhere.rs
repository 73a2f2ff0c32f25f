//! For tests: nobody waits for what a hub decides to be safe.

use laboro_core::{Archive, Batch, Effect};

struct Nowhere;

impl Archive for Nowhere {}

pub(crate) fn release(batch: Batch) -> Vec<Effect> {
    batch.release(Nowhere.receipt())
}
