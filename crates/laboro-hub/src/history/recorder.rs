//! Makes sums of the notes, and samples the queues once a second. Runs beside the HTTP API; what it remembers is
//! bounded in jobs, groups and attempts that run.

use super::history_file::Step;
use super::job::{JobPast, Span};
use super::series::{Queues, Series, Tally};
use super::{Note, Notes, Recorder};
use crate::Handle;
use crate::measures::Measures;
use laboro_api as api;
use laboro_core::{
    Command, GroupId, GroupView, JobId, Outcome, Query, Reply, TaskId, Time, WorkerId,
};
use laboro_net::Clock;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior};

const JOBS_MAX: usize = 500;
const GROUPS_MAX: usize = 100;
/// Attempts that run, as far as is known; more are left out.
const OPEN_MAX: usize = 1_000_000;
/// Attempts whose times are known and whose end is not.
const MEASURED_MAX: usize = 100_000;
/// Tasks that are known to wait for another start.
const AGAIN_MAX: usize = 100_000;
/// Which job is in which group.
const PLACES_MAX: usize = 100_000;
const FAILURES_MAX: usize = 200;

/// Everything that is remembered.
#[derive(Debug, Default)]
pub(super) struct Past {
    all: Series,
    groups: HashMap<GroupId, Series>,
    jobs: HashMap<JobId, JobPast>,
    /// Since the start.
    totals: Totals,
    failures: VecDeque<(GroupId, Span)>,
    /// In order, so that what is cancelled is found without a look at all of them.
    open: BTreeMap<TaskId, (WorkerId, Time)>,
    /// When attempts whose end comes next began and how long they took, as their workers say.
    measured: HashMap<TaskId, (Time, u64)>,
    places: HashMap<JobId, GroupId>,
    /// Tasks that ran and wait for another start, which is not their first.
    again: HashSet<TaskId>,
    heard: u64,
    measures: Measures,
    /// Something is not to be remembered any more, in the file either.
    pub(super) is_shorter: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub started: u64,
    pub done: u64,
    pub failed: u64,
    pub again: u64,
    pub lost: u64,
}

/// How often somebody looks whether there is something to note.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const SAMPLE_EVERY: Duration = Duration::from_secs(1);
/// Time between two looks where nothing happens.
const REST: Duration = Duration::from_secs(60);

pub(super) async fn run(mut recorder: Recorder, handle: Handle, clock: Clock) {
    let mut look = tokio::time::interval(LOOK_EVERY);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut sampled: Option<Instant> = None;
    loop {
        let now = look.tick().await;
        let changes = recorder.history.shared.notes.changes();
        recorder.catch_up(&handle).await;
        if sampled.is_some_and(|sampled| now.duration_since(sampled) < SAMPLE_EVERY) {
            continue;
        }
        sampled = Some(now);
        let Ok(reply) = handle.ask(Command::Query(Query::Groups)).await else { return };
        let Reply::Groups(groups) = reply else { continue };
        let at_ms = clock.now().0;
        recorder.sample(at_ms, &groups);
        recorder.history.shared.notes.sleep(changes, REST).await;
        // Nothing happened in the seconds that were slept through.
        let slept = now.elapsed().as_secs().saturating_sub(1);
        for second in 1..=slept {
            recorder.sample(at_ms + second * 1000, &groups);
            sampled = Some(now + Duration::from_secs(second));
        }
    }
}

impl Recorder {
    fn sample(&mut self, at_ms: u64, groups: &[GroupView]) {
        let mut past = self.history.lock();
        let minutes = past.sample(at_ms, groups);
        let Some(file) = self.file.as_mut().filter(|_| !minutes.is_empty()) else { return };
        let is_shorter = std::mem::take(&mut past.is_shorter);
        if let Err(error) = file.add(&past, &minutes, is_shorter) {
            tracing::warn!("the charts are not kept any more: {error}");
            self.file = None;
        }
    }

    async fn catch_up(&self, handle: &Handle) {
        for notes in self.history.shared.notes.take() {
            let strangers = self.history.lock().strangers(&notes);
            for job in strangers {
                let found = handle.ask(Command::Query(Query::Job(job))).await;
                self.place(handle, job, found.ok()).await;
            }
            self.history.lock().take(&notes);
            // There may be many, and others want this thread too.
            tokio::task::yield_now().await;
        }
    }

    /// A job from before the start: where does it belong?
    async fn place(&self, handle: &Handle, job: JobId, found: Option<Reply>) {
        let Some(Reply::Jobs(views)) = found else { return };
        let Some(view) = views.into_iter().next() else { return };
        let group = handle.ask(Command::Query(Query::Group(view.group))).await;
        if let Ok(Reply::Groups(groups)) = group
            && let Some(group) = groups.first()
        {
            self.history.lock().places.insert(job, group.group);
        }
    }
}

