//! Bodies of the HTTP API: what is taken is written and read again, and what can be submitted is, to a real
//! core.

use crate::conversation::Nowhere;
use laboro_api::{
    AddTasks, Converter, Eject, Limit, Prioritise, Problem, Selection, StopSlots, SubmitJob, Task,
    TaskSpec, Text,
};
use laboro_core::{
    Archive, Ask, Command, Config, Hub, JobId, JobOptions, Ledger, Limits, Query, Submit, SubmitTo,
    Time, Token,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

pub(crate) fn bodies(bytes: &[u8]) {
    again::<Selection>(bytes);
    again::<Prioritise>(bytes);
    again::<Limit>(bytes);
    again::<StopSlots>(bytes);
    again::<Eject>(bytes);
    again::<AddTasks>(bytes);
    again::<TaskSpec>(bytes);
    // What a client reads.
    again::<Problem>(bytes);
    again::<Task>(bytes);
    if let Some(job) = again::<SubmitJob>(bytes) {
        submit(job);
    }
}

fn again<T: Serialize + DeserializeOwned + PartialEq + Debug>(bytes: &[u8]) -> Option<T> {
    let value: T = serde_json::from_slice(bytes).ok()?;
    let written = serde_json::to_vec(&value).expect("words have a JSON form");
    let read: T = serde_json::from_slice(&written).expect("what is written is read");
    assert_eq!(read, value);
    Some(value)
}

/// As the hub does it.
fn submit(mut job: SubmitJob) {
    let Ok(mut converter) = Converter::new(job.defaults.take()) else { return };
    for task in std::mem::take(&mut job.tasks) {
        if let Err(error) = converter.push(task) {
            return assert!(!error.to_string().is_empty());
        }
    }
    let batch = converter.take();
    let now = Time(1_700_000_000_000);
    let limits = Limits { tasks: 10_000, ..Limits::default() };
    let config = Config { limits, ..Config::default() };
    let (mut hub, _) = Hub::begin(Ledger::default(), config, now, 1);
    let options = JobOptions {
        begin: None,
        name: job.name.as_ref().map(Text::name).unwrap_or_default(),
        open: job.open,
        held: job.held,
        max_running: job.max_running,
        max_fails: job.max_fails,
        key: job.key.as_ref().map(|key| key.bytes().into()),
        own_names: true,
        owner: None,
        on_end: job.on_end.iter().map(|one| one.as_str().into()).collect(),
    };
    let submit = Submit {
        group: job.group.as_ref().map_or_else(|| "default".into(), Text::name),
        job: SubmitTo::New(options),
        profiles: batch.profiles,
        tasks: batch.tasks,
        arrays: batch.arrays,
        unknown_pred: job.unknown_after.into(),
        if_taken: job.if_taken.into(),
    };
    let ask = |command| Ask { token: Token(1), command };
    let pages = [
        Query::Job(JobId(1)),
        Query::Parts { job: JobId(1), from: 0, most: 100 },
        Query::Tasks { job: JobId(1), state: None, from: 0, most: 100 },
    ];
    let mut asks = vec![ask(Command::Submit(submit))];
    asks.extend(pages.map(|page| ask(Command::Query(page))));
    let effects = hub.step(now, asks).release(Nowhere.receipt());
    assert_eq!(effects.len(), 4, "every question is answered");
    hub.ledger().check().expect("a hub adds up whatever is submitted");
}
