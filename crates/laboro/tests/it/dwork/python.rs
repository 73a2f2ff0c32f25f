//! libzmq and Google's protocol buffers on the other side: the sockets and the codec that original clients
//! are made of.

use super::hub::Hub;
use crate::rig::{Rig, python};
use std::path::PathBuf;
use std::process::Command;

fn hub_and(options: &str, case: &str) {
    let rig = Rig::new();
    let hub = Hub::start(&rig, options);
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(python());
    command.arg(here.join("tests/it/dwork/client.py")).arg(&hub.address).arg(case);
    let ran = rig.call(command).run();
    ran.expect(0);
    assert_eq!(ran.out().trim(), "good");
}

#[test]
fn a_req_socket_creates_steals_and_completes() {
    hub_and("", "lockstep");
}

#[test]
fn a_dealer_socket_pipelines_and_is_answered_in_order() {
    hub_and("", "pipeline");
}

#[test]
fn many_workers_share_a_graph_and_all_of_it_is_done_once() {
    hub_and("", "workers");
}

#[test]
fn sockets_that_come_and_go_leave_nothing_behind() {
    hub_and(",stay", "restless");
}

#[test]
fn a_thousand_clients_at_once_are_all_served() {
    hub_and("", "crowd");
}

#[test]
fn a_thousand_half_open_connections_keep_nobody_waiting() {
    hub_and("", "half_open");
}

#[test]
fn sockets_of_the_same_name_are_told_apart() {
    hub_and("", "twins");
}

#[test]
fn what_is_no_request_is_answered_with_error_or_dropped() {
    hub_and("", "bare");
}
