//! From a task's number in its job to the handle of its record: small pages, made when the first
//! task in them gets a record and dropped with the last. Most tasks of an array never need one.

use super::handle::TaskHandle;

const PAGE: u32 = 64;

#[derive(Debug, Default)]
pub(crate) struct Pages {
    pages: Vec<NumberPage>,
}

/// The count stands outside: with it inside, an allocator would round each page up.
#[derive(Debug, Default)]
struct NumberPage {
    handles: Option<Box<[TaskHandle; PAGE as usize]>>,
    used: u32,
}

impl Pages {
    pub(crate) fn find(&self, index: u32) -> Option<TaskHandle> {
        let handles = self.pages.get((index / PAGE) as usize)?.handles.as_ref()?;
        Some(handles[(index % PAGE) as usize]).filter(|&handle| handle != TaskHandle::NONE)
    }

    pub(crate) fn put(&mut self, index: u32, handle: TaskHandle) {
        let at = (index / PAGE) as usize;
        if at >= self.pages.len() {
            self.pages.resize_with(at + 1, NumberPage::default);
        }
        let page = &mut self.pages[at];
        page.used += 1;
        let handles =
            page.handles.get_or_insert_with(|| Box::new([TaskHandle::NONE; PAGE as usize]));
        debug_assert_eq!(
            handles[(index % PAGE) as usize],
            TaskHandle::NONE,
            "a task has one record"
        );
        handles[(index % PAGE) as usize] = handle;
    }

    pub(crate) fn remove(&mut self, index: u32) {
        let page = &mut self.pages[(index / PAGE) as usize];
        let handles = page.handles.as_mut().expect("only a record that is there is dropped");
        handles[(index % PAGE) as usize] = TaskHandle::NONE;
        page.used -= 1;
        if page.used == 0 {
            page.handles = None;
        }
    }

    /// Numbers and handles of the records inside the range, both ends inclusive.
    pub(crate) fn range(
        &self,
        first: u32,
        last: u32,
    ) -> impl Iterator<Item = (u32, TaskHandle)> + '_ {
        let pages = self.pages.iter().enumerate().skip((first / PAGE) as usize);
        pages
            .take_while(move |(at, _)| *at as u32 <= last / PAGE)
            .filter_map(|(at, page)| {
                page.handles.as_ref().map(|handles| (at as u32 * PAGE, **handles))
            })
            .flat_map(|(base, handles)| (base..).zip(handles))
            .filter(move |&(index, handle)| {
                handle != TaskHandle::NONE && (first..=last).contains(&index)
            })
    }
}
