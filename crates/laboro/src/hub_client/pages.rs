//! Lists that a hub gives a page at a time, as one row of items. A page is asked for when it is needed.

use super::{Hub, told};
use laboro_api::client::segment;
use laboro_api::{Job, JobState, Jobs, Task, TaskState, Tasks, Worker, Workers};
use std::collections::VecDeque;

/// What is asked for at once, unless fewer are wanted.
const PAGE: u32 = 500;

/// Which jobs.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct JobFilter<'a> {
    pub(crate) group: Option<&'a str>,
    pub(crate) owner: Owner<'a>,
    pub(crate) name: Option<&'a str>,
    pub(crate) state: Option<JobState>,
}

/// Whose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Owner<'a> {
    #[default]
    Anyone,
    Me,
    Named(&'a str),
}

/// Jobs, newest first.
pub(crate) struct Newest<'a> {
    hub: &'a Hub,
    query: String,
    pages: Pages<Job>,
}

impl<'a> Newest<'a> {
    pub(crate) fn new(hub: &'a Hub, wanted: &JobFilter<'_>, page: Option<u32>) -> Newest<'a> {
        let JobFilter { group, owner, name, state } = *wanted;
        let mut query = format!("jobs?order=newest&limit={}", page.unwrap_or(PAGE));
        query.push_str(&of_group(group));
        match owner {
            Owner::Anyone => {}
            Owner::Me => query.push_str("&mine=true"),
            Owner::Named(owner) => query.push_str(&format!("&owner={}", segment(owner))),
        }
        if let Some(name) = name {
            query.push_str(&format!("&name={}", segment(name)));
        }
        if let Some(state) = state {
            query.push_str(&format!("&state={}", state.word()));
        }
        Newest { hub, query, pages: Pages::new() }
    }

    pub(crate) async fn next(&mut self) -> anyhow::Result<Option<Job>> {
        while let Some(from) = self.pages.wanted() {
            let page: Jobs =
                self.hub.client.get(&format!("{}{from}", self.query)).await.map_err(told)?;
            self.pages.take(page.jobs, page.next);
        }
        Ok(self.pages.items.pop_front())
    }
}

/// Tasks of a job by number.
pub(crate) struct TaskPages<'a> {
    hub: &'a Hub,
    query: String,
    pages: Pages<Task>,
}

impl<'a> TaskPages<'a> {
    pub(crate) fn new(
        hub: &'a Hub,
        job: u32,
        state: Option<TaskState>,
        first: u32,
        page: Option<u32>,
    ) -> TaskPages<'a> {
        let state = state.map_or(String::new(), |state| format!("&state={}", state.word()));
        let query = format!("jobs/{job}/tasks?limit={}{state}", page.unwrap_or(PAGE));
        TaskPages { hub, query, pages: Pages::from(first) }
    }

    pub(crate) async fn next(&mut self) -> anyhow::Result<Option<Task>> {
        while let Some(from) = self.pages.wanted() {
            let page: Tasks =
                self.hub.client.get(&format!("{}{from}", self.query)).await.map_err(told)?;
            self.pages.take(page.tasks, page.next);
        }
        Ok(self.pages.items.pop_front())
    }
}

/// Workers by number.
pub(crate) struct WorkerPages<'a> {
    hub: &'a Hub,
    query: String,
    pages: Pages<Worker>,
}

impl<'a> WorkerPages<'a> {
    pub(crate) fn new(hub: &'a Hub, group: Option<&str>, page: Option<u32>) -> WorkerPages<'a> {
        let query = format!("workers?limit={}{}", page.unwrap_or(PAGE), of_group(group));
        WorkerPages { hub, query, pages: Pages::new() }
    }

    pub(crate) async fn next(&mut self) -> anyhow::Result<Option<Worker>> {
        while let Some(from) = self.pages.wanted() {
            let page: Workers =
                self.hub.client.get(&format!("{}{from}", self.query)).await.map_err(told)?;
            self.pages.take(page.workers, page.next);
        }
        Ok(self.pages.items.pop_front())
    }
}

fn of_group(group: Option<&str>) -> String {
    group.map_or(String::new(), |group| format!("&group={}", segment(group)))
}

struct Pages<T> {
    items: VecDeque<T>,
    next: Next,
}

enum Next {
    First,
    From(u32),
    None,
}

impl<T> Pages<T> {
    fn new() -> Pages<T> {
        Pages { items: VecDeque::new(), next: Next::First }
    }

    fn from(first: u32) -> Pages<T> {
        Pages { items: VecDeque::new(), next: Next::From(first) }
    }

    /// The rest of the query for the page that is needed now. A page may be empty and not the last.
    fn wanted(&self) -> Option<String> {
        match self.next {
            _ if !self.items.is_empty() => None,
            Next::First => Some(String::new()),
            Next::From(from) => Some(format!("&from={from}")),
            Next::None => None,
        }
    }

    fn take(&mut self, items: Vec<T>, next: Option<u32>) {
        self.items.extend(items);
        self.next = next.map_or(Next::None, Next::From);
    }
}
