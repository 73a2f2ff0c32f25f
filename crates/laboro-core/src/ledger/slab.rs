//! Records in pages of fixed size, found by a 32-bit handle. Pages never move, so growing costs no
//! copy of a million records; a freed place is used again, and a page without a record is given back. It does
//! not guard against stale handles: the ledger owns every handle it gives out.

use std::collections::BTreeSet;
use std::ops::{Index, IndexMut};

/// The handle that points nowhere.
pub(crate) const NONE: u32 = u32::MAX;

/// Small where mistakes are looked for: tests have few records, and must see pages come and go.
const PAGE_BITS: u32 = if cfg!(debug_assertions) { 3 } else { 10 };
const PAGE: usize = 1 << PAGE_BITS;

#[derive(Debug)]
pub(crate) struct Slab<T> {
    pages: Vec<Page<T>>,
    /// Pages with room. The first is filled first, so that those at the end become empty.
    open: BTreeSet<u32>,
    /// A page without records that is kept, so that one record that comes and goes costs no page each time.
    spare: Option<u32>,
    len: usize,
}

#[derive(Debug)]
struct Page<T> {
    places: Vec<T>,
    /// Places whose record is gone.
    free: Vec<u16>,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab { pages: Vec::new(), open: BTreeSet::new(), spare: None, len: 0 }
    }
}

impl<T> Slab<T> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn insert(&mut self, value: T) -> u32 {
        self.len += 1;
        let number = match self.open.first() {
            Some(&number) => number,
            None => {
                let number = self.pages.len() as u32;
                self.pages.push(Page { places: Vec::new(), free: Vec::new() });
                self.open.insert(number);
                number
            }
        };
        if self.spare == Some(number) {
            self.spare = None;
        }
        let page = &mut self.pages[number as usize];
        let place = match page.free.pop() {
            Some(place) => {
                page.places[usize::from(place)] = value;
                u32::from(place)
            }
            None => {
                if page.places.capacity() == 0 && number > 0 {
                    // The first page grows as needed: a small ledger stays small.
                    page.places.reserve_exact(PAGE);
                }
                page.places.push(value);
                page.places.len() as u32 - 1
            }
        };
        if page.is_full() {
            self.open.remove(&number);
        }
        number << PAGE_BITS | place
    }

    /// Leaves `vacant` in the place, which must not own anything worth keeping and may still be looked at.
    pub(crate) fn remove(&mut self, slot: u32, vacant: T) -> T {
        self.len -= 1;
        let gone = std::mem::replace(&mut self[slot], vacant);
        let (number, place) = (slot >> PAGE_BITS, slot & (PAGE as u32 - 1));
        let page = &mut self.pages[number as usize];
        if page.is_full() {
            self.open.insert(number);
        }
        page.free.push(place as u16);
        gone
    }

    /// The same, and nobody looks at the place any more: with its last record goes the page.
    pub(crate) fn release(&mut self, slot: u32, vacant: T) -> T {
        let gone = self.remove(slot, vacant);
        let number = slot >> PAGE_BITS;
        if self.pages[number as usize].is_vacant() && self.spare != Some(number) {
            // Of two that are empty the first is used sooner.
            let keep = self.spare.map_or(number, |spare| spare.min(number));
            if let Some(drop) = self.spare.replace(keep).map(|spare| spare.max(number)) {
                self.pages[drop as usize] = Page { places: Vec::new(), free: Vec::new() };
            }
        }
        gone
    }
}

impl<T> Page<T> {
    fn is_full(&self) -> bool {
        self.free.is_empty() && self.places.len() == PAGE
    }

    fn is_vacant(&self) -> bool {
        self.free.len() == self.places.len()
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;
    fn index(&self, slot: u32) -> &T {
        &self.pages[(slot >> PAGE_BITS) as usize].places[slot as usize & (PAGE - 1)]
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, slot: u32) -> &mut T {
        &mut self.pages[(slot >> PAGE_BITS) as usize].places[slot as usize & (PAGE - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn what_is_in_it_is_found_whatever_came_and_went(
            steps in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 1..400)
        ) {
            let (mut slab, mut model) = (Slab::default(), BTreeMap::new());
            for (number, (inserts, which)) in steps.into_iter().enumerate() {
                if inserts || model.is_empty() {
                    let slot = slab.insert(number);
                    prop_assert_eq!(model.insert(slot, number), None, "a place has one record");
                } else {
                    let (&slot, &known) = model.iter().nth(which.index(model.len())).unwrap();
                    prop_assert_eq!(slab.release(slot, usize::MAX), known);
                    model.remove(&slot);
                }
                prop_assert_eq!(slab.len(), model.len());
                for (&slot, &known) in &model {
                    prop_assert_eq!(slab[slot], known);
                }
            }
        }
    }

    #[test]
    fn pages_without_records_are_given_back_but_for_one() {
        let mut slab = Slab::default();
        let slots: Vec<u32> = (0..10 * PAGE).map(|number| slab.insert(number)).collect();
        for slot in slots {
            slab.release(slot, 0);
        }
        let kept = slab.pages.iter().filter(|page| page.places.capacity() > 0).count();
        assert_eq!((slab.len(), kept), (0, 1));
        for number in 0..10 * PAGE {
            slab.insert(number);
        }
        assert_eq!(slab.pages.len(), 10, "pages that were given back are used again");
    }
}