impl Past {
    pub(super) fn new(measures: Measures) -> Past {
        Past { measures, ..Past::default() }
    }

    /// Jobs of which nothing is known, a few of them: the rest come another time.
    fn strangers(&self, notes: &Notes) -> Vec<JobId> {
        let mut strangers: Vec<JobId> = Vec::new();
        for note in &notes.list {
            let job = match note {
                Note::Ended { task, .. } | Note::Started { task, .. } => task.job,
                _ => continue,
            };
            let is_new = !self.places.contains_key(&job) && !strangers.contains(&job);
            if is_new && strangers.len() < 16 {
                strangers.push(job);
            }
        }
        strangers
    }

    pub(super) fn take(&mut self, notes: &Notes) {
        for note in &notes.list {
            match note {
                Note::Made { job, group } => {
                    if self.places.len() >= PLACES_MAX {
                        self.places.clear();
                    }
                    self.places.insert(*job, *group);
                    self.job_entry(*job, notes.at.0, true);
                }
                Note::Added { job, tasks } => {
                    if let Some(job) = self.jobs.get_mut(job) {
                        job.added(*tasks, notes.at);
                    }
                }
                Note::Forgotten { job } => {
                    self.jobs.remove(job);
                    self.places.remove(job);
                }
                Note::GroupForgotten { group } => self.forget_group(*group),
                Note::Started { task, worker } => self.start(*task, *worker, notes.at),
                Note::Measured { task, ended, wall_us } => {
                    if self.measured.len() >= MEASURED_MAX {
                        // Of results that never counted.
                        self.measured.clear();
                    }
                    let wall_ms = wall_us.div_ceil(1000);
                    let began = Time(ended.0.saturating_sub(wall_ms));
                    self.measured.insert(*task, (began, wall_ms));
                }
                Note::Ended { task, worker, outcome, is_final } => {
                    self.end(*task, *worker, *outcome, *is_final, notes.at);
                }
                Note::Back { task, is_lost: true } => {
                    let worker = self.open.get(task).map_or(WorkerId(0), |open| open.0);
                    self.end(*task, worker, Outcome::Lost, false, notes.at);
                }
                Note::Back { task, is_lost: false } => {
                    self.open.remove(task);
                    self.expect_again(*task);
                }
                Note::Cancelled { job, ranges } => {
                    for &(first, last) in ranges {
                        self.cancel(*job, first, last);
                    }
                }
            }
        }
    }

    /// The next group of its number begins without a past.
    fn forget_group(&mut self, group: GroupId) {
        self.groups.remove(&group);
        self.failures.retain(|(other, _)| *other != group);
        self.is_shorter = true;
    }

    fn cancel(&mut self, job: JobId, first: u32, last: u32) {
        let number = |index| TaskId { job, index };
        let open = self.open.range(number(first)..=number(last));
        let cancelled: Vec<TaskId> = open.map(|(&task, _)| task).collect();
        for task in cancelled {
            self.open.remove(&task);
        }
    }

    fn start(&mut self, task: TaskId, worker: WorkerId, at: Time) {
        if self.open.len() < OPEN_MAX {
            self.open.insert(task, (worker, at));
        }
        let is_first = !self.again.remove(&task);
        let submitted = self.jobs.get(&task.job).and_then(|job| job.submitted(task.index));
        if let Some(submitted) = submitted.filter(|_| is_first) {
            self.measures.waited(submitted, at);
        }
        self.count(task.job, at.0, Tally { started: 1, ..Tally::default() });
    }

    fn expect_again(&mut self, task: TaskId) {
        if self.again.len() >= AGAIN_MAX {
            self.again.clear();
        }
        self.again.insert(task);
    }

    fn end(&mut self, task: TaskId, worker: WorkerId, outcome: Outcome, is_final: bool, at: Time) {
        if !is_final {
            self.expect_again(task);
        }
        let tally = match outcome {
            Outcome::Success => Tally { done: 1, ..Tally::default() },
            Outcome::Lost if !is_final => Tally { lost: 1, ..Tally::default() },
            _ if is_final => Tally { failed: 1, ..Tally::default() },
            _ => Tally { again: 1, ..Tally::default() },
        };
        self.count(task.job, at.0, tally);
        // What began before the hub did has no beginning here, and what a worker did unasked has none at all.
        let measured = self.measured.remove(&task);
        let Some((_, leased)) = self.open.remove(&task) else { return };
        // From the start of its process to its end; of a dialect that does not tell, from hand-out to result.
        let (started, took_ms) = measured.unwrap_or((leased, at.since_ms(leased)));
        self.measures.attempt_took(took_ms);
        let span = Span {
            job: task.job.0,
            task: task.number(),
            worker: worker.0,
            started_ms: started.0,
            took_ms,
            outcome,
        };
        self.job_entry(task.job, at.0, false).add(span);
        if !outcome.is_success() {
            if self.failures.len() == FAILURES_MAX {
                self.failures.pop_front();
            }
            let group = self.places.get(&task.job).copied().unwrap_or(NOWHERE);
            self.failures.push_back((group, span));
        }
    }

