//! Who a worker without a name was before. On a byte stream it reports only what runs there, so the worker that held
//! one of these tasks is looked up, and if it can be the same one, it continues under the name that its leases have.

use super::super::naming::HeldTask;
use super::asked::Asked;
use super::{Foreman, ForemanPhase};
use crate::session::{Output, SessionContext};
use laboro_core::{Command, Query, Reply, TaskRef, TaskView, Time, WorkerRef, WorkerView};

/// How far the search has come.
#[derive(Debug, Default)]
pub(super) struct FormerSearch {
    /// Which of the running tasks is looked up next.
    next: usize,
    /// Nobody else ever had the last one.
    is_first: bool,
}

/// Tasks that are looked up at most. The first will do, unless its result was taken and only the answer lost.
const LOOKUPS_MAX: usize = 256;

impl Foreman {
    /// Starts over, for a new HELLO.
    pub(super) fn search_former(&mut self, out: &mut Output) {
        self.search = FormerSearch::default();
        self.search_on(out);
    }

    fn search_on(&mut self, out: &mut Output) {
        let ForemanPhase::Joining { who, running, .. } = &self.phase else { return };
        let at = self.search.next;
        self.search.next += 1;
        match running.get(at).filter(|_| at < LOOKUPS_MAX) {
            Some(&HeldTask { task, .. }) => {
                let (group, task) = (self.context.group.clone(), TaskRef::Id(task));
                out.ask(Asked::Holder.tag(), Command::Query(Query::Task { group, task }));
            }
            // Nobody that is known here: then it is new.
            None => out.ask(Asked::Look.tag(), Command::Query(Query::Worker(who.clone()))),
        }
    }

    pub(super) fn found_holder(&mut self, reply: &Reply, out: &mut Output) {
        let holder = |view: &TaskView| {
            view.lease?;
            view.attempts.last().map(|last| last.worker)
        };
        match reply {
            Reply::Task(view) if let Some(worker) = holder(view) => {
                self.search.is_first = view.failed_attempts == 0 && view.lost_attempts == 0;
                let query = Query::Worker(WorkerRef::Id(worker));
                out.ask(Asked::Former.tag(), Command::Query(query));
            }
            _ => self.search_on(out),
        }
    }

    pub(super) fn found_former(&mut self, now: Time, reply: Reply, out: &mut Output) {
        let former = match &reply {
            Reply::Workers(views) => views.first().filter(|view| self.may_be(view)),
            _ => None,
        };
        let Some(name) = former.map(|view| view.name.clone()) else { return self.search_on(out) };
        if let ForemanPhase::Joining { who, .. } = &mut self.phase {
            *who = WorkerRef::Name { group: self.context.group.clone(), name };
        }
        self.plain_join(now, reply, out);
    }

    /// It came from the same machine, and is away. Or seems to be here: a connection whose end nobody saw. Then
    /// only a task counts that nobody else ever had, because one that lapsed may run in two places.
    fn may_be(&self, view: &WorkerView) -> bool {
        let is_ours = view.group == self.context.group && view.dialect.bytes() == b"fuq2";
        let is_near = view.name.bytes().starts_with(prefix(&self.context).as_bytes());
        is_ours && is_near && (!view.connected || self.search.is_first)
    }
}

/// How the names begin of all that come from there.
pub(super) fn prefix(context: &SessionContext) -> String {
    let peer = context.peer.map_or("local".to_owned(), |peer| peer.to_string());
    format!("fuq-{peer}-")
}
