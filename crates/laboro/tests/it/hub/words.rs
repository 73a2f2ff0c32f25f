//! What is said when something is wrong, and with which exit status.

use super::place::Place;
use crate::rig::Rig;

#[test]
fn without_a_hub_every_command_says_what_to_type() {
    let rig = Rig::new();
    let home = rig.dir().to_str().unwrap().to_owned();
    for words in [&["status"][..], &["jobs"], &["submit", "--", "true"], &["logs", "--hub", "1"]] {
        let ran =
            rig.laboro(words.iter().copied()).env("HOME", &home).env("XDG_STATE_HOME", "").run();
        ran.expect(3).says("no hub was found").says("laboro hub").says("--access FILE");
        assert!(ran.err().contains(".local/state/laboro/hub/access.toml"), "{}", ran.err());
    }
}

#[test]
fn a_hub_that_is_gone_is_trouble_and_not_a_refusal() {
    let place = Place::new();
    let access = place.rig.read("hub/access.toml");
    drop(place);
    let rig = Rig::new();
    rig.write("access.toml", access);
    rig.laboro(["jobs", "--access", "access.toml"]).run().expect(3).says("no hub at 127.0.0.1:");
}

#[test]
fn another_hub_behind_the_address_is_not_trusted() {
    let (one, other) = (Place::new(), Place::new());
    let address = |place: &Place| {
        let access = place.rig.read("hub/access.toml");
        let line = access.lines().find(|line| line.starts_with("http = ")).unwrap().to_owned();
        (access, line)
    };
    let ((access, here), (_, there)) = (address(&one), address(&other));
    one.rig.write("hub/access.toml", access.replace(&here, &there));
    let ran = one.run(&["jobs"]);
    ran.expect(3).says("is not the hub of the access file");
    assert!(!ran.err().contains("Start one"), "somebody is there: {}", ran.err());
}

#[test]
fn what_is_not_there_is_refused_by_its_name() {
    let place = Place::new();
    place.run(&["show"]).expect(4).says("you have no jobs at the hub");
    place.run(&["show", "7"]).expect(4).says("there is no job 7");
    place.run(&["cancel", "night"]).expect(4).says("there is no job and no task night");
    place.run(&["explain", "fit.3"]).expect(4).says("there is no task fit.3 in group default");
    place.out(&["submit", "--", "true"]);
    place.run(&["explain", "1/2"]).expect(4).says("1/2");
    place.run(&["show", "1/2"]).expect(4).says("1/2");
    place.run(&["tasks", "--group", "x"]).expect(2);
}

#[test]
fn a_wrong_token_is_refused() {
    let place = Place::new();
    let access = place.rig.read("hub/access.toml");
    let token = access.lines().find(|line| line.starts_with("token = ")).unwrap();
    let wrong = format!("token = \"laboro_00000000_{}\"", "0".repeat(64));
    place.rig.write("hub/access.toml", access.replace(token, &wrong));
    place.run(&["jobs"]).expect(4).says("no such token");
}

#[test]
fn a_word_that_means_nothing_is_wrong_usage() {
    let place = Place::new();
    place.run(&["cancel", "0"]).expect(2).says("a job's number is between");
    place.run(&["cancel", "1/9-3"]).expect(2).says("the last number is below the first");
    place.run(&["submit"]).expect(2).says("laboro submit -- echo");
    place.run(&["submit", "--max-running", "0", "--", "true"]).expect(2);
    place.run(&["wait", "--timeout", "soon"]).expect(2).says("--timeout");
}
