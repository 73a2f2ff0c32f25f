//! How much memory a target takes at its worst. The allocator of every program that this crate is linked into
//! counts for the thread that allocates; what other threads take is not seen.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// What may be allocated at once, beside what was there before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub(crate) base: usize,
    /// Times the bytes of the input.
    pub(crate) factor: usize,
}

impl Budget {
    pub(crate) fn of(self, input: usize) -> usize {
        self.base + self.factor * input
    }
}

/// How many bytes more than before were allocated at the worst moment.
pub(crate) fn peak(work: impl FnOnce()) -> usize {
    let before = LIVE.get();
    PEAK.set(before);
    work();
    usize::try_from(PEAK.get() - before).unwrap_or(0)
}

thread_local! {
    // Freed elsewhere than it was allocated makes it negative, which is why it may be.
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

fn note(more: isize) {
    let live = LIVE.get() + more;
    LIVE.set(live);
    PEAK.set(PEAK.get().max(live));
}

fn signed(bytes: usize) -> isize {
    isize::try_from(bytes).unwrap_or(isize::MAX)
}

// SAFETY: everything is done by the system's allocator, with the arguments it was given; counting touches
// only cells that need no initialisation.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(signed(layout.size()));
        // SAFETY: the caller keeps the promises of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        note(-signed(layout.size()));
        // SAFETY: the caller keeps the promises of `dealloc`.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(signed(layout.size()));
        // SAFETY: the caller keeps the promises of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        note(signed(bytes) - signed(layout.size()));
        // SAFETY: the caller keeps the promises of `realloc`.
        unsafe { System.realloc(at, layout, bytes) }
    }
}
