//! Profiles and what they need, each kept once and counted, so that a million tasks with the same
//! settings share them and settings that nobody uses any more are forgotten.

use super::slab::{NONE, Slab};
use crate::task::Profile;
use hashbrown::HashMap;
use std::sync::Arc;

#[derive(Debug, Default)]
pub(crate) struct Profiles {
    entries: Slab<Entry>,
    by_content: HashMap<Arc<Profile>, u32, foldhash::fast::FixedState>,
}

#[derive(Debug)]
struct Entry {
    profile: Option<Arc<Profile>>,
    users: u32,
}

impl Profiles {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Gives the handle for `users` more users.
    pub(crate) fn intern(&mut self, profile: &Profile, users: u32) -> u32 {
        if users == 0 {
            return NONE;
        }
        if let Some(&slot) = self.by_content.get(profile) {
            self.entries[slot].users += users;
            return slot;
        }
        let profile = Arc::new(profile.clone());
        let slot = self.entries.insert(Entry { profile: Some(profile.clone()), users });
        self.by_content.insert(profile, slot);
        slot
    }

    pub(crate) fn find(&self, profile: &Profile) -> Option<u32> {
        self.by_content.get(profile).copied()
    }

    pub(crate) fn retain(&mut self, slot: u32) {
        self.entries[slot].users += 1;
    }

    pub(crate) fn release(&mut self, slot: u32) {
        let entry = &mut self.entries[slot];
        entry.users -= 1;
        if entry.users == 0 {
            let gone = self.entries.remove(slot, Entry { profile: None, users: 0 });
            self.by_content.remove(&gone.profile.expect("a profile in use is there"));
        }
    }

    pub(crate) fn get(&self, slot: u32) -> &Arc<Profile> {
        self.entries[slot].profile.as_ref().expect("a profile in use is there")
    }
}
