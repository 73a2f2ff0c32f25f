//! From a name in a group to the record that has it. Names come from peers: the hash is seeded from the
//! journal, so that nobody can choose names that collide.

use super::record::Record;
use super::slab::Slab;
use crate::id::Name;
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::hash::{BuildHasher, Hasher};

#[derive(Debug, Default)]
pub(crate) struct Names {
    table: HashTable<u32>,
    hasher: FixedState,
}

impl Names {
    /// Only before the first name.
    pub(crate) fn seed(&mut self, seed: u64) {
        debug_assert!(self.table.is_empty(), "the seed is set once");
        self.hasher = FixedState::with_seed(seed);
    }

    pub(crate) fn hash(&self, group: u32, name: &Name) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write_u32(group);
        hasher.write(name.bytes());
        hasher.finish()
    }

    /// `group_of` tells the group of a record's job.
    pub(crate) fn find(
        &self,
        tasks: &Slab<Record>,
        group_of: impl Fn(&Record) -> u32,
        group: u32,
        name: &Name,
    ) -> Option<u32> {
        let same = |&slot: &u32| {
            let record = &tasks[slot];
            record.name == *name && group_of(record) == group
        };
        self.table.find(self.hash(group, name), same).copied()
    }

    pub(crate) fn insert(
        &mut self,
        tasks: &Slab<Record>,
        group_of: impl Fn(&Record) -> u32,
        group: u32,
        slot: u32,
    ) {
        let hash = self.hash(group, &tasks[slot].name);
        let hasher = &self.hasher;
        self.table.insert_unique(hash, slot, |&other| {
            let record = &tasks[other];
            let mut hasher = hasher.build_hasher();
            hasher.write_u32(group_of(record));
            hasher.write(record.name.bytes());
            hasher.finish()
        });
    }

    pub(crate) fn remove(&mut self, group: u32, name: &Name, slot: u32) {
        let hash = self.hash(group, name);
        if let Ok(entry) = self.table.find_entry(hash, |&other| other == slot) {
            entry.remove();
        }
    }
}
