//! Records in pages of fixed size, found by a 32-bit handle of a type of their own. Pages never move, so growing costs no
//! copy of a million records; a freed place is used again, and a page without a record is given back. It does
//! not guard against stale handles: the ledger owns every handle it gives out.

use super::handle::Handle;
use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// Small where mistakes are looked for: tests have few records, and must see pages come and go.
const PAGE_BITS: u32 = if cfg!(debug_assertions) { 3 } else { 10 };
const PAGE: usize = 1 << PAGE_BITS;

#[derive(Debug)]
pub(crate) struct Slab<K, T> {
    pages: Vec<SlabPage<T>>,
    /// Pages with room. The first is filled first, so that those at the end become empty.
    open: BTreeSet<u32>,
    /// A page without records that is kept, so that one record that comes and goes costs no page each time.
    spare: Option<u32>,
    len: usize,
    handles: PhantomData<fn() -> K>,
}

#[derive(Debug)]
struct SlabPage<T> {
    places: Vec<T>,
    /// Places whose record is gone.
    free: Vec<u16>,
}

impl<K, T> Default for Slab<K, T> {
    fn default() -> Slab<K, T> {
        let (pages, open) = (Vec::new(), BTreeSet::new());
        Slab { pages, open, spare: None, len: 0, handles: PhantomData }
    }
}

impl<K: Handle, T> Slab<K, T> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn insert(&mut self, value: T) -> K {
        self.len += 1;
        let number = match self.open.first() {
            Some(&number) => number,
            None => {
                let number = self.pages.len() as u32;
                self.pages.push(SlabPage { places: Vec::new(), free: Vec::new() });
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
        K::from_number(number << PAGE_BITS | place)
    }

    /// Leaves `vacant` in the place, which must not own anything worth keeping and may still be looked at.
    pub(crate) fn remove(&mut self, handle: K, vacant: T) -> T {
        self.len -= 1;
        let gone = std::mem::replace(&mut self[handle], vacant);
        let handle = handle.number();
        let (number, place) = (handle >> PAGE_BITS, handle & (PAGE as u32 - 1));
        let page = &mut self.pages[number as usize];
        if page.is_full() {
            self.open.insert(number);
        }
        page.free.push(place as u16);
        gone
    }

    /// The same, and nobody looks at the place any more: with its last record goes the page.
    pub(crate) fn release(&mut self, handle: K, vacant: T) -> T {
        let gone = self.remove(handle, vacant);
        let number = handle.number() >> PAGE_BITS;
        if self.pages[number as usize].is_vacant() && self.spare != Some(number) {
            // Of two that are empty the first is used sooner.
            let keep = self.spare.map_or(number, |spare| spare.min(number));
            if let Some(drop) = self.spare.replace(keep).map(|spare| spare.max(number)) {
                self.pages[drop as usize] = SlabPage { places: Vec::new(), free: Vec::new() };
            }
        }
        gone
    }
}

impl<T> SlabPage<T> {
    fn is_full(&self) -> bool {
        self.free.is_empty() && self.places.len() == PAGE
    }

    fn is_vacant(&self) -> bool {
        self.free.len() == self.places.len()
    }
}

impl<K: Handle, T> Index<K> for Slab<K, T> {
    type Output = T;
    fn index(&self, handle: K) -> &T {
        let handle = handle.number();
        &self.pages[(handle >> PAGE_BITS) as usize].places[handle as usize & (PAGE - 1)]
    }
}

impl<K: Handle, T> IndexMut<K> for Slab<K, T> {
    fn index_mut(&mut self, handle: K) -> &mut T {
        let handle = handle.number();
        &mut self.pages[(handle >> PAGE_BITS) as usize].places[handle as usize & (PAGE - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::super::handle::TaskHandle;
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn what_is_in_it_is_found_whatever_came_and_went(
            steps in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 1..400)
        ) {
            let (mut slab, mut model) = (Slab::<TaskHandle, _>::default(), BTreeMap::new());
            for (number, (inserts, which)) in steps.into_iter().enumerate() {
                if inserts || model.is_empty() {
                    let handle = slab.insert(number);
                    prop_assert_eq!(model.insert(handle, number), None, "a place has one record");
                } else {
                    let (&handle, &known) = model.iter().nth(which.index(model.len())).unwrap();
                    prop_assert_eq!(slab.release(handle, usize::MAX), known);
                    model.remove(&handle);
                }
                prop_assert_eq!(slab.len(), model.len());
                for (&handle, &known) in &model {
                    prop_assert_eq!(slab[handle], known);
                }
            }
        }
    }

    #[test]
    fn pages_without_records_are_given_back_but_for_one() {
        let mut slab = Slab::default();
        let handles: Vec<TaskHandle> = (0..10 * PAGE).map(|number| slab.insert(number)).collect();
        for handle in handles {
            slab.release(handle, 0);
        }
        let kept = slab.pages.iter().filter(|page| page.places.capacity() > 0).count();
        assert_eq!((slab.len(), kept), (0, 1));
        for number in 0..10 * PAGE {
            slab.insert(number);
        }
        assert_eq!(slab.pages.len(), 10, "pages that were given back are used again");
    }
}
