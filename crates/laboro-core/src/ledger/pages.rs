//! From a task's number in its job to the handle of its record: small pages, made when the first
//! task in them gets a record and dropped with the last. Most tasks of an array never need one.

use super::slab::NONE;

const PAGE: u32 = 64;

#[derive(Debug, Default)]
pub(crate) struct Pages {
    pages: Vec<Option<Box<Page>>>,
}

#[derive(Debug)]
struct Page {
    slots: [u32; PAGE as usize],
    used: u32,
}

impl Pages {
    pub(crate) fn find(&self, index: u32) -> Option<u32> {
        let page = self.pages.get((index / PAGE) as usize)?.as_ref()?;
        Some(page.slots[(index % PAGE) as usize]).filter(|&slot| slot != NONE)
    }

    pub(crate) fn put(&mut self, index: u32, slot: u32) {
        let at = (index / PAGE) as usize;
        if at >= self.pages.len() {
            self.pages.resize_with(at + 1, || None);
        }
        let page = self.pages[at]
            .get_or_insert_with(|| Box::new(Page { slots: [NONE; PAGE as usize], used: 0 }));
        debug_assert_eq!(page.slots[(index % PAGE) as usize], NONE, "a task has one record");
        page.slots[(index % PAGE) as usize] = slot;
        page.used += 1;
    }

    pub(crate) fn take(&mut self, index: u32) {
        let entry = &mut self.pages[(index / PAGE) as usize];
        let page = entry.as_mut().expect("only a record that is there is dropped");
        page.slots[(index % PAGE) as usize] = NONE;
        page.used -= 1;
        if page.used == 0 {
            *entry = None;
        }
    }

    /// Numbers and handles of the records inside the range, both ends inclusive.
    pub(crate) fn range(&self, first: u32, last: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let pages = self.pages.iter().enumerate().skip((first / PAGE) as usize);
        pages
            .take_while(move |(at, _)| *at as u32 <= last / PAGE)
            .filter_map(|(at, page)| page.as_ref().map(|page| (at as u32 * PAGE, page)))
            .flat_map(|(base, page)| (base..).zip(page.slots))
            .filter(move |&(index, slot)| slot != NONE && (first..=last).contains(&index))
    }
}
