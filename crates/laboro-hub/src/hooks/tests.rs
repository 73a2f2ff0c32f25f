//! Targets, who may name them, and the documents of deliveries. Deliveries by a whole hub are in `tests/process`.

use super::allowed::{Requester, refusal};
use super::send::signature;
use super::store::{Delivery, Store, Update};
use super::target::Target;
use crate::config::HookSettings;
use crate::documents::Opening;
use laboro_api::DeliveryState;
use laboro_core::{DocumentChange, Event, JobId, Ledger, Time};
use std::path::Path;

#[test]
fn a_target_is_a_url_an_address_or_a_command() {
    let kinds = [
        ("https://example.org/hook?x=1", "url"),
        ("HTTP://[::1]:8080/", "url"),
        ("mail:alice@example.org", "mail"),
        ("if-failed:mail:alice@example.org", "mail"),
        ("if-failed:https://example.org/", "url"),
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

/// A store, and the documents that it writes.
struct World {
    ledger: Ledger,
    store: Store,
}

impl World {
    fn open(mut ledger: Ledger, file: &Path, now: Time) -> World {
        let mut opening = Opening::of(&ledger);
        let store = Store::open(&mut opening, file, now).unwrap();
        let changes = opening.into_writing().into_changes();
        apply(&mut ledger, changes);
        World { ledger, store }
    }

    fn write(&mut self, update: Update) -> usize {
        let changes = update.changes();
        let bytes =
            changes.iter().map(|change| change.body.as_ref().map_or(0, |body| body.len())).sum();
        apply(&mut self.ledger, changes);
        self.store.put(update);
        bytes
    }

    fn deliver(&mut self, number: u64) {
        let mut one = self.store.get(number).unwrap().clone();
        one.state = DeliveryState::Delivered;
        self.write(self.store.changed(one));
    }
}

fn apply(ledger: &mut Ledger, changes: Vec<DocumentChange>) {
    for change in changes {
        ledger.apply(Time(0), &Event::DocumentChanged(Box::new(change)));
    }
}

#[test]
fn what_is_due_and_the_place_in_the_order_are_in_the_journal() {
    let none = Path::new("/nowhere/hooks.jsonl");
    let mut world = World::open(Ledger::default(), none, Time(100));
    let place = world.store.place.cursor;
    assert_eq!(place, (Time(100), JobId(u32::MAX)), "what ended before is not told");
    let due = vec![delivery(1), delivery(2)];
    world.write(world.store.queued(due, Some((Time(120), JobId(2)))));
    world.deliver(1);
    let mut world = World::open(world.ledger, none, Time(900));
    assert_eq!(world.store.place.cursor, (Time(120), JobId(2)));
    assert_eq!(
        world.store.waiting().map(|one| (one.number, one.job)).collect::<Vec<_>>(),
        [(2, Some(2))]
    );
    world.write(world.store.queued(vec![delivery(3)], None));
    assert_eq!(world.store.all().next().unwrap().number, 3, "a number is used once");
}

#[test]
fn a_file_of_an_earlier_version_is_read_without_a_line_that_was_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("hooks.jsonl");
    let old = include_str!("../../../laboro/tests/it/hub/old_files/hooks.jsonl");
    std::fs::write(&file, format!("{old}{{\"deliveries\":[{{\"num")).unwrap();
    let world = World::open(Ledger::default(), &file, Time(900));
    assert_eq!(world.store.place.cursor, (Time(1_795_035_055_468), JobId(2)));
    let states: Vec<_> = world.store.all().map(|one| (one.number, one.state)).collect();
    assert_eq!(states, [(2, DeliveryState::Delivered), (1, DeliveryState::Pending)]);
    std::fs::write(&file, "{\"cursor\":[1\n{\"cursor\":[1,2]}\n").unwrap();
    assert!(Store::open(&mut Opening::of(&world.ledger), &file, Time(0)).is_err());
}

#[test]
fn what_is_kept_and_what_a_delivery_writes_stay_small_however_many_there_were() {
    let mut world = World::open(Ledger::default(), Path::new("/nowhere"), Time(0));
    for number in 1..=2000 {
        let bytes = world.write(world.store.queued(vec![delivery(1)], None));
        assert!(bytes < 300, "{bytes}");
        world.deliver(number);
    }
    assert_eq!(world.store.pending(), 0);
    assert!(world.store.all().count() <= 600);
    let kept = ["delivery", "hooks"].map(|kind| world.ledger.documents_of(&kind.into()).count());
    assert_eq!(kept, [world.store.all().count(), 1]);
}

#[test]
fn a_lost_task_an_ejected_worker_and_a_stopped_job_are_noted() {
    use super::notes::{HookNotes, Note};
    use laboro_core::{ReturnReason, Standing, TaskId, WorkerId};
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
