//! Profiles and what they need, each kept once a group and counted, so that a million tasks with the same
//! settings share them and settings that nobody uses any more are forgotten.

use super::slab::{NONE, Slab};
use crate::task::Profile;
use hashbrown::HashMap;
use std::sync::Arc;

#[derive(Debug, Default)]
pub(crate) struct Profiles {
    entries: Slab<Entry>,
    /// For each group, so that none takes the room of another.
    by_content: Vec<HashMap<Arc<Profile>, u32, foldhash::fast::FixedState>>,
}

#[derive(Debug)]
struct Entry {
    profile: Option<Arc<Profile>>,
    group: u32,
    users: u32,
}

impl Profiles {
    /// How many a group uses.
    pub(crate) fn count(&self, group: u32) -> usize {
        self.by_content.get(group as usize).map_or(0, HashMap::len)
    }

    /// Gives the handle for `users` more users.
    pub(crate) fn intern(&mut self, group: u32, profile: &Profile, users: u32) -> u32 {
        if users == 0 {
            return NONE;
        }
        let at = group as usize;
        if at >= self.by_content.len() {
            self.by_content.resize_with(at + 1, HashMap::default);
        }
        if let Some(&slot) = self.by_content[at].get(profile) {
            self.entries[slot].users += users;
            return slot;
        }
        let profile = Arc::new(profile.clone());
        let slot = self.entries.insert(Entry { profile: Some(profile.clone()), group, users });
        self.by_content[at].insert(profile, slot);
        slot
    }

    pub(crate) fn find(&self, group: u32, profile: &Profile) -> Option<u32> {
        self.by_content.get(group as usize)?.get(profile).copied()
    }

    pub(crate) fn retain(&mut self, slot: u32) {
        self.entries[slot].users += 1;
    }

    pub(crate) fn release(&mut self, slot: u32) {
        let entry = &mut self.entries[slot];
        entry.users -= 1;
        if entry.users == 0 {
            let gone = self.entries.remove(slot, Entry { profile: None, group: NONE, users: 0 });
            let known = &mut self.by_content[gone.group as usize];
            known.remove(&gone.profile.expect("a profile in use is there"));
        }
    }

    pub(crate) fn get(&self, slot: u32) -> &Arc<Profile> {
        self.entries[slot].profile.as_ref().expect("a profile in use is there")
    }
}
