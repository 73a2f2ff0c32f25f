//! One program for all targets: `LABORO_FUZZ_TARGET` says which. What a target is, is in `laboro-fuzz`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static NAME: LazyLock<String> = LazyLock::new(|| {
    std::env::var("LABORO_FUZZ_TARGET").expect("LABORO_FUZZ_TARGET names the target; see fuzz/run")
});

fuzz_target!(|bytes: &[u8]| laboro_fuzz::target(&NAME, bytes));
