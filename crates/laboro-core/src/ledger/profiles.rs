//! Profiles and what they need, each kept once a group and counted, so that a million tasks with the same
//! settings share them and settings that nobody uses any more are forgotten.

use super::handle::ProfileHandle;
use super::slab::Slab;
use crate::id::GroupId;
use crate::task::Profile;
use hashbrown::HashMap;
use std::sync::Arc;

#[derive(Debug, Default)]
pub(crate) struct Profiles {
    entries: Slab<ProfileHandle, Entry>,
    /// For each group, so that none takes the room of another.
    by_content: Vec<HashMap<Arc<Profile>, ProfileHandle, foldhash::fast::FixedState>>,
}

#[derive(Debug)]
struct Entry {
    profile: Option<Arc<Profile>>,
    group: GroupId,
    users: u32,
}

impl Profiles {
    /// How many a group uses.
    pub(crate) fn count(&self, group: GroupId) -> usize {
        self.by_content.get(group.at()).map_or(0, HashMap::len)
    }

    /// Gives the handle for `users` more users.
    pub(crate) fn intern(
        &mut self,
        group: GroupId,
        profile: &Profile,
        users: u32,
    ) -> ProfileHandle {
        if users == 0 {
            return ProfileHandle::NONE;
        }
        let at = group.at();
        if at >= self.by_content.len() {
            self.by_content.resize_with(at + 1, HashMap::default);
        }
        if let Some(&handle) = self.by_content[at].get(profile) {
            self.entries[handle].users += users;
            return handle;
        }
        let profile = Arc::new(profile.clone());
        let handle = self.entries.insert(Entry { profile: Some(profile.clone()), group, users });
        self.by_content[at].insert(profile, handle);
        handle
    }

    pub(crate) fn find(&self, group: GroupId, profile: &Profile) -> Option<ProfileHandle> {
        self.by_content.get(group.at())?.get(profile).copied()
    }

    pub(crate) fn retain(&mut self, handle: ProfileHandle) {
        self.entries[handle].users += 1;
    }

    pub(crate) fn release(&mut self, handle: ProfileHandle) {
        let entry = &mut self.entries[handle];
        entry.users -= 1;
        if entry.users == 0 {
            let gone = self
                .entries
                .remove(handle, Entry { profile: None, group: GroupId::default(), users: 0 });
            let known = &mut self.by_content[gone.group.at()];
            known.remove(&gone.profile.expect("a profile in use is there"));
        }
    }

    pub(crate) fn get(&self, handle: ProfileHandle) -> &Arc<Profile> {
        self.entries[handle].profile.as_ref().expect("a profile in use is there")
    }
}
