//! Where the person is, what was seen there last, and what keys do. Draws nothing and asks nobody.

use super::keyboard::Key;
use super::news::{JobNews, OverviewNews, TaskNews, ViewNews};
use crate::hub_client::{Verb, WorkerVerb};
use crate::output::safe;
use laboro_api::{Job, TaskState, Worker};
use ratatui::widgets::TableState;
use std::time::{Duration, Instant};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum View {
    Overview,
    Jobs,
    Workers,
    /// Its number, and the state of the tasks that are shown.
    Job(u32, Option<TaskState>),
    Task(u32, u32),
}

/// What a key leads to, outside of this program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wish {
    Nothing,
    Leave,
    Change(Verb, u32, Option<u32>),
    Tell(WorkerVerb, u32),
}

pub(super) struct Model {
    pub hub: String,
    pub view: View,
    /// Where Back goes.
    trail: Vec<View>,
    pub rows: TableState,
    pub overview: OverviewNews,
    pub jobs: Vec<Job>,
    pub workers: Vec<Worker>,
    pub job: Option<Box<JobNews>>,
    pub task: Option<Box<TaskNews>>,
    /// Lines of output above the end that is shown.
    pub scrolled: u16,
    /// The last word about something that was done, or went wrong.
    pub said: Option<(String, Instant)>,
    /// What is done if the answer to these words is yes.
    pub asks: Option<(Wish, String)>,
    looked: Option<Instant>,
}

const SAID_FOR: Duration = Duration::from_secs(5);
const PAGE: usize = 10;
/// Of a worker, in a question that has one line.
const NAME_SHOWN: usize = 14;

impl Model {
    pub(super) fn new(hub: String) -> Model {
        Model {
            hub,
            view: View::Overview,
            trail: Vec::new(),
            rows: TableState::default().with_selected(0),
            overview: OverviewNews::default(),
            jobs: Vec::new(),
            workers: Vec::new(),
            job: None,
            task: None,
            scrolled: 0,
            said: None,
            asks: None,
            looked: None,
        }
    }

    /// How long until the next look.
    pub(super) fn due(&self, every: Duration) -> Duration {
        self.looked.map_or(Duration::ZERO, |looked| every.saturating_sub(looked.elapsed()))
    }

    pub(super) fn hear(&mut self, news: ViewNews) {
        self.looked = Some(Instant::now());
        if self.said.as_ref().is_some_and(|(_, when)| when.elapsed() > SAID_FOR) {
            self.said = None;
        }
        match news {
            ViewNews::Overview(news) => self.overview = *news,
            ViewNews::Jobs(jobs) => self.jobs = jobs,
            ViewNews::Workers(workers) => self.workers = workers,
            ViewNews::Job(news) => self.job = Some(news),
            ViewNews::Task(news) => self.task = Some(news),
            ViewNews::Trouble(words) => self.say(words),
        }
        let most = self.count().saturating_sub(1);
        self.rows.select(Some(self.rows.selected().unwrap_or(0).min(most)));
    }

    pub(super) fn say(&mut self, words: String) {
        self.said = Some((words, Instant::now()));
        self.looked = None;
    }

    pub(super) fn press(&mut self, key: Key) -> Wish {
        if let Some((wish, _)) = self.asks.take() {
            return if key == Key::Letter('y') { wish } else { Wish::Nothing };
        }
        match key {
            Key::Leave => return Wish::Leave,
            Key::Letter('1') => self.turn(View::Overview),
            Key::Letter('2') => self.turn(View::Jobs),
            Key::Letter('3') => self.turn(View::Workers),
            Key::Next => self.turn(match self.view {
                View::Overview => View::Jobs,
                View::Jobs | View::Job(..) | View::Task(..) => View::Workers,
                View::Workers => View::Overview,
            }),
            Key::Up => self.walk(-1),
            Key::Down => self.walk(1),
            Key::PageUp => self.walk(-(PAGE as isize)),
            Key::PageDown => self.walk(PAGE as isize),
            Key::Open => self.open(),
            Key::Back => self.back(),
            Key::Letter('f') => self.filter(),
            Key::Letter('h') => return self.change(Verb::Hold),
            Key::Letter('r') => return self.change(Verb::Release),
            Key::Letter('t') => return self.change(Verb::Retry),
            Key::Letter('c') => self.ask_to_cancel(),
            Key::Letter(letter) if self.view == View::Workers => self.ask_about_worker(letter),
            Key::Letter(_) | Key::Resized => {}
        }
        Wish::Nothing
    }

