//! Clocks that jump, while the hub runs and between two of its lives.

use super::Hub;
use crate::rig::{Rig, until};
use std::path::Path;

/// Debian's package `libfaketime`; `./check` installs it.
const FAKETIME: &str = "faketime/libfaketime.so.1";

fn library() -> String {
    let places = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib"];
    let paths = places.map(|place| Path::new(place).join(FAKETIME));
    let found = paths.iter().find(|path| path.exists());
    found.expect("libfaketime is installed").to_str().unwrap().to_owned()
}

/// A hub whose wall clock is what the file `clock` says. The other clock, which counts from the start of the
/// machine, goes on as it does when a person sets the time.
fn start<'r>(rig: &'r Rig, jump: &str) -> Hub<'r> {
    rig.write("clock", format!("{jump}\n"));
    let clock = rig.at("clock").to_str().unwrap().to_owned();
    let variables = [
        ("LD_PRELOAD", &*library()),
        ("FAKETIME_TIMESTAMP_FILE", &clock),
        ("FAKETIME_NO_CACHE", "1"),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
    ];
    Hub::start_in(rig, &[], &variables, &[], CONFIG)
}

/// Every failure counts, and whoever is sent away may come back soon.
const CONFIG: &str = "[conduct]\nrule = \"fixed\"\nresults_min = 3\nejected_ms = 4000\n";

const WAITS: &str = "echo x >> starts; while test -e go; do sleep 0.02; done; echo x >> done";

#[test]
fn a_clock_that_jumps_while_the_hub_runs_takes_no_lease_away() {
    let rig = Rig::new();
    let hub = start(&rig, "+0d");
    let worker = hub.worker("one", &["--lease", "5s"]);
    for (round, jump) in ["+2d", "-2d", "+400d", "+0d"].into_iter().enumerate() {
        rig.write("go", "");
        let job = hub.out(&["submit", "-q", "--", "sh", "-c", WAITS]);
        until("it runs", || rig.lines("starts").len() == round + 1);
        rig.write("clock", format!("{jump}\n"));
        hub.out(&["status"]);
        std::fs::remove_file(rig.at("go")).unwrap();
        hub.laboro(&["wait", &job, "--timeout", "30s"]).expect(0);
    }
    assert_eq!((rig.lines("starts").len(), rig.lines("done").len()), (4, 4));
    worker.signal(rustix::process::Signal::TERM);
    worker.wait().expect(0);
    hub.stop();
}

/// A hub is killed with a task at its worker, and the next one believes it is another day.
fn goes_on_on_another_day(jump: &str) {
    let rig = Rig::new();
    let hub = start(&rig, "+0d");
    rig.write("go", "");
    let job = hub.out(&["submit", "-q", "--array", "1-2", "--", "sh", "-c", WAITS]);
    let worker = hub.worker("one", &["--lease", "5s"]);
    until("it runs", || rig.lines("starts").len() == 1);
    hub.kill();
    let hub = start(&rig, jump);
    std::fs::remove_file(rig.at("go")).unwrap();
    hub.laboro(&["wait", &job, "--timeout", "30s"]).expect(0);
    assert_eq!((rig.lines("starts").len(), rig.lines("done").len()), (2, 2));
    let later = hub.out(&["submit", "-q", "--", "true"]);
    hub.laboro(&["wait", &later, "--timeout", "30s"]).expect(0);
    worker.signal(rustix::process::Signal::TERM);
    worker.wait().expect(0);
    hub.stop();
}

#[test]
fn a_hub_that_starts_again_a_day_later_goes_on() {
    goes_on_on_another_day("+1d");
}

#[test]
fn a_hub_that_starts_again_a_day_earlier_goes_on() {
    goes_on_on_another_day("-1d");
}

/// Until when it is sent away is written down as a time of day, which the next hub may take for days away.
#[test]
fn a_worker_that_was_sent_away_is_let_in_in_time_although_the_clock_was_set_back() {
    let rig = Rig::new();
    let hub = start(&rig, "+0d");
    let bad = hub.out(&["submit", "-q", "--array", "1-3", "--", "false"]);
    let worker = hub.worker("one", &[]);
    hub.laboro(&["wait", &bad, "--timeout", "60s"]).expect(1);
    let standing = |hub: &Hub<'_>| -> String {
        let workers = hub.laboro(&["workers", "--json"]).expect(0).events();
        workers[0]["conduct"]["standing"].as_str().unwrap_or_default().to_owned()
    };
    until("it is sent away", || standing(&hub) == "ejected");
    hub.kill();
    let hub = start(&rig, "-3d");
    until("it is let in again", || standing(&hub) == "good");
    drop(worker);
    let again = hub.worker("one", &[]);
    let good = hub.out(&["submit", "-q", "--", "true"]);
    hub.laboro(&["wait", &good, "--timeout", "60s"]).expect(0);
    again.signal(rustix::process::Signal::TERM);
    again.wait().expect(0);
    hub.stop();
}
