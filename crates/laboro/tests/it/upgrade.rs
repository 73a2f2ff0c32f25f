//! Two versions of the program beside each other: a directory that the older one wrote, workers of one with a hub of the
//! other, and the way back. The older program is that of `LABORO_OLDER`, which `./check --full` builds from an older commit.

use crate::rig::{Call, LABORO, Rig, not_tried, until};
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::Command;

fn older() -> Option<PathBuf> {
    let older = std::env::var_os("LABORO_OLDER").map(PathBuf::from);
    if older.is_none() {
        not_tried("LABORO_OLDER names no older program");
    }
    older
}

/// A call of the older program in the rig's directory.
fn call(rig: &Rig, program: &Path, words: &[&str]) -> Call {
    let mut command = Command::new(program);
    command.args(words);
    rig.call(command)
}

const HUB: [&str; 4] = ["hub", "--dir=hub", "--http=127.0.0.1:0", "--native=127.0.0.1:0"];

/// A flow by a hub and a worker of these versions; the hub's directory stays.
fn runs(rig: &Rig, hub: &Path, worker: &Path) {
    rig.write(
        "flow.toml",
        "[job]\nname = \"both\"\n[[task]]\nname = \"a\"\nforeach = [\"1\", \"2\", \"3\"]\ncommand = \"echo {} > out-{}\"\n\
         [[task]]\nname = \"b\"\nafter = [\"a\"]\numask = \"077\"\ncommand = \"cat out-*\"\n",
    );
    let hub = call(rig, hub, &HUB).start();
    until("the hub listens", || hub.out().contains("native on"));
    let live = call(rig, worker, &["worker", "hub", "-j2"]).start();
    let ran = rig.laboro(["submit", "--dir=hub", "--wait", "-k", "flow.toml"]).run();
    assert!(ran.expect(0).out().contains("1\n2\n3"), "{}", ran.out());
    for live in [live, hub] {
        live.signal(Signal::TERM);
        live.wait();
    }
}

#[test]
fn workers_and_hubs_one_version_apart_work_together() {
    let Some(older) = older() else { return };
    let newer = PathBuf::from(LABORO);
    for (hub, worker) in [(&older, &newer), (&newer, &older)] {
        runs(&Rig::new(), hub, worker);
    }
}

#[test]
fn a_newer_hub_goes_on_with_an_older_directory() {
    let Some(older) = older() else { return };
    let rig = Rig::new();
    runs(&rig, &older, &older);
    let hub = rig.laboro(HUB).start();
    until("the hub listens", || hub.out().contains("native on"));
    let jobs = rig.laboro(["jobs", "--dir=hub"]).run();
    assert!(jobs.expect(0).out().contains("both"), "{}", jobs.out());
    hub.signal(Signal::TERM);
    hub.wait().expect(0);
    // Whatever the answer is, the older program agrees with it.
    let asked = rig.laboro(["journal", "downgrade-check", "hub", older.to_str().unwrap()]).run();
    let back = call(&rig, &older, &["journal", "check", "hub/journal"]).run();
    let is_open = asked.out().contains("the way back is open");
    assert_eq!(is_open, back.out().contains("nothing is wrong with it"), "{}", asked.out());
    asked.expect(if is_open { 0 } else { 3 });
}

#[test]
fn the_way_back_is_what_the_older_program_says() {
    let rig = Rig::new();
    runs(&rig, Path::new(LABORO), Path::new(LABORO));
    assert_eq!(rig.read("hub/version").trim(), env!("CARGO_PKG_VERSION"));
    let check = |older: &str, more: &[&str], code: i32, says: &str| {
        let words = ["journal", "downgrade-check", "hub", older];
        let ran = rig.laboro(words.iter().chain(more)).run();
        let told = ran.expect(code).out() + &ran.err();
        assert!(told.contains(says), "{says} is not in {told}");
    };
    check(LABORO, &[], 0, "the way back is open: laboro ");
    rig.write("hub.toml", "[no_such_table]\nx = 1\n");
    check(LABORO, &["--config=hub.toml"], 3, "there is no way back");
    check("/no/such/program", &[], 3, "cannot be run");

    // An older program that says what it does not know, and one that takes the journal for another.
    let answers = [
        ("echo 'record 7: event 99 is not known' >&2; exit 3", "event 99 is not known"),
        (
            r#"echo '{"problem":null,"last_number":1,"events":1,"jobs":0,"workers":0}'"#,
            "it finds 1 as",
        ),
    ];
    for (answer, words) in answers {
        let script =
            format!("#!/bin/sh\n[ \"$1\" = --version ] && echo laboro 0.0.9 && exit\n{answer}\n");
        rig.write("older", script);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(rig.at("older"), mode).unwrap();
        check("./older", &[], 3, "there is no way back to laboro 0.0.9");
        check("./older", &[], 3, words);
    }

    // Another version is told of in the log.
    rig.write("hub/version", "0.0.9\n");
    let hub = rig.laboro(HUB).start();
    until("it says so", || hub.err().contains("event=\"hub_upgraded\" from=\"0.0.9\""));
    hub.signal(Signal::TERM);
    hub.wait().expect(0);
}
