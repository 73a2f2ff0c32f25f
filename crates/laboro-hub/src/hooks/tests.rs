//! Targets, who may name them, and the file of deliveries. Deliveries by a whole hub are in `tests/process`.

use super::allowed::{Requester, refusal};
use super::send::signature;
use super::store::{Delivery, Store};
use super::target::Target;
use crate::config::HookSettings;
use laboro_api::DeliveryState;
use laboro_core::{JobId, Time};

#[test]
fn a_target_is_a_url_an_address_or_a_command() {
    let kinds = [
        ("https://example.org/hook?x=1", "url"),
        ("HTTP://[::1]:8080/", "url"),
        ("mail:alice@example.org", "mail"),
        ("notify-send done", "command"),
        ("curl https://example.org", "command"),
    ];
    for (text, wanted) in kinds {
        let kind = match Target::parse(text).unwrap() {
            Target::Url(_) => "url",
            Target::Mail(_) => "mail",
            Target::Command(_) => "command",
        };
        assert_eq!(kind, wanted, "{text}");
    }
    let wrong = [
        "",
        "mail:nobody",
        "mail:-oQ/tmp@example.org",
        "mail:a@b\nBcc: all@example.org",
        "https://",
        "https://user:word@example.org/",
        "https://example.org/a b",
        "https://example.org\\@evil.example/",
    ];
    for text in wrong {
        assert!(Target::parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn who_submits_may_name_only_what_the_settings_allow() {
    let settings = HookSettings {
        allow_urls: vec!["https://hooks.example.org/team".into(), "http://10.0.0.1:8080".into()],
        allow_mail: vec!["@example.org".into(), "bob@other.example".into()],
        ..HookSettings::default()
    };
    let may = |asker, target: &str| refusal(&settings, asker, &[target.to_owned()]).is_none();
    for target in [
        "https://hooks.example.org/team/a",
        "https://HOOKS.example.org:443/team",
        "http://10.0.0.1:8080/x",
    ] {
        assert!(may(Requester::Submitter, target), "{target}");
    }
    let outside = [
        "https://hooks.example.org/teams",
        "https://hooks.example.org/team/../admin",
        "https://hooks.example.org/team/%2e%2e/admin",
        "http://hooks.example.org/team/a",
        "https://hooks.example.org.evil.example/team",
        "http://10.0.0.1/x",
        "http://169.254.169.254/latest",
    ];
    for target in outside {
        assert!(!may(Requester::Submitter, target), "{target}");
        assert!(may(Requester::Admin, target), "{target}");
    }
    assert!(may(Requester::Submitter, "mail:alice@example.org"));
    assert!(may(Requester::Submitter, "mail:bob@other.example"));
    assert!(!may(Requester::Submitter, "mail:eve@other.example"));
    assert!(!may(Requester::Submitter, "touch /tmp/x") && !may(Requester::Admin, "touch /tmp/x"));
    assert!(may(Requester::OwnUser, "touch /tmp/x"));
    let none = HookSettings::default();
    assert!(refusal(&none, Requester::Submitter, &["https://example.org".into()]).is_some());
}

#[test]
fn the_signature_is_the_hmac_of_rfc_4231() {
    let wanted = "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
    assert_eq!(signature(b"Jefe", b"what do ya want for nothing?"), wanted);
}

fn delivery(job: u32) -> Delivery {
    Delivery {
        number: 0,
        event: "job_done".into(),
        at_ms: 5,
        to: "true".into(),
        text: "done".into(),
        body: "{}".into(),
        job: Some(job),
        owner: None,
        group: None,
        secret_file: None,
        state: DeliveryState::Pending,
        tries: 0,
        next_ms: 0,
        ended_ms: None,
        error: None,
    }
}

#[test]
fn what_is_due_and_the_place_in_the_order_outlive_the_process() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hooks.jsonl");
    let mut store = Store::open(&path, Time(100)).unwrap();
    assert_eq!(store.cursor, (Time(100), JobId(u32::MAX)), "what ended before is not told");
    store.queue(vec![delivery(1), delivery(2)], Some((Time(120), JobId(2)))).unwrap();
    let mut first = store.get(1).unwrap().clone();
    first.state = DeliveryState::Delivered;
    store.change(first).unwrap();
    drop(store);
    // A line that was not written to its end.
    let mut text = std::fs::read_to_string(&path).unwrap();
    text.push_str("{\"deliveries\":[{\"num");
    std::fs::write(&path, text).unwrap();
    let mut store = Store::open(&path, Time(900)).unwrap();
    assert_eq!(store.cursor, (Time(120), JobId(2)));
    assert_eq!(
        store.waiting().map(|one| (one.number, one.job)).collect::<Vec<_>>(),
        [(2, Some(2))]
    );
    store.queue(vec![delivery(3)], None).unwrap();
    assert_eq!(store.all().next().unwrap().number, 3, "a number is used once");
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600, "URLs are secrets");
}

#[test]
fn the_file_stays_small_however_much_was_delivered() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hooks.jsonl");
    let mut store = Store::open(&path, Time(0)).unwrap();
    for number in 1..=1000 {
        store.queue(vec![delivery(1)], None).unwrap();
        let mut one = store.get(number).unwrap().clone();
        one.state = DeliveryState::Delivered;
        store.change(one).unwrap();
    }
    assert_eq!(store.pending(), 0);
    assert!(store.all().count() <= 750);
    assert!(std::fs::read_to_string(&path).unwrap().lines().count() <= 1502);
}

#[test]
fn a_lost_task_an_ejected_worker_and_a_stopped_job_are_noted() {
    use super::notes::{HookNotes, Note};
    use laboro_core::{Event, ReturnReason, Standing, TaskId, WorkerId};
    let task = TaskId::new(JobId(1), 2);
    let returned = |why| Event::Returned { task, why, preds: Vec::new() };
    let judged = |standing| Event::Judged {
        worker: WorkerId(3),
        standing,
        reason: "smoke".into(),
        until: None,
    };
    let events = [
        returned(ReturnReason::Left),
        returned(ReturnReason::Lapsed),
        judged(Standing::OnHold),
        judged(Standing::Ejected),
        Event::JobStopped { job: JobId(4), stopped: true },
        Event::JobStopped { job: JobId(4), stopped: false },
    ];
    let ejected = Note::Ejected { worker: WorkerId(3), reason: "smoke".into() };
    assert_eq!(HookNotes::of(&events), [Note::Lost(task), ejected, Note::Stopped(JobId(4))]);
}
