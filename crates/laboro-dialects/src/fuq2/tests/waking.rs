//! Original nodes that come back after the hub or the connection was gone: they are woken if they wait for an answer that
//! is lost, keep what they run, and lose what they have not got.

use super::original::Original;
use super::rig::{Rig, ended};
use crate::fuq2::{Mode, Plain, SeqNumbers};
use crate::session::{HangUp, Output, Session};
use crate::worker::{Assignment, News};
use laboro_core::{ArraySpec, JobId, Outcome, Profile, State, Work};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

fn indexed() -> Work {
    let part = |text: &str| Box::from(text.as_bytes());
    Work::indexed(part("/bin/true"), part("/tmp"), part("/logs"))
}

/// Jobs may share a name, and arrays may not.
fn submit(rig: &mut Rig<Original>, tasks: u32) -> JobId {
    rig.submit_arrays(vec![ArraySpec::numbered("", tasks, indexed())], Profile::default())
}

fn websocket(slots: u32) -> Mode {
    Mode::Plain(Plain { slots, ..Plain::websocket("vm".into(), Vec::new()) })
}

fn rig(slots: u32) -> Rig<Original> {
    Rig::new(websocket(slots), Original::new(slots as usize))
}

fn end(assignment: &Assignment) -> News {
    News::Ended { key: assignment.key, how: ended(Outcome::Success) }
}

/// The rest of the job is run, whatever has happened before.
fn all_is_done(rig: &mut Rig<Original>, job: JobId, tasks: u32) {
    rig.run_all();
    rig.pass(15_000);
    rig.run_all();
    assert_eq!(rig.count(job, State::Done), tasks);
    assert_eq!(rig.hang_up, None);
}

#[test]
fn a_node_that_waits_for_a_lost_answer_is_woken() {
    for is_heard in [false, true] {
        for is_new_hub in [false, true] {
            let mut rig = rig(2);
            let job = submit(&mut rig, 50);
            let started = rig.started();
            rig.tell(end(&started[0]));
            rig.tell_and_cut(end(&started[1]), is_heard);
            assert!(rig.worker.waits());
            if is_new_hub {
                rig.restart_hub();
            }
            rig.reconnect(websocket(2));
            rig.pass(6_000);
            assert!(!rig.worker.waits(), "it was woken");
            assert_eq!(rig.worker.hellos, 2);
            all_is_done(&mut rig, job, 50);
        }
    }
}

#[test]
fn it_is_woken_however_far_it_has_counted_and_whatever_was_noted_of_it() {
    let noted = Arc::new(AtomicU32::new(0));
    let mode = |reached: u32| {
        let noted = Arc::clone(&noted);
        let note = Arc::new(move |number| noted.store(number, Ordering::Relaxed));
        let numbers = SeqNumbers { reached, note: Some(note) };
        Mode::Plain(Plain { slots: 1, numbers, ..Plain::websocket("vm".into(), Vec::new()) })
    };
    for (at, noted_before) in [(10_000, None), (100_000, None), (60_000, Some(0))] {
        let mut node = Original::new(1);
        node.count_from(at);
        let mut rig = Rig::new(mode(0), node);
        let job = submit(&mut rig, 3);
        assert!(noted.load(Ordering::Relaxed) >= at, "it was noted how far it is");
        let started = rig.started();
        rig.tell_and_cut(end(&started[0]), false);
        rig.restart_hub();
        let reached = noted_before.unwrap_or(noted.load(Ordering::Relaxed));
        rig.reconnect(mode(reached));
        rig.pass(10_000);
        assert_eq!(rig.worker.hellos, 2, "at {at}, noted {reached}");
        all_is_done(&mut rig, job, 3);
    }
}

