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

/// For ever.
pub(super) async fn give_back() {
    tokio::time::sleep(FIRST).await;
    loop {
        allocator::give_back();
        tokio::time::sleep(EVERY).await;
    }
}
