//! Workers on other machines, by an `ssh` that stays on this one.

use super::hub::{HubRig, WAITS};
use crate::rig::{Life, until};
use laboro_core::Profile;
use laboro_hub::security::TokenBook;
use rustix::process::Signal;
use std::os::unix::fs::PermissionsExt;

/// Takes the options and the host off, and has a shell run the rest, as sshd would.
pub const SSH: &str = r#"#!/bin/sh
while [ "${1#-}" != "$1" ]; do
    case $1 in -o | -R) shift ;; esac
    shift
done
host=$1
shift
[ "$host" = nowhere ] && { echo "ssh: Could not resolve hostname nowhere" >&2; exit 255; }
[ "$host" = curious ] && { sed /^role/q > shown; exit 0; }
LABORO_TEST_HOST=$host exec sh -c "$*"
"#;

fn path(hub: &HubRig) -> String {
    hub.rig.write("bin/ssh", SSH);
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(hub.rig.at("bin/ssh"), mode).unwrap();
    format!("{}:{}", hub.rig.at("bin").display(), std::env::var("PATH").unwrap())
}

fn front(hub: &HubRig, hosts: &[&str]) -> crate::rig::Live {
    let access = hub.access();
    let mut words = vec!["worker", "--access", &access, "--remote-laboro", crate::rig::LABORO];
    words.extend(hosts.iter().flat_map(|host| ["--ssh", host]));
    words.extend(["--", "-j", "1", "--scratch", "."]);
    hub.rig.laboro(words).env("PATH", &path(hub)).start()
}

#[test]
fn workers_start_on_every_host_and_end_with_the_one_in_front() {
    let hub = HubRig::new();
    let front = front(&hub, &["alpha", "beta"]);
    until("both have joined", || hub.workers().len() == 2);
    let job = hub.submit(20, "echo $LABORO_TEST_HOST; sleep 0.05", Profile::default());
    hub.until_done(job);
    assert!(front.err().contains("alpha: "), "{}", front.err());
    front.signal(Signal::INT);
    let ran = front.wait();
    ran.expect(0).says("alpha: the worker has left").says("beta: the worker has left");
    assert!(hub.workers().is_empty());
}

#[test]
fn a_front_that_is_killed_leaves_no_worker_behind() {
    let hub = HubRig::new();
    let front = front(&hub, &["alpha"]);
    until("it has joined", || hub.workers().len() == 1);
    hub.rig.write("go", "");
    let job = hub.submit(1, WAITS, Profile::default());
    let life = Life::of(&hub.line_of("pids"));
    front.signal(Signal::KILL);
    std::fs::remove_file(hub.rig.at("go")).unwrap();
    hub.until_done(job);
    until("the worker has left", || hub.workers().is_empty());
    assert!(life.is_over());
}

#[test]
fn a_host_that_cannot_be_reached_is_named_and_the_others_work() {
    let hub = HubRig::new();
    let front = front(&hub, &["nowhere", "beta"]);
    until("one has joined", || hub.workers().len() == 1);
    until("the other is named", || {
        front.err().contains("nowhere: the worker ended with status 255")
    });
    front.signal(Signal::TERM);
    front.wait().expect(1).says("nowhere: ssh: Could not resolve hostname");
}

#[test]
fn other_machines_get_a_token_that_may_only_work() {
    let hub = HubRig::new();
    let front = front(&hub, &["curious"]);
    front.wait().expect(0);
    let shown = std::fs::read_to_string(hub.rig.at("shown")).unwrap();
    assert!(shown.contains("role = \"work\""), "{shown}");
    let dir = std::path::PathBuf::from(hub.access());
    let tokens = TokenBook::of(dir.parent().unwrap()).list().unwrap();
    assert!(tokens.iter().all(|token| !token.name.starts_with("ssh-")), "it is taken back");
}
