//! How much memory this program takes at its worst, over all threads.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};

static LIVE: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);

#[global_allocator]
static COUNTING: Counting = Counting;

/// Counts from now on.
pub fn begin() -> isize {
    let live = LIVE.load(Relaxed);
    PEAK.store(live, Relaxed);
    live
}

/// How many bytes more than at the beginning were there at the worst moment.
pub fn peak_since(begin: isize) -> usize {
    usize::try_from(PEAK.load(Relaxed) - begin).unwrap_or(0)
}

struct Counting;

fn note(more: isize) {
    let live = LIVE.fetch_add(more, Relaxed) + more;
    PEAK.fetch_max(live, Relaxed);
}

fn signed(bytes: usize) -> isize {
    isize::try_from(bytes).unwrap_or(isize::MAX)
}

// SAFETY: everything is done by the system's allocator, with the arguments it was given.
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

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // A large block moves without a copy; a small one is there twice for a moment.
        note(signed(bytes) - signed(layout.size()));
        // SAFETY: the caller keeps the promises of `realloc`.
        unsafe { System.realloc(at, layout, bytes) }
    }
}
