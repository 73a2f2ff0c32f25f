//! What was written is what is read, and neighbours take little room.

use super::strategies::batch;
use super::{decoded, encoded};
use crate::record::{Decoder, Encoder};
use laboro_core::{
    Added, CommandWork, Event, JobId, LeaseNo, Name, NewTask, Outcome, Profile, Program, Setting,
    Stdin, TaskId, Then, Time, Work, WorkerId,
};
use proptest::prelude::*;
use std::sync::Arc;

const AT: Time = Time(1_700_000_000_000);

proptest! {
    #[test]
    fn any_batch_comes_back_as_it_was((at, events) in batch()) {
        let bytes = encoded(at, &events);
        prop_assert_eq!(decoded(&bytes), Ok((at, events)));
    }

    #[test]
    fn an_encoder_forgets_one_batch_before_the_next(first in batch(), second in batch()) {
        let mut encoder = Encoder::default();
        encoder.batch(first.0, &first.1);
        let bytes = encoder.batch(second.0, &second.1);
        prop_assert_eq!(bytes, encoded(second.0, &second.1));
    }

    #[test]
    fn records_that_go_on_come_back_in_their_order(batches in prop::collection::vec(batch(), 1..4)) {
        let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
        for (number, (at, events)) in batches.iter().enumerate() {
            if number == 0 { encoder.begin(*at) } else { encoder.go_on(*at) }
            events.iter().for_each(|event| encoder.event(event));
            let read: Result<Vec<Event>, _> = decoder.record(encoder.bytes()).unwrap().collect();
            prop_assert_eq!(&read.unwrap(), events);
        }
    }
}

fn leased(number: u32) -> Event {
    Event::Leased {
        task: TaskId::new(JobId(3), number),
        lease: LeaseNo::new(7, u64::from(number) + 100),
        worker: WorkerId(5),
        until: Some(AT.after_ms(60_000)),
        share: None,
    }
}

fn finished(number: u32) -> Event {
    Event::Finished {
        task: TaskId::new(JobId(3), number),
        worker: WorkerId(5),
        outcome: Outcome::Success,
        then: Then::Done,
        words: None,
    }
}

#[test]
fn a_run_of_leases_or_results_takes_two_bytes_each() {
    let leases: Vec<Event> = (1..=1000).map(leased).collect();
    let results: Vec<Event> = (1..=1000).map(finished).collect();
    let both: Vec<Event> = (1..=1000).flat_map(|n| [finished(n), leased(n + 1000)]).collect();
    assert!(encoded(AT, &leases).len() < 2050);
    assert!(encoded(AT, &results).len() < 2050);
    assert!(encoded(AT, &both).len() < 4100);
}

fn added(work: impl Fn(u32) -> Option<Arc<Work>>, count: u32) -> Event {
    let task = |number| NewTask {
        name: Name::from(format!("task-{number:011}")),
        profile: 0,
        work: work(number),
        preds: Default::default(),
        memo: None,
    };
    Event::Added(Box::new(Added {
        job: JobId(1),
        profiles: vec![Profile::default()],
        arrays: Vec::new(),
        tasks: (0..count).map(task).collect(),
    }))
}

fn script(body: &[u8], setting: &Arc<Setting>) -> Work {
    Work::script(".sh", body.into(), Arc::clone(setting))
}

fn works_of(event: &Event) -> Vec<Arc<Work>> {
    let Event::Added(added) = event else { panic!("{event:?} adds nothing") };
    added.tasks.iter().map(|task| task.work.clone().unwrap()).collect()
}

#[test]
fn a_hundred_thousand_tasks_write_the_work_they_share_once() {
    let body = vec![b'x'; 100_000];
    let one = Arc::new(script(&body, &Arc::default()));
    let event = added(|_| Some(Arc::clone(&one)), 100_000);
    let bytes = encoded(AT, std::slice::from_ref(&event));
    assert!(bytes.len() < 100_000 + 100_000 * 8, "{} bytes", bytes.len());
    let (_, events) = decoded(&bytes).unwrap();
    assert_eq!(events[0], event);
    let works = works_of(&events[0]);
    assert!(works.iter().all(|work| Arc::ptr_eq(work, &works[0])));
}

#[test]
fn equal_neighbours_are_written_once_and_read_back_as_one() {
    let event = added(|_| Some(Arc::new(script(&[b'x'; 1000], &Arc::default()))), 1000);
    let bytes = encoded(AT, std::slice::from_ref(&event));
    assert!(bytes.len() < 1000 + 1000 * 8, "{} bytes", bytes.len());
    let works = works_of(&decoded(&bytes).unwrap().1[0]);
    assert!(works.iter().all(|work| Arc::ptr_eq(work, &works[0])));
}

#[test]
fn different_commands_share_their_setting_again() {
    let setting = Setting { stdin: Stdin::Text(vec![b'i'; 1000].into()), ..Setting::default() };
    let setting = Arc::new(setting);
    let command = |number: u32| {
        let program = Program::Shell(format!("work {number}").into_bytes().into());
        Some(Arc::new(Work::Command(CommandWork { program, setting: Arc::clone(&setting) })))
    };
    let event = added(command, 1000);
    let bytes = encoded(AT, std::slice::from_ref(&event));
    assert!(bytes.len() < 1000 + 1000 * 20, "{} bytes", bytes.len());
    let settings = works_of(&decoded(&bytes).unwrap().1[0]).into_iter().map(|work| {
        let Work::Command(command) = &*work else { panic!("{work:?} is not a command") };
        Arc::clone(&command.setting)
    });
    let settings: Vec<Arc<Setting>> = settings.collect();
    assert!(settings.iter().all(|setting| Arc::ptr_eq(setting, &settings[0])));
}

#[test]
fn tasks_created_one_by_one_take_few_bytes() {
    let events: Vec<Event> = (0..1000)
        .map(|number| {
            let Event::Added(mut event) = added(|_| None, number + 1) else { unreachable!() };
            event.tasks.drain(..number as usize);
            Event::Added(event)
        })
        .collect();
    let bytes = encoded(AT, &events);
    assert!(bytes.len() < 12 * 1000, "{} bytes", bytes.len());
    assert_eq!(decoded(&bytes).unwrap().1, events);
}
