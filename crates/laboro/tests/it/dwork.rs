//! `laboro dwork` as people and scripts call it, against a hub with our door, and peers that have nothing
//! of ours in them.

mod hub;
mod python;

use crate::rig::{Ran, Rig};
use hub::Hub;
use laboro_dialects::dwork::Settings;
use std::net::TcpListener;

/// A hub that does not keep a steal waiting.
fn hub() -> Hub {
    Hub::start(Settings { patience_ms: 0, ..Settings::default() })
}

impl Hub {
    fn dwork(&self, rig: &Rig, words: &[&str]) -> Ran {
        let address = self.address.to_string();
        let words = ["dwork", "-s", &address].into_iter().chain(words.iter().copied());
        rig.laboro(words).run()
    }

    /// What is printed when all is well.
    #[track_caller]
    fn prints(&self, rig: &Rig, words: &[&str], text: &str) {
        let ran = self.dwork(rig, words);
        ran.expect(0);
        assert_eq!(ran.out(), text);
    }
}

#[test]
fn everything_the_query_program_can_say_can_be_said() {
    let (rig, hub) = (Rig::new(), hub());
    hub.prints(&rig, &["status"], "dhub: 0 active tasks, 0 ready.\n");
    hub.prints(&rig, &["create", "a"], "");
    hub.prints(&rig, &["create", "b", "a"], "");
    hub.prints(&rig, &["status"], "dhub: 2 active tasks, 1 ready.\n");
    hub.prints(&rig, &["steal", "-q", "w"], "a\n");
    hub.dwork(&rig, &["steal", "w"]).expect(1).says("nothing is ready");
    let none = hub.dwork(&rig, &["steal", "-q", "w"]);
    none.expect(1);
    assert_eq!(none.out(), "No task\n");
    hub.prints(&rig, &["lookup", "a"], "w\n");
    hub.dwork(&rig, &["complete", "a", "--location", "v"]).expect(1).says("a");
    hub.prints(&rig, &["complete", "a", "--location", "w"], "");
    hub.prints(&rig, &["steal", "-n", "5", "-q", "w"], "b\n");
    hub.prints(&rig, &["create", "c"], "");
    hub.prints(&rig, &["transfer", "b", "c", "--location", "w"], "");
    hub.dwork(&rig, &["lookup", "b"]).expect(1).says("nobody has it");
    hub.prints(&rig, &["steal", "-n", "5", "-q", "w"], "c\n");
    hub.prints(&rig, &["exit", "w"], "");
    hub.dwork(&rig, &["exit", "w"]).expect(1).says("does not know this worker");
    hub.prints(&rig, &["steal", "-q"], "c\n");
    hub.prints(&rig, &["complete", "c"], "");
    hub.prints(&rig, &["steal", "-q"], "b\n");
    hub.prints(&rig, &["complete", "b"], "");
    hub.dwork(&rig, &["steal"]).expect(1).says("everything is done");
    hub.dwork(&rig, &["create", "x", "x"]).expect(1).says("refused");
}

#[test]
fn a_file_of_tasks_may_be_in_any_order_and_as_another_system_writes_it() {
    let (rig, hub) = (Rig::new(), hub());
    let mut text = String::from("last, mid ,\r\n\r\nmid,first\r\nfirst\r\n");
    for number in 0..2500 {
        text += &format!("t{number},first\r\n");
    }
    rig.write("tasks.txt", text);
    hub.prints(&rig, &["addfile", "tasks.txt"], "");
    hub.prints(&rig, &["status"], "dhub: 2503 active tasks, 1 ready.\n");
    hub.prints(&rig, &["steal", "-q", "-n", "9"], "first\n");
    hub.prints(&rig, &["complete", "first"], "");
    hub.prints(&rig, &["status"], "dhub: 2502 active tasks, 2501 ready.\n");

    rig.write("cycle.txt", "a,b\nb,a\n");
    hub.dwork(&rig, &["addfile", "cycle.txt"]).expect(2).says("task a would wait for itself");
    hub.dwork(&rig, &["addfile", "missing.txt"]).expect(3).says("missing.txt");
    rig.write("empty.txt", "\n , \n");
    hub.dwork(&rig, &["addfile", "empty.txt"]).expect(2).says("no tasks");
}

#[test]
fn answers_can_be_read_by_programs() {
    let (rig, hub) = (Rig::new(), hub());
    let json = |words: &[&str], code: i32| -> serde_json::Value {
        let ran = hub.dwork(&rig, &[words, &["--json"]].concat());
        ran.expect(code);
        serde_json::from_slice(&ran.out).unwrap()
    };
    assert_eq!(json(&["create", "a\n\\"], 0), serde_json::json!({ "answer": "ok" }));
    let status = json(&["status"], 0);
    assert_eq!((&status["active"], &status["ready"]), (&1.into(), &1.into()));
    let stolen = json(&["steal", "w"], 0);
    assert_eq!(stolen["tasks"][0]["name"], "a\\x0a\\x5c");
    assert_eq!(stolen["tasks"][0]["log"][0]["state"], "stolen");
    assert_eq!(json(&["lookup", "a\n\\"], 0)["location"], "w");
    let missed = json(&["complete", "nobody", "--location", "w"], 1);
    assert_eq!(
        (&missed["answer"], &missed["tasks"][0]["name"]),
        (&"not found".into(), &"nobody".into())
    );
    assert_eq!(json(&["complete", "a\n\\", "--location", "w"], 0)["answer"], "ok");
    assert_eq!(json(&["steal", "w"], 1)["answer"], "exit");
}

#[test]
fn who_is_not_there_or_does_not_answer_is_not_waited_for_for_ever() {
    let rig = Rig::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = listener.local_addr().unwrap().to_string();
    let call = rig.laboro(["dwork", "-s", &silent, "--timeout", "200ms", "status"]);
    call.run().expect(3).says("did not answer within 200ms");
    drop(listener);
    let call = rig.laboro(["dwork", "-s", &silent, "status"]);
    call.run().expect(3).says("is it running");
    rig.laboro(["dwork", "-s", "ipc:///x", "status"]).run().expect(2).says("tcp://host:port");
    rig.laboro(["dwork", "--timeout", "soon", "status"]).run().expect(2).says("--timeout soon");
}

#[test]
fn a_steal_waits_at_the_hub_for_what_another_creates() {
    let (rig, hub) =
        (Rig::new(), Hub::start(Settings { patience_ms: 60_000, ..Settings::default() }));
    let address = hub.address.to_string();
    let thief =
        rig.laboro(["dwork", "-s", &address, "--timeout", "60s", "steal", "-q", "w"]).start();
    hub.prints(&rig, &["create", "a"], "");
    let ran = thief.wait();
    ran.expect(0);
    assert_eq!(ran.out(), "a\n");
}
