//! What makes a result good, and what its header tells.

use crate::runexp::result::{
    ResLine, ResultHeader, of_wait_status, summary, to_wait_status, wait_status,
};
use laboro_core::Outcome;

fn said(pieces: &[&str]) -> Option<bool> {
    let mut line = ResLine::default();
    pieces.iter().for_each(|piece| line.take(piece.as_bytes()));
    line.said()
}

#[test]
fn the_last_res_line_decides() {
    assert_eq!(said(&["RES:done\n"]), Some(true));
    assert_eq!(said(&["x RES: fine"]), Some(true));
    assert_eq!(said(&["RES: failed\nRES: ok\nbye\n"]), Some(true));
    assert_eq!(said(&["RES: ok\nRES:  FAILED\n"]), Some(false));
    assert_eq!(said(&["nothing\n"]), None);
    assert_eq!(said(&["R", "ES", ":", "done", "\nmore"]), Some(true));
    assert_eq!(said(&["RES:\t Fai", "lED!\n"]), Some(false));
    assert_eq!(said(&["RES: fail\n"]), Some(true));
    assert_eq!(said(&["RES: ok RES:failed"]), Some(false), "anywhere in its line");
    assert_eq!(said(&["RRES:RES: failed"]), Some(false));
    assert_eq!(said(&["res: failed\n"]), None, "the mark is in capitals");
    assert_eq!(said(&["RES:\nfailed\n"]), Some(true), "on another line");
    let long = "x".repeat(200_000);
    assert_eq!(said(&[&long, "RES:", &" ".repeat(200_000), "failed"]), Some(false));
}

#[test]
fn a_header_is_read_as_it_was_written() {
    let header = ResultHeader {
        is_good: false,
        began: "then",
        host: "r1",
        name: b"a -- b",
        command: "bash 'x'",
        ended: "now",
        wait_status: 768,
    };
    let mut text = Vec::new();
    header.write(&mut text);
    assert_eq!(wait_status(&text), Some(768));
    assert_eq!(summary(&text), Some(false));
    assert_eq!(wait_status(b"just output\nProgram exited with status 3\n"), None);
    assert_eq!(summary(b"runexp summary: perhaps\n"), None);
}

#[test]
fn outcomes_survive_a_wait_status() {
    for outcome in [Outcome::Success, Outcome::Exit(3), Outcome::Exit(255)] {
        assert_eq!(of_wait_status(to_wait_status(outcome)), outcome);
    }
    assert_eq!(to_wait_status(Outcome::Signal(9)), 35072, "as recorded of a job that kills itself");
    assert_eq!(of_wait_status(35072), Outcome::Exit(137));
    assert_eq!(of_wait_status(9), Outcome::Signal(9), "from a runner without a shell in between");
}
