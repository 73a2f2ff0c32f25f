//! Records in pages of fixed size, found by a 32-bit handle. Pages never move, so growing costs no
//! copy of a million records; a freed place is used again. It does not guard against stale handles:
//! the ledger owns every handle it gives out.

use std::ops::{Index, IndexMut};

/// The handle that points nowhere.
pub(crate) const NONE: u32 = u32::MAX;

const PAGE_BITS: u32 = 10;
const PAGE: usize = 1 << PAGE_BITS;

#[derive(Debug)]
pub(crate) struct Slab<T> {
    pages: Vec<Vec<T>>,
    free: Vec<u32>,
    len: usize,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab { pages: Vec::new(), free: Vec::new(), len: 0 }
    }
}

impl<T> Slab<T> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn insert(&mut self, value: T) -> u32 {
        self.len += 1;
        if let Some(slot) = self.free.pop() {
            self[slot] = value;
            return slot;
        }
        if self.pages.last().is_none_or(|page| page.len() == PAGE) {
            // The first page grows as needed: a small ledger stays small.
            let room = if self.pages.is_empty() { 16 } else { PAGE };
            self.pages.push(Vec::with_capacity(room));
        }
        let page_number = self.pages.len() - 1;
        let page = &mut self.pages[page_number];
        let slot = (page_number << PAGE_BITS | page.len()) as u32;
        page.push(value);
        slot
    }

    /// Leaves `vacant` in the place, which must not own anything worth keeping.
    pub(crate) fn remove(&mut self, slot: u32, vacant: T) -> T {
        self.len -= 1;
        self.free.push(slot);
        std::mem::replace(&mut self[slot], vacant)
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;
    fn index(&self, slot: u32) -> &T {
        &self.pages[(slot >> PAGE_BITS) as usize][slot as usize & (PAGE - 1)]
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, slot: u32) -> &mut T {
        &mut self.pages[(slot >> PAGE_BITS) as usize][slot as usize & (PAGE - 1)]
    }
}
