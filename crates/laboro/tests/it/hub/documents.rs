//! What pools, hooks and schedules keep in the journal: taken over from the files of an earlier version, and changed here as if
//! time had passed.

use super::receiver::Receiver;
use super::whole::Whole;
use crate::rig::{Rig, until};
use laboro_core::{Ask, Command, Config, DocumentChange, Hub, Time, Token};
use laboro_journal::FileJournal;
use laboro_journal::log::Options;
use serde_json::Value;
use std::path::Path;

/// Of the hub of this directory, which does not run, one document is made another.
pub(super) fn change(hub: &Path, kind: &str, name: &str, change: impl FnOnce(&mut Value)) -> Value {
    let (mut journal, ledger, _) =
        FileJournal::open(&hub.join("journal"), Options::default()).unwrap();
    let kind_name = kind.into();
    let (_, body) =
        ledger.documents_of(&kind_name).find(|(own, _)| own.bytes() == name.as_bytes()).unwrap();
    let mut value: Value = serde_json::from_slice(body).unwrap();
    change(&mut value);
    let (mut hub, first) = Hub::begin(ledger, Config::default(), Time(0), 1);
    journal.commit_blocking(first).unwrap();
    let changed = DocumentChange::set(kind, name, value.to_string().as_bytes());
    let command = Command::ChangeDocuments(vec![changed]);
    let batch = hub.step(Time(0), vec![Ask { token: Token(1), command }]);
    journal.commit_blocking(batch).unwrap();
    journal.close().unwrap();
    value
}

/// Written by the version before documents: a delivery that waits and one that was taken, a schedule that has run, and a
/// pool with an allocation in the queue.
const OLD_FILES: [(&str, &str); 3] = [
    ("hooks.jsonl", include_str!("old_files/hooks.jsonl")),
    ("schedules.json", include_str!("old_files/schedules.json")),
    ("pools.json", include_str!("old_files/pools.json")),
];

fn put(rig: &Rig, name: &str, text: &str) {
    let name = format!("hub/{name}");
    rig.write(&name, text);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(rig.at(&name), mode).unwrap();
}

#[test]
fn files_of_an_earlier_version_are_taken_over_once() {
    let receiver = Receiver::start(&[200]);
    let rig = Rig::new();
    let job = rig.at("night.txt");
    rig.write("night.txt", "true\n");
    let schedule =
        format!("[[schedule]]\nname = \"night\"\nfile = {job:?}\ncron = \"0 0 1 1 *\"\n");
    rig.write("hub.toml", format!("{schedule}catch_up = false\n"));
    let here = format!("127.0.0.1:{}", receiver.port);
    for (name, text) in OLD_FILES {
        put(&rig, name, &text.replace("127.0.0.1:9", &here));
    }
    let mut hub = Whole::at(rig);
    until("what was due is delivered", || receiver.all().len() == 1);
    assert_eq!(receiver.all()[0].path, "/told");
    assert_eq!(receiver.all()[0].json()["text"], "job 1 was cancelled: 0 of 1 task done");
    let check = |hub: &Whole| {
        until("both are delivered", || {
            let all = hub.run(&["hooks", "--json"]).expect(0).events();
            all.len() == 2 && all.iter().all(|one| one["state"] == "delivered")
        });
        let pool = hub.run(&["pool", "show", "night", "--json"]).expect(0).events().remove(0);
        let one = &pool["allocations"][0];
        assert_eq!((&one["id"], &one["number"]), (&"1.stand-in".into(), &1.into()), "{pool}");
        assert_eq!(pool["submitted_total"], 1);
        assert!(pool["events"].to_string().contains("1.stand-in was submitted"), "{pool}");
        let schedule = hub.run(&["schedule", "show", "night", "--json"]).expect(0).events();
        assert_eq!(schedule[0]["last"]["job"], 3);
        for (name, _) in OLD_FILES {
            assert!(!hub.rig.at("hub").join(name).exists(), "{name} is of no use any more");
            assert!(hub.rig.at("hub").join(format!("{name}.old")).exists(), "{name} is not lost");
        }
    };
    check(&hub);
    hub.kill_hub();
    hub.start_hub();
    until("the hub is there again", || hub.run(&["jobs"]).status.success());
    check(&hub);
    assert_eq!(receiver.all().len(), 1, "what was delivered is not due again");
    // What was put there by hand since is not taken for news.
    hub.kill_hub();
    put(&hub.rig, "pools.json", &OLD_FILES[2].1.replace("1.stand-in", "2.stand-in"));
    hub.start_hub();
    until("the hub is there again", || hub.run(&["jobs"]).status.success());
    check(&hub);
}
