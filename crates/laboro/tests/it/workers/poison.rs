//! Tasks that no worker takes or survives, beside tasks that have nothing to do with them.

use super::hub::HubRig;
use crate::rig::until;
use laboro_core::{Command, JobId, Profile, Query, Reply, State, TaskId, TaskRef, TaskView};
use laboro_hub::config::{Listen, Settings};

fn task(hub: &HubRig, job: JobId, number: u32) -> TaskView {
    let task = TaskRef::Id(TaskId::new(job, number));
    match hub.ask(Command::Query(Query::Task { group: "default".into(), task })) {
        Reply::Task(view) => *view,
        other => panic!("{other:?}"),
    }
}

/// The process number of its worker may come late. It kills no other: it may still be there when the next worker is.
const KILLS: &str = "until test -e well || kill -9 $(cat pid$COME); do sleep 0.02; done";

fn with_http(settings: &mut Settings) {
    settings.http = Listen::At("127.0.0.1:0".parse().unwrap());
}

#[test]
fn a_command_of_too_many_words_is_refused_at_the_door() {
    let hub = HubRig::with(with_http);
    let _worker = hub.worker("one", &[]);
    let innocent = hub.submit(100, "true", Profile::default());
    let access = hub.access();
    let mut words = vec!["submit", "--access", &access, "--", "echo"];
    words.extend(std::iter::repeat_n("a", 139_999));
    let ran = hub.rig.laboro(words).run();
    ran.expect(4).says("has 140000 words, and a worker takes at most 131072");
    hub.until_done(innocent);
}

/// Six workers die of it, the last with nothing else on it. Tasks beside it lose time, and nothing else.
#[test]
fn a_task_that_kills_its_workers_is_held_and_a_hundred_others_are_done() {
    let hub = HubRig::with(with_http);
    let poison = hub.submit(1, KILLS, Profile { priority: 5, ..Profile::default() });
    let innocent = hub.submit(100, "sleep 0.05", Profile::default());
    let mut killed = 0;
    // The hub knows of a loss when the next worker comes, and counts it where it had heard that the task arrived. The last
    // worker stays: what is lost with it would be held, too.
    let _worker = loop {
        assert!(killed < 20, "it goes on killing workers: {:?}", task(&hub, poison, 1));
        killed += 1;
        let call = hub.worker_call("one", &["-j", "4"]);
        let mut worker = call.env("COME", &killed.to_string()).start();
        hub.rig.write(&format!("pid{killed}"), worker.pid().to_string());
        until("it was killed, or the task is held", || {
            worker.has_ended() || hub.counts(poison).of(State::Held) == 1
        });
        if !worker.has_ended() {
            break worker;
        }
    };
    let held = task(&hub, poison, 1);
    assert_eq!((held.lost_attempts, held.failed_attempts), (6, 0));
    let why = held.message.unwrap();
    assert!(why.contains("its worker was lost 6 times, the last time with no other task"), "{why}");

    hub.until_done(innocent);
    let access = hub.access();
    let number = poison.0.to_string();
    let shown = hub.rig.laboro(["explain", "--access", &access, &format!("{number}/1")]).run();
    shown.expect(0);
    assert!(shown.out().contains("it is held: its worker was lost 6 times"), "{}", shown.out());
    let listed = hub.rig.laboro(["tasks", "--access", &access, &number]).run();
    assert!(listed.expect(0).out().contains("held"), "{}", listed.out());
    // A person may say that it is well now.
    hub.rig.write("well", "");
    hub.rig.laboro(["release", "--access", &access, &number]).run().expect(0);
    hub.until_done(poison);
}
