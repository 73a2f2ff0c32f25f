//! What strangers may send, fed to everything that reads bytes. One plain function a target: an ordinary test
//! replays the kept inputs on every run of the tests, and the fuzzer in `fuzz/` calls the same functions with
//! inputs of its own. A target panics when something is wrong; it judges nothing by time.

mod codecs;
mod conversation;
mod files;
mod meter;
mod sessions;
mod steps;
mod workers;

pub use steps::{Deed, Step, write as write_steps};

use meter::Budget;

/// One way into the program.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub name: &'static str,
    run: fn(&[u8]),
    budget: Budget,
}

const fn entry(name: &'static str, run: fn(&[u8]), budget: Budget) -> Target {
    Target { name, run, budget }
}

/// A codec makes views, and little beside them.
const SMALL: Budget = Budget { base: 256 << 10, factor: 32 };
/// An entry of one byte may be a whole task or worker in memory. How many there may be is bounded as well.
const WIDE: Budget = Budget { base: 1 << 20, factor: 1024 };
/// A hub, its sessions and what they hold.
const HUB: Budget = Budget { base: 8 << 20, factor: 2048 };

pub const TARGETS: &[Target] = &[
    entry("zmtp", codecs::zmtp::stream, WIDE),
    entry("curve", codecs::zmtp::curve, SMALL),
    entry("dwork", codecs::dwork::message, SMALL),
    entry("fuq1", codecs::fuq::first, SMALL),
    entry("fuq2-frames", codecs::fuq::frames, SMALL),
    entry("fuq2-bodies", codecs::fuq::bodies, WIDE),
    entry("native", codecs::fuq::native, WIDE),
    entry("runexp", codecs::runexp::words, SMALL),
    entry("rrmq", codecs::rrmq::message, WIDE),
    entry("session-native", sessions::native, HUB),
    entry("session-fuq2", sessions::fuq2, HUB),
    entry("session-fuq1", sessions::fuq1, HUB),
    entry("session-websocket", sessions::websocket, HUB),
    entry("session-dwork", sessions::dwork, HUB),
    entry("session-runexp", sessions::runexp, HUB),
    entry("session-rrmq", sessions::rrmq, HUB),
    entry("worker-native", workers::native, HUB),
    entry("worker-fuq2", workers::fuq2, HUB),
    entry("worker-fuq1", workers::fuq1, HUB),
    entry("worker-websocket", workers::websocket, HUB),
    entry("worker-dwork", workers::dwork, HUB),
    entry("worker-runexp", workers::runexp, HUB),
    entry("job-lines", files::plan::lines, WIDE),
    entry("job-flow", files::plan::flow, HUB),
    entry("job-jsonl", files::plan::jsonl, HUB),
    entry("hub-toml", files::settings::hub, HUB),
    entry("access", files::settings::access, WIDE),
    entry("journal-record", files::journal::record, WIDE),
    entry("journal-log", files::journal::log, HUB),
    entry("journal-snapshot", files::journal::snapshot, HUB),
    entry("outputs", files::outputs::store, HUB),
    entry("kept", files::kept::kept, HUB),
    entry("cron", files::times::cron, SMALL),
    entry("begin", files::times::begin, SMALL),
    entry("api", files::api::bodies, HUB),
];

/// Feeds these bytes to the target of this name. Panics if it does not stand them.
pub fn target(name: &str, bytes: &[u8]) {
    let found = TARGETS.iter().find(|target| target.name == name);
    found.unwrap_or_else(|| panic!("there is no target {name}")).run(bytes);
}

impl Target {
    /// Panics if the reader does not stand these bytes, or takes more memory for them than it should.
    pub fn run(&self, bytes: &[u8]) {
        let peak = meter::peak(|| (self.run)(bytes));
        let most = self.budget.of(bytes.len());
        assert!(
            peak <= most,
            "{}: {peak} bytes of memory for {} of input; {most} is the most",
            self.name,
            bytes.len(),
        );
    }
}
