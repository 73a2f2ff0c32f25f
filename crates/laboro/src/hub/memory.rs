//! What a hub does so that it holds little memory: small pages from its first moment, and freed memory given back to the
//! system where the allocator would do that only with its next large piece of work. Decides nothing about what is kept.

use crate::allocator;
use std::ffi::OsString;
use std::time::Duration;

/// What the start needed is free by then.
const FIRST: Duration = Duration::from_secs(2);
const EVERY: Duration = Duration::from_secs(60);

/// Before anything is allocated, if the words of the command line start a hub. Memory in pieces of 2 MiB is touched and
/// counted whole, however little of it is used: a million tasks took 15 % more of it, and clearing it more time than it
/// saved. Where it cannot be refused, it only costs that.
pub(crate) fn use_small_pages_in_a_hub(mut words: impl Iterator<Item = OsString>) {
    if words.nth(1).is_some_and(|word| word == "hub") {
        let _ = rustix::thread::disable_transparent_huge_pages(true);
    }
}

/// What only the start ran, and the arguments of a hub are much of this program, is not kept in memory for it: what runs
/// again is found where the system keeps files.
fn give_back_program() {
    for (begin, end) in machine_code() {
        // SAFETY: pages of a file that are only read and run, which nobody writes, are the same when they come back.
        unsafe { madvise(begin as *mut _, end - begin, MADV_DONTNEED) };
    }
}

unsafe extern "C" {
    fn madvise(address: *mut std::ffi::c_void, bytes: usize, advice: i32) -> i32;
}

const MADV_DONTNEED: i32 = 4;

/// Where machine code from files is: mappings that can be run and not written, as the kernel lists them.
fn machine_code() -> Vec<(usize, usize)> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let one = |line: &str| {
        let mut words = line.split_whitespace();
        let (begin, end) = words.next()?.split_once('-')?;
        let is_code = words.next()? == "r-xp" && words.nth(3)?.starts_with('/');
        let number = |text| usize::from_str_radix(text, 16).ok();
        is_code.then_some((number(begin)?, number(end)?))
    };
    maps.lines().filter_map(one).collect()
}

/// For ever.
pub(super) async fn give_back() {
    tokio::time::sleep(FIRST).await;
    give_back_program();
    loop {
        allocator::give_back();
        tokio::time::sleep(EVERY).await;
    }
}
