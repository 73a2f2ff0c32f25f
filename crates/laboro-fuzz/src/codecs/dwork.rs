//! The protocol buffers of dwork.

use bytes::BytesMut;
use laboro_dialects::dwork::{Dep, Log, Query, QueryWriter, Task, decode, notes};

const TASKS_MAX: usize = 4096;

pub(crate) fn message(bytes: &[u8]) {
    let _ = notes(bytes);
    let Ok(query) = decode(bytes, TASKS_MAX) else { return };
    assert!(query.tasks.len() <= TASKS_MAX);
    let mut written = BytesMut::new();
    let mut writer = QueryWriter::new(query.kind, &mut written);
    for task in &query.tasks {
        let log: Vec<Log> = task.log().collect();
        let preds: Vec<Dep<'_>> = task.preds().collect();
        writer = writer.task(task.name, task.origin, preds.into_iter(), &log);
    }
    writer = query.name.into_iter().fold(writer, QueryWriter::name);
    writer = query.n.into_iter().fold(writer, QueryWriter::n);
    query.location.into_iter().fold(writer, QueryWriter::location);
    let again = decode(&written, TASKS_MAX).expect("our own words are understood");
    assert_same(&query, &again);
}

fn assert_same(one: &Query<'_>, other: &Query<'_>) {
    assert_eq!((one.kind, one.name, one.n), (other.kind, other.name, other.n));
    assert_eq!(one.location, other.location);
    assert_eq!(one.tasks.len(), other.tasks.len());
    // Successors are read and never written: the hub is not told any.
    let parts = |task: &Task<'_>| {
        let name = (task.name.to_vec(), task.origin.to_vec());
        (name, format!("{:?}", task.preds().collect::<Vec<_>>()), task.log().collect::<Vec<_>>())
    };
    for (one, other) in one.tasks.iter().zip(&other.tasks) {
        assert_eq!(parts(one), parts(other));
    }
}