    fn ask_to_cancel(&mut self) {
        let wish = self.change(Verb::Cancel);
        let words = match wish {
            Wish::Change(_, job, None) => format!("cancel job {job}?"),
            Wish::Change(_, job, Some(task)) => format!("cancel task {job}/{task}?"),
            Wish::Nothing | Wish::Leave | Wish::Tell(..) => return,
        };
        self.asks = Some((wish, words));
    }

    fn ask_about_worker(&mut self, letter: char) {
        let Some(worker) = self.rows.selected().and_then(|at| self.workers.get(at)) else { return };
        let by = || "ejected with laboro top".to_owned();
        let (verb, what) = match letter {
            'd' => (WorkerVerb::Drain, "drain NAME, once what it runs is done?"),
            's' => (WorkerVerb::Stop(None), "stop NAME now, and give others what it runs?"),
            'e' => (WorkerVerb::Eject(by()), "eject NAME, until it is pardoned?"),
            'p' => (WorkerVerb::Pardon, "pardon NAME?"),
            'l' => (WorkerVerb::Lift, "lift NAME: let it work again?"),
            _ => return,
        };
        // A long name does not push the answers off the screen.
        let name: String = safe(&worker.name.to_string()).chars().take(NAME_SHOWN).collect();
        self.asks = Some((Wish::Tell(verb, worker.worker), what.replace("NAME", &name)));
    }

    /// The job, or the task, that a key would do something to.
    fn change(&self, verb: Verb) -> Wish {
        let at = self.rows.selected().unwrap_or(0);
        match &self.view {
            View::Overview => self.overview.jobs.get(at),
            View::Jobs => self.jobs.get(at),
            View::Job(job, _) => return Wish::Change(verb, *job, None),
            View::Task(job, task) => return Wish::Change(verb, *job, Some(*task)),
            View::Workers => None,
        }
        .map_or(Wish::Nothing, |job| Wish::Change(verb, job.job, None))
    }

    fn turn(&mut self, view: View) {
        self.trail.clear();
        self.go(view);
    }

    fn go(&mut self, view: View) {
        match view {
            View::Job(job, _) if self.job.as_ref().is_some_and(|news| news.job.job != job) => {
                self.job = None;
            }
            View::Task(..) => self.task = None,
            _ => {}
        }
        self.view = view;
        self.rows = TableState::default().with_selected(0);
        self.scrolled = 0;
        self.looked = None;
    }

    fn open(&mut self) {
        let at = self.rows.selected().unwrap_or(0);
        let next = match &self.view {
            View::Overview => self.overview.jobs.get(at).map(|job| View::Job(job.job, None)),
            View::Jobs => self.jobs.get(at).map(|job| View::Job(job.job, None)),
            View::Job(job, _) => {
                let task = self.job.as_ref().and_then(|news| news.tasks.get(at));
                task.map(|task| View::Task(*job, task.task))
            }
            View::Workers | View::Task(..) => None,
        };
        if let Some(next) = next {
            self.trail.push(self.view.clone());
            self.go(next);
        }
    }

    fn back(&mut self) {
        if let Some(before) = self.trail.pop() {
            self.go(before);
        }
    }

    /// Which tasks of a job are shown.
    fn filter(&mut self) {
        if let View::Job(job, state) = self.view {
            let next = match state {
                None => Some(TaskState::Running),
                Some(TaskState::Running) => Some(TaskState::Failed),
                Some(TaskState::Failed) => Some(TaskState::Ready),
                Some(_) => None,
            };
            self.go(View::Job(job, next));
        }
    }

    fn walk(&mut self, step: isize) {
        if matches!(self.view, View::Task(..)) {
            let up = u16::try_from(step.unsigned_abs()).unwrap_or(u16::MAX);
            self.scrolled = match step < 0 {
                true => self.scrolled.saturating_add(up),
                false => self.scrolled.saturating_sub(up),
            };
            return;
        }
        let most = self.count().saturating_sub(1);
        let at = self.rows.selected().unwrap_or(0).saturating_add_signed(step).min(most);
        self.rows.select(Some(at));
    }

    fn count(&self) -> usize {
        match self.view {
            View::Overview => self.overview.jobs.len(),
            View::Jobs => self.jobs.len(),
            View::Workers => self.workers.len(),
            View::Job(..) => self.job.as_ref().map_or(0, |news| news.tasks.len()),
            View::Task(..) => 0,
        }
    }
}