#[test]
fn it_is_woken_also_when_a_task_waits_there_for_the_same_answer() {
    let mut rig = rig(2);
    let job = submit(&mut rig, 1);
    let started = rig.started();
    rig.connected = false;
    let other = submit(&mut rig, 1);
    rig.tell(end(&started[0]));
    rig.worker_hears();
    assert!(rig.worker.waits() && rig.started().is_empty());
    rig.lose_silently();
    rig.restart_hub();
    rig.reconnect(websocket(2));
    rig.pass(6_000);
    assert_eq!((rig.worker.hellos, rig.started().len()), (2, 2), "and one is run again");
    assert_eq!((rig.count(job, State::Leased), rig.count(other, State::Leased)), (1, 1));
}

#[test]
fn a_node_whose_first_hello_was_lost_gets_its_answer() {
    let mut rig = rig(2);
    rig.lose_silently();
    rig.worker = Original::new(2);
    rig.come_back_silent(websocket(2));
    rig.pass(10_000);
    assert!(!rig.worker.waits());
    let job = submit(&mut rig, 5);
    all_is_done(&mut rig, job, 5);
}

#[test]
fn a_node_that_is_busy_keeps_its_task_and_gets_another() {
    let mut rig = rig(2);
    let job = submit(&mut rig, 1);
    let long = rig.started();
    rig.restart_hub();
    rig.reconnect(websocket(2));
    rig.pass(60_000);
    assert_eq!((rig.count(job, State::Leased), rig.worker.hellos), (1, 1));
    let other = submit(&mut rig, 4);
    rig.run_all();
    assert_eq!(rig.count(other, State::Done), 4);
    rig.tell(end(&long[0]));
    assert_eq!((rig.count(job, State::Done), rig.cancelled()), (1, vec![]));
}

#[test]
fn a_task_that_was_lost_on_its_way_to_the_node_is_sent_again() {
    let mut rig = rig(2);
    rig.connected = false;
    let job = submit(&mut rig, 1);
    rig.lose_silently();
    rig.restart_hub();
    rig.reconnect(websocket(2));
    assert_eq!((rig.count(job, State::Leased), rig.started().len()), (1, 0));
    rig.pass(10_000);
    assert_eq!(rig.started().len(), 1);
}

#[test]
fn a_task_that_was_lost_beside_one_that_runs_is_sent_again_when_the_node_speaks() {
    let mut rig = rig(2);
    let job = submit(&mut rig, 1);
    let long = rig.started();
    rig.connected = false;
    let lost = submit(&mut rig, 1);
    rig.cut();
    rig.reconnect(websocket(2));
    rig.pass(30_000);
    assert!(rig.started().is_empty());
    rig.tell(end(&long[0]));
    assert_eq!((rig.count(job, State::Done), rig.started().len()), (1, 1));
    assert_eq!(rig.count(lost, State::Leased), 1);
}

#[test]
fn a_node_that_does_not_answer_is_lost() {
    let mut rig = rig(1);
    let job = submit(&mut rig, 1);
    assert_eq!(rig.started().len(), 1);
    rig.cut();
    rig.reconnect(websocket(1));
    rig.worker.is_deaf = true;
    rig.pass(12_000);
    assert_eq!((rig.count(job, State::Leased), &rig.hang_up), (1, &None));
    rig.pass(5_000);
    assert_eq!(rig.hang_up, Some(HangUp::Silent));
    rig.cut();
    assert_eq!(rig.count(job, State::Ready), 1, "at once: its connection is not waited for");
}

#[test]
fn a_hub_that_stops_gives_no_more_and_answers_what_it_hears() {
    let mut rig = rig(1);
    let job = submit(&mut rig, 3);
    let started = rig.started();
    rig.foreman.last_words(rig.now, &mut Output::default());
    assert!(rig.foreman.answers_late() && !rig.foreman.owes_answers());
    rig.tell(end(&started[0]));
    assert!(!rig.worker.waits() && rig.started().is_empty());
    assert!(!rig.foreman.answers_late(), "nothing runs there");
    rig.cut();
    assert_eq!((rig.count(job, State::Done), rig.count(job, State::Ready)), (1, 2));
}
