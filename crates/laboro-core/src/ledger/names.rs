//! From a name in a job, or in a group, to the record that has it. Names come from peers: the hash is seeded from the
//! journal, so that nobody can choose names that collide.

use super::handle::{JobHandle, TaskHandle};
use super::record::Record;
use super::slab::Slab;
use crate::id::{GroupId, Name};
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::hash::{BuildHasher, Hasher};

#[derive(Debug, Default)]
pub(crate) struct Names {
    /// Half of the hash stands beside the handle, so that neither growing the table nor passing a
    /// wrong entry touches the records, which are scattered over memory.
    table: HashTable<(u32, TaskHandle)>,
    hasher: FixedState,
}

/// Where a name means one task: a job that has names of its own, or all other jobs of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameScope {
    Group(GroupId),
    Job(JobHandle),
}

impl Names {
    /// Only before the first name.
    pub(crate) fn seed(&mut self, seed: u64) {
        debug_assert!(self.table.is_empty(), "the seed is set once");
        self.hasher = FixedState::with_seed(seed);
    }

    pub(crate) fn hash(&self, scope: NameScope, name: &Name) -> u64 {
        spread(self.short_hash(scope, name))
    }

    fn short_hash(&self, scope: NameScope, name: &Name) -> u32 {
        let mut hasher = self.hasher.build_hasher();
        match scope {
            NameScope::Group(group) => hasher.write_u32(group.0),
            NameScope::Job(job) => hasher.write_u64(1 << 32 | job.at() as u64),
        }
        hasher.write(name.bytes());
        (hasher.finish() >> 32) as u32
    }

    /// `scope_of` tells that of a record's job.
    pub(crate) fn find(
        &self,
        tasks: &Slab<TaskHandle, Record>,
        scope_of: impl Fn(&Record) -> NameScope,
        scope: NameScope,
        name: &Name,
    ) -> Option<TaskHandle> {
        let short = self.short_hash(scope, name);
        let same = |&(hash, handle): &(u32, TaskHandle)| {
            hash == short && {
                let record = &tasks[handle];
                record.name == *name && scope_of(record) == scope
            }
        };
        self.table.find(spread(short), same).map(|&(_, handle)| handle)
    }

    pub(crate) fn insert(
        &mut self,
        tasks: &Slab<TaskHandle, Record>,
        scope: NameScope,
        handle: TaskHandle,
    ) {
        let short = self.short_hash(scope, &tasks[handle].name);
        self.table.insert_unique(spread(short), (short, handle), |&(hash, _)| spread(hash));
    }

    pub(crate) fn remove(&mut self, scope: NameScope, name: &Name, handle: TaskHandle) {
        let short = self.short_hash(scope, name);
        if let Ok(entry) = self.table.find_entry(spread(short), |&(_, other)| other == handle) {
            entry.remove();
        }
    }
}

/// The table wants its bits at both ends.
fn spread(short: u32) -> u64 {
    u64::from(short).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
