//! From a task's number in its job to the handle of its record: small pages, made when the first
//! task in them gets a record and dropped with the last. Most tasks of an array never need one.

use super::slab::NONE;

const PAGE: u32 = 64;

#[derive(Debug, Default)]
pub(crate) struct Pages {
    pages: Vec<Page>,
}

/// The count stands outside: with it inside, an allocator would round each page up.
#[derive(Debug, Default)]
struct Page {
    slots: Option<Box<[u32; PAGE as usize]>>,
    used: u32,
}

impl Pages {
    pub(crate) fn find(&self, index: u32) -> Option<u32> {
        let slots = self.pages.get((index / PAGE) as usize)?.slots.as_ref()?;
        Some(slots[(index % PAGE) as usize]).filter(|&slot| slot != NONE)
    }

    pub(crate) fn put(&mut self, index: u32, slot: u32) {
        let at = (index / PAGE) as usize;
        if at >= self.pages.len() {
            self.pages.resize_with(at + 1, Page::default);
        }
        let page = &mut self.pages[at];
        page.used += 1;
        let slots = page.slots.get_or_insert_with(|| Box::new([NONE; PAGE as usize]));
        debug_assert_eq!(slots[(index % PAGE) as usize], NONE, "a task has one record");
        slots[(index % PAGE) as usize] = slot;
    }

    pub(crate) fn take(&mut self, index: u32) {
        let page = &mut self.pages[(index / PAGE) as usize];
        let slots = page.slots.as_mut().expect("only a record that is there is dropped");
        slots[(index % PAGE) as usize] = NONE;
        page.used -= 1;
        if page.used == 0 {
            page.slots = None;
        }
    }

    /// Numbers and handles of the records inside the range, both ends inclusive.
    pub(crate) fn range(&self, first: u32, last: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let pages = self.pages.iter().enumerate().skip((first / PAGE) as usize);
        pages
            .take_while(move |(at, _)| *at as u32 <= last / PAGE)
            .filter_map(|(at, page)| page.slots.as_ref().map(|slots| (at as u32 * PAGE, **slots)))
            .flat_map(|(base, slots)| (base..).zip(slots))
            .filter(move |&(index, slot)| slot != NONE && (first..=last).contains(&index))
    }
}
