//! What the OpenAPI document promises, tried with other people's programs: a validator, a generated client, random
//! requests.

use crate::rig::{Live, Rig, node_modules, not_tried, python, until};
use rustix::process::Signal;
use std::path::PathBuf;
use std::process::Command;

fn holds(case: &str) {
    let rig = Rig::new();
    let hub =
        rig.laboro(["hub", "--dir=hub", "--http=127.0.0.1:0", "--native=127.0.0.1:0"]).start();
    until("the hub listens", || hub.out().contains("native on"));
    let worker = rig.laboro(["worker", "hub", "--no-op", "-j2"]).start();
    for role in ["submit", "watch", "work"] {
        let access = rig.laboro(["access", "--dir=hub", "--role", role]).run();
        rig.write(&format!("{role}.toml"), access.expect(0).out());
    }
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/contract.py");
    let mut command = Command::new(python());
    command.arg(script).arg(case).arg("hub/access.toml");
    let mut call = rig.call(command);
    if let Some(modules) = node_modules() {
        call = call.env("LABORO_NODE_MODULES", modules.to_str().unwrap());
    }
    let ran = call.run();
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
fn a_client_in_another_language_compiles_and_submits_a_job() {
    match node_modules() {
        Some(_) => holds("typed"),
        None => not_tried("openapi-typescript cannot be had from npm"),
    }
}

#[test]
fn random_requests_are_answered_as_the_document_says() {
    holds("requests");
}
