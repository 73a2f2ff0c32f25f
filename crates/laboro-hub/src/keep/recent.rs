//! The leases whose attempts printed something and ended a moment ago. A worker that lost its link between a
//! result and the answer says both again, output first: this is how it is known for what it is.

use laboro_core::LeaseNo;
use std::collections::{HashSet, VecDeque};

/// More than all workers of a large hub have under way without an answer.
const RECENT_MAX: usize = 1 << 16;

#[derive(Debug, Default)]
pub(super) struct Recent {
    leases: HashSet<LeaseNo>,
    order: VecDeque<LeaseNo>,
}

impl Recent {
    pub(super) fn add(&mut self, lease: LeaseNo) {
        if !self.leases.insert(lease) {
            return;
        }
        self.order.push_back(lease);
        if self.order.len() > RECENT_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.leases.remove(&oldest);
        }
    }

    pub(super) fn has(&self, lease: LeaseNo) -> bool {
        self.leases.contains(&lease)
    }
}
