//! What the OpenAPI document promises, tried with other people's programs: a validator, a generated client, random
//! requests.

use crate::rig::{Live, Rig, python, until};
use rustix::process::Signal;
use std::path::PathBuf;
use std::process::Command;

fn holds(case: &str) {
    let rig = Rig::new();
    let hub =
        rig.laboro(["hub", "--dir=hub", "--http=127.0.0.1:0", "--native=127.0.0.1:0"]).start();
    until("the hub listens", || hub.out().contains("native on"));
    let worker = rig.laboro(["worker", "hub", "--no-op", "-j2"]).start();
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/contract.py");
    let mut command = Command::new(python());
    command.arg(script).arg(case).arg("hub/access.toml");
    let ran = rig.call(command).run();
    ran.expect(0);
    assert!(ran.out().ends_with("good\n"), "{}", ran.out());
    let end = |live: Live| {
        live.signal(Signal::TERM);
        live.wait()
    };
    end(worker);
    end(hub);
}

#[test]
fn the_document_is_valid_and_says_what_every_answer_is() {
    holds("document");
}

#[test]
fn a_generated_client_submits_a_job() {
    holds("client");
}

#[test]
fn random_requests_are_answered_as_the_document_says() {
    holds("requests");
}
