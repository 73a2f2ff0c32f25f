//! A sorted set of which mostly the first element is wanted, and which mostly has one: that one stands beside the tree,
//! so that a set of one costs no memory and no search.

use std::collections::BTreeSet;

#[derive(Debug)]
pub(in crate::ledger) struct Front<T> {
    /// Smaller than all others.
    first: Option<T>,
    rest: BTreeSet<T>,
}

impl<T> Default for Front<T> {
    fn default() -> Front<T> {
        Front { first: None, rest: BTreeSet::new() }
    }
}

impl<T: Ord> Front<T> {
    pub(in crate::ledger) fn first(&self) -> Option<&T> {
        self.first.as_ref()
    }

    pub(in crate::ledger) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(in crate::ledger) fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(&self.rest)
    }

    pub(in crate::ledger) fn insert(&mut self, item: T) {
        match &mut self.first {
            None => self.first = Some(item),
            Some(first) if item < *first => {
                self.rest.insert(std::mem::replace(first, item));
            }
            Some(_) => {
                self.rest.insert(item);
            }
        }
    }

    pub(in crate::ledger) fn remove(&mut self, item: &T) {
        if self.first.as_ref() == Some(item) {
            self.first = self.rest.pop_first();
        } else {
            self.rest.remove(item);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_a_sorted_set(steps in prop::collection::vec((any::<bool>(), 0u8..12), 1..60)) {
            let (mut front, mut model) = (Front::default(), BTreeSet::new());
            for (inserts, item) in steps {
                if inserts && model.insert(item) {
                    front.insert(item);
                } else if !inserts {
                    model.remove(&item);
                    front.remove(&item);
                }
                prop_assert!(front.iter().eq(model.iter()));
                prop_assert_eq!((front.first(), front.is_empty()), (model.first(), model.is_empty()));
            }
        }
    }
}
