//! Our worker at a foreman that is not ours.

use super::hub::python;
use crate::rig::{Call, Live, Ran, Rig, until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

struct Foreman<'a> {
    rig: &'a Rig,
    live: Live,
    address: String,
}

/// Its program says its number and fails where that is 3.
fn start<'a>(rig: &'a Rig, mode: &str, tasks: u32, more: &[&str]) -> Foreman<'a> {
    rig.write("say", "#!/bin/sh\necho task $1\n[ $1 != 3 ]\n");
    std::fs::set_permissions(rig.at("say"), PermissionsExt::from_mode(0o755)).unwrap();
    rig.write("auth", "sekrit\n");
    rig.write("wrong", "other\n");
    for file in ["auth", "wrong"] {
        std::fs::set_permissions(rig.at(file), PermissionsExt::from_mode(0o600)).unwrap();
    }
    let (dir, tasks) = (rig.dir().to_str().unwrap(), tasks.to_string());
    make_certificate(rig);
    let live = python(rig, "foreman.py", &[&[mode, dir, &tasks], more].concat()).start();
    until("it listens", || live.out().contains("on 127.0.0.1:"));
    let address = live.out().trim().strip_prefix("on ").unwrap().to_owned();
    Foreman { rig, live, address }
}

/// A hub makes one when it starts.
fn make_certificate(rig: &Rig) {
    let words = ["hub", "--dir=hub", "--http=off", "--native=127.0.0.1:0", "--durability=os"];
    let hub = rig.laboro(words).start();
    until("it listens", || hub.out().contains("native on "));
}

impl Foreman<'_> {
    fn worker(&self, way: &str, more: &[&str]) -> Call {
        let from = format!("--from=fuq+{way}://{}", self.address);
        let always = ["worker", &from, "-j2", "--auth-file=auth"];
        self.rig.laboro(always.iter().chain(more))
    }

    fn works(&self, way: &str, more: &[&str]) -> Ran {
        let ran = self.worker(way, &[&["--ca=hub/tls.pem"], more].concat()).run();
        ran.expect(0);
        ran
    }

    /// What it heard, once it has been told to end.
    fn heard(self) -> Value {
        self.live.signal(Signal::TERM);
        let ran = self.live.wait();
        ran.expect(0);
        let out = ran.out();
        let heard: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
        assert_eq!(heard["bad"], json!([]), "{heard}");
        heard
    }
}

fn updates(heard: &Value) -> Vec<Value> {
    let mut updates = heard["updates"].as_array().unwrap().clone();
    updates.sort_by_key(|update| update[0].as_i64());
    updates
}

fn expected() -> Vec<Value> {
    vec![
        json!([1, true, "done"]),
        json!([2, true, "done"]),
        json!([3, false, "error encountered: exit status 1"]),
        json!([4, true, "done"]),
    ]
}

#[test]
fn by_websocket_it_works_as_the_originals_node_does() {
    let rig = Rig::new();
    let foreman = start(&rig, "plain", 4, &[]);
    foreman.works("wss", &[]);
    let heard = foreman.heard();
    assert_eq!(updates(&heard), expected());
    assert_eq!((&heard["hellos"], &heard["close"]), (&json!([2]), &json!(1000)));
    assert_eq!(rig.read("logs/sim_2.log"), "task 2\n");
    assert_eq!(rig.read("logs/sim_3.log"), "task 3\n");
}

#[test]
fn by_polling_it_works_as_the_originals_node_does() {
    let rig = Rig::new();
    let foreman = start(&rig, "plain", 4, &[]);
    foreman.works("https", &[]);
    let heard = foreman.heard();
    assert_eq!(updates(&heard), expected());
    // A result is said again when the next task is long in coming, as on a busy machine.
    let (connections, known) = (heard["connections"].as_u64(), heard["known"].as_u64());
    assert!(connections <= known.map(|known| known + 2), "one a slot: {heard}");
    assert_eq!(rig.read("logs/sim_4.log"), "task 4\n");
}

#[test]
fn one_that_polls_and_has_told_its_results_leaves_when_it_is_told_to() {
    let rig = Rig::new();
    let foreman = start(&rig, "idle", 1, &[]);
    let worker = foreman.worker("https", &["--ca=hub/tls.pem", "--drain=1s"]).start();
    until("it asks for more", || foreman.live.out().contains("idle"));
    worker.signal(Signal::TERM);
    worker.wait().expect(0);
    assert_eq!(foreman.heard()["updates"], json!([[1, true, "done"]]));
}