    fn count(&mut self, job: JobId, at_ms: u64, tally: Tally) {
        self.totals.add(&tally);
        self.all.now.add(&tally);
        self.job_entry(job, at_ms, false).tally.add(&tally);
        if let Some(group) = self.places.get(&job).copied()
            && (self.groups.contains_key(&group) || self.groups.len() < GROUPS_MAX)
        {
            self.groups.entry(group).or_default().now.add(&tally);
        }
    }

    fn job_entry(&mut self, job: JobId, at_ms: u64, is_whole: bool) -> &mut JobPast {
        if self.jobs.len() >= JOBS_MAX && !self.jobs.contains_key(&job) {
            self.make_room();
        }
        self.heard += 1;
        let entry = self.jobs.entry(job).or_insert_with(|| JobPast::new(at_ms, is_whole));
        entry.heard = self.heard;
        entry
    }

    /// A tenth at once, so that the look over all of them is rare.
    fn make_room(&mut self) {
        let mut ages: Vec<u64> = self.jobs.values().map(|job| job.heard).collect();
        let (_, &mut border, _) = ages.select_nth_unstable(JOBS_MAX / 10);
        self.jobs.retain(|_, job| job.heard >= border);
    }

    /// Gives the minutes that are over, of groups only those in which something was.
    pub(super) fn sample(
        &mut self,
        at_ms: u64,
        groups: &[GroupView],
    ) -> Vec<(Option<GroupId>, api::Sample)> {
        let mut minutes = Vec::new();
        let mut sum = Queues::default();
        // The file may tell of groups that were forgotten just before the hub was killed.
        let known: HashSet<GroupId> = groups.iter().map(|view| view.group).collect();
        self.groups.retain(|group, _| known.contains(group));
        for view in groups {
            let queues = Queues::of(&view.counts);
            sum.add(&queues);
            if self.groups.contains_key(&view.group) || self.groups.len() < GROUPS_MAX {
                let minute = self.groups.entry(view.group).or_default().sample(at_ms, &queues);
                let is_empty = |minute: &api::Sample| {
                    *minute == api::Sample { at_ms, ..api::Sample::default() }
                };
                let minute = minute.filter(|minute| !is_empty(minute));
                minutes.extend(minute.map(|minute| (Some(view.group), minute)));
            }
        }
        minutes.extend(self.all.sample(at_ms, &sum).map(|minute| (None, minute)));
        minutes
    }

    /// Of all, and of each group.
    pub(super) fn samples(
        &self,
        step: Step,
    ) -> impl Iterator<Item = (Option<GroupId>, &api::Sample)> {
        let all = self.all.samples(step).iter().map(|sample| (None, sample));
        let groups = self.groups.iter().flat_map(move |(&group, series)| {
            series.samples(step).iter().map(move |sample| (Some(group), sample))
        });
        all.chain(groups)
    }

    /// A sample from before the start.
    pub(super) fn restore(
        &mut self,
        group: Option<GroupId>,
        step: Step,
        sample: api::Sample,
        now: Time,
    ) {
        let series = match group {
            None => &mut self.all,
            Some(group) => {
                if !self.groups.contains_key(&group) && self.groups.len() >= GROUPS_MAX {
                    return;
                }
                self.groups.entry(group).or_default()
            }
        };
        series.restore(step, sample, now.0);
    }

    pub(super) fn series(&self, group: Option<GroupId>) -> api::History {
        match group {
            None => self.all.view(),
            Some(group) => self.groups.get(&group).map(Series::view).unwrap_or_default(),
        }
    }

    pub(super) fn job(&self, job: JobId) -> Option<api::JobHistory> {
        self.jobs.get(&job).map(|past| past.view(job.0))
    }

    pub(super) fn failures(&self, group: Option<GroupId>) -> Vec<api::EndedAttempt> {
        let wanted =
            self.failures.iter().rev().filter(|(of, _)| group.is_none_or(|own| own == *of));
        wanted.take(FAILURES_SHOWN).map(|(_, span)| span.view()).collect()
    }

    pub(super) fn totals(&self) -> Totals {
        self.totals
    }
}

const FAILURES_SHOWN: usize = 50;

/// The group of a job that is not known any more.
const NOWHERE: GroupId = GroupId(u32::MAX);

impl Totals {
    fn add(&mut self, tally: &Tally) {
        self.started += tally.started;
        self.done += tally.done;
        self.failed += tally.failed;
        self.again += tally.again;
        self.lost += tally.lost;
    }
}