/// The originals say 500 to such a result, for ever.
#[test]
fn results_whose_answers_are_lost_hold_up_nothing() {
    let rig = Rig::new();
    let foreman = start(&rig, "lossy", 12, &[]);
    foreman.works("https", &[]);
    let heard = foreman.heard();
    assert_eq!(updates(&heard).len(), 12);
    assert!(heard["known"].as_u64() >= Some(4), "every third answer was lost: {heard}");
}

/// Begun by the first task of each slot, which go on until there is a file `go`.
fn busy_worker(foreman: &Foreman, more: &[&str]) -> Live {
    let script = "#!/bin/sh\n: > began_$1\nuntil test -e go; do sleep 0.01; done\n";
    foreman.rig.write("say", script);
    let worker = foreman.worker("wss", &[&["--ca=hub/tls.pem"], more].concat()).start();
    for task in [1, 2] {
        let began = foreman.rig.at(&format!("began_{task}"));
        until("both slots work", || began.exists());
    }
    worker
}

/// An original gives nothing to another that it has given once.
#[test]
fn who_leaves_an_original_foreman_while_it_works_loses_nothing() {
    let rig = Rig::new();
    let foreman = start(&rig, "plain", 9, &[]);
    let worker = busy_worker(&foreman, &[]);
    worker.signal(Signal::TERM);
    until("it has left the connection on which tasks come", || {
        foreman.live.out().contains("closed")
    });
    rig.write("go", "");
    worker.wait().expect(0);
    let heard = foreman.heard();
    assert_eq!((&heard["given"], &heard["hellos"]), (&json!([1, 2]), &json!([2])), "{heard}");
    assert_eq!(updates(&heard), expected()[..2]);
}

#[test]
fn what_is_not_finished_at_an_original_foreman_has_failed() {
    let rig = Rig::new();
    let foreman = start(&rig, "plain", 9, &[]);
    let worker = busy_worker(&foreman, &["--drain=0s"]);
    worker.signal(Signal::TERM);
    worker.wait().expect(0);
    let heard = foreman.heard();
    let failed = |task: u32| json!([task, false, "error encountered: the worker had to leave"]);
    assert_eq!(updates(&heard), [failed(1), failed(2)]);
}

#[test]
fn results_that_cannot_be_handed_in_are_told_by_the_exit_status() {
    let rig = Rig::new();
    let foreman = start(&rig, "plain", 9, &[]);
    let worker = busy_worker(&foreman, &["--drain=1s", "--grace=0s"]);
    assert_eq!(foreman.heard()["updates"], json!([]));
    worker.signal(Signal::TERM);
    rig.write("go", "");
    worker.wait().expect(3).says("not told");
}

#[test]
fn a_cookie_that_the_foreman_forgot_is_renewed() {
    for way in ["wss", "https"] {
        let rig = Rig::new();
        let foreman = start(&rig, "forgetful", 1, &[]);
        foreman.works(way, &[]);
        let heard = foreman.heard();
        assert_eq!((&heard["reauths"], heard["updates"].as_array().unwrap().len()), (&json!(1), 1));
    }
}

#[test]
fn what_the_foreman_cancels_is_ended_and_told() {
    let rig = Rig::new();
    let foreman = start(&rig, "cancel", 1, &[]);
    rig.write("say", "#!/bin/sh\nexec sleep 600\n");
    foreman.works("wss", &[]);
    let heard = foreman.heard();
    assert_eq!(heard["updates"], json!([[1, false, "error encountered: signal: killed"]]));
}

#[test]
fn an_older_foreman_is_understood_in_its_numbers() {
    let rig = Rig::new();
    let foreman = start(&rig, "plain", 2, &["5"]);
    foreman.works("wss", &["--numbering=oldest"]);
    assert_eq!(updates(&foreman.heard()), expected()[..2]);
}

#[test]
fn whom_it_does_not_trust_and_who_does_not_trust_it_is_not_worked_for() {
    let rig = Rig::new();
    let foreman = start(&rig, "plain", 1, &[]);
    foreman.worker("wss", &[]).run().expect(2).says("choose what to trust");
    let pin = "00".repeat(32);
    foreman.worker("wss", &["--pin", &pin]).run().expect(3).says("its certificate is not trusted");
    let from = format!("--from=fuq+https://{}", foreman.address);
    rig.laboro(["worker", &from, "--insecure"]).run().expect(2).says("--auth-file");
    for way in ["wss", "https"] {
        let from = format!("--from=fuq+{way}://{}", foreman.address);
        let call = rig.laboro(["worker", &from, "--insecure", "--auth-file=wrong"]);
        call.run().expect(3).says("does not accept the password");
    }
    foreman.worker("wss", &["--insecure"]).run().expect(0);
    assert_eq!(foreman.heard()["updates"].as_array().unwrap().len(), 1);
}
